"""`make screenshots`. ARGS name the pictures to take, or `--look en-light-1280`; docs/tour.md then stays as it is."""

import argparse
import asyncio
import contextlib
import pathlib
import signal
import sys
import time
from collections.abc import Sequence

from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium
from tests.places import a_place
from tests.platform import running

from gallery import house as houses
from gallery import sheets, tour
from gallery.camera import LOOKS, Look, new_context, take
from gallery.shots import SHOTS, Shot

NEW = ("new", "begun")  # before anybody else is there: first without anything, in each language
OUTPUT = pathlib.Path(__file__).parent.parent / "screenshots"


class Studio:
    """One browser; for each language, one person's window at a time."""

    def __init__(self, chromium: Browser, house: houses.House, looks: Sequence[Look], folder: pathlib.Path) -> None:
        self.chromium, self.house, self.looks, self.folder = chromium, house, looks, folder
        self.url = house.platform.url.replace("127.0.0.1", "localhost")
        self.failed: list[str] = []

    async def enter(self, who: str, language: str) -> BrowserContext:
        context = await new_context(self.chromium, self.url, language)
        words = self.house.casts[language].words
        own = {"learner": words.learner, "teacher": words.teacher, "newcomer": words.newcomer, "longest": words.longest}
        names = {who: name for who, (name, _) in own.items()} | dict.fromkeys((*NEW, "admin"), "admin")
        if who in names:
            page = await context.new_page()
            await page.goto(await self.house.login_link(names[who]))
            await page.get_by_role("button").first.click()
            await page.wait_for_url(lambda url: "/login/" not in url)
            await page.close()
        return context

    async def photograph(self, shots: Sequence[Shot]) -> None:
        for language in dict.fromkeys(look.language for look in self.looks):
            looks = [look for look in self.looks if look.language == language]
            for who in dict.fromkeys(shot.who for shot in shots):
                context = await self.enter(who, language)
                if who in ("learner", "teacher"):
                    await houses.stand_in_line(self.house, self.house.casts[language])
                for shot in (one for one in shots if one.who == who):
                    await self._one(context, shot, looks)
                await context.close()

    async def _one(self, context: BrowserContext, shot: Shot, looks: list[Look]) -> None:
        began, cast = time.monotonic(), self.house.casts[looks[0].language]
        page: Page = await context.new_page()
        try:
            await page.goto(cast.path(shot.path), wait_until="domcontentloaded" if shot.held else "load")
            shown = await shot.act(page, cast) if shot.act else page
            await take(shown, shot, looks, self.folder)
            print(f"  {looks[0].language} {shot.name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:  # noqa: BLE001 (the other pictures are wanted, too)
            self.failed.append(f"{looks[0].language} {shot.name}: {str(error).splitlines()[0]}")
            print(f"  {self.failed[-1]}", flush=True)
        await context.set_offline(offline=False)
        for one in context.pages:
            await one.close()


async def run(wanted: Sequence[Shot], looks: Sequence[Look], *, keep: bool) -> int:
    with a_place() as place:
        templates = houses.write_templates(place / "templates")
        environment = {**houses.SETTINGS, "CODEHUB_TEMPLATES_DIR": str(templates)}
        with running(place / "data", first_start=True, **environment) as platform:
            async with async_playwright() as playwright, houses.opened(platform) as house:
                chromium = await playwright.chromium.launch(executable_path=find_chromium(SHELL, *WHOLE), args=FLAGS)
                studio = Studio(chromium, house, looks, OUTPUT)
                for who in NEW:
                    await studio.photograph([shot for shot in wanted if shot.who == who])
                if rest := [shot for shot in wanted if shot.who not in NEW]:
                    await move_in(house)
                    await studio.photograph(rest)
                await sheets.write(chromium, OUTPUT, looks, [shot.name for shot in SHOTS])
                if keep:
                    await tour.write(chromium, OUTPUT)
                await chromium.close()
    print("\n".join(["Not taken:", *studio.failed] if studio.failed else [f"The pictures are in {OUTPUT}/"]))
    return 1 if studio.failed else 0


async def move_in(house: houses.House) -> None:
    print("Furnishing …", flush=True)
    admin = await house.caller()
    await admin("PUT", "/users/admin/password", password=houses.PASSWORD)
    await houses.furnish(house)
    for cast in house.casts.values():
        await houses.prepare_lessons(await house.caller(cast.words.learner[0]), admin, cast)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make screenshots")
    parser.add_argument("names", nargs="*", help="Only these pictures.")
    parser.add_argument("--look", action="append", help="Only this one, such as en-light-1280.")
    parser.add_argument("--keep", action="store_true", help="Write docs/tour.md from what was taken, also from a part.")
    said = parser.parse_args()
    shots = [shot for shot in SHOTS if not said.names or shot.name in said.names]
    looks = [look for look in LOOKS if not said.look or look.name in said.look]
    if not shots or not looks:
        parser.error("there is no such picture")
    whole = not said.names and not said.look
    # However it is ended, what it started ends with it.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        return asyncio.run(run(shots, looks, keep=whole or said.keep))
    return 1


if __name__ == "__main__":
    sys.exit(main())
