"""Logging: structlog, JSON when nobody watches, readable on a terminal. `cli` calls `configure` once per process.

Every line carries the role and, through context variables, the id of the request or the tick it belongs to.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from codehub.settings import LogConfig

SECRET_NAMES = re.compile(
    r"(password|secret|token|cookie|authorization|api_?key|database_url|redis_url)", re.IGNORECASE
)
# Names that only sound secret: counts and public ids.
HARMLESS = {"token_id", "tokens", "waiting_token"}
SECRET_TEXT = (
    (re.compile(r"(://[^/@\s:]*:)[^@/\s]+@"), r"\1***@"),
    (re.compile(r"\b(chp_[a-z0-9]+_)[A-Za-z0-9_-]+"), r"\1***"),
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
    for key, value in event.items():
        if key not in HARMLESS and SECRET_NAMES.search(key):
            event[key] = "***"
        elif isinstance(value, str):
            event[key] = redact_text(value)
    return event


def configure(config: LogConfig, role: str) -> None:
    as_json = config.format == "json" or (config.format == "auto" and not sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[config.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=as_json),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[*shared, renderer],
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def get() -> Any:
    return structlog.get_logger()
