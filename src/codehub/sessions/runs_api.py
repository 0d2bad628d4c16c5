"""REST about runs: starting a session, its steps, its end, what was saved."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from pydantic import Field
from starlette.responses import Response

from codehub.http import fields, paging, provide
from codehub.http.access import may
from codehub.http.language import Reader
from codehub.http.problems import documented
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.sessions import idempotency, state, view
from codehub.sessions.api import SessionId
from codehub.sessions.blueprint_model import MOST_STEPS
from codehub.sessions.model import Run
from codehub.sessions.places import RunPlaces
from codehub.sessions.runs import Answer, Runs
from codehub.sessions.view import RunEntry, RunOut, SnapshotOut, TriesOut

router = APIRouter(prefix="/api/v1", tags=["learning"], responses=documented(400, 401, 403, 503))
RunId = Annotated[str, Path(description="A run's id.", examples=["k3jx7q2mzv5d"])]
Index = Annotated[int, Path(ge=0, lt=MOST_STEPS, description="Of the step, from 0.")]
Fence = Annotated[
    int,
    Field(strict=True, ge=1, le=2**53, description="As the run said it; one higher with every recovery."),
    fields.Whole,
]
LONGEST_KEY_HEADER = 600  # characters: a key may be quoted, with each of its characters escaped
RUN: dict[str, Any] = {"model": RunOut}


class StartIn(fields.Body):
    resume_from: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=fields.NO_NUL,
        description="An abandoned run of this session: a new run goes on where it stopped. Unset: from the first step.",
    )
    reservation_token: str | None = Field(
        default=None,
        max_length=300,
        description="A place that the learner has entered in the waiting room: the run holds it until it ends. Over, "
        "used or another person's: 409 `RESERVATION_EXPIRED`.",
    )


class StepIn(fields.Body):
    fence: Fence
    state: dict[str, Any] = Field(
        default_factory=dict,
        json_schema_extra={"x-max-bytes": state.MOST_BYTES},
        description="At most 64 KB and 32 levels. For a CHECK, `answers`: an object from question ids to answers.",
        examples=[{"answers": {"loop-count": "b"}}],
    )


class FenceIn(fields.Body):
    fence: Fence


class AbandonIn(fields.Body):
    fence: Fence
    reason: fields.Line | None = Field(default=None, max_length=200, description="In the learner's words.")


def _service(request: Request) -> Runs:
    return provide.get(request, Runs)


def _answer(run: Run) -> Response:
    return Response(view.run_json(run), media_type="application/json")


@router.post(
    "/sessions/{id}/runs",
    status_code=201,
    response_model=RunOut,
    responses={
        **documented(404, 409, 413, 429),
        201: {**RUN, "description": "A new run."},
        200: {**RUN, "description": "The run that is running, at its last saved step, with a higher `fence`."},
    },
)
async def start_run(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_START)],
    id: SessionId,  # noqa: A002
    start: StartIn | None = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=LONGEST_KEY_HEADER,
            json_schema_extra={"pattern": idempotency.PATTERN},
            description="Up to 255 printable characters, quoted or bare. The same again: the same answer.",
        ),
    ] = None,
) -> Response:
    """Create or recover: a run that is running is gone on with, unless nothing was done in it for a day."""
    how, key = start or StartIn(), idempotency.parse(idempotency_key)

    async def begin() -> Answer:
        return await _service(request).start(caller, id, key=key, resume_from=how.resume_from)

    token = how.reservation_token
    answer = await (provide.get(request, RunPlaces).started(caller, token, begin) if token is not None else begin())
    headers = {idempotency.REPLAYED: "true"} if answer.replayed else {}
    return Response(answer.body, answer.status, headers, media_type="application/json")


@router.get("/sessions/{id}/runs", responses=documented(404))
async def list_runs(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_SEE)],
    id: SessionId,  # noqa: A002
    reader: Reader,
    limit: paging.Limit = 50,
    cursor: paging.TimeCursor = None,
) -> paging.Page[RunEntry]:
    """Every run that the session ever had, oldest first: none is ever removed."""
    found = await _service(request).trail(caller, id, after=paging.place(cursor), limit=limit + 1)
    return paging.page(found, limit, lambda run: view.list_run(run, reader), lambda r: paging.at(r.started_at, r.id))


@router.get("/runs/{id}", response_model=RunOut, responses=documented(404))
async def get_run(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_SEE)],
    id: RunId,  # noqa: A002
) -> Response:
    return _answer(await _service(request).get(caller, id))


@router.get("/runs/{id}/snapshots", responses=documented(404))
async def list_snapshots(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_SEE)],
    id: RunId,  # noqa: A002
    limit: paging.Limit = 50,
    cursor: paging.NumberCursor = None,
) -> paging.Page[SnapshotOut]:
    """What was saved with each step, in order: at most 1 MB of it on a page."""
    after = -1 if cursor is None else min(int(cursor), MOST_STEPS)
    found, fit = await _service(request).snapshots(caller, id, after=after, limit=limit + 1)
    return paging.page(found, min(limit, fit), lambda s: SnapshotOut(**vars(s)), lambda s: str(s.step_index))


@router.get("/runs/{id}/tries", responses=documented(404))
async def list_tries(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_SEE)],
    id: RunId,  # noqa: A002
) -> paging.Page[TriesOut]:
    """Of each CHECK and PRACTICE that was not passed at once: how often, and what the last try said."""
    found = await _service(request).tries(caller, id)
    return paging.page(found, len(found), view.show_tries, lambda t: str(t.step_index))


@router.post("/runs/{id}/steps/{index}/complete", response_model=RunOut, responses=documented(404, 409, 413, 422))
async def complete_step(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: RunId,  # noqa: A002
    index: Index,
    step: StepIn,
) -> Response:
    """Save a step. A CHECK is graded and a PRACTICE verified first; COMPLETE completes run and session."""
    return _answer(await _service(request).complete_step(caller, id, index, step.fence, step.state))


@router.post("/runs/{id}/activity", response_model=RunOut, responses=documented(404, 409, 413))
async def record_activity(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_WRITE)],
    id: RunId,  # noqa: A002
    at: FenceIn,
) -> Response:
    """The learner is there: the run is not abandoned."""
    return _answer(await _service(request).record_activity(caller, id, at.fence))


@router.post("/runs/{id}/abandon", response_model=RunOut, responses=documented(404, 409, 413))
async def abandon_run(
    request: Request,
    caller: Annotated[Principal, may(Action.RUN_ABANDON)],
    id: RunId,  # noqa: A002
    end: AbandonIn,
) -> Response:
    """The session can be started again, also from where this run stopped (`resume_from`)."""
    return _answer(await _service(request).abandon(caller, id, end.fence, end.reason))
