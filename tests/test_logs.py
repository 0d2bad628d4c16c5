"""Logs: one object a line, with the ids to find one's way; secrets never, whatever way they come in."""

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from codehub import logs

COOKIE = "6s3i6nlz27nwoze673o6.1.HykhPVJ-CuXRvRWahYSJHlXA4r--04vUqNEbOaldF1E"


def script(body: str, form: str = "json") -> str:
    """What a process that configured logging and ran this wrote; loggers keep their configuration for good."""
    head = f"""
        import logging, structlog
        from codehub import logs
        from codehub.settings import LogConfig
        logs.configure(LogConfig(format="{form}"), "api")
        log = logs.get()
    """
    program = textwrap.dedent(head) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == ""
    return done.stderr


def lines(written: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.splitlines()]


@pytest.mark.parametrize(
    ("text", "kept", "hidden"),
    [
        ("postgresql://codehub:hunter2@db/x", "postgresql://codehub:***@db/x", "hunter2"),
        ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0", "hunter2"),
        ("postgresql://u:p@hunter2@db/x", "postgresql://u:***@db/x", "hunter2"),
        ("postgresql:///x?host=/run/pg&password=hunter2&user=u", "&user=u", "hunter2"),
        ("GET /login/abcdefghijklmnopqrstuvwxyz012345 HTTP/1.1", "GET /login/*** HTTP/1.1", "abcdefghijkl"),
        ("chp_abc123_SECRET-part_two is bad", "chp_abc123_*** is bad", "SECRET"),
        ("{'authorization': 'Bearer hunter2'}", "Bearer ***'", "hunter2"),
        (f"codehub={COOKIE}; Path=/", "6s3i6nlz27nwoze673o6.1.***; Path=/", COOKIE.rpartition(".")[2]),
        ("http://example.org:8000/a@b is fine", "http://example.org:8000/a@b is fine", "***"),
    ],
)
def test_secrets_are_known_by_their_shape(text: str, kept: str, hidden: str) -> None:
    redacted = logs.redact_text(text)
    assert kept in redacted
    assert hidden not in redacted


@pytest.mark.parametrize("name", ["password", "Authorization", "set_cookie", "api_key", "database_url", "admin_token"])
def test_secrets_are_known_by_their_name_however_deep(name: str) -> None:
    event = logs.redact(None, "info", {name: "hunter2", "headers": {name: ["hunter2"]}, "all": [{name: "hunter2"}]})
    assert "hunter2" not in str(event)
    assert logs.redact(None, "info", {"token_id": "abc", "tokens": 3}) == {"token_id": "abc", "tokens": 3}


def test_what_is_logged_is_not_changed_for_whoever_logged_it() -> None:
    headers = {"authorization": "Bearer hunter2"}
    logs.redact(None, "info", {"headers": headers})
    assert headers == {"authorization": "Bearer hunter2"}


def test_every_line_is_one_object_with_time_level_and_role() -> None:
    written = lines(script('log.info("One", text="two\\nlines", who="민아")\nlog.warning("Two")'))
    assert [(line["event"], line["level"], line["role"]) for line in written] == [
        ("One", "info", "api"),
        ("Two", "warning", "api"),
    ]
    assert written[0]["text"] == "two\nlines"
    assert written[0]["timestamp"].endswith("Z")


def test_libraries_come_out_in_the_same_form() -> None:
    (line,) = lines(script('logging.getLogger("uvicorn.error").warning("at %s", "redis://:hunter2@cache/0")'))
    assert (line["event"], line["level"], line["role"]) == ("at redis://:***@cache/0", "warning", "api")


TRACEBACK = """
    def connect():
        raise OSError("cannot reach postgresql://codehub:hunter2@db/x")
    try:
        connect()
    except OSError as e:
        log.exception("Ours", error=e, nested={"url": "redis://:hunter2@c/0"})
        logging.getLogger("theirs").exception("Theirs")
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_tracebacks_are_there_and_without_secrets(form: str) -> None:
    written = script(TRACEBACK, form)
    assert written.count("Traceback (most recent call last)") == 2
    assert written.count("in connect") == 2
    assert "hunter2" not in written


def test_in_text_a_stranger_cannot_write_a_line_of_their_own() -> None:
    written = script('log.info("Request", path="/x\\n2026 [info] Logged in")', "text")
    assert len(written.splitlines()) == 1


QUIET = """
    import json, pathlib, sys, tempfile
    sys.stderr.isatty = lambda: True
    path = pathlib.Path(tempfile.mkdtemp()) / "log"
    logs.use_file(path, quiet=True)
    logs.configure(LogConfig(), {role!r})
    {body}
    sys.stderr.write("== file\\n" + path.read_text())
"""


def quiet(body: str, role: str = "api") -> tuple[list[str], list[dict[str, Any]]]:
    """What a person sees on the terminal, and what is in the file."""
    seen, _, kept = script(QUIET.format(role=role, body=body)).partition("== file\n")
    return seen.splitlines(), lines(kept)


def test_a_terminal_shows_what_goes_wrong_and_the_file_has_everything() -> None:
    body = """log.info("Request", path="/"); log.warning("Slow", seconds=3); logging.getLogger("uvicorn").info("Up")"""
    seen, kept = quiet(body)
    assert [line.split("  ", 1)[1] for line in seen] == ["Warning: Slow (seconds 3)"]
    assert [(line["event"], line["role"]) for line in kept] == [("Request", "api"), ("Slow", "api"), ("Up", "api")]
    assert kept[0]["timestamp"].endswith("Z")


def test_a_terminal_shows_what_the_supervisor_does() -> None:
    seen, _ = quiet('log.info("Starting", data="/srv/x")', role="serve")
    assert [line.split("  ", 1)[1] for line in seen] == ["Starting (data /srv/x)"]


def test_on_a_terminal_an_exception_is_one_line_and_its_traceback_is_in_the_file() -> None:
    seen, kept = quiet('exec("try: 1 / 0\\nexcept ZeroDivisionError: log.exception(chr(10) + str(2))")')
    assert len(seen) == 1
    assert "ZeroDivisionError: division by zero" in seen[0]
    assert "Traceback (most recent call last)" in kept[0]["exception"]


def test_the_id_of_a_request_or_a_tick_is_on_every_line_within() -> None:
    written = lines(
        script("""
            with structlog.contextvars.bound_contextvars(request_id="r1"):
                log.info("Ours")
                logging.getLogger("theirs").warning("Theirs")
            log.info("Outside")
        """)
    )
    assert [line.get("request_id") for line in written] == ["r1", "r1", None]


def test_ticks_of_the_coordinator_are_marked() -> None:
    (line,) = lines(
        script("""
            import asyncio
            from codehub.clock import SystemClock
            from codehub.coordinator.driver import Driver, Loop

            async def fail():
                raise RuntimeError("hunter2 is not for http://u:hunter2@x")

            async def main():
                driver = Driver([Loop("sweep", fail, period=60)], SystemClock())
                await driver._tick_once(driver._loops["sweep"])

            asyncio.run(main())
        """)
    )
    assert (line["loop"], len(line["tick"])) == ("sweep", 8)
    assert "http://u:***@x" in line["exception"]
