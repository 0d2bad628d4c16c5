from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AuditEntry:
    id: int
    at: datetime
    actor: str
    code: str
    subject: str
    data: dict[str, Any]
    request_id: str | None
    address: str | None
