"""Logging with structlog. `startup` calls `configure` once per process; output goes to standard error, and to a file.

Standard error gets JSON lines, and on a terminal text. `codehub serve` keeps the file, `log/codehub.log` in the data
directory, with every line of all its roles as JSON, and leaves to its terminal what a person has to know, unless asked
for more. Every line carries the role and, through context variables, the id of its request or tick.
"""

import contextlib
import fcntl
import logging
import os
import pathlib
import re
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

# structlog draws in `rich` where there is one, for tracebacks we print plainly; leaving it out spares every process a
# third of its start.
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
try:
    import structlog
finally:
    del sys.modules["rich"]
    if _rich:
        sys.modules["rich"] = _rich

from codehub.settings import LogConfig  # noqa: E402

SECRET_NAMES = re.compile(
    r"(password|secret|token|cookie|authorization|api_?key|database_url|redis_url)", re.IGNORECASE
)
# Names that only sound secret: counts and public ids.
HARMLESS = {"token_id", "tokens", "waiting_token"}
SECRET_TEXT = (
    (re.compile(r"(://[^/@\s:]*:)[^/\s]+@"), r"\1***@"),
    (re.compile(r"(?i)\b(\w*(?:password|passwd|secret|token)=)[^\s&\"']+"), r"\1***"),
    (re.compile(r"\b(chp_[a-z0-9]+_)[A-Za-z0-9_-]+"), r"\1***"),
    (re.compile(r"\b([a-z2-7]{20}\.\d+\.)[A-Za-z0-9_-]{43}"), r"\1***"),  # a session's cookie
    (re.compile(r"(/login/)[A-Za-z0-9_-]{16,}"), r"\1***"),
    (re.compile(r"(/join/)[^/?\s]+"), r"\1***"),  # the code of an invitation
    (re.compile(r"(?i)\b(bearer\s+)[^\s\"']+"), r"\1***"),
)

Event = MutableMapping[str, Any]


def redact_text(text: str) -> str:
    for pattern, replacement in SECRET_TEXT:
        text = pattern.sub(replacement, text)
    return text


def redact(_logger: Any, _method: str, event: Event) -> Event:
    """Take secrets out by name and by shape. Runs last before rendering, so tracebacks pass through it too."""
    return {key: _redact_value(key, value) for key, value in event.items()}


def _redact_value(key: object, value: Any) -> Any:
    if isinstance(key, str) and key not in HARMLESS and SECRET_NAMES.search(key):
        return "***"
    match value:
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {str(k): _redact_value(k, v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redact_value(None, item) for item in value]
        case BaseException():
            return redact_text(f"{type(value).__name__}: {value}")
        case _:  # text, or something that becomes text when it is written
            return redact_text(str(value))


@dataclass
class _Output:
    """Of this process, and of those that are forked from it."""

    file: int | None = None
    quiet: bool = False


_output = _Output()


def use_file(path: pathlib.Path, *, quiet: bool) -> int:
    """Everything goes to this file as well; with `quiet`, a terminal gets only what matters. Returns the descriptor.

    A role inherits it, as it may not open the file itself.
    """
    _output.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _output.quiet = quiet
    return _output.file


def configure(config: LogConfig, role: str) -> None:
    as_json = config.format == "json" or (config.format == "auto" and not sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[config.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.format_exc_info,
    ]
    rendered = [redact, *([_to_file] if _output.file is not None else []), *_for_standard_error(as_json=as_json)]
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(role=role)
    _capture_stdlib(shared, rendered, max(level, logging.INFO))


def _for_standard_error(*, as_json: bool) -> list[Any]:
    if as_json:
        return [structlog.processors.TimeStamper(fmt="iso", utc=True), _json]
    if _output.quiet:
        return [_only_what_matters, structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False), _sentence]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return [structlog.processors.TimeStamper(fmt="iso", utc=False), renderer]


_json = structlog.processors.JSONRenderer(ensure_ascii=False)
_stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)


def _to_file(logger: Any, method: str, event: Event) -> Event:
    """A line at a time, also of several processes. The lock is for `supervisor.log_files`, which empties the file."""
    line = str(_json(logger, method, _stamp(logger, method, dict(event)))).encode()
    assert _output.file is not None  # noqa: S101 (or this is not among the processors)
    with contextlib.suppress(OSError):  # a full disk stops the log, not what is logged
        fcntl.lockf(_output.file, fcntl.LOCK_SH)
        try:
            os.write(_output.file, line + b"\n")
        finally:
            fcntl.lockf(_output.file, fcntl.LOCK_UN)
    return event


def _only_what_matters(_logger: Any, _method: str, event: Event) -> Event:
    """What the supervisor does, and what goes wrong anywhere."""
    if event["level"] in {"debug", "info"} and event.get("role") != "serve":
        raise structlog.DropEvent
    return event


def _sentence(_logger: Any, _method: str, event: Event) -> str:
    """One line, whatever is in it; of an exception only what it says: its traceback is in the file."""
    time, level, text = event.pop("timestamp"), event.pop("level"), event.pop("event")
    exception = str(event.pop("exception", "")).strip().splitlines()
    details = [f"{key.replace('_', ' ')} {value}" for key, value in event.items() if key != "role"]
    said = f"{text}{': ' + exception[-1] if exception else ''}{' (' + ', '.join(details) + ')' if details else ''}"
    mark = "" if level in {"debug", "info"} else f"{level.capitalize()}: "
    return f"{time}  {mark}{said if said.isprintable() else ascii(said)[1:-1]}"


def _capture_stdlib(shared: list[Any], rendered: list[Any], level: int) -> None:
    """Libraries that use `logging` (uvicorn, asyncio) come out in the same form."""
    handler = _Handler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


class _Handler(logging.StreamHandler[Any]):
    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(structlog.DropEvent):  # not for standard error
            super().emit(record)


def get() -> Any:
    return structlog.get_logger()
