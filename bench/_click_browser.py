"""The two who click in `click`: Chromium, and a program that does what a browser would, without drawing anything."""

import asyncio
import re
import time
from dataclasses import dataclass, field

import aiohttp
from playwright.async_api import BrowserContext, Request, Response
from tests.gate.lab import PAGE, ToThisMachine
from yarl import URL

POLL_SECONDS = 0.7  # of a waking page that has no stream
GIVE_UP_SECONDS = 60.0
SETTLE_SECONDS = 0.4  # for pictures and scripts that nobody waits for
TIMES = "x-ide-times"  # what the program says of itself


@dataclass
class Clicked:
    """What was seen from outside. All moments are seconds since 1970."""

    at: float
    first_byte: float = 0.0
    ide: dict[str, float] = field(default_factory=dict)
    requests: list[tuple[float, float, str]] = field(default_factory=list)  # asked, first byte, what


def read_times(text: str) -> dict[str, float]:
    return {name: float(at) for name, at in (pair.split("=") for pair in text.split())}


class Chromium:
    """A person on the dashboard, whose browser has its caches warm."""

    name = "Chromium"

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._context = context
        self._url = url

    async def click(self, path: str) -> Clicked:
        page = await self._context.new_page()
        seen: list[Request] = []
        found: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def on_response(response: Response) -> None:
            if TIMES in response.headers and not found.done():
                found.set_result(response)

        await page.goto(self._url)
        await asyncio.sleep(SETTLE_SECONDS)
        page.on("request", lambda request: seen.append(request))  # noqa: PLW0108 (a method of a list takes no marks)
        page.on("response", on_response)
        follow = (
            "path => { const a = document.createElement('a'); a.href = path; document.body.append(a);"
            " const at = performance.timeOrigin + performance.now(); a.click(); return at / 1000; }"
        )
        clicked = Clicked(await page.evaluate(follow, path))
        async with asyncio.timeout(GIVE_UP_SECONDS):
            answer = await found
        await asyncio.sleep(0.05)
        clicked.ide = read_times(answer.headers[TIMES])
        clicked.first_byte = _first_byte(answer.request)
        asked = [r for r in seen if r.timing["startTime"] > 0]  # not what the dashboard still had to ask
        clicked.requests = sorted((r.timing["startTime"] / 1000, _first_byte(r), _what(r.url)) for r in asked)
        await page.close()
        return clicked


def _first_byte(request: Request) -> float:
    timing = request.timing
    return (timing["startTime"] + max(timing["responseStart"], 0.0)) / 1000


def _what(url: str) -> str:
    return re.sub(r"(ticket|state|next|from|workspace)=[^&]*", r"\1=…", URL(url).raw_path_qs)[:70]


class Program:
    """One that follows redirects, frames and waking pages as a browser does."""

    name = "raw HTTP"

    def __init__(self, cookies: dict[str, str], url: str) -> None:
        self._cookies = cookies
        self._url = url

    async def click(self, path: str) -> Clicked:
        jar = aiohttp.CookieJar(unsafe=True)
        jar.update_cookies(self._cookies, URL(self._url))
        connector = aiohttp.TCPConnector(resolver=ToThisMachine())
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as client:
            async with client.get(f"{self._url}/healthz"):  # the connection is open, as a browser's is
                pass
            clicked = Clicked(time.time())
            async with asyncio.timeout(GIVE_UP_SECONDS):
                await self._go(client, clicked, f"{self._url}{path}", {})
            return clicked

    async def _go(self, client: aiohttp.ClientSession, clicked: Clicked, url: str, headers: dict[str, str]) -> None:
        while not clicked.first_byte:
            text, url = await self._get(client, clicked, url, headers)
            if clicked.first_byte:
                return
            if frame := re.search(r'<iframe id="ide"[^>]* src="([^"]+)"', text):
                url = frame[1].replace("&amp;", "&")
                headers = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site", "Referer": f"{self._url}/"}
            elif waking := re.search(r'id="waking" (?:data-news )?data-id="([^"]+)"', text):
                await self._wait(client, clicked, str(URL(url).origin()), waking[1], "data-news" in text)
            else:
                raise SystemExit(f"neither an IDE nor a page that leads to one: {text[:2000]}")

    async def _get(
        self, client: aiohttp.ClientSession, clicked: Clicked, url: str, headers: dict[str, str]
    ) -> tuple[str, str]:
        while True:
            asked = time.time()
            async with client.get(url, headers={**PAGE, **headers}, allow_redirects=False) as answer:
                clicked.requests.append((asked, time.time(), _what(url)))
                if TIMES in answer.headers:
                    clicked.first_byte, clicked.ide = time.time(), read_times(answer.headers[TIMES])
                    return "", url
                self._keep_pass(client, answer)
                if answer.status == 303:
                    url = str(answer.url.join(URL(answer.headers["Location"])))
                    continue
                return await answer.text(), url

    @staticmethod
    def _keep_pass(client: aiohttp.ClientSession, answer: aiohttp.ClientResponse) -> None:
        """Cookies for frames are `Secure`, which a browser allows below localhost, and aiohttp's jar does not send."""
        for name, morsel in answer.cookies.items():
            client.cookie_jar.update_cookies({name: morsel.value}, answer.url.origin())

    async def _wait(self, client: aiohttp.ClientSession, clicked: Clicked, origin: str, id_: str, news: bool) -> None:
        """As `static/waking.js` does."""
        asked = time.time()
        if news:
            async with client.get(f"{origin}/_codehub/news/{id_}") as answer:
                async for line in answer.content:
                    if b'"ready":true' in line:
                        break
            clicked.requests.append((asked, time.time(), "told by the stream"))
            return
        while True:
            await asyncio.sleep(POLL_SECONDS)
            asked = time.time()
            async with client.get(f"{origin}/_codehub/status/{id_}") as answer:
                ready = (await answer.json())["ready"]
            clicked.requests.append((asked, time.time(), "asked how it stands"))
            if ready:
                return
