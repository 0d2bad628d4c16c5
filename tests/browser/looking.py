"""How a page is looked at, for every test that reaches pages: as people see, hear and use it who see, hear and use
it differently.

`look` asks of the page that is there: our checks (`checks.js`), axe-core's rules, the other scheme's colours, twice the
size or the narrowest screen, and the Tab key through everything. Visits are what costs, so all is asked in one.

With CODEHUB_SCREENSHOTS=folder the pictures are kept there, in the full square of languages, schemes and widths.
"""

import importlib.resources
import itertools
import os
import pathlib
from typing import Literal

from playwright.async_api import Browser, Page

from tests.browser.conftest import WAIT_MS

PICTURES = os.environ.get("CODEHUB_SCREENSHOTS")
HERE = pathlib.Path(__file__)
CHECKS = HERE.with_name("checks.js").read_text(encoding="utf-8")
REFLOW = HERE.with_name("reflow.js").read_text(encoding="utf-8")
KEYBOARD = HERE.with_name("keyboard.js").read_text(encoding="utf-8")
AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Of those, what may differ between two looks at one page. Contrasts are in `checks.js`, stricter than axe's.
DIFFERS = [
    "html-has-lang",
    "html-lang-valid",
    "label-content-name-mismatch",
    "scrollable-region-focusable",
    "target-size",
]
RUN_AXE = """async (options) => {
    // What an open menu covers is not to be hit now; the menu closes when the focus leaves it.
    const covered = document.querySelector("details.menu[open]") ? ["target-size"] : [];
    const told = await axe.run(document, { resultTypes: ["violations"], iframes: false, ...options });
    // axe takes all in a disabled fieldset for disabled; only controls are, and the Tab key gets to the rest.
    const reached = (rule, node) => rule.id === "scrollable-region-focusable"
        && document.querySelector(node.target.join(" ")).matches("fieldset:disabled [tabindex='0']");
    return told.violations.filter((rule) => !covered.includes(rule.id)).flatMap((rule) =>
        rule.nodes.filter((node) => !reached(rule, node)).map((node) =>
            `axe ${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""
Scheme = Literal["light", "dark"]
LOOKS: list[tuple[str, Scheme, int]] = list(itertools.product(("en", "ko"), ("light", "dark"), (360, 1280)))
# Together they show each language, scheme and width; the full square is for whoever wants the pictures.
FEW: list[tuple[str, Scheme, int]] = [("ko", "light", 360), ("en", "dark", 1280)]
HEIGHT = 800
# What is left of 1280 by 800 at 200 %, and the width to which WCAG lets pages flow.
SMALLER = {360: (320, 568), 1280: (640, 400)}


async def look_from(chromium: Browser, url: str, language: str, scheme: Scheme, width: int) -> Page:
    """A page in a browser of its own, of a person who reads and sees it so."""
    context = await chromium.new_context(
        base_url=url,
        locale={"en": "en-GB", "ko": "ko-KR"}[language],
        color_scheme=scheme,
        viewport={"width": width, "height": HEIGHT},
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    return await context.new_page()


async def look(page: Page, name: str, language: str, scheme: Scheme, width: int) -> list[str]:
    """What is wrong with it, a line each."""
    if PICTURES:
        await page.screenshot(path=f"{PICTURES}/{name}-{language}-{scheme}-{width}.png", full_page=name != "home")
    assert await page.get_attribute("html", "lang") == language
    found: list[str] = await page.evaluate(CHECKS)
    found += await ask_axe(page, TAGS if PICTURES or (language, scheme, width) == FEW[-1] else DIFFERS)
    found += await in_the_other_scheme(page, scheme)
    found += await when_smaller(page, width)
    found += await by_keyboard(page)
    return [f"{name}: {complaint}" for complaint in dict.fromkeys(found)]


async def ask_axe(page: Page, rules: list[str]) -> list[str]:
    if not await page.evaluate("Boolean(window.axe)"):
        await page.evaluate(AXE)
    said: list[str] = await page.evaluate(RUN_AXE, {"runOnly": rules})
    return said


async def in_the_other_scheme(page: Page, scheme: Scheme) -> list[str]:
    other: Scheme = "dark" if scheme == "light" else "light"
    await page.emulate_media(color_scheme=other)
    found: list[str] = await page.evaluate(CHECKS)  # whose contrasts are stricter than axe's
    await page.emulate_media(color_scheme=scheme)
    return [f"{other}: {complaint}" for complaint in found]


async def when_smaller(page: Page, width: int) -> list[str]:
    size = SMALLER[width]
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    found: list[str] = await page.evaluate(REFLOW)
    await page.set_viewport_size({"width": width, "height": HEIGHT})
    return [f"{size[0]} × {size[1]}: {complaint}" for complaint in found]


async def by_keyboard(page: Page) -> list[str]:
    """Everything that can be used gets the focus by Tab, in the order of the page, and is seen to have it."""
    for inside in page.frames[1:]:  # an IDE takes the keyboard once it is there
        await inside.wait_for_load_state("load")
    count: int = await page.evaluate(f"({KEYBOARD}).begin()")
    for _ in range(count):
        await page.keyboard.press("Tab")
    found: list[str] = await page.evaluate("__keyboard.end()")
    return [f"Tab: {complaint}" for complaint in found]
