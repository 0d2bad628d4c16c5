"""The real IDEs in a real browser, and what people do in them. Used to record, and by the long run in real time."""

import asyncio
import json
import pathlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.activity.chromium import CONTROL, SHIFT, Tab

PRINTING = "for i in range(2):\n    print(i, flush=True)\n    time.sleep(5)"
NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "execution_count": None, "id": f"cell{n}", "metadata": {}, "outputs": [], "source": text}
        for n, text in enumerate(["import time", PRINTING, "time.sleep(20)"])
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@dataclass(frozen=True)
class Action:
    name: str
    do: Callable[[Tab], Awaitable[None]]
    lasts: float = 4.0  # seconds until what it causes is over


def furnish(home: pathlib.Path) -> None:
    """Something to look at."""
    (home / "notes").mkdir(parents=True, exist_ok=True)
    (home / "notes" / "inner.txt").write_text("inside\n")
    (home / "hello.py").write_text("print('hello')\n")
    (home / "work.ipynb").write_text(json.dumps(NOTEBOOK))


# --- code-server


def row(label: str) -> str:
    return f'.explorer-folders-view .monaco-list-row[aria-label^="{label}"]'


async def code_server_loaded(tab: Tab) -> None:
    await tab.until(f"document.querySelector({row('hello.py')!r})")


async def _open_file(tab: Tab) -> None:
    await tab.click(row("hello.py"), times=2)
    await tab.until("document.querySelector('.monaco-editor .view-line')")


async def _type_a_key(tab: Tab) -> None:
    await tab.click(".monaco-editor .view-lines")
    await tab.write("x")


async def _save(tab: Tab) -> None:
    await tab.press("s", CONTROL)


async def _browse(tab: Tab) -> None:
    await tab.click(row("notes"))


async def _new_terminal(tab: Tab) -> None:
    await tab.press("`", CONTROL | SHIFT)
    await tab.until("document.querySelector('.terminal-wrapper.active .xterm-helper-textarea')")
    await asyncio.sleep(3)


async def _terminal_line(tab: Tab) -> None:
    await tab.click(".terminal-wrapper.active .xterm-screen")
    await tab.write("echo one two\r")


async def _terminal_prints(tab: Tab) -> None:
    await tab.write("sleep 6; echo done\r")


async def _run_command(tab: Tab) -> None:
    await tab.press("F1")
    await tab.write("File: New Untitled Text File")
    await asyncio.sleep(1)
    await tab.press("Enter")


CODE_SERVER = (
    Action("a file opened", _open_file),
    Action("one key typed", _type_a_key),
    Action("a file saved", _save),
    Action("a folder opened", _browse),
    Action("a terminal opened", _new_terminal),
    Action("a line typed in the terminal", _terminal_line),
    Action("the terminal prints", _terminal_prints, lasts=12),
    Action("a command run from the palette", _run_command),
)


# --- JupyterLab


async def jupyter_loaded(tab: Tab) -> None:
    await tab.until("document.querySelector('.jp-DirListing-item[title*=\"hello.py\"]')")


def item(name: str) -> str:
    return f'.jp-DirListing-item[title*="{name}"]'


async def _open_notebook(tab: Tab) -> None:
    await tab.click(item("work.ipynb"), times=2)
    await tab.until("document.querySelector('.jp-Notebook .cm-content')")
    await tab.until("document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]')")


async def _type_in_cell(tab: Tab) -> None:
    await tab.click(".jp-Notebook .jp-Cell .cm-content")
    await tab.write(" ")


async def run_cell(tab: Tab) -> None:
    await tab.press("Enter", SHIFT)


async def _save_notebook(tab: Tab) -> None:
    await tab.press("s", CONTROL)


async def _browse_folder(tab: Tab) -> None:
    await tab.click(item("notes"), times=2)
    await tab.until("document.querySelector('.jp-DirListing-item[title*=\"inner.txt\"]')")


async def _jupyter_terminal(tab: Tab) -> None:
    await tab.click('[data-command="filebrowser:create-main-launcher"], [data-command="launcher:create"]')
    await tab.click('.jp-LauncherCard[title*="terminal"]')
    await tab.until("document.querySelector('.jp-Terminal .xterm-helper-textarea')")
    await asyncio.sleep(3)


async def _jupyter_terminal_line(tab: Tab) -> None:
    await tab.click(".jp-Terminal .xterm-screen")
    await tab.write("echo one two\r")


JUPYTER = (
    Action("a notebook opened", _open_notebook, lasts=8),
    Action("one key typed in a cell", _type_in_cell),
    Action("a file saved", _save_notebook),
    Action("a cell run", run_cell),
    Action("a cell that prints", run_cell, lasts=14),
    Action("a cell that computes silently", run_cell, lasts=24),
    Action("a folder opened", _browse_folder),
    Action("a terminal opened", _jupyter_terminal),
    Action("a line typed in the terminal", _jupyter_terminal_line),
    Action("the terminal prints", _terminal_prints, lasts=12),
)
