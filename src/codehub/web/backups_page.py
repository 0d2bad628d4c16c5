"""`/backups`: a backup is made by one click, followed, downloaded and deleted. For admins.

The coordinator makes them (`backup.maker`); here is what was asked for, and how far it is. A file comes through the
socket by which the coordinator gives homes to the API.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from codehub.backup import kept_files, rules
from codehub.backup.model import Kept, State
from codehub.backup.requests import BackupElsewhereError, BackupSpaceError, BackupStateError, Space
from codehub.embedded.datadir import DataDir
from codehub.i18n.locales import Locale
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.web.forms import Posted, back
from codehub.web.page_access import may
from codehub.web.rendering import locale_for, render
from codehub.web.services import Services, services_of
from codehub.workspaces import downloads
from codehub.workspaces.points_api import StreamedDownload

router = APIRouter(include_in_schema=False)
PAGE = "/backups"
ENDED_IN_VAIN = {State.FAILED, State.CANCELLED}
PROBLEMS = {
    BackupSpaceError.code: "backups_problem_space",
    BackupStateError.code: "backups_problem_state",
    BackupElsewhereError.code: "backups_elsewhere",
}
Maker = Annotated[Principal, may(Action.BACKUP_MAKE)]


@dataclass(frozen=True)
class Now:
    """The one that is being made."""

    id: str
    text: str
    left: str | None
    percent: int | None
    cancelling: bool


@dataclass(frozen=True)
class Row:
    id: str
    name: str
    at: str
    exactly: str
    by: str | None
    size: str
    holds: str | None
    deleting: bool


@dataclass(frozen=True)
class Failed:
    id: str
    text: str
    detail: str | None
    bad: bool


@router.get(PAGE)
async def show(request: Request, caller: Annotated[Principal, may(Action.BACKUP_LIST)]) -> Response:
    services, reader = services_of(request), await _reader(request)
    found = await services.backups.overview(caller)
    open_one = next((kept for kept in found.backups if kept.is_open), None)
    newest = next((kept for kept in found.backups if not kept.is_open), None)
    problem = PROBLEMS.get(request.query_params.get("problem", ""))
    called = await services.people.called({kept.asked_by for kept in found.backups})
    return render(
        request,
        "backups.html",
        caller=caller,
        now=reader.now_of(open_one) if open_one else None,
        failed=reader.failed(newest) if newest and newest.state in ENDED_IN_VAIN and not open_one else None,
        rows=[reader.row(kept, called) for kept in found.backups if kept.state in {State.DONE, State.DELETING}],
        space=reader.space(found.space) if found.space else None,
        here=found.can_be_made,
        fits=found.space is None or found.space.is_enough,
        folder=DataDir(services.settings.storage.data_dir).backups,
        keep=services.settings.archives.keep_backups,
        problem=reader.locale.say(problem) if problem else None,
    )


@router.post(PAGE)
async def make(request: Request, caller: Maker, _form: Posted) -> Response:
    try:
        await services_of(request).backups.ask(caller)
    except (BackupSpaceError, BackupStateError, BackupElsewhereError) as e:
        return back(PAGE, problem=e.code)
    return back(PAGE)


@router.post("/do/backups/{id}/cancel")
async def cancel(request: Request, caller: Maker, id: str, _form: Posted) -> Response:  # noqa: A002
    await services_of(request).backups.cancel(caller, id)
    return back(PAGE)


@router.post("/do/backups/{id}/delete")
async def delete(request: Request, caller: Maker, id: str, _form: Posted) -> Response:  # noqa: A002
    try:
        await services_of(request).backups.delete(caller, id)
    except BackupStateError as e:
        return back(PAGE, problem=e.code)
    return back(PAGE)


@router.post("/do/backups/{id}/download")
async def download(
    request: Request,
    caller: Annotated[Principal, may(Action.BACKUP_DOWNLOAD)],
    id: str,  # noqa: A002
    _form: Posted,
) -> Response:
    """A form and no link: nothing loads it beforehand, and no other site can ask for it."""
    services = services_of(request)
    kept = await services.backups.download(caller, id)
    begun = await downloads.Download.begin(
        services.doors, workspace_id="", archive_key=None, form="tar.zst", person=caller.name, backup=id
    )
    headers = {
        "content-disposition": downloads.disposition(kept_files.name_of(kept.id, kept.asked_at)),
        "content-encoding": "identity",  # it is compressed already
        "cache-control": "no-store",
        "content-length": str(kept.file_bytes),
    }
    return StreamedDownload(services.open_streams, caller, begun, "application/octet-stream", headers)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


async def _reader(request: Request) -> "Reader":
    services = services_of(request)
    return Reader(locale_for(request), services.clock.now(), services)


@dataclass(frozen=True)
class Reader:
    locale: Locale
    now: datetime
    services: Services

    def now_of(self, kept: Kept) -> Now:
        part, left = rules.part_done(kept), rules.seconds_left(kept, self.now)
        if kept.state is State.ASKED:
            text = self.locale.say("backups_waits")
        elif kept.state is State.CANCELLING:
            text = self.locale.say("backups_cancelling")
        elif not kept.things:
            text = self.locale.say("backups_begins")
        else:
            sizes = {"done": self.locale.size(kept.bytes_done), "all": self.locale.size(kept.bytes)}
            text = self.locale.say("backups_running", n=kept.things_done, things=kept.things, **sizes)
        said = None if left is None else self.locale.say("backups_left", span=self.locale.span(left))
        percent = None if part is None else int(part * 100)
        cancelling = kept.state is State.CANCELLING
        return Now(kept.id, text, None if cancelling else said, percent, cancelling)

    def row(self, kept: Kept, called: Mapping[str, str]) -> Row:
        by = None if kept.asked_by == "codehub" else called.get(kept.asked_by, kept.asked_by)
        return Row(
            kept.id,
            kept_files.name_of(kept.id, kept.asked_at),
            self.locale.time(kept.asked_at, self.now),
            self.locale.exact(kept.asked_at),
            by,
            self.locale.size(kept.file_bytes or 0),
            self._holds(kept),
            kept.state is State.DELETING,
        )

    def _holds(self, kept: Kept) -> str | None:
        if not kept.contents:
            return None
        said = self.locale.tell("backups_holds", {name: _number(value) for name, value in kept.contents.items()})
        in_use = kept.contents.get("in_use")
        return " ".join([said, self.locale.say("backups_in_use", n=in_use)]) if in_use else said

    def failed(self, kept: Kept) -> Failed:
        at = self.locale.time(kept.ended_at or kept.asked_at, self.now)
        if kept.state is State.CANCELLED:
            return Failed(kept.id, self.locale.say("backups_cancelled", time=at), None, bad=False)
        key = f"backups_failed_{kept.failure}"
        text = self.locale.say(key if self.locale.knows(key) else "backups_failed_other", time=at)
        return Failed(kept.id, text, kept.detail, bad=True)

    def space(self, space: Space) -> str:
        key = "backups_space" if space.is_enough else "backups_no_space"
        return self.locale.say(key, needed=self.locale.size(space.needed), free=self.locale.size(space.free))
