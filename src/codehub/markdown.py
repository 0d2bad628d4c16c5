"""Markdown becomes safe HTML here and nowhere else: pages show what `render` makes, `course check` says its `problems`.

Twice bounded: the parser knows no raw HTML and no link but to the web, and a sanitiser lets through a short list of
elements after it. Nothing is loaded from elsewhere (the pages' content security policy forbids it), so a picture
becomes a link to it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

SCHEMES = frozenset({"http", "https", "mailto"})
LONGEST = 200_000  # characters that are rendered: more than any text of a blueprint has
KEPT = 128  # texts with their HTML: some 60 MB, were all of them as long as a blueprint's text can be
MOST_COLUMNS = 50  # of a table; a wider one is shown as it is written
MOST_CELLS = 10_000  # of all tables of a text: rows may leave out cells, so that a short text could have millions
TOO_WIDE = f"a table of more than {MOST_COLUMNS} columns, which is not shown as one: make several of it"
TOO_MANY = f"tables of more than {MOST_CELLS} cells together; what is beyond is shown as it is written"
MOST_NESTED = 20  # of quotes, lists, emphasis in each other; what is deeper is shown as it is written
TAGS = frozenset(
    {"a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"}
    | {"strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}, "td": {"class"}, "th": {"class"}}
# They turn what follows around: code that reads one way and runs another.
_turning = re.compile("[\u202a-\u202e\u2066-\u2069]")
_language = re.compile(r"language-[\w+#.-]{1,40}")
_aligned = re.compile(r"text-align:(left|center|right)")
_like_a_link = re.compile(r"\[[^\[\]\n]+\]\([^()\n]*\)")


def render(text: str, *, headings_from: int = 2) -> str:
    """HTML of known elements only. `headings_from`: what `#` becomes, as a page has its own first heading.

    It takes up to 20 µs for a character: pages call it in a thread, and the same texts again and again.
    """
    return _render(text[:LONGEST], headings_from)


@lru_cache(maxsize=KEPT)
def _render(text: str, headings_from: int) -> str:
    tokens = _parser.parse(_readable(text)[:LONGEST])
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + headings_from - 1)}"
        elif token.type in {"td_open", "th_open"} and (found := _aligned.search(str(token.attrGet("style") or ""))):
            token.attrs = {"class": found[1]}  # the pages' policy allows no style in an element
        elif token.type == "inline":
            token.children = list(_without_pictures(token.children or []))
    return _clean(_parser.renderer.render(tokens, _parser.options, {}))


def problems(text: str) -> list[tuple[int, str]]:
    """What would not be shown as its author meant it: the line (from 1), and what is wrong."""
    found = [(line, "a character that turns the text after it around") for line in _lines_with(_turning, text)]
    tables: dict[str, Any] = {}
    tokens = _lenient.parse(_readable(text)[:LONGEST], tables)
    found += tables.get(REFUSED, ())
    for token in tokens:
        first = (token.map or [0])[0] + 1
        if token.type == "html_block":
            found.append((first, _no_html(token.content)))
        elif token.type == "inline":
            found += _in_line(token, first)
    return sorted(set(found))


def too_wide(text: str) -> int | None:
    """The line (from 1) of a table that has too many columns to be accepted; looked for only where one may be."""
    if not any(line.count("|") >= MOST_COLUMNS for line in text.split("\n")):
        return None
    tables: dict[str, Any] = {}
    _lenient.parse(_readable(text)[:LONGEST], tables)
    return next((line for line, what in tables.get(REFUSED, ()) if what == TOO_WIDE), None)


def is_link(address: str) -> bool:
    """Whether a link may lead there: to the web, to a mail, or to a place relative to the page."""
    bare = re.sub(r"[\x00-\x20\x7f-\x9f]", "", address)  # as browsers read it
    try:
        scheme = urlsplit(bare).scheme.lower()
    except ValueError:
        return False
    return scheme in SCHEMES if scheme else not re.match(r"[^/?#]*:", bare)


def _readable(text: str) -> str:
    """Half surrogate pairs cannot be sent; a NUL becomes the same sign by the parser."""
    return _turning.sub("\ufffd", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _without_pictures(children: Sequence[Token]) -> Iterator[Token]:
    inside = 0
    for token in children:
        inside += token.nesting if token.type in {"link_open", "link_close"} else 0
        if token.type != "image":
            yield token
            continue
        label = Token("text", "", 0, content=token.content or str(token.attrGet("src")))
        if inside:  # a link in a link is none
            yield label
        else:
            yield Token("link_open", "a", 1, attrs={"href": token.attrGet("src") or ""})
            yield label
            yield Token("link_close", "a", -1)


def _keep(tag: str, name: str, value: str) -> str | None:
    if tag == "code":
        return value if name == "class" and _language.fullmatch(value) else None
    if tag in {"td", "th"}:
        return value if value in {"left", "center", "right"} else None
    if tag == "ol":
        return value if re.fullmatch(r"[0-9]{1,9}", value) else None
    return value if name != "href" or is_link(value) else None


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(TAGS),
        clean_content_tags={"script", "style"},
        attributes=ATTRIBUTES,
        attribute_filter=_keep,
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer",
        # A long line of code is scrolled by keys, too.
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
        strip_comments=True,
    )


def _in_line(token: Token, first: int) -> Iterator[tuple[int, str]]:
    """Line ends within a paragraph are tokens of their own."""
    line = first
    for child in token.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            line += 1
        elif child.type == "html_inline":
            yield line, _no_html(child.content)
        elif child.type in {"link_open", "image"}:
            address = str(child.attrGet("href") or child.attrGet("src") or "")
            if not address:
                yield line, "a link without an address"
            elif not is_link(address):
                yield line, f"a link that is none: {address[:60]} (http, https, mailto and relative ones are)"
            elif child.type == "image":
                yield line, "a picture, which is shown as a link: pages load nothing from elsewhere"
        elif child.type == "text" and (found := _like_a_link.search(child.content)):
            yield line, f"looks like a link and is none: {found[0][:60]} (no spaces in an address, or put it in < >)"


def _no_html(source: str) -> str:
    return f"raw HTML, which is shown as it is written: {source.strip().splitlines()[0][:60]}"


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    return (number for number, line in enumerate(text.split("\n"), 1) if pattern.search(line))


CELLS, REFUSED = "cells", "refused"  # of what was parsed so far, in the parser's `env`


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The library's rule for tables within our bounds, so that the time for a text grows with its length."""
    columns = _columns(state, start + 1) if start + 2 <= end else 0
    if not columns or silent:
        return 0 < columns <= MOST_COLUMNS and table(state, start, end, True)
    refused: list[tuple[int, str]] = state.env.setdefault(REFUSED, [])
    rows = (MOST_CELLS - state.env.setdefault(CELLS, 0)) // columns
    if columns > MOST_COLUMNS or not rows:
        if table(state, start, start + 2, True):
            refused.append((start + 1, TOO_WIDE if columns > MOST_COLUMNS else TOO_MANY))
        return False
    last = min(end, start + 1 + rows)
    if not table(state, start, last, False):
        return False
    state.env[CELLS] += columns * (state.line - start - 1)
    if state.line == last < end and not state.isEmpty(last):
        refused.append((last + 1, TOO_MANY))
    return True


def _columns(state: StateBlock, line: int) -> int:
    """Of a table whose second line this is; 0: it is none."""
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    return sum(1 for part in text.split("|") if part.strip()) if text[:1] in {"|", "-", ":"} else 0


class _Strict(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 (the library's name)
        return is_link(url)


class _Lenient(MarkdownIt):
    """Sees what the other would show as text."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802
        return True


_OPTIONS: dict[str, Any] = {"linkify": False, "typographer": False, "maxNesting": MOST_NESTED}
_parser = _Strict("commonmark", {**_OPTIONS, "html": False}).enable(["table", "strikethrough"])
_lenient = _Lenient("commonmark", {**_OPTIONS, "html": True}).enable(["table", "strikethrough"])
for _one in (_parser, _lenient):
    _one.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})  # as the library has it
