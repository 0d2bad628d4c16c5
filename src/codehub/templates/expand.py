"""Placeholders in a template's command and environment. Pure; used by the runtimes at a start."""

import re
from collections.abc import Iterable, Mapping

NAMES = ("socket", "port", "home", "base_path", "workspace_id")
_PLACEHOLDER = re.compile("{(" + "|".join(NAMES) + ")}")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace the five names, each once and literally; anything else in braces is the program's own business."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def names_in(texts: Iterable[str]) -> set[str]:
    return {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)}


def uses_port(texts: tuple[str, ...]) -> bool:
    """Such a program cannot listen on a socket, and gets a network of its own."""
    return "port" in names_in(texts)
