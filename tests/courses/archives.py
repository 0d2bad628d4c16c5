"""Archives for tests: of a small course, and such as nobody should send."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping

COURSE = "---\nkey: small\ntitle: Small\nlanguage: en\n---\nAbout it.\n"
SESSION = "---\nkey: one\ntitle: One\nday: 1\nsteps: [LEARN, CHECK, COMPLETE]\nencouragement: Yes.\n---\n# Hello\n"
QUESTION = "## q\n\nWhich?\n\n```question\nkind: single\nchoices:\n  a: A\n  b: B\nanswer: b\n```\n"
SMALL = {"course.md": COURSE, "01-one/session.md": SESSION, "01-one/check.md": QUESTION}


def zipped(files: Mapping[str, str | bytes], folder: str = "") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in files.items():
            packed.writestr(f"{folder}{path}", text)
    return made.getvalue()


def tarred(files: Mapping[str, str | bytes], folder: str = "", style: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=style) as packed:
        for path, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(f"{folder}{path}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def with_zip_link(files: Mapping[str, str], path: str, to: str) -> bytes:
    made = io.BytesIO(zipped(files))
    with zipfile.ZipFile(made, "a") as packed:
        link = zipfile.ZipInfo(path)
        link.external_attr = 0o120777 << 16
        packed.writestr(link, to)
    return made.getvalue()


def with_tar_entry(files: Mapping[str, str], path: str, kind: bytes, to: str = "") -> bytes:
    made = io.BytesIO(gzip.decompress(tarred(files)))
    with tarfile.open(fileobj=made, mode="a") as packed:
        entry = tarfile.TarInfo(path)
        entry.type, entry.linkname = kind, to
        packed.addfile(entry)
    return gzip.compress(made.getvalue())
