"""Settings of learning sessions, and of the checks in their PRACTICE steps."""

import os
from dataclasses import dataclass

from codehub.settings.fields import at_least, between, setting


@dataclass(frozen=True)
class SessionConfig:
    recovery_seconds: int = setting(
        "SESSION_RECOVERY_SECONDS",
        86400,
        "A run of a learning session without activity for so many seconds is abandoned; until then, starting the "
        "session again goes on with it.",
        check=at_least(1),
    )
    sweep_interval: float = setting(
        "COORDINATOR_SESSION_INTERVAL",
        60.0,
        "Seconds between looks for runs without activity.",
        check=at_least(0.1),
    )
    idempotency_key_seconds: int = setting(
        "IDEMPOTENCY_KEY_SECONDS",
        86400,
        "Seconds that an Idempotency-Key stands for the answer to its first request.",
        check=at_least(1),
    )
    idempotency_wait_seconds: float = setting(
        "CODEHUB_IDEMPOTENCY_WAIT_SECONDS",
        5.0,
        "Seconds that a request waits for another one with the same key, before it is told to come again; fewer than "
        "clients wait for an answer.",
        check=at_least(0.001),
    )
    max_idempotency_keys_per_user: int = setting(
        "CODEHUB_MAX_IDEMPOTENCY_KEYS_PER_USER",
        1000,
        "Idempotency-Keys of one person that stand for an answer at a time: the answers are stored; 0 = no limit.",
        check=at_least(0),
    )
    max_plans_per_user: int = setting(
        "CODEHUB_MAX_PLANS_PER_USER",
        500,
        "Plans that one person may have made; teachers ten times as many, admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_courses_per_user: int = setting(
        "CODEHUB_MAX_COURSES_PER_USER",
        20,
        "Courses that one person may have; teachers ten times as many, admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_plan_bytes: int = setting(
        "CODEHUB_MAX_PLAN_BYTES",
        8 * 1024 * 1024,
        "Largest request body that makes a plan or a course, in bytes: a plan has up to 200 sessions, each with what "
        "is learnt in it.",
        check=at_least(1024),
    )


@dataclass(frozen=True)
class PracticeConfig:
    template: str = setting(
        "CODEHUB_PRACTICE_TEMPLATE",
        "jupyterlab",
        "Template of the workspace for a PRACTICE that names none; the default works on every machine.",
    )
    checks_at_once: int = setting(
        "CODEHUB_PRACTICE_CHECKS_AT_ONCE",
        max(2, os.cpu_count() or 1),
        "Learners whose checks run at the same time; by cores, because a check is mostly CPU. Others wait in line.",
        check=at_least(1),
    )
    seconds: float = setting(
        "CODEHUB_PRACTICE_SECONDS",
        120.0,
        "Seconds that all checks of one step may take together: a program that hangs in each of them holds a place "
        "in the line no longer than this.",
        check=between(1, 3600),
    )
    wait_seconds: float = setting(
        "CODEHUB_PRACTICE_WAIT_SECONDS",
        50.0,
        "Seconds that a request waits for its turn and for its checks, fewer than proxies in front of us wait; then it "
        "is told to ask again (503), and gets the same checks' result.",
        check=between(1, 3600),
    )
