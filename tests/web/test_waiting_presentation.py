"""Which screen a waiting person sees, and its words; and that the page's script has the same rules."""

import json
import pathlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from codehub.i18n.locales import Locale
from codehub.waiting_room.status import Status
from codehub.web import texts, waiting_presentation
from codehub.web.waiting_presentation import Dots, Screen

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ENGLISH, KOREAN = (Locale(language, UTC, texts.TEXTS[language]) for language in ("en", "ko"))
WAITS = Status("t", "e", 7, 200, 180, 360, 15, False, False, False, None, None, 2000, 0)


@pytest.mark.parametrize(
    ("changes", "screen"),
    [
        ({}, Screen.WAITING),
        ({"ready_for_entry": True, "passed": True}, Screen.READY),
        ({"paused": True, "passed": True}, Screen.PAUSED),
        ({"opens_at": NOW + timedelta(hours=1), "paused": True}, Screen.BEFORE),
        ({"opens_at": NOW - timedelta(hours=1)}, Screen.WAITING),
        ({"passed": True}, Screen.PASSED),
    ],
)
def test_the_screen_says_what_matters_most(changes: dict[str, Any], screen: Screen) -> None:
    assert waiting_presentation.screen_of(WAITS._replace(**changes), NOW) is screen


@pytest.mark.parametrize(
    ("low", "high", "english", "korean"),
    [
        (0, 59, "Less than a minute.", "1분 안에 차례가 됩니다."),
        (0, 60, "About a minute.", "1분 정도 걸립니다."),
        (180, 360, "Between 3 and 6 minutes.", "3~6분 정도 걸립니다."),
        (181, 301, "Between 3 and 6 minutes.", "3~6분 정도 걸립니다."),
        (300, 300, "About 5 minutes.", "5분 정도 걸립니다."),
        (7200, 10900, "Between 2 and 4 hours.", "2~4시간 정도 걸립니다."),
        (7200, 7200, "About 2 hours.", "2시간 정도 걸립니다."),
        (20, 1320 * 60, "How long it takes cannot be said yet.", "얼마나 걸릴지 아직 알 수 없습니다."),
        (
            600,
            7200,
            "At least 10 minutes. More cannot be said yet.",
            "적어도 10분은 걸립니다. 더 자세한 시간은 아직 알 수 없습니다.",
        ),
        (
            7200,
            80000,
            "At least 2 hours. More cannot be said yet.",
            "적어도 2시간은 걸립니다. 더 자세한 시간은 아직 알 수 없습니다.",
        ),
        (60, 600, "Between 1 and 10 minutes.", "1~10분 정도 걸립니다."),
        (10, None, "How long it takes cannot be said yet.", "얼마나 걸릴지 아직 알 수 없습니다."),
    ],
)
def test_a_wait_is_a_range_as_people_say_it(low: float, high: float | None, english: str, korean: str) -> None:
    assert waiting_presentation.wait(low, high, ENGLISH) == english
    assert waiting_presentation.wait(low, high, KOREAN) == korean


@pytest.mark.parametrize(
    ("position", "dots"),
    [
        (1, Dots(0, 0, 0)),
        (7, Dots(0, 0, 6)),
        (19, Dots(0, 0, 18)),
        (20, Dots(8, 5, 6)),
        (1_000_000, Dots(8, 999_985, 6)),
    ],
)
def test_everybody_ahead_is_drawn_or_counted(position: int, dots: Dots) -> None:
    assert waiting_presentation.dots(position) == dots
    assert dots.front + dots.hidden + dots.near == position - 1


def test_the_script_draws_with_the_same_numbers() -> None:
    """What it makes of them, the browser's test compares."""
    script = (pathlib.Path(texts.__file__).parent / "static" / "waiting.js").read_text(encoding="utf-8")
    drawn = f"const DRAWN = {waiting_presentation.DRAWN}, FRONT = {waiting_presentation.FRONT}, "
    assert drawn + f"NEAR = {waiting_presentation.NEAR};" in script
    assert f"const WIDE = {waiting_presentation.WIDE};" in script
    assert json.dumps(Screen.BEFORE) in script
