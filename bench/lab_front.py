"""JupyterLab's front end, from the first byte of its page to the launcher: as it comes, and with each part of ours.

Chromium over a real `codehub serve`, in the platform's page (`/open/ID`). In each round, for each variant: with an
empty cache, then another workspace, then the first one again. A variant is a template whose configuration turns parts
off; all of them run at once, and are opened in turn.

    python bench/lab_front.py [--rounds N] [--only VARIANT ...]

Needs Chromium.
"""

import argparse
import asyncio
import contextlib
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
from playwright.async_api import Browser, BrowserContext, Frame, async_playwright

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.browser.conftest import FLAGS, SHELL, WHOLE, find_chromium
from tests.places import a_place
from tests.platform import ADMIN_TOKEN, Platform, running

from bench._platform import Api
from codehub.templates.loader import BUILTIN

LONGEST_MS = 120_000.0
LAUNCHER, BUILD, SHARED = "launcher at once", "no build check", "shared files"
VARIANTS: dict[str, set[str]] = {
    "as it comes": set(),
    LAUNCHER: {LAUNCHER},
    BUILD: {BUILD},
    SHARED: {SHARED},
    "all": {LAUNCHER, BUILD, SHARED},
}
VISITS = ("cold", "second workspace", "again")
WATCH = """
new MutationObserver((_, self) => {
  const found = document.querySelector('.jp-Launcher');
  if (found && found.getBoundingClientRect().width > 0) {
    window.launcherAt = performance.now();
    self.disconnect();
  }
}).observe(document, {childList: true, subtree: true, attributes: true});
"""
READ = """
() => {
  const page = performance.getEntriesByType('navigation')[0];
  const all = [page, ...performance.getEntriesByType('resource')];
  return [window.launcherAt - page.responseStart, all.reduce((sum, one) => sum + one.transferSize, 0)];
}
"""


@dataclass
class Measured:
    milliseconds: list[float] = field(default_factory=list)
    kilobytes: list[float] = field(default_factory=list)


def write_variant(folder: pathlib.Path, name: str, parts: set[str]) -> None:
    """A template like the built-in one, with a configuration that comes first and turns off what is not in `parts`."""
    config = folder / f"config-{name}"
    (config / "labconfig").mkdir(parents=True)
    page = {
        "disabledExtensions": {} if LAUNCHER in parts else {"@codehub/workspace": True},
        "buildCheck": BUILD not in parts,
    }
    server = {"ServerApp": {"jpserver_extensions": {"codehub.jupyter.server_extension": SHARED in parts}}}
    (config / "labconfig" / "page_config.json").write_text(json.dumps(page))
    (config / "jupyter_server_config.json").write_text(json.dumps(server))
    template = (BUILTIN / "jupyterlab.toml").read_text(encoding="utf-8")
    more = f'JUPYTER_CONFIG_PATH = "{config}", JUPYTER_PLATFORM_DIRS'
    template = template.replace("JUPYTER_PLATFORM_DIRS", more).replace("env =", f'paths = ["{config}"]\nenv =')
    (folder / f"{name}.toml").write_text(template, encoding="utf-8")


async def workspaces(api: Api, template: str) -> tuple[str, str]:
    made = []
    for number in (1, 2):
        told = await api.ask("POST", "/workspaces", name=f"{template} {number}", template=template)
        made.append(str(told["id"]))
        await api.until(made[-1], "RUNNING", 0.2)
    return made[0], made[1]


@contextlib.asynccontextmanager
async def logged_in(
    browser: Browser, platform: Platform, client: aiohttp.ClientSession
) -> AsyncIterator[BrowserContext]:
    """With a cache and cookies of its own."""
    context = await browser.new_context(base_url=platform.url, reduced_motion="reduce")
    await context.add_init_script(WATCH)
    async with client.post("/api/v1/users/admin/login-links") as answer:
        link = (await answer.json())["url"]
    page = await context.new_page()
    await page.goto(link)
    await page.get_by_role("button").first.click()
    await page.wait_for_url(lambda url: "/login" not in url)
    await page.close()
    try:
        yield context
    finally:
        await context.close()


async def visit(context: BrowserContext, id_: str) -> tuple[float, float]:
    """(milliseconds from the first byte to the launcher, kilobytes until it was there)"""
    page = await context.new_page()
    await page.goto(f"/open/{id_}")
    async with asyncio.timeout(LONGEST_MS / 1000):
        while not (frame := _lab(page.frames)):  # noqa: ASYNC110 (the browser tells of none)
            await asyncio.sleep(0.02)
        await frame.wait_for_function("() => window.launcherAt", timeout=LONGEST_MS)
    milliseconds, size = await frame.evaluate(READ)
    await asyncio.sleep(1.5)  # what the page still does, and its layout is saved
    await page.close()
    return milliseconds, size / 1000


def _lab(frames: list[Frame]) -> Frame | None:
    return next((frame for frame in frames if "/lab" in frame.url), None)


async def measure(rounds: int, names: list[str], platform: Platform) -> dict[tuple[str, str], Measured]:
    found = {(name, what): Measured() for name in names for what in VISITS}
    async with (
        aiohttp.ClientSession(platform.url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as client,
        async_playwright() as playwright,
    ):
        ids = {
            name: await workspaces(Api(client), f"variant{number}")
            for number, name in enumerate(VARIANTS)
            if name in names
        }
        browser = await playwright.chromium.launch(executable_path=find_chromium(SHELL, *WHOLE), args=FLAGS)
        for number in range(rounds + 1):
            for name, (first, second) in ids.items():
                async with logged_in(browser, platform, client) as context:
                    for what, id_ in zip(VISITS, (first, second, first), strict=True):
                        milliseconds, kilobytes = await visit(context, id_)
                        print(
                            f"round {number}: {name}, {what}: {milliseconds:.0f} ms, {kilobytes:.0f} KB",
                            file=sys.stderr,
                            flush=True,
                        )
                        if number:  # the first of each is for warming up
                            found[name, what].milliseconds.append(milliseconds)
                            found[name, what].kilobytes.append(kilobytes)
        await browser.close()
    return found


def report(found: dict[tuple[str, str], Measured]) -> None:
    print(f"{'':18} {'visit':18} {'median':>8} {'lowest':>8} {'highest':>8} {'ratio':>6} {'KB':>7}")
    for what in VISITS:
        before = statistics.median(found["as it comes", what].milliseconds)
        for name in dict.fromkeys(name for name, _ in found):
            one = found[name, what]
            median = statistics.median(one.milliseconds)
            spread = f"{median:8.0f} {min(one.milliseconds):8.0f} {max(one.milliseconds):8.0f}"
            size = statistics.median(one.kilobytes)
            print(f"{name:18} {what:18} {spread} {median / before:6.2f} {size:7.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    given = parser.parse_args()
    names = list(dict.fromkeys(["as it comes", *given.only]))
    if find_chromium(SHELL, *WHOLE) is None:
        raise SystemExit("install Chromium")
    with a_place() as folder, tempfile.TemporaryDirectory(prefix="codehub-") as shown:
        templates = pathlib.Path(shown)
        templates.chmod(0o755)
        for number, parts in enumerate(VARIANTS.values()):
            write_variant(templates, f"variant{number}", parts)
        env = {"CODEHUB_TEMPLATES_DIR": shown, "CODEHUB_MAX_RUNNING_PER_USER": "0"}
        with running(folder / "data", first_start=True, **env) as platform:
            report(asyncio.run(measure(given.rounds, names, platform)))


if __name__ == "__main__":
    main()
