"""The pictures that are kept: docs/tour.md with its sentences, and docs/tour/*.webp, written by `make screenshots`.

A browser makes them small: what it draws on a canvas, it gives as WebP.
"""

import base64
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.async_api import Browser

DOCS = pathlib.Path(__file__).parent.parent / "docs"
MOST_BYTES = 120_000
WIDEST = {390: 390, 1280: 1120, 1920: 1280}
TALLEST = {390: 844, 1280: 860, 1920: 1080}  # of the picture, before it is made smaller
SHRINK = """async ([source, width, tallest, most]) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const scale = width / image.naturalWidth;
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = Math.round(Math.min(image.naturalHeight, tallest) * scale);
    const paper = canvas.getContext("2d");
    paper.imageSmoothingQuality = "high";
    paper.drawImage(image, 0, 0, width, image.naturalHeight * scale);
    for (let quality = 0.9; ; quality -= 0.1) {
        const made = canvas.toDataURL("image/webp", quality).split(",")[1];
        if (made.length * 0.75 <= most || quality < 0.35) return made;
    }
}"""


@dataclass(frozen=True)
class Kept:
    shot: str
    look: str
    title: str
    says: str

    @property
    def file(self) -> str:
        return f"tour/{self.shot}.webp"

    @property
    def width(self) -> int:
        return int(self.look.rsplit("-", 1)[1])


TOUR: tuple[Kept, ...] = (
    Kept(
        "home", "en-light-1280", "The start page",
        "What to go on with comes first. Each workspace says what it does and what comes next, and has one button.",
    ),
    Kept(
        "ide", "en-light-1280", "An IDE, a click away",
        "JupyterLab in a page of CodeHub. The thin bar says when it sleeps; the rest is the learner's.",
    ),
    Kept(
        "waking", "en-light-1280", "A workspace wakes up",
        "Three steps and the seconds so far. The page enters by itself, and starting can be called off.",
    ),
    Kept(
        "wait", "ko-light-390", "A place in line",
        "On a phone, in Korean: the number can be read from a metre away, and the line is drawn as it is.",
    ),
    Kept(
        "read", "en-light-1280", "A session: read",
        "A few short pages. Wherever a learner stops, they go on there, on any device.",
    ),
    Kept(
        "answer-wrong", "en-light-1280", "A session: answer",
        "A wrong answer gets a hint that leads on, not the solution.",
    ),
    Kept(
        "practise-failed", "en-light-1280", "A session: practise",
        "Instructions and the output of checks on the left, a real IDE with the session's files on the right.",
    ),
    Kept(
        "plan", "ko-light-390", "A plan",
        "A course with dates: what is done, what is open, what comes next.",
    ),
    Kept(
        "board", "en-light-1920", "The teacher's board",
        "People by sessions, live, wide enough for a projector. Raised hands and failing checks come first.",
    ),
    Kept(
        "class", "en-light-1280", "A class",
        "Who is in it, what it learns, and the code by which people come in.",
    ),
    Kept(
        "wall", "en-light-1920", "The code on the wall",
        "Learners type it or point their phone at it; no addresses of theirs are needed.",
    ),
    Kept(
        "course-import-wrong", "en-light-1280", "Courses are folders of Markdown",
        "Brought in by a page; everything that is wrong is said at once, with its file and line.",
    ),
    Kept(
        "operator-quarter", "en-light-1280", "The operator's page",
        "What ran, how long waking took, who waited: drawn on the server, and kept for a year.",
    ),
    Kept(
        "workspaces-ticked", "en-dark-1280", "Everybody's workspaces",
        "In the dark scheme. Found by name, person or state, and put to sleep together.",
    ),
    Kept(
        "welcome-way-in", "en-light-1280", "The first run",
        "Four short steps after the first login, each of which can wait.",
    ),
)  # fmt: skip


async def write(chromium: Browser, folder: pathlib.Path) -> None:
    page = await chromium.new_page()
    (DOCS / "tour").mkdir(exist_ok=True)
    for kept in TOUR:
        picture = base64.b64encode((folder / kept.look / f"{kept.shot}.png").read_bytes()).decode()
        source = f"data:image/png;base64,{picture}"
        arguments = [source, WIDEST[kept.width], TALLEST[kept.width], MOST_BYTES]
        (DOCS / kept.file).write_bytes(base64.b64decode(await page.evaluate(SHRINK, arguments)))
    await page.close()
    for old in (DOCS / "tour").glob("*.webp"):
        if f"tour/{old.name}" not in {kept.file for kept in TOUR}:
            old.unlink()
    (DOCS / "tour.md").write_text(text(TOUR), encoding="utf-8")


def text(tour: Sequence[Kept]) -> str:
    parts = [
        "# A tour",
        (
            "Every picture here is of a platform that runs: `make screenshots` starts one, lets a class work in it and"
            " takes each page in two languages, light and dark, on a phone, desk and projector. It writes this page."
        ),
    ]
    for kept in tour:
        # Phones are shown at their size; the rest as wide as the page.
        size = ' width="300"' if kept.width == 390 else ""
        parts += [f"## {kept.title}", kept.says, f'<img src="{kept.file}" alt="{kept.title}"{size}>']
    return "\n\n".join(parts) + "\n"
