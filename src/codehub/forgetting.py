"""What is kept about a person who was removed, without their names. Pure.

Names are kept as ids, and read as names; where data holds a name itself (who was renamed from what, whom an admin put
in line, what a note says), `Forgotten` takes it out. Each capability asks for its own rows, in the transaction of the
removal.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Fields whose value is a person's name, whatever the line is about.
NAMES = frozenset({"user", "owner", "old_name", "new_name", "waiting", "guest", "actor"})
# Fields whose value is one of our own words: a person may be called `user`.
WORDS = frozenset({"by", "role", "way", "operation", "plan", "rule", "reason", "why", "work", "desired_state", "code"})


@dataclass(frozen=True)
class Forgotten:
    id: str
    names: frozenset[str]  # the one they had, and all before it
    display_name: str
    instead: str  # what is read in place of a name from now on

    def text(self, text: str) -> str:
        """Of something that is about them: their names as whole words."""
        return self._words.sub(self.instead, text)

    def data(self, data: Any, *, about: bool) -> Any:
        """`about`: a line about them, or of theirs; of another person's, only fields that hold names are looked at."""
        return self._value("", data, about=about)

    def _value(self, key: str, value: Any, *, about: bool) -> Any:
        match value:
            case dict():
                return {name: self._value(name, part, about=about) for name, part in value.items()}
            case list():
                return [self._value(key, part, about=about) for part in value]
            case str() if key in NAMES:
                return self.instead if value in self.names else value
            case str() if about and key not in WORDS:
                return self.text(value)
        return value

    @cached_property
    def _words(self) -> re.Pattern[str]:
        """A label ends where neither a letter, a digit nor a hyphen follows; the longest is looked for first."""
        called = sorted({*self.names, *filter(None, [self.display_name])}, key=len, reverse=True)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, called))})(?![\w-])", re.IGNORECASE)
