"""Logging: structlog, JSON when nobody watches, readable on a terminal. `cli` calls `configure` once per process.

Every line carries the role and, through context variables, the id of the request or the tick it belongs to.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
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
    (re.compile(r"(?i)\b((?:password|passwd|secret|token)=)[^\s&\"']+"), r"\1***"),
    (re.compile(r"\b(chp_[a-z0-9]+_)[A-Za-z0-9_-]+"), r"\1***"),
    (re.compile(r"\b([a-z2-7]{20}\.\d+\.)[A-Za-z0-9_-]{43}"), r"\1***"),  # a session's cookie
    (re.compile(r"(/login/)[A-Za-z0-9_-]{16,}"), r"\1***"),
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


def configure(config: LogConfig, role: str) -> None:
    as_json = config.format == "json" or (config.format == "auto" and not sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[config.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=as_json),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[*shared, redact, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(role=role)
    _capture_stdlib(shared, renderer, max(level, logging.INFO))


def _capture_stdlib(shared: list[Any], renderer: Any, level: int) -> None:
    """Libraries that use `logging` (uvicorn, asyncio) come out in the same form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def get() -> Any:
    return structlog.get_logger()
