"""Gathers what the dashboard's pages show: cards of workspaces, the trash, kinds to choose from, a workspace's history.

Reads through the services and words it with `presentation`; `dashboard` hands the result to the templates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request

from codehub.activity.model import Seen
from codehub.errors import UnavailableError
from codehub.http import paging
from codehub.i18n.locales import Locale
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal, Relation, Resource
from codehub.web import history_view, kinds_view, presentation
from codehub.web.forms import NO_PLACE
from codehub.web.rendering import locale_for
from codehub.web.services import services_of
from codehub.workspaces import rules
from codehub.workspaces.errors import RunningLimitError
from codehub.workspaces.model import Desired, Repository, RestorePoint, Workspace
from codehub.workspaces.service import Filters
from codehub.workspaces.sharing import Share

MINE_AT_MOST, TRASH_AT_MOST, TRASH_PAGES = 100, 30, 20
HISTORY_LINES, STRETCHES, POINTS, SHARES = 40, 200, 20, 200
BEGINNING = paging.place(None)
LONGEST_NUMBER = 18
RUNNING_LIMIT = RunningLimitError.code


VERBS = {  # of a card's menu
    "start": Action.WORKSPACE_START,
    "stop": Action.WORKSPACE_SLEEP,
    "archive": Action.WORKSPACE_ARCHIVE,
    "delete": Action.WORKSPACE_DELETE,
    "undelete": Action.WORKSPACE_DELETE,
}


@dataclass(frozen=True)
class Card:
    w: Workspace
    badge: presentation.Badge
    sign: str
    state: str
    now: str
    next: str | None
    bar: tuple[int, int] | None  # (done, total), to draw
    kind: str  # the template's title
    mark: str  # and its activity profile, which has a drawing
    primary: presentation.Action | None
    menu: tuple[str, ...]
    download: bool
    owner: str | None  # said when it is another person's
    enters: bool  # also then
    changes: bool  # may rename and share it, too
    problem: str | None  # what was just refused
    waits: bool  # for want of a place: there is a line to wait in
    fetch: presentation.Fetch | None = None  # the git repository that it begins with, unless it is there
    swaps: Sequence[Workspace] = ()  # those that can make room for it, where no more may run


@dataclass(frozen=True)
class Board:
    cards: Sequence[Card]
    shared: Sequence[Card]
    trash: Sequence[Card]
    undo: Card | None  # what was just deleted
    problem: str | None  # what was refused, when it is about none of the cards
    waits: bool  # for want of a place


@dataclass(frozen=True)
class Detail:
    """One workspace in full."""

    card: Card
    trouble: presentation.Trouble | None
    shares: Sequence[Share]
    called: Mapping[str, str]  # its owner and those it is shared with, as people read it
    points: Sequence[RestorePoint]
    history: Sequence[history_view.Line]
    strip: history_view.Strip | None
    kind: history_view.Kind | None  # of the lines that are shown
    older: int | None  # where the next page of it begins
    size: str | None
    seen: Seen | None  # None: cannot be said now
    sleeps_after: Sequence[presentation.SleepChoice]
    repository: Repository | None


class Reader:
    """One request's view: who looks, in which words, and when."""

    def __init__(self, request: Request, caller: Principal) -> None:
        self.services = services_of(request)
        self.caller = caller
        self.locale: Locale = locale_for(request)
        self.now: datetime = self.services.clock.now()
        self._at = request.query_params.get("at")
        self._problem = request.query_params.get("problem")
        self._done = request.query_params.get("done")
        self._repositories: Mapping[str, Repository] = {}
        kind, before = request.query_params.get("kind"), request.query_params.get("before", "")
        self._only = history_view.Kind(kind) if kind in set(history_view.Kind) else None
        self._before = int(before) if before.isascii() and before.isdecimal() and len(before) < LONGEST_NUMBER else None

    async def board(self) -> Board:
        found = await self.services.workspaces.page(
            self.caller, Filters(self.caller.name), after=BEGINNING, limit=MINE_AT_MOST
        )
        await self._look_up(found)
        cards = self._with_swaps([await self._placed(w) for w in found])
        guest = await self.services.sharing.shared_with(self.caller, after=BEGINNING, limit=MINE_AT_MOST)
        trash = await self._trash()
        cards, shared = await self._called(cards), await self._called([self.card(w) for w in guest])
        undo = next((card for card in trash if card.w.id == self._at and self._done == "deleted"), None)
        said = any(card.problem for card in (*cards, *shared, *trash))
        return Board(cards, shared, trash, undo, None if said else self.problem(), self.waits and not said)

    async def _look_up(self, shown: Sequence[Workspace]) -> None:
        """What their cards say of git repositories."""
        self._repositories = await self.services.repositories.of(shown)

    async def _called(self, cards: Sequence[Card]) -> list[Card]:
        """Other people's by what they are called."""
        called = await self.services.people.called({card.owner for card in cards if card.owner})
        return [replace(card, owner=called[card.owner]) if card.owner else card for card in cards]

    async def _trash(self) -> list[Card]:
        """Newest first, without what cannot come back."""
        filters, found, after = Filters(self.caller.name, deleted=True), list[Workspace](), BEGINNING
        for _ in range(TRASH_PAGES):  # those emptied long ago are listed, too
            page = await self.services.workspaces.page(self.caller, filters, after=after, limit=200)
            found += [w for w in page if w.deleted_at and not w.purge and not w.emptied_at]
            if len(page) < 200:
                break
            after = page[-1].created_at, page[-1].id
        kept = sorted(found, key=lambda w: w.deleted_at or self.now, reverse=True)
        return [self.card(w) for w in kept[:TRASH_AT_MOST]]

    async def _placed(self, w: Workspace) -> Card:
        waits = self._is_mine(w) and presentation.waits(w)
        position = await self.services.workspaces.start_position(w) if waits else None
        return self.card(w, position)

    def _resource(self, w: Workspace) -> Resource:
        return Resource(w.id, w.owner, is_isolated=self.services.origins.isolated)

    def _is_mine(self, w: Workspace) -> bool:
        return Relation.OWNER in policy.relations_to(self.caller, self._resource(w))

    def _may(self, action: Action, w: Workspace) -> bool:
        """What a page offers. A guest's card has its own buttons, so that guests need not be known here."""
        return policy.allows(self.caller, action, self._resource(w))

    def card(self, w: Workspace, position: int | None = None) -> Card:
        template = self.services.templates.find(w.template)
        badge, bar = presentation.badge(w), presentation.progress(w)
        trash_seconds = self.services.settings.archives.trash_seconds
        return Card(
            w=w,
            badge=badge,
            sign=presentation.SIGNS[badge],
            state=self.locale.say(f"state_{presentation.state(w)}"),
            now=presentation.now_line(w, self.locale, self.now, position=position, trash_seconds=trash_seconds),
            next=presentation.next_line(w, self.locale, self.now, self.services.ttl_policies.sleeps_at(w)),
            bar=bar if badge is presentation.Badge.MOVING and bar[1] else None,
            kind=template.title_in(self.locale.language) if template else w.template,
            mark=template.activity_profile if template else "plain",
            primary=presentation.primary(w),
            menu=tuple(verb for verb in presentation.menu(w) if self._may(VERBS[verb], w)),
            download=presentation.has_files(w) and self._may(Action.WORKSPACE_DOWNLOAD, w),
            owner=None if self._is_mine(w) else w.owner,
            enters=self._may(Action.WORKSPACE_ENTER, w),
            changes=self._may(Action.WORKSPACE_CHANGE, w),
            problem=self.problem() if w.id == self._at else None,
            waits=self.waits and w.id == self._at,
            fetch=presentation.fetch(self._repositories.get(w.id), w, self.locale),
        )

    @property
    def waits(self) -> bool:
        return self._problem == NO_PLACE

    def _with_swaps(self, cards: list[Card]) -> list[Card]:
        """One's own: where no more may run, another one that runs can be put to sleep for it."""
        limits = self._problem in {RUNNING_LIMIT, NO_PLACE}
        refused = next((card for card in cards if card.problem and limits), None)
        if refused is None or rules.counts_as_running(refused.w):
            return cards
        mine = [c.w for c in cards if rules.counts_as_running(c.w)]
        awake = [w for w in mine if w.desired_state is Desired.RUNNING]
        most = self.services.settings.limits.max_running_per_user
        text = self.locale.say("swap_all" if refused.waits else "swap_mine", n=len(mine), limit=most)
        said = replace(refused, problem=text if awake else refused.problem, swaps=awake)
        return [said if card is refused else card for card in cards]

    def problem(self) -> str | None:
        """What was refused, in words. The address only names a code: a link cannot make our page say anything else."""
        if not self._problem:
            return None
        key = f"refused_{self._problem.lower()}"
        return self.locale.say(key if self.locale.knows(key) else "refused_other")

    async def kinds(self) -> list[kinds_view.Kind]:
        """What can be made here first."""
        services, caller = self.services, self.caller
        admin = policy.allows(caller, Action.IDE_INSTALL)
        installing = [i.installation for i in await services.ides.all(caller) if not i.installed] if admin else []
        under_way = any(found and found.is_open for found in installing)
        shares = services.settings.runtime
        return kinds_view.kinds(services.templates, shares, self.locale, caller, installing=under_way)

    def new_name(self, taken: Sequence[Card]) -> str:
        """A proposal, so that the person need not think of one."""
        names = {card.w.name for card in taken}
        first = self.locale.say("board_first_name")
        others = (self.locale.say("board_next_name", n=n) for n in range(2, len(names) + 3))
        return next(name for name in (first, *others) if name not in names)

    async def detail(self, id_: str) -> Detail:
        services, caller = self.services, self.caller
        w = await services.workspaces.get(caller, id_, Action.WORKSPACE_HISTORY)
        await self._look_up([w])
        keep = services.settings.archives.restore_points
        may_change = self._may(Action.WORKSPACE_CHANGE, w)  # else neither shares nor restore points are theirs to see
        points = (
            await services.workspaces.restore_points(caller, w, keep=keep, before=None, limit=POINTS)
            if may_change
            else []
        )
        codes, before = history_view.codes_of(self._only), self._before or 2**62
        found = await services.workspaces.history(caller, w, before=before, limit=HISTORY_LINES + 1, codes=codes)
        history = found[:HISTORY_LINES]
        seen = await services.workspaces.history(caller, w, before=2**62, limit=STRETCHES, codes=history_view.SEEN)
        strip = history_view.strip(seen, self.locale, self.now)
        wrong = presentation.badge(w) is presentation.Badge.WRONG
        shares = await services.sharing.shares(caller, w, after="", limit=SHARES) if may_change else []
        named = {w.owner, *(share.user_name for share in shares), *history_view.named(history)}
        called = await services.people.called(named)
        return Detail(
            card=(await self._called([await self._placed(w)]))[0],
            trouble=presentation.trouble(w, self.locale) if wrong else None,
            shares=shares,
            called=called,
            points=points,
            history=history_view.lines(history, self.locale, self.now, called, strip),
            strip=strip,
            kind=self._only,
            older=history[-1].id if len(found) > HISTORY_LINES else None,
            size=None if w.disk_bytes is None else self.locale.size(w.disk_bytes),
            seen=await self._seen(w),
            sleeps_after=self._sleep_choices(w),
            repository=self._repositories.get(w.id),
        )

    def _sleep_choices(self, w: Workspace) -> list[presentation.SleepChoice]:
        services = self.services
        most = policy.allowance(self.caller, services.settings.limits.max_standby_seconds) or 0
        usual = services.ttl_policies.of_template(w.template).standby_seconds
        return presentation.sleep_choices(w.standby_ttl_seconds, usual, most, self.locale)

    async def _seen(self, w: Workspace) -> Seen | None:
        """Only a help to understand: the page is there without it."""
        try:
            return (await self.services.activity.explain(self.caller, w)).seen
        except UnavailableError:
            return None
