"""What the proxy says by itself about a workspace that cannot be reached, to programs and, in one case, to a person."""

from codehub.gate import hosts
from codehub.gate.hosts import Hosts
from codehub.gate.rules import Outcome
from codehub.policy.model import Decision, Effect
from codehub.proxy import answers
from codehub.proxy.model import Answer, RequestHead

RETRY = (b"Retry-After", b"2")
HTML = (b"Content-Type", b"text/html; charset=utf-8")
UNKNOWN = answers.problem(404, "There is no such workspace.")
UNAUTHENTICATED = answers.problem(401, "Log in and open the workspace from the dashboard, or send a bearer token.")
UNTOLD = answers.problem(403, "Open the workspace from the dashboard again: its owner is told who enters.")
FOREIGN = answers.problem(403, "This request comes from another site's page.")
SCOPE = answers.problem(403, "This token's scopes do not cover it.")
UNAVAILABLE = answers.problem(503, "It is not known right now where this workspace is.", "UNAVAILABLE", RETRY)
WAITING = answers.problem(503, "Several of your requests wait for this workspace already.", "WAITING", RETRY)
OF: dict[Outcome, Answer] = {
    Outcome.ASLEEP: answers.problem(503, "It is asleep: open it in a browser, or start it.", "ASLEEP", RETRY),
    Outcome.ARCHIVED: answers.problem(502, "It is stored away: restore it first.", "ARCHIVED"),
    Outcome.PENDING: answers.problem(502, "It was not started yet: start it first.", "PENDING"),
    Outcome.ERROR: answers.problem(502, "Something went wrong with it: the dashboard says what.", "ERROR"),
    Outcome.UNKNOWN: UNKNOWN,
}
PAGE = """<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<link rel="stylesheet" href="/static/codehub.css">
</head><body><main class="narrow"><h1>{title}</h1><p>{text}</p><p><a href="">{again}</a></p></main></body></html>"""
WORDS = {
    "en": {
        "title": "The IDE does not answer",
        "text": "Your files are safe. This page tries again by itself every two seconds.",
        "again": "Try again now",
    },
    "ko": {
        "title": "IDE가 응답하지 않습니다",
        "text": "파일은 안전합니다. 2초마다 자동으로 다시 시도합니다.",
        "again": "지금 다시 시도",
    },
}

MISDIRECTED = answers.problem(hosts.STATUS, hosts.DETAIL, hosts.CODE)


def refused(decision: Decision) -> Answer:
    """For a program that may not enter a workspace."""
    return UNKNOWN if decision.effect is Effect.HIDE else answers.problem(403, decision.reason)


def misdirected(head: RequestHead, ours: Hosts) -> Answer:
    """This `Host` is not one of ours."""
    if b"text/html" not in head.get(b"accept"):
        return MISDIRECTED
    body = ours.page(head.get(b"accept-language").decode("latin-1")).encode()
    policy = (b"Content-Security-Policy", hosts.POLICY.encode())
    return Answer(hosts.STATUS, (HTML, policy, (b"Cache-Control", b"no-store")), body)


def elsewhere(id_: str, target: bytes) -> Answer:
    """On a workspace's origin there is nothing but the workspace."""
    if target == b"/":
        return Answer(303, ((b"Location", f"/w/{id_}/".encode()), (b"Cache-Control", b"no-store")), b"")
    return UNKNOWN


def page(head: RequestHead) -> Answer:
    """For a person, when an IDE that runs does not take the request."""
    language = "ko" if head.get(b"accept-language").lower().startswith(b"ko") else "en"
    fields = (
        HTML,
        (b"Content-Security-Policy", b"default-src 'self'; frame-ancestors 'self'"),
        (b"Cache-Control", b"no-store"),
        RETRY,
    )
    return Answer(503, fields, PAGE.format(lang=language, **WORDS[language]).encode())
