"""Every code of history and audit has a sentence in every language, and no sentence names what its data lacks."""

import ast
import pathlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import codehub
from codehub.activity import rules as idle_rules
from codehub.audit import codes as audit_codes
from codehub.db import Queries
from codehub.i18n import audit, history, idleness, sessions, texts, values
from codehub.i18n.locales import Locale, of_request, of_shell
from codehub.policy.model import Role, System
from codehub.retention.rules import Rule
from codehub.runtimes.base import Cold
from codehub.schedules.model import StartOutcome, Weekday
from codehub.sessions.model import EndReason
from codehub.workspaces import history as records
from codehub.workspaces import rules
from codehub.workspaces.bulk_rules import Verb
from codehub.workspaces.model import DesiredBy, FetchCause, Operation, Phase, Reason, Work

GAP = re.compile(r"\{(\w+)\}")
LOCALES = {language: Locale(language, UTC, texts.TEXTS[language]) for language in texts.LANGUAGES}
SOURCES = pathlib.Path(codehub.__path__[0])
MOMENT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC).isoformat()
EVERY_VALUE: Mapping[str, list[Any]] = {
    "operation": [o for o in Operation if o is not Operation.NONE],
    "plan": [plan.code for plan in rules.PLANS if plan.operation is not Operation.NONE],
    "work": list(Work),
    "rule": list(Rule),
    "reason": list(Reason),
    "by": list(DesiredBy),
    "cold": list(Cold),
    "why": [records.Purged.code, records.TrashExpired.code, "asked", "newer_backups"],
    "role": list(Role),
    "active": [True, False],
    "verb": list(Verb),
    "weekday": list(Weekday),
    "weekdays": [[Weekday.MON, Weekday.SUN]],
    "outcome": list(StartOutcome),
    "cause": list(FetchCause),
    "seconds": [600],
    "bytes": [3_000_000],
    "exit_code": [3, None],
    "scopes": [["read", "write"]],
    **{name: [MOMENT] for name in values.MOMENTS},
}


def every_data(fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """Each value that each field can have, at least once."""
    choices = [EVERY_VALUE.get(name, ["jun"]) for name in fields]
    most = max([len(choice) for choice in choices], default=1)
    return [{name: choice[n % len(choice)] for name, choice in zip(fields, choices, strict=True)} for n in range(most)]


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
@pytest.mark.parametrize("code", records.CODES)
def test_every_code_of_history_has_a_sentence_made_of_its_data(code: str, locale: Locale) -> None:
    fields = records.names(records.CODES[code])
    assert set(GAP.findall(locale.texts[f"history_{code}"])) <= {*fields, "actor", "state"}
    for data in every_data(fields):
        said = history.told(locale, code, data, actor="mina", to_state="STANDBY")
        assert said.strip()
        assert "?" not in said or data.get("exit_code", 0) is None
        for name in values.CODED.keys() & data.keys():
            assert locale.knows(f"{values.CODED[name]}_{str(data[name]).lower()}"), data


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
@pytest.mark.parametrize("code", audit_codes.Code)
def test_every_code_of_the_audit_log_has_a_sentence_made_of_its_data(code: audit_codes.Code, locale: Locale) -> None:
    fields = tuple(sorted(audit_codes.DATA[code]))
    assert set(GAP.findall(locale.texts[f"audit_{code.replace('.', '_')}"])) <= {*fields, "actor", "subject"}
    for data in every_data(fields):
        said = audit.sentence(locale, code, data, actor="admin", subject="mina")
        assert said != code
        assert "?" not in said


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
@pytest.mark.parametrize("code", idle_rules.Code)
def test_every_reason_to_sleep_or_not_has_a_sentence(code: idle_rules.Code, locale: Locale) -> None:
    data = {"connections": 2, "after": 5400, "since": MOMENT, "at": MOMENT, "until": MOMENT, "actor": "mina"}
    said = idleness.sentence(locale, code, {**data, "operation": "STOPPING", "by": "user", "reason": "Timeout"})
    assert "?" not in said


def test_both_languages_say_the_same() -> None:
    assert texts.TEXTS["en"].keys() == texts.TEXTS["ko"].keys()
    for key, english in texts.TEXTS["en"].items():
        assert sorted(GAP.findall(english)) == sorted(GAP.findall(texts.TEXTS["ko"][key])), key


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
@pytest.mark.parametrize("reason", EndReason)
def test_every_end_of_a_run_has_a_sentence(reason: EndReason, locale: Locale) -> None:
    assert sessions.ended(locale, reason).strip()


def test_no_text_is_left_over() -> None:
    named = {f"{part}_{str(value).lower()}" for name, part in values.NAMED.items() for value in EVERY_VALUE[name]}
    named |= {f"history_{code}" for code in records.CODES} | {
        f"audit_{code.replace('.', '_')}" for code in audit_codes.Code
    }
    source = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    pages = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.html"))
    written = {key for key in texts.TEXTS["en"] if f'"{key}"' in source or f"t.{key}" in pages}
    by_parts = {key for key in texts.TEXTS["en"] if key.startswith(("state_", "time_"))}
    by_parts |= {key for key in texts.TEXTS["en"] if key.startswith("progress_")}
    by_parts |= {f"idle_{code}" for code in idle_rules.Code} | {f"run_ended_{reason}" for reason in EndReason}
    by_parts |= {f"actor_{name.replace('-', '_')}" for name in (*System, "gc", "trash", "codehub")}
    assert sorted(texts.TEXTS["en"].keys() - named - written - by_parts) == []


@pytest.mark.parametrize("phase", Phase)
def test_every_state_that_is_found_has_its_word(phase: Phase) -> None:
    said = history.sentence(LOCALES["en"], "observed", {}, actor="controller", to_state=phase)
    assert phase not in said


def test_in_korean_a_sentence_reads_as_one() -> None:
    korean = LOCALES["ko"]
    kept = history.told(korean, "kept_awake", {"work": "kernel", "seconds": 5400}, actor="ttl", to_state=None)
    assert kept == "90분 동안 입력은 없었지만 깨워 두었습니다: 커널이 계산 중이었습니다"
    failed = {"operation": "STARTING", "reason": "StartFailed", "message": "no numpy"}
    said = history.told(korean, "operation_retried", failed, actor="controller", to_state=None)
    assert said == "실행 작업이 실패해서 다시 시도합니다: no numpy"


def test_a_line_of_a_later_version_or_without_its_data_breaks_no_page() -> None:
    assert history.sentence(LOCALES["ko"], "from_the_future", {}, actor="mina") == "from_the_future"
    assert history.sentence(LOCALES["en"], "shared", {}, actor="mina") == "mina shared it with ?"
    assert records.event("from_the_future", {}) == "from_the_future"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from([*audit_codes.Code, "from.the_future", ""]),
    st.dictionaries(st.sampled_from([*EVERY_VALUE, "user", "owner", "title", "{}", "count"]), JSON, max_size=6),
    st.text(max_size=20),
)
def test_no_data_of_the_audit_log_breaks_a_sentence(code: str, data: dict[str, Any], name: str) -> None:
    for locale in LOCALES.values():
        assert isinstance(audit.sentence(locale, code, data, actor=name, subject=name), str)


