"""The pictures: a name, who looks, where; and what they do there first (`acts`)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page

from gallery import acts
from gallery.house import Cast

Act = Callable[[Page, Cast], Awaitable[Page]]


@dataclass(frozen=True)
class Shot:
    name: str
    who: str  # new, begun (the admin of a new installation), nobody, learner, newcomer, longest, teacher, admin
    path: str
    act: Act | None = None
    whole: bool = True  # the page to its end; otherwise what a window shows
    held: bool = False  # its frame waits as long as the workspace does, and so does the end of loading


SHOTS: tuple[Shot, ...] = (
    Shot("welcome-way-in", "new", "/welcome/way-in"),
    Shot("welcome-workspace", "new", "/welcome/workspace"),
    Shot("welcome-course", "new", "/welcome/course"),
    Shot("welcome-class", "new", "/welcome/class"),
    Shot("welcome-end", "new", "/welcome/end"),
    Shot("welcome-class-made", "begun", "/welcome/class", acts.make_a_class),
    Shot("welcome-end-some", "begun", "/welcome/end"),
    Shot("sign-in", "nobody", "/login"),
    Shot("sign-in-wrong", "nobody", "/login", acts.wrong_password),
    Shot("link-used", "nobody", "/login/nothing"),
    Shot("join", "nobody", "/join"),
    Shot("join-wrong", "nobody", "/join/BBBBBB"),
    Shot("join-who", "nobody", "/join/{code}"),
    Shot("wait", "learner", "/wait/{full}", acts.join_the_line),
    Shot("home", "learner", "/"),
    Shot("home-menu", "learner", "/", acts.open_menu),
    Shot("home-adding", "learner", "/", acts.open_adding),
    Shot("workspace", "learner", "/workspaces/{runs}"),
    Shot("workspace-stored", "learner", "/workspaces/{stored}"),
    Shot("workspace-wrong", "learner", "/workspaces/{wrong}"),
    Shot("log", "learner", "/workspaces/{runs}/log"),
    Shot("ide", "learner", "/open/{runs}", acts.in_the_ide, whole=False),
    Shot("waking", "learner", "/open/{slow}", acts.wait_a_little, held=True),
    Shot("restore", "learner", "/open/{stored}"),
    Shot("went-wrong", "learner", "/open/{wrong}"),
    Shot("learn", "learner", "/learn"),
    Shot("plan", "learner", "/plans/{plan_id}"),
    Shot("begin", "learner", "/sessions/{lesson4}"),
    Shot("read", "learner", "/sessions/{lesson3}", acts.begin),
    Shot("help", "learner", "/sessions/{lesson3}", acts.raise_a_hand),
    Shot("answer", "learner", "/sessions/{lesson2}", acts.begin),
    Shot("answer-wrong", "learner", "/sessions/{lesson2}", acts.answer_wrongly),
    Shot("practise", "learner", "/sessions/{lesson1}", acts.practise, whole=False),
    Shot("practise-failed", "learner", "/sessions/{lesson1}", acts.fail, whole=False),
    Shot("learner-classes", "learner", "/classes"),
    Shot("learner-class", "learner", "/classes/{class_id}"),
    Shot("account", "learner", "/account"),
    Shot("not-found", "learner", "/nowhere"),
    Shot("docs", "learner", "/docs"),
    Shot("offline", "learner", "/", acts.go_offline),
    Shot("frame-warning", "learner", "/open/{runs}", acts.be_warned, whole=False),
    Shot("frame-asleep", "learner", "/open/{runs}", acts.fall_asleep, whole=False),
    Shot("waking-again", "learner", "/open/{wrong}", acts.try_again),
    Shot("over-limit", "learner", "/", acts.be_over_the_limit),
    Shot("wait-missing", "learner", "/wait/nowhere"),
    Shot("wait-ready", "learner", "/wait/{free}", acts.be_next),
    Shot("empty-home", "newcomer", "/"),
    Shot("empty-learn", "newcomer", "/learn"),
    Shot("empty-classes", "newcomer", "/classes"),
    Shot("empty-courses", "newcomer", "/courses"),
    Shot("empty-class", "newcomer", "/classes", acts.make_a_class),
    Shot("long-home", "longest", "/"),
    Shot("long-workspace", "longest", "/workspaces/{long_workspace}"),
    Shot("long-class", "longest", "/classes/{long_class}"),
    Shot("long-wall", "longest", "/classes/{long_class}/wall"),
    Shot("long-board", "longest", "/classes/{long_class}/board"),
    Shot("class-archived", "longest", "/classes/{long_class}", acts.archive),
    Shot("classes", "teacher", "/classes"),
    Shot("class", "teacher", "/classes/{class_id}"),
    Shot("class-opened", "teacher", "/classes/{class_id}", acts.see_everything_opened),
    Shot("wall", "teacher", "/classes/{class_id}/wall"),
    Shot("class-import", "teacher", "/classes/{class_id}/import"),
    Shot("class-import-preview", "teacher", "/classes/{class_id}/import", acts.paste_a_list),
    Shot("class-sheet", "teacher", "/classes/{class_id}/sheet"),
    Shot("class-sheet-made", "teacher", "/classes/{class_id}/sheet", acts.make_slips),
    Shot("class-person", "teacher", "/classes/{class_id}/people/{asking}"),
    Shot("board", "teacher", "/classes/{class_id}/board"),
    Shot("board-session", "teacher", "/classes/{class_id}/board/{board_session}"),
    Shot("courses", "teacher", "/courses"),
    Shot("course", "teacher", "/courses/{course_id}"),
    Shot("closed", "teacher", "/courses/{shipped_id}"),
    Shot("course-import", "teacher", "/courses/import"),
    Shot("course-import-wrong", "teacher", "/courses/import", acts.bring_a_wrong_course),
    Shot("course-preview", "teacher", "/courses/{course_id}/preview"),
    Shot("lines", "teacher", "/lines"),
    Shot("line", "teacher", "/lines/{full}"),
    Shot("admin-home", "admin", "/"),
    Shot("people", "admin", "/people"),
    Shot("people-menu", "admin", "/people", acts.open_menu),
    Shot("workspaces", "admin", "/workspaces", whole=False),
    Shot("workspaces-ticked", "admin", "/workspaces?q=Data", acts.tick_two, whole=False),
    Shot("workspaces-none", "admin", "/workspaces?q=nothing-is-called-so"),
    Shot("bulk", "admin", "/workspaces?q={asking}", acts.put_all_to_sleep),
    Shot("operator-hour", "admin", "/operator?range=hour"),
    Shot("operator-day", "admin", "/operator?range=day"),
    Shot("operator-quarter", "admin", "/operator?range=quarter"),
    Shot("operator-what-if", "admin", "/operator?range=day&standby=15m&archive=2h&days=7"),
    Shot("audit", "admin", "/audit"),
    Shot("audit-none", "admin", "/audit?person=nobody-is-called-so"),
    Shot("settings", "admin", "/settings"),
    Shot("settings-all", "admin", "/settings?all=1"),
    Shot("template-files", "admin", "/templates"),
    Shot("storage", "admin", "/storage"),
    Shot("storage-looked", "admin", "/storage", acts.look_what_would_go),
    Shot("backups", "admin", "/backups"),
    Shot("backups-running", "admin", "/backups", acts.begin_a_backup),
    Shot("ide-installing", "admin", "/templates", acts.install_an_ide),
    Shot("ide-stopped", "admin", "/templates", acts.stop_installing),
)
