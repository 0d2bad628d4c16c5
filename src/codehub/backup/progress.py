"""A progress bar on the terminal, for an operator who waits longer than a second."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from codehub.clock import SystemClock

PATIENCE_SECONDS = 1.0


class Meter:
    """Silent where no person watches: in pipes and logs."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._watched = sys.stderr.isatty()
        self._clock = SystemClock()
        self._begun = self._clock.monotonic()
        self._task = self._progress.add_task("")
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        if self._shown:
            self._progress.stop()

    def expect(self, things: int, size: int) -> None:
        """The bar shows one thing after the other."""

    def begin(self, what: str, total: int | None = None) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total)

    def count(self, size: int) -> None:
        self._progress.advance(self._task, size)
        if self._watched and not self._shown and self._clock.monotonic() - self._begun > PATIENCE_SECONDS:
            self._shown = True
            self._progress.start()