@pytest.mark.parametrize(
    ("actor", "english", "korean"),
    [
        ("mina", "mina deleted the class 2-B", "mina님이 2-B 수업을 삭제했습니다"),
        ("gc", "The garbage collection deleted the class 2-B", "자동 정리 작업이 2-B 수업을 삭제했습니다"),
        ("cli:root", "root (command line) deleted the class 2-B", "root(명령줄)님이 2-B 수업을 삭제했습니다"),
    ],
)
def test_who_is_no_person_is_named_in_words(actor: str, english: str, korean: str) -> None:
    for language, said in (("en", english), ("ko", korean)):
        told = audit.sentence(LOCALES[language], "class.delete", {"title": "2-B"}, actor=actor, subject="x")
        assert told == said


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LC_MESSAGES": "ko", "LANG": "en_US.UTF-8"}, "ko"),
    ],
)
def test_the_command_line_speaks_the_language_of_the_shell(environment: dict[str, str], language: str) -> None:
    assert of_shell(environment).language == language


def test_a_client_is_answered_in_its_language_and_in_universal_time() -> None:
    locale = of_request("ko-KR,ko;q=0.9")
    data = {"created_at": "2026-03-02T18:00:00+09:00", "archive_key": "k"}
    said = history.told(locale, "restore_requested", data, actor="mina", to_state=None)
    assert said == "mina님이 2026-03-02 09:00:00 UTC 복원 시점으로 되돌렸습니다"


# --- nothing but codes is written -----------------------------------------------------------------------------------


def test_only_records_are_noted() -> None:
    """A `Change` is made from a name of `history`, or from something that was: never from text."""
    calls = [
        (path.name, node)
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Change"
    ]
    assert len(calls) >= 15
    for name, call in calls:
        assert not [a for a in call.args[1:2] if isinstance(a, ast.Constant | ast.JoinedStr)], (name, ast.unparse(call))


def test_statements_that_write_history_name_codes_with_their_data() -> None:
    insert = re.compile(r"INSERT INTO workspace_history \(([^)]*)\)\s+SELECT (.*?)\bFROM \w", re.DOTALL)
    found = 0
    for file in ("queries.sql", "ttl.sql"):
        queries = Queries("codehub.workspaces", file)
        for name in queries.names():
            for columns, selected in insert.findall(getattr(queries, name)):
                assert "code" in columns.split(", "), name
                (code,) = [word for word in re.findall(r"'(\w+)'", selected) if word in records.CODES]
                built = re.search(r"jsonb_build_object\((.*)\)", selected, re.DOTALL)
                keys = re.findall(r"'(\w+)',", built[1]) if built else []
                assert sorted(keys) == sorted(records.names(records.CODES[code])), name
                found += 1
    assert found >= 4


def test_the_audit_log_is_written_with_codes_alone() -> None:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "audit.record":
                code = ast.unparse(node.args[3])
                assert code.startswith(("Code.", "Code(", "AUDITED[")), f"{path.name}: {code}"
                named = {keyword.arg for keyword in node.keywords if keyword.arg}
                if code.startswith("Code."):
                    expected = audit_codes.DATA[audit_codes.Code[code.removeprefix("Code.")]]
                    assert named == expected or any(k.arg is None for k in node.keywords), path.name
