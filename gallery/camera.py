"""Takes pictures of one page as it stands: in each width and scheme, without loading it again."""

import itertools
import pathlib
from dataclasses import dataclass
from typing import Literal

from playwright.async_api import Browser, BrowserContext, Page

from gallery.shots import Shot

Scheme = Literal["light", "dark"]
SCREENS = {390: 844, 1280: 800, 1920: 1080}  # a phone, a desk, a projector
TALLEST = 3000  # of a page that is taken to its end
LOCALES = {"en": "en-GB", "ko": "ko-KR"}


@dataclass(frozen=True)
class Look:
    language: str
    scheme: Scheme
    width: int

    @property
    def name(self) -> str:
        return f"{self.language}-{self.scheme}-{self.width}"


SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOOKS = tuple(Look(*one) for one in itertools.product(("en", "ko"), SCHEMES, SCREENS))


async def new_context(chromium: Browser, url: str, language: str) -> BrowserContext:
    context = await chromium.new_context(
        base_url=url,
        locale=LOCALES[language],
        timezone_id="Asia/Seoul" if language == "ko" else "Europe/Berlin",
        viewport={"width": 1280, "height": 800},
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    return context


async def take(page: Page, shot: Shot, looks: list[Look], folder: pathlib.Path) -> list[pathlib.Path]:
    taken = []
    for look in looks:
        height = SCREENS[look.width]
        await page.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")
        await page.set_viewport_size({"width": look.width, "height": height})
        await page.wait_for_timeout(250)  # for what follows the size by itself
        if shot.whole:
            height = min(TALLEST, max(height, await page.evaluate("document.documentElement.scrollHeight")))
        path = folder / look.name / f"{shot.name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        clip = {"x": 0, "y": 0, "width": look.width, "height": height}
        await page.screenshot(path=str(path), full_page=shot.whole, clip=clip)  # type: ignore[arg-type]
        taken.append(path)
    return taken
