"""Markdown as HTML: what is shown, and that no attack gets through, seen as an HTML parser sees it."""

import html.parser
import multiprocessing
import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub import markdown
from tests.markdown.attacks import ATTACKS, PATHOLOGICAL

PLENTY = 60  # seconds, on a machine that does other things too: a bad one would take hours


class Reader(html.parser.HTMLParser):
    """Elements with their attributes, and the text, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.others: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    handle_pi = unknown_decl = handle_comment


def read(source: str) -> Reader:
    reader = Reader()
    reader.feed(source)
    reader.close()
    return reader


def is_harmless(reader: Reader) -> bool:
    """Strict on purpose, and written apart from what it judges."""
    allowed = {"class", "href", "title", "rel", "target", "start"}
    for tag, attributes in reader.elements:
        assert tag in markdown.TAGS, tag
        assert set(attributes) <= allowed or (tag, attributes) == ("pre", {"tabindex": "0"}), attributes
        assert re.fullmatch(r"(language-[\w+#.-]+|left|center|right)?", attributes.get("class") or ""), attributes
        if tag == "a":
            address = "".join(c for c in attributes.get("href") or "" if c > " ")
            assert attributes["rel"] == "noopener noreferrer"
            assert attributes["target"] == "_blank"
            scheme = re.match(r"([^/?#]*?):", address)
            assert scheme is None or scheme[1].lower() in {"http", "https", "mailto"}, address
    return not reader.others


def test_there_are_enough_attacks_and_none_twice() -> None:
    assert len(set(ATTACKS)) == len(ATTACKS) >= 60


@pytest.mark.parametrize("source", ATTACKS, ids=ascii)
def test_no_attack_gets_through(source: str) -> None:
    rendered = markdown.render(source)
    rendered.encode()
    assert is_harmless(read(rendered))
    assert "\x00" not in rendered
    markdown.problems(source)


@given(st.lists(st.sampled_from([*ATTACKS, "\n", "\n\n", "> ", "- ", "`", "**", "    "]), max_size=6).map("".join))
@settings(deadline=None)
def test_no_mixture_of_attacks_gets_through(source: str) -> None:
    assert is_harmless(read(markdown.render(source)))


def test_turning_characters_are_seen_instead_of_obeyed() -> None:
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", markdown.render("`a\u202eb` \u2066c\u2069"))


def _both(source: str) -> None:
    markdown.render(source)
    markdown.problems(source)


@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_no_text_takes_long(name: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=_both, args=(PATHOLOGICAL[name],))
    process.start()
    process.join(PLENTY)
    ended = process.exitcode
    process.kill()
    process.join()
    assert ended == 0


RENDERED = {
    "# One": "<h2>One</h2>",
    "###### Six": "<h6>Six</h6>",
    "```python\nprint(1 < 2)\n```": '<pre tabindex="0"><code class="language-python">print(1 &lt; 2)\n</code></pre>',
    "```c++ title\nx\n```": '<pre tabindex="0"><code class="language-c++">x\n</code></pre>',
    "[a](https://x.example/y?z=1#w)": (
        '<p><a href="https://x.example/y?z=1#w" target="_blank" rel="noopener noreferrer">a</a></p>'
    ),
    "[a](next.md)": '<p><a href="next.md" target="_blank" rel="noopener noreferrer">a</a></p>',
    "[a](#part)": '<p><a href="#part" target="_blank" rel="noopener noreferrer">a</a></p>',
    "<me@x.example>": '<p><a href="mailto:me@x.example" target="_blank" rel="noopener noreferrer">me@x.example</a></p>',
    "![a tree](tree.png)": '<p><a href="tree.png" target="_blank" rel="noopener noreferrer">a tree</a></p>',
    "~~gone~~ **strong** *em* `code`": "<p><s>gone</s> <strong>strong</strong> <em>em</em> <code>code</code></p>",
    "3. three": '<ol start="3">\n<li>three</li>\n</ol>',
    "a <b>b</b>": "<p>a &lt;b&gt;b&lt;/b&gt;</p>",
    "안녕 *하세요*": "<p>안녕 <em>하세요</em></p>",
}


@pytest.mark.parametrize("source", RENDERED)
def test_markdown_looks_as_it_should(source: str) -> None:
    assert markdown.render(source).strip() == RENDERED[source]


def test_tables_have_so_many_columns_and_cells_and_the_rest_is_shown_as_written() -> None:
    """Rows may leave cells out: a table of 1.8 KB had 60,000, and a text as many such tables as fit into it."""

    def table(columns: int, rows: int) -> str:
        return f"{'a|' * columns}\n{'-|' * columns}\n{'x|' * rows}".replace("x|", "x|\n") + "\n"

    for text, tables, said in (
        (table(50, 3), 1, []),
        (table(51, 3), 0, [(1, markdown.TOO_WIDE)]),
        (f"text\n\n- {table(300, 0)}", 0, [(3, markdown.TOO_WIDE)]),
        (table(50, 1200) * 40, 1, [(202, markdown.TOO_MANY)]),
        (table(10, 99) * 11, 10, [(1021, markdown.TOO_MANY)]),
        (f"```\n{table(60, 1)}```\n", 0, []),
    ):
        shown = markdown.render(text)
        assert shown.count("<table>") == tables
        assert [problem for problem in markdown.problems(text) if problem in said] == said
        assert shown.count("<td") + shown.count("<th>") <= markdown.MOST_CELLS
        assert markdown.too_wide(text) == next((line for line, what in said if what == markdown.TOO_WIDE), None)


def test_a_table_keeps_its_alignment_without_a_style() -> None:
    elements = read(markdown.render("|a|b|\n|:-:|-:|\n|1|2|")).elements
    assert [a.get("class") for tag, a in elements if tag in {"th", "td"}] == ["center", "right"] * 2


PROBLEMS: dict[str, list[tuple[int, str]]] = {
    "fine\n\n[a](http://x.example) `<b>`\n\n```html\n<p>\n```": [],
    "one\ntwo <b>x</b>": [(2, "raw HTML"), (2, "raw HTML")],
    "\n\n<div>\nx\n</div>": [(3, "raw HTML")],
    "<!-- a comment -->": [(1, "raw HTML")],
    "one\n[a](javascript:x)": [(2, "a link that is none: javascript:x")],
    "[a](data:text/html,x)": [(1, "a link that is none")],
    "[a]()": [(1, "without an address")],
    "[a](my page.html)": [(1, "looks like a link and is none: [a](my page.html)")],
    "- x\n- ![a](b.png)": [(2, "a picture")],
    "a\n\u202eb": [(2, "turns the text")],
}


@pytest.mark.parametrize("source", PROBLEMS, ids=ascii)
def test_what_would_not_be_shown_as_meant_is_said_with_its_line(source: str) -> None:
    found = markdown.problems(source)
    assert [line for line, _ in found] == [line for line, _ in PROBLEMS[source]]
    assert all(words in said for (_, said), (_, words) in zip(found, PROBLEMS[source], strict=True)), found


@pytest.mark.parametrize("judge", [markdown.render, markdown.problems], ids=["render", "problems"])
def test_nothing_is_made_of_nothing(judge: Callable[[str], object]) -> None:
    assert not judge("")


def test_every_accepted_link_has_a_scheme_of_the_list_or_none() -> None:
    for address in ("http://a", "HTTPS://a", "mailto:a@b", "a/b", "/a", "#a", "?a=b:c", "//a", ""):
        assert markdown.is_link(address)
        assert urlsplit(address).scheme.lower() in {"", *markdown.SCHEMES}
    for address in ("javascript:1", "java\nscript:1", "a:b", "data:,", " vbscript:x", "http//:a:b:c"[5:]):
        assert markdown.is_link(address) is address.startswith("/"), address


def test_the_same_text_is_rendered_once_and_what_is_kept_is_bounded() -> None:
    markdown._render.cache_clear()
    for _ in range(3):
        markdown.render("# One", headings_from=2)
    markdown.render("# One", headings_from=3)
    found = markdown._render.cache_info()
    assert (found.hits, found.misses, found.maxsize) == (2, 2, markdown.KEPT)
