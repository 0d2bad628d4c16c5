"""The first steps of a new installation: their order, what is done, where one goes on. Pure; used by `first_steps`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

PAGE = "/welcome"
END = f"{PAGE}/end"  # what was done and what is left


class Step(StrEnum):
    """In their order; each can be left out, and come back to."""

    WAY_IN = "way-in"
    WORKSPACE = "workspace"
    COURSE = "course"
    CLASS = "class"

    @property
    def path(self) -> str:
        return f"{PAGE}/{self.value}"

    @property
    def key(self) -> str:
        """Of its texts."""
        return self.value.replace("-", "_")


@dataclass(frozen=True)
class Mark:
    """A step on the track."""

    step: Step
    done: bool
    here: bool


def track(done: Collection[Step], here: Step | None) -> Sequence[Mark]:
    return [Mark(step, step in done, step is here) for step in Step]


def first_open(done: Collection[Step]) -> str:
    """Where one goes on who comes back."""
    return next((step.path for step in Step if step not in done), END)


def after(step: Step, done: Collection[Step]) -> str:
    """Where one goes on from here: what was left out before is not pressed on anybody again."""
    steps = list(Step)
    later = steps[steps.index(step) + 1 :]
    return next((one.path for one in later if one not in done), END)


def is_over(done: Collection[Step]) -> bool:
    return set(Step) <= set(done)
