"""Contact sheets: the pictures of one look side by side, a dozen to a page, as PNG and as HTML."""

import html
import pathlib
from collections.abc import Sequence

from playwright.async_api import Browser

from gallery.camera import SCREENS, Look

A_SHEET = {390: 14, 1280: 9, 1920: 9}
COLUMNS = {390: 7, 1280: 3, 1920: 3}
WIDTH = 1600
STYLE = """
body { margin: 0; padding: 12px; background: #777; font: 14px sans-serif; color: #fff; }
main { display: grid; gap: 12px; grid-template-columns: repeat(%d, 1fr); }
figure { margin: 0; } figcaption { padding: 2px 0 4px; }
div { aspect-ratio: %d / %d; overflow: hidden; background: #999; } img { width: 100%%; display: block; }
"""


async def write(chromium: Browser, folder: pathlib.Path, looks: Sequence[Look], names: Sequence[str]) -> None:
    page = await chromium.new_page(viewport={"width": WIDTH, "height": 800})
    for look in looks:
        there = [name for name in names if (folder / look.name / f"{name}.png").exists()]
        for number, first in enumerate(range(0, len(there), A_SHEET[look.width]), 1):
            some = there[first : first + A_SHEET[look.width]]
            sheet = folder / f"sheet-{look.name}-{number}.html"
            sheet.write_text(document(look, some), encoding="utf-8")
            await page.goto(sheet.as_uri())
            await page.screenshot(path=str(sheet.with_suffix(".png")), full_page=True)
    await page.close()


def document(look: Look, names: Sequence[str]) -> str:
    # A little more than a screen of each: what is below is in the picture itself.
    style = STYLE % (COLUMNS[look.width], look.width, round(SCREENS[look.width] * (1.0 if look.width == 390 else 1.1)))
    figures = "".join(
        f'<figure><figcaption>{html.escape(name)}</figcaption><div><a href="{look.name}/{name}.png">'
        f'<img src="{look.name}/{name}.png" alt=""></a></div></figure>'
        for name in names
    )
    return (
        f'<!doctype html><meta charset="utf-8"><title>{look.name}</title><style>{style}</style><main>{figures}</main>'
    )
