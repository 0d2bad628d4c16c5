"""A list of people as teachers have it, from a spreadsheet or pasted: what its lines say. Pure; read by `importing`.

Every cell is text, whatever it looks like: `=1+1` is a strange name and no formula.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codehub import ids, names
from codehub.classes.errors import ListRefusedError

MOST_BYTES, MOST_LINES, LONGEST_CELL = 262_144, 500, 100
DELIMITERS = ",;\t"
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how .xlsx and .xls begin, which are not CSV
COLUMNS = ("display_name", "name", "id")
NUMBER = "number"  # in the class register: every class has a 1
HEADERS: Mapping[str, str] = {
    "display_name": "display_name",
    "display name": "display_name",
    "full name": "display_name",
    "student": "display_name",
    "이름": "display_name",
    "성명": "display_name",
    "학생": "display_name",
    "학생 이름": "display_name",
    "name": "name",
    "user name": "name",
    "username": "name",
    "login": "name",
    "아이디": "name",
    "사용자 이름": "name",
    "id": "id",
    "student id": "id",
    "학번": "id",
    "number": NUMBER,
    "번호": NUMBER,
}


@dataclass(frozen=True)
class Line:
    number: int  # in the file, from 1 on
    display_name: str
    name: str | None  # None: to be made of the display name
    school_id: str | None
    problem: str | None = None  # a code: what is wrong with it


@dataclass(frozen=True)
class Roster:
    encoding: str  # what was assumed
    delimiter: str
    has_header: bool
    lines: Sequence[Line]
    of_class: bool = False  # its numbers are the class register's: they say who somebody is in this class alone


def read(raw: bytes) -> Roster:
    text, encoding = decoded(raw)
    delimiter, cells = _rows(text)
    if not cells:
        raise ListRefusedError("the list is empty: one person a line, as `display_name,name,id`", reason="EMPTY")
    if len(cells) > MOST_LINES + 1:
        raise ListRefusedError(f"a list has at most {MOST_LINES} people: split it", reason="MANY", n=MOST_LINES)
    header = _header(cells)
    body = cells[1:] if header else cells
    columns, of_class = _columns(header)
    lines = _marked([_line(number, dict(zip(columns, row, strict=False))) for number, row in body])
    said = {"\t": "tab", ";": "semicolon"}.get(delimiter, "comma")
    return Roster(encoding, said, header is not None, lines, of_class)


def _columns(header: Sequence[str] | None) -> tuple[list[str], bool]:
    """And whether the ids are of the class alone: its numbers count where the school's are not there."""
    if header is None:
        return list(COLUMNS), False
    for name in (*COLUMNS, NUMBER):
        if header.count(name) > 1:
            raise ListRefusedError(f"two columns are headed as `{name}`: leave one of them", reason="HEADINGS")
    of_class = NUMBER in header and "id" not in header
    return ["id" if of_class and name == NUMBER else name for name in header], of_class


def decoded(raw: bytes) -> tuple[str, str]:
    """UTF-8 and UTF-16, as their marks or their zeros say; else what Korean versions of Excel write, if it is valid."""
    if len(raw) > MOST_BYTES:
        raise ListRefusedError(f"a list has at most {MOST_BYTES} bytes", reason="LARGE", n=MOST_BYTES // 1024)
    if raw.startswith(WORKBOOKS):
        raise ListRefusedError("save the workbook as CSV in UTF-8: it cannot be read as it is", reason="WORKBOOK")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        candidates = [("utf-16", "UTF-16")]
    elif b"\0" in raw[:200] and not _is_utf8(raw):
        little = raw[1:200:2].count(0) >= raw[:200:2].count(0)
        candidates = [("utf-16-le" if little else "utf-16-be", "UTF-16")]
    else:
        candidates = [("utf-8-sig", "UTF-8"), ("cp949", "CP949")]
    for codec, name in candidates:
        try:
            return raw.decode(codec).replace("\0", ""), name
        except UnicodeDecodeError:
            continue
    raise ListRefusedError("its characters cannot be read: save the list as `CSV UTF-8`", reason="CHARACTERS")


def _is_utf8(raw: bytes) -> bool:
    """With a stray zero: in UTF-16, of Latin letters every other byte is one, and others are no UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return 4 * raw.count(0) < len(raw)


def _rows(text: str) -> tuple[str, list[tuple[int, list[str]]]]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    # A quotation mark that is not closed would make one person of all that follows.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            cells = [names.composed(" ".join(cell.split())) for cell in row]
            if any(cells):
                found.append((reader.line_num, cells))
            if len(found) > MOST_LINES + 1:
                break
    except csv.Error as e:
        said = f"line {reader.line_num} cannot be read: {e}"
        raise ListRefusedError(said, reason="LINE", n=reader.line_num) from e
    return delimiter, found


def _header(cells: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The columns, where the first line names them."""
    columns = [HEADERS.get(cell.casefold(), "") for cell in cells[0][1]]
    if not any(columns):
        return None
    if "display_name" not in columns:  # a list of names that are none to log in with
        at = columns.index("name") if "name" in columns else 0
        if not all(ids.is_label(row[at].casefold()) for _, row in cells[1:] if at < len(row)):
            columns[at] = "display_name"
    return columns


def _line(number: int, cells: Mapping[str, str]) -> Line:
    display_name, school_id = cells.get("display_name", ""), cells.get("id", "") or None
    name = cells.get("name", "").casefold() or None
    problem = None
    if not display_name and not name:
        problem = "NO_NAME"
    elif max(len(display_name), len(school_id or "")) > LONGEST_CELL:
        problem = "TOO_LONG"
    elif names.complaint(display_name) or names.complaint(school_id or ""):
        problem = "UNSEEN"
    elif name and not ids.is_label(name):
        problem = "WRONG_NAME"
    return Line(number, display_name[:LONGEST_CELL], name, school_id, problem)


def _marked(lines: Sequence[Line]) -> list[Line]:
    """The same person twice in one list: the second is a mistake, and which is not ours to guess."""
    seen: set[tuple[str, str]] = set()
    found = []
    for line in lines:
        keys = {("id", line.school_id)} if line.school_id else {("name", line.name)} if line.name else set()
        twice = any(key in seen for key in keys)
        seen |= {(kind, value) for kind, value in keys if value}
        problem = line.problem or ("TWICE" if twice else None)
        found.append(Line(line.number, line.display_name, line.name, line.school_id, problem))
    return found
