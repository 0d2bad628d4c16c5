"""The measurable part of how the code should read. Where a limit is wrong for a passage, change the passage first."""

import ast
import pathlib
import re
import statistics

import pytest

ROOT = pathlib.Path(__file__).parents[1]
LEARNERS = tuple(str(ROOT / "src" / "codehub" / "courses" / name) for name in ("example", "shipped"))
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if not str(path).startswith(LEARNERS))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
IMPURE = {"asyncio", "os", "time", "random", "pathlib", "subprocess", "asyncpg", "redis", "structlog", "codehub.clock"}


def lines(path: pathlib.Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def functions(path: pathlib.Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, FUNCTION)]
    return [(f"{path.relative_to(ROOT)}:{f.name}", (f.end_lineno or f.lineno) - f.lineno + 1) for f in found]


def percentile(values: list[int], part: float) -> int:
    return sorted(values)[int(part * (len(values) - 1))]


def test_files_are_short() -> None:
    sizes = [lines(path) for path in SOURCES]
    assert statistics.median(sizes) <= 150
    assert percentile(sizes, 0.9) <= 400
    assert [str(path) for path in [*SOURCES, *TESTS] if lines(path) > 600] == []


def test_functions_are_short() -> None:
    sizes = [size for path in SOURCES for _, size in functions(path)]
    assert statistics.median(sizes) <= 9
    assert percentile(sizes, 0.9) <= 30
    assert [name for path in [*SOURCES, *TESTS] for name, size in functions(path) if size > 70] == []


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "rules.py"], ids=lambda p: p.parent.name)
def test_rules_are_pure(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Await | ast.AsyncFunctionDef)]
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name in IMPURE or name.split(".")[0] in IMPURE}


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_says_what_it_is_for(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if tree.body and path.name != "model.py":
        assert ast.get_docstring(tree), "no docstring"


def test_only_the_clock_knows_the_time() -> None:
    allowed = {"clock.py", "processes.py", "middleware.py"}  # a start-up before any clock; how long a request took
    telling = re.compile(r"\b(datetime\.now|datetime\.utcnow|time\.time|time\.monotonic|asyncio\.sleep)\(")
    found = [str(p) for p in SOURCES if p.name not in allowed and telling.search(p.read_text(encoding="utf-8"))]
    assert found == []


def test_only_policy_decides_who_may_do_what() -> None:
    asking = re.compile(
        r"\.is_admin\b|\.role (is|in|==|!=)|\brole (is|in|==|!=) {?Role\.|\bowner (==|!=)|(==|!=) \w+\.owner\b"
        r"|(==|!=) (caller|principal)\.name\b|\b(caller|principal)\.name (==|!=)"
    )
    others = {
        "archives/unpack.py",  # the owner of a file
        "doctor/machine.py",
        "workspaces/sharing.py",  # nobody is the guest of their own
    }
    package = ROOT / "src" / "codehub"
    names = [p.relative_to(package).as_posix() for p in SOURCES if asking.search(p.read_text(encoding="utf-8"))]
    assert [name for name in names if not name.startswith("policy/") and name not in others] == []
    assert "policy/rules.py" in names
    markup = [p for p in (package / "web" / "templates").iterdir() if "is_admin" in p.read_text(encoding="utf-8")]
    assert markup == []


def test_a_tests_name_is_a_sentence() -> None:
    names = [n.rsplit(":", 1)[1] for path in TESTS for n, _ in functions(path) if ":test_" in n]
    assert [name for name in names if name.count("_") < 3] == []


def test_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|mark\.(skip|xfail)|pytest\.skip")
    here = pathlib.Path(__file__)
    files = [path for path in [*SOURCES, *(ROOT / "tests").rglob("*.py")] if path != here]
    found = [str(path) for path in files if later.search(path.read_text(encoding="utf-8"))]
    assert found == []
