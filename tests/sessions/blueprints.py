"""Blueprints for tests: the smallest, one with everything, and a strategy for valid ones."""

from typing import Any

from hypothesis import strategies as st

from codehub import names

SMALLEST: dict[str, Any] = {
    "steps": ["LEARN", "COMPLETE"],
    "learningContent": ["# Hello"],
    "encouragement": "Well done",
}
SINGLE: dict[str, Any] = {
    "id": "loop-count",
    "kind": "single",
    "prompt": "How many lines does this print?",
    "choices": [{"id": "a", "text": "2"}, {"id": "b", "text": "3"}],
    "answer": "b",
    "feedback": {"a": "`range(3)` begins at 0"},
}
MULTIPLE: dict[str, Any] = {
    "id": "types",
    "kind": "multiple",
    "prompt": "Which are immutable?",
    "choices": [{"id": "t", "text": "tuple"}, {"id": "l", "text": "list"}, {"id": "s", "text": "str"}],
    "answer": ["t", "s"],
    "feedback": {"l": "A list can grow"},
}
TEXT: dict[str, Any] = {
    "id": "capital",
    "kind": "text",
    "prompt": "The capital of Korea?",
    "answer": ["Seoul", "서울"],
    "feedback": {"Busan": "Larger"},
}
ACTIVITY: dict[str, Any] = {
    "template": "jupyterlab",
    "instructions": "Write `hello.py`.",
    "files": {"hello.py": "# here\n", "data/a.txt": "1\r\n2"},
    "checks": [
        {"id": "runs", "title": "It runs", "command": "python hello.py", "timeoutSeconds": 5, "hint": "Look at line 1"},
        {"id": "there", "title": "It is there", "command": "test -f hello.py"},
    ],
}
FULL: dict[str, Any] = {
    "version": 1,
    "steps": ["LEARN", "CHECK", "PRACTICE", "COMPLETE"],
    "learningContent": ["# One", "# Two"],
    "checkQuestions": [SINGLE, MULTIPLE, TEXT],
    "practiceActivity": ACTIVITY,
    "encouragement": "Well done",
}

# What Markdown, YAML and folders might trip over, and a few letters.
_letters = "abc09 #-`~<>!:\"'\\|{}[]&*%@,?./=+_$가é\u00a0\ufeff\u200b\U0001f600"
_controls = "\n\n\n\r\t\x01\x1b\x7f\x85\u2028\u2029\x0b\x0c"
texts = st.text(st.sampled_from(_letters + _controls), max_size=60)
markdown = st.one_of(
    texts.filter(lambda text: text.strip() != ""),
    st.sampled_from(
        [
            "---",
            "<!-- next -->",
            "<!-- \\next -->",
            "## a",
            "\\## a",
            "```question",
            "```\nopen",
            "~~~\n## x",
            "    code",
        ]
    ),
    st.lists(
        st.sampled_from(["---", "<!-- next -->", "## a", "```", "```question", "text", "", "  x", "\\## b"]), min_size=1
    )
    .map("\n".join)
    .filter(lambda text: text.strip() != ""),
)
lines = st.text(st.sampled_from(_letters), min_size=1, max_size=30)
lines = lines.map(str.strip).filter(bool)
_seen = [letter for letter in _letters if names.complaint(f"a{letter}") is None]
titles = st.text(st.sampled_from(_seen), min_size=1, max_size=30).map(str.strip)
titles = titles.filter(lambda text: bool(text) and names.complaint(text) is None)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
_names = st.from_regex(r"[a-z0-9_.][a-z0-9_. -]{0,8}[a-z0-9_]", fullmatch=True).filter(lambda name: name != "..")
paths = st.lists(_names, min_size=1, max_size=3).map("/".join)


@st.composite
def questions(draw: st.DrawFn, id_: str) -> dict[str, Any]:
    kind = draw(st.sampled_from(["single", "multiple", "text"]))
    question: dict[str, Any] = {"id": id_, "kind": kind, "prompt": draw(markdown)}
    if kind == "text":
        accepted = draw(st.lists(lines, min_size=1, max_size=3))
        return {**question, "answer": accepted[0] if len(accepted) == 1 and draw(st.booleans()) else accepted}
    choices = draw(st.lists(lines, min_size=1, max_size=4, unique=True))
    question["choices"] = [{"id": choice, "text": draw(markdown)} for choice in choices]
    question["feedback"] = {choice: draw(markdown) for choice in choices if draw(st.booleans())}
    right = draw(st.lists(st.sampled_from(choices), min_size=1, unique=True))
    return {**question, "answer": right[0] if kind == "single" else right}


@st.composite
def activities(draw: st.DrawFn) -> dict[str, Any]:
    found = draw(st.dictionaries(paths, texts, max_size=4))
    folders = {"/".join(path.split("/")[:depth]) for path in found for depth in range(1, path.count("/") + 1)}
    activity: dict[str, Any] = {
        "instructions": draw(markdown),
        "files": {path: text for path, text in found.items() if path not in folders},
        "checks": [
            {"id": id_, "title": draw(titles), "command": draw(markdown), "timeoutSeconds": draw(st.integers(1, 60))}
            | ({"hint": draw(markdown)} if draw(st.booleans()) else {})
            for id_ in draw(st.lists(ids, max_size=3, unique=True))
        ],
    }
    return activity | ({"template": "jupyterlab"} if draw(st.booleans()) else {})


@st.composite
def blueprints(draw: st.DrawFn) -> dict[str, Any]:
    steps = draw(st.lists(st.sampled_from(["LEARN", "CHECK", "PRACTICE"]), max_size=5))
    made: dict[str, Any] = {"steps": [*steps, "COMPLETE"], "encouragement": draw(markdown)}
    if "LEARN" in steps or draw(st.booleans()):
        made["learningContent"] = draw(st.lists(markdown, min_size=1, max_size=4))
    if "CHECK" in steps:
        made["checkQuestions"] = [
            draw(questions(id_)) for id_ in draw(st.lists(ids, min_size=1, max_size=3, unique=True))
        ]
    if "PRACTICE" in steps:
        made["practiceActivity"] = draw(activities())
    return made
