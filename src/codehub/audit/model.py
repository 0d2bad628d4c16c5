from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Entry:
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    request_id: str | None
    address: str | None
