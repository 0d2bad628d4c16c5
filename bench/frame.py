"""What the page around an IDE costs: JupyterLab's launcher visible by `/open/ID`, beside `/w/ID/` in a tab of its own.

A real platform on this machine, a real Chromium, one workspace that runs. Each round opens both ways once, in turn,
first by a browser that was never there (logged in, nothing cached, no pass), then by the same browser again. The clock
runs from the address to the moment the launcher's first card is drawn, as the page itself sees it.

    python bench/frame.py [--rounds N]
"""

import argparse
import asyncio
import pathlib
import statistics
import sys
import tempfile
import time
from collections import defaultdict

import aiohttp
from playwright.async_api import Browser, BrowserContext, async_playwright

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium
from tests.platform import Platform

from bench._platform import Api

CARD = ".jp-LauncherCard"
LONGEST_MS = 120_000.0
WAYS = {"frame": "/open/{id}", "own tab": "/w/{id}/"}
Figures = dict[tuple[str, str], list[float]]


async def open_once(context: BrowserContext, address: str) -> float:
    """Seconds until the launcher is there. Its layout is not kept: what the last visit left open is not loaded."""
    page = await context.new_page()
    begun = time.perf_counter()
    await page.goto(address, wait_until="commit")
    place = page.frame_locator("#ide") if address.startswith("/open/") else page
    await place.locator(CARD).first.wait_for(state="visible", timeout=LONGEST_MS)
    took = time.perf_counter() - begun
    await page.close()
    return took


async def logged_in(api: Api, browser: Browser, url: str) -> BrowserContext:
    link = str((await api.ask("POST", "/users/mina/login-links"))["url"])
    context = await browser.new_context(base_url=url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(link)
    await page.get_by_role("button").click()
    await page.wait_for_url("**/")
    await page.close()
    return context


async def one_round(api: Api, browser: Browser, url: str, id_: str, ways: list[str], figures: Figures) -> None:
    for way in ways:
        context = await logged_in(api, browser, url)
        address = WAYS[way].format(id=id_)
        for visit in ("first", "again"):
            figures[visit, way].append(await open_once(context, address))
        await context.close()


async def measure(platform: Platform, rounds: int) -> Figures:
    figures: Figures = defaultdict(list)
    async with platform.client() as client, async_playwright() as playwright:
        api = Api(client)
        id_ = await a_workspace(api, client, platform)
        browser = await playwright.chromium.launch(executable_path=find_chromium(SHELL, *WHOLE), args=FLAGS)
        await one_round(api, browser, platform.url, id_, list(WAYS), defaultdict(list))  # not counted
        for number in range(rounds):
            ways = list(WAYS) if number % 2 else list(WAYS)[::-1]
            await one_round(api, browser, platform.url, id_, ways, figures)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        await browser.close()
    return figures


async def a_workspace(api: Api, admin: aiohttp.ClientSession, platform: Platform) -> str:
    await api.ask("POST", "/users", name="mina", role="learner")
    async with admin.post("/api/v1/users/mina/tokens", json={}) as answer:
        token = (await answer.json())["token"]
    async with platform.client(token) as client:
        own = Api(client)
        w = await own.ask("POST", "/workspaces", name="Lab", template="jupyterlab", desired_state="RUNNING")
        await own.until(str(w["id"]), "RUNNING", 0.1)
        return str(w["id"])


def report(figures: Figures) -> None:
    print("launcher visible, seconds: median (smallest to largest); ratio of each round's pair: median (middle half)")
    for visit in ("first", "again"):
        for way in WAYS:
            took = figures[visit, way]
            print(f"  {visit:5}  {way:8} {statistics.median(took):6.2f}  ({min(took):.2f} to {max(took):.2f})")
        pairs = zip(figures[visit, "frame"], figures[visit, "own tab"], strict=True)
        ratios = [framed / own for framed, own in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"  {visit:5}  frame / own tab {middle:.2f}  ({low:.2f} to {high:.2f}), {len(ratios)} rounds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        pathlib.Path(folder).chmod(0o755)
        platform = Platform(pathlib.Path(folder) / "data", TTL_STANDBY_SECONDS="0").start()
        try:
            report(asyncio.run(measure(platform, rounds)))
        except aiohttp.ClientError as e:
            sys.exit(f"the platform does not answer: {e}")
        finally:
            platform.stop()


if __name__ == "__main__":
    main()
