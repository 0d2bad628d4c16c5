"""The object store for archives: a tiny object is put, read and deleted."""

import asyncio
import pathlib
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from codehub.doctor import machine
from codehub.doctor.model import Finding, fail, ok
from codehub.doctor.threads import in_thread
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
    except Exception as e:  # noqa: BLE001 (the library has an exception for each store and each mishap)
        reason = f"{type(e).__name__}: {redact_text(str(e)).strip().splitlines()[0][:300]}"
    else:
        return ok(NAME, f"{shown}: an object was put, read and deleted")
    advice = "Check CODEHUB_ARCHIVE_URL, and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL."
    return fail(NAME, f"{shown}: {reason}", advice)


async def _round_trip(url: str) -> None:
    from obstore.store import S3Store  # noqa: PLC0415 (weighs much, and only this check needs it)

    # Given up by the library itself before we would: what it is still at when Python ends aborts the process.
    limits: Any = {"connect_timeout": "4s", "timeout": "4s", "allow_http": True}
    patience: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=4)}
    store = S3Store.from_url(url, client_options=limits, retry_config=patience)
    name, content = f"codehub-doctor-{uuid.uuid4().hex}", b"codehub"
    await store.put_async(name, content)
    try:
        found = bytes(await (await store.get_async(name)).bytes_async())
    finally:
        await store.delete_async(name)
    if found != content:
        raise ValueError("what was read is not what was put")
