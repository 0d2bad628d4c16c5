"""SQL in named blocks: a capability keeps `queries.sql` beside its store and reads a block as an attribute.

-- name: find_user
SELECT … FROM users WHERE name = $1;
"""

import importlib.resources
import re

NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Queries:
    def __init__(self, package: str, file: str = "queries.sql") -> None:
        text = importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8")
        parts = NAME.split(text)[1:]
        names = parts[0::2]
        if len(set(names)) != len(names):
            raise ValueError(f"{package}/{file} has two blocks of one name")
        self.package = package
        self._sql = {name: sql.strip() for name, sql in zip(names, parts[1::2], strict=True)}

    def __getattr__(self, name: str) -> str:
        try:
            return self._sql[name]
        except KeyError:
            raise AttributeError(f"{self.package} has no query named {name}") from None

    def names(self) -> list[str]:
        return list(self._sql)
