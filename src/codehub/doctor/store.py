"""The object store for archives: a tiny object is put, refused a second time, read, listed and deleted."""

import asyncio
import contextlib
import pathlib
import uuid
from urllib.parse import unquote, urlsplit

from codehub.doctor import machine
from codehub.doctor.model import Finding, fail, ok
from codehub.doctor.threads import in_thread
from codehub.errors import CodeHubError
from codehub.logs import redact_text
from codehub.settings import StorageConfig

ANSWER_SECONDS = 5.0
NAME = "object store"


async def check(storage: StorageConfig) -> Finding:
    url = storage.archive_url
    if url is None:
        folder, advice = storage.data_dir / "archives", "Set CODEHUB_DATA_DIR or CODEHUB_ARCHIVE_URL to one."
        return await in_thread(lambda: _folder(folder, advice))
    if urlsplit(url).scheme == "file":
        folder, advice = pathlib.Path(unquote(urlsplit(url).path)), "Set CODEHUB_ARCHIVE_URL to one."
        return await in_thread(lambda: _folder(folder, advice))
    return await _remote(url)


def _folder(path: pathlib.Path, advice: str) -> Finding:
    folder = machine.existing(path)
    if not folder.is_dir():
        return fail(NAME, f"{folder} is not a folder", advice)
    if (reason := machine.try_to_write(folder)) is not None:
        return fail(
            NAME, f"cannot write in {folder}: {reason}", f"Archives need a folder that can be written. {advice}"
        )
    return ok(NAME, f"{path} can be written" if folder == path else f"{path} will be made when it is needed")


async def _remote(url: str) -> Finding:
    shown = redact_text(url)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await _round_trip(url)
    except TimeoutError:
        reason = f"no answer within {ANSWER_SECONDS:g} s"
    except (CodeHubError, ValueError, OSError) as e:
        reason = redact_text(str(e)).strip().splitlines()[0][:300]
    else:
        return ok(NAME, f"{shown}: an object was put one time, read, listed and deleted")
    advice = "Check CODEHUB_ARCHIVE_URL, and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL."
    return fail(NAME, f"{shown}: {reason}", advice)


async def _round_trip(url: str) -> None:
    """All that archives ask of a store; also that of two writers one succeeds."""
    from codehub.archives.objects import AlreadyStoredError, Limits, open_store  # noqa: PLC0415 (weighs much)

    # Given up by the library itself before we would: what it is still at when Python ends aborts the process.
    store = open_store(url, Limits(connect=4, request=4, retry=4, retries=0))
    folder = f"codehub-doctor-{uuid.uuid4().hex}"
    name, content = f"{folder}/object", b"codehub"
    await store.put(name, content)
    try:
        with contextlib.suppress(AlreadyStoredError):
            await store.put(name, b"another")
            raise ValueError("it writes over what is there: conditional writes (If-None-Match) are needed")
        if await store.get(name) != content:
            raise ValueError("what was read is not what was put")
        if [found.key async for found in store.list(folder)] != [name]:
            raise ValueError("what was put is not listed")
    finally:
        await store.delete(name)
