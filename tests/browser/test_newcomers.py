"""A teacher and a learner who were told nothing: from a login link and a code on the wall to a practice that passed.

Both find their way by what pages say: names of buttons, links and fields, words on the page. No ids, no selectors, no
addresses but the teacher's link and what the wall says. What is pressed next is seen without scrolling, or the page is
wrong; texts that are read and questions that are answered may be longer than a screen.
"""

import contextlib
import importlib.resources
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Literal

import pytest
from playwright.async_api import Browser, FrameLocator, Locator, Page, expect

from codehub.courses import folder
from codehub.courses.source import CourseSession
from codehub.sessions.blueprint_model import Question
from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = IN_ONE_LOOP
expect.set_options(timeout=2 * WAIT_MS)  # a whole JupyterLab starts
PASSWORD = "a lamp over the river"
MARKS = re.compile(r"[`*]")  # of Markdown: what is read has none
Role = Literal["button", "link", "combobox", "textbox"]


@dataclass(frozen=True)
class Words:
    """What this person looks for, in their language."""

    language: str
    locale: str
    log_in: str = "Log in as kim"
    classes: str = "Classes"
    class_name: str = "Name of the class"
    make_class: str = "Make the class"
    make_code: str = "Make a code"
    give_course: str = "Give the class a course"
    course: str = "Course"
    the_course: str = "Python for beginners · English"
    give: str = "Give it to the class"
    given: str = "The class has the course"
    people: str = "People and codes"
    wall: str = "Show on the wall"
    go_to: str = "Go to"
    back_to_class: str = "Back to the class"
    board: str = "Open the board"
    code: str = "Code"
    next: str = "Next"
    my_name: str = "Your name"
    mina: str = "Mina"
    user_name: str = "User name"
    password: str = "Password"
    join: str = "Join the class"
    start: str = "Start"
    go_on: str = "Continue"
    question: str = "Question {n} of {total}"
    your_answer: str = "Your answer"
    check_answers: str = "Check my answers"
    open: str = "Open the workspace"
    instructions: str = "Instructions"
    check: str = "Check my work"
    passed: str = "All checks passed."
    finish: str = "Finish the session"
    finished: str = "Session completed"
    step_2: str = "2/4"
    step_3: str = "3/4"
    done: str = "completed"


WORDS = {
    "en": Words("en", "en-GB"),
    "ko": Words(
        "ko",
        "ko-KR",
        log_in="kim 계정으로 로그인",
        classes="수업",
        class_name="수업 이름",
        make_class="수업 만들기",
        make_code="코드 만들기",
        give_course="강의 배정하기",
        course="강의",
        the_course="처음 배우는 파이썬 · 한국어",
        give="수업에 배정",
        given="강의를 배정했습니다",
        people="학습자와 초대 코드",
        wall="화면에 띄우기",
        go_to="접속 주소:",
        back_to_class="수업으로 돌아가기",
        board="현황판 열기",
        code="코드",
        next="다음",
        my_name="이름",
        mina="김미나",
        user_name="아이디",
        password="비밀번호",
        join="수업 들어가기",
        start="시작하기",
        go_on="계속하기",
        question="문제 {n} / {total}",
        your_answer="답",
        check_answers="답 확인하기",
        open="워크스페이스 열기",
        instructions="학습 안내",
        check="실습 확인하기",
        passed="모든 검사를 통과했습니다.",
        finish="세션 마치기",
        finished="세션을 완료했습니다",
        done="완료",
    ),
}


@pytest.fixture
def platform() -> Iterator[Platform]:
    """As somebody installs it: the templates and courses that it comes with."""
    with a_place() as place, running(place / "data", CODEHUB_DRAIN_SECONDS="1") as started:
        yield started


@pytest.fixture
def lab(platform: Platform, chromium: Browser) -> Iterator[Lab]:
    """Fails the test when a page of ours complained; what JupyterLab says in its frame is its own."""
    made = Lab(platform, chromium)
    yield made
    assert [complaint for complaint in made.complaints if f"({platform.url}" in complaint] == []


def lesson_in(language: str) -> tuple[CourseSession, str]:
    """The first session of the course, which a learner who understood it answers right; and what they type."""
    shipped = importlib.resources.files("codehub.courses") / "shipped" / "python-for-beginners" / language
    with importlib.resources.as_file(shipped) as found:
        return folder.load(found).sessions[0], (found / "01-hello" / "solutions" / "reference.sh").read_text()


async def seen(locator: Locator) -> Locator:
    """There is one, and it is on the screen."""
    await expect(locator).to_be_visible()
    await expect(locator).to_be_in_viewport()
    return locator


async def press(page: Page | FrameLocator, name: str, role: Role = "button") -> None:
    await (await seen(page.get_by_role(role, name=name, exact=True))).click()


@contextlib.asynccontextmanager
async def somebody(lab: Lab, words: Words) -> AsyncIterator[Page]:
    """A browser of their own, on a small laptop."""
    async with lab.browser(locale=words.locale, viewport={"width": 1280, "height": 800}) as browser:
        page = await browser.new_page()
        page.set_default_timeout(2 * WAIT_MS)
        yield page


async def a_class_is_made(page: Page, link: str, words: Words) -> tuple[str, str]:
    """By its teacher, with a course; what the wall says: where to go, and the code."""
    await page.goto(link)
    await press(page, words.log_in)
    await press(page, words.classes, "link")
    await (await seen(page.get_by_role("textbox", name=words.class_name))).fill("Monday 파이썬")
    await press(page, words.make_class)
    await press(page, words.make_code)
    await press(page, words.give_course, "link")
    await (await seen(page.get_by_role("combobox", name=words.course, exact=True))).select_option(words.the_course)
    await press(page, words.give)
    await seen(page.get_by_text(words.given))
    await press(page, f"← {words.people}", "link")
    await press(page, words.wall, "link")
    where = await seen(page.get_by_text(re.compile(rf"{words.go_to}\s*\S")))
    code = await seen(page.get_by_text(re.compile(r"^[A-Z0-9]{3} [A-Z0-9]{3}$")))
    address = (await where.inner_text()).removeprefix(words.go_to).strip()
    return address, await code.inner_text()


async def a_learner_joins(page: Page, address: str, code: str, words: Words) -> None:
    await page.goto(f"http://{address}")
    await (await seen(page.get_by_role("textbox", name=words.code))).fill(code.lower())
    await press(page, words.next)
    await (await seen(page.get_by_role("textbox", name=words.my_name, exact=True))).fill(words.mina)
    await (await seen(page.get_by_role("textbox", name=words.user_name))).fill("mina")
    await (await seen(page.get_by_label(words.password, exact=True))).fill(PASSWORD)
    await press(page, words.join)
    await press(page, words.start)


async def texts_are_read(page: Page, lesson: CourseSession, words: Words) -> None:
    for _ in lesson.blueprint.learning_content[1:]:
        await page.get_by_role("button", name=words.next).click()
    await page.get_by_role("button", name=words.go_on).click()


async def questions_are_answered(page: Page, questions: tuple[Question, ...], words: Words) -> None:
    for n, question in enumerate(questions, 1):
        title = words.question.format(n=n, total=len(questions))
        asked = page.get_by_role("group", name=title)
        right = [question.answer] if isinstance(question.answer, str) else list(question.answer)
        if question.kind == "text":
            await asked.get_by_role("textbox", name=words.your_answer).fill(right[0])
            continue
        for choice in question.choices:
            if choice.id in right:
                await asked.get_by_label(MARKS.sub("", choice.text), exact=True).check()
    await page.get_by_role("button", name=words.check_answers).click()


async def the_practice_is_done(page: Page, typed: str, words: Words) -> None:
    """In JupyterLab's terminal, beside the instructions."""
    await press(page, words.open)
    panel = page.get_by_title(words.instructions).content_frame
    ide = page.get_by_title(words.the_course.partition(" · ")[0]).last.content_frame  # below the bar of that name
    await ide.get_by_text("Terminal", exact=True).click()
    passed = panel.get_by_text(words.passed)
    for _ in range(5):  # what is typed before the terminal listens is lost, by JupyterLab itself
        await ide.get_by_role("textbox", name="Terminal input").focus()
        await page.keyboard.type(typed)
        await press(panel, words.check)
        with contextlib.suppress(AssertionError):
            await expect(passed).to_be_visible(timeout=WAIT_MS)
            break
    await seen(passed)
    await press(panel, words.finish)
    await seen(panel.get_by_role("heading", name=words.finished))


@pytest.mark.parametrize("language", ["en", pytest.param("ko", marks=pytest.mark.soak)])
async def test_a_teacher_and_a_learner_who_were_told_nothing_get_to_a_practice_that_passed(
    lab: Lab, language: str
) -> None:
    words = WORDS[language]
    lesson, typed = lesson_in(language)
    async with somebody(lab, words) as teacher, somebody(lab, words) as learner:
        address, code = await a_class_is_made(teacher, await lab.login_link("kim", "teacher"), words)
        await press(teacher, words.back_to_class, "link")
        await press(teacher, words.board, "link")
        await a_learner_joins(learner, address, code, words)
        row = teacher.get_by_role("row", name=words.mina)  # from here on without a touch of the board
        await seen(row)
        await texts_are_read(learner, lesson, words)
        await expect(row).to_contain_text(words.step_2)
        await questions_are_answered(learner, lesson.blueprint.check_questions, words)
        await expect(row).to_contain_text(words.step_3)
        await the_practice_is_done(learner, typed, words)
        await expect(row).to_contain_text(words.done)
