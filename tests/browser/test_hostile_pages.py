"""Pages that somebody wrote into their workspace cannot act as whoever looks at them."""

import json
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import IN_ONE_LOOP, WAIT_MS, Lab
from tests.places import a_place
from tests.platform import Platform, running

pytestmark = IN_ONE_LOOP
# An IDE that serves whatever is asked of it as a page with nothing on it: the tests bring the scripts.
SERVER = """
import http.server, os, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return "proxy"
    def do_GET(self):
        body = b"<!doctype html><title>mine</title><p>the secret of " + self.path.encode()
        self.send_response(200); self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_POST = do_GET
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
server = Server(sys.argv[1], Handler)
os.chmod(sys.argv[1], 0o660)
server.serve_forever()
"""
TRY = """async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        return [answer.type, answer.status, (await answer.text()).slice(0, 60)];
    } catch (error) { return ["error", 0, ""]; }
}"""
SOCKET = """url => new Promise(done => {
    const socket = new WebSocket(url);
    socket.onopen = () => done("open");
    socket.onerror = () => done("refused");
})"""
FRAME = """url => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.src = url;
    frame.onload = () => {
        let read = "";
        try { read = frame.contentDocument ? frame.contentDocument.body.innerText : ""; } catch (error) { }
        done(read);
    };
    document.body.append(frame);
})"""


@pytest.fixture(scope="module")
def hostile_platform() -> Iterator[Platform]:
    with a_place() as folder:
        templates = folder / "templates"
        templates.mkdir(mode=0o755)
        command = json.dumps(["python3", "-c", SERVER, "{socket}"])
        (templates / "pages.toml").write_text(f'title = "pages"\n[process]\ncommand = {command}\n')
        environment = {"CODEHUB_TEMPLATES_DIR": str(templates), "CODEHUB_MAX_RUNNING_PER_USER": "5"}
        with running(folder / "data", first_start=False, **environment) as started:
            yield started


@pytest.fixture
def lab(hostile_platform: Platform, chromium: Browser) -> Lab:
    return Lab(hostile_platform, chromium)


async def opened(page: Page, name: str) -> str:
    """A new workspace of whoever is logged in, open in this tab; its id."""
    made = await page.context.request.post("/api/v1/workspaces", data={"name": name, "template": "pages"})
    assert made.status == 201
    id_: str = (await made.json())["id"]
    await page.goto(f"/w/{id_}/")
    await expect(page).to_have_title("mine", timeout=WAIT_MS)
    return id_


async def test_a_script_in_a_workspace_reaches_neither_its_neighbours_nor_the_platform(lab: Lab) -> None:
    async with lab.somebody("teacher-kim", role="admin") as browser:
        mine, evil = await browser.new_page(), await browser.new_page()
        victim, attacker = await opened(mine, "mine"), await opened(evil, "evil")
        platform, port = lab.platform.url, lab.platform.url.rpartition(":")[2]
        neighbour = f"http://{victim}.localhost:{port}/w/{victim}/secret"
        assert await evil.evaluate("document.cookie") == ""
        # What is its own, it has.
        own = await evil.evaluate(TRY, [f"/w/{attacker}/x", {"credentials": "include"}])
        assert own[:2] == ["basic", 200]
        for url in (neighbour, f"{platform}/", f"{platform}/api/v1/users", f"{platform}/api/v1/workspaces"):
            for mode in ("cors", "no-cors"):
                for method in ("GET", "POST"):
                    options = {"credentials": "include", "mode": mode, "method": method}
                    kind, status, text = await evil.evaluate(TRY, [url, options])
                    assert (kind in ("error", "opaque"), status, text) == (True, 0, ""), (url, options)
        assert await evil.evaluate(SOCKET, f"ws://{victim}.localhost:{port}/w/{victim}/ws") == "refused"
        for url in (neighbour, f"{platform}/"):
            assert "secret" not in await evil.evaluate(FRAME, url)
            assert await evil.evaluate(FRAME, url) == ""
        # On its own origin there is nothing of the platform's to call.
        for path in ("/api/v1/users", f"/w/{victim}/secret", f"/_codehub/status/{victim}", "/logout", "/"):
            _, status, text = await evil.evaluate(TRY, [path, {"credentials": "include", "redirect": "manual"}])
            assert status in (0, 404), path
            assert "secret" not in text


async def test_a_window_it_opens_tells_it_nothing(lab: Lab) -> None:
    async with lab.somebody("teacher-lee", role="admin") as browser:
        mine, evil = await browser.new_page(), await browser.new_page()
        victim, _ = await opened(mine, "mine"), await opened(evil, "evil")
        port = lab.platform.url.rpartition(":")[2]
        for url in (f"http://{victim}.localhost:{port}/w/{victim}/secret", f"{lab.platform.url}/"):
            async with browser.expect_page() as opening:
                await evil.evaluate("url => { window.theirs = window.open(url); }", url)
            await (await opening.value).wait_for_load_state()
            read = "() => { try { return window.theirs.document.body.innerText; } catch (error) { return 'denied'; } }"
            assert await evil.evaluate(read) in ("denied", "")


async def test_a_form_sent_to_the_platform_changes_nothing(lab: Lab) -> None:
    async with lab.somebody("teacher-han", role="admin") as browser:
        evil = await browser.new_page()
        attacker = await opened(evil, "evil")
        send = """url => {
            const form = document.createElement("form");
            form.method = "post"; form.action = url;
            document.body.append(form); form.submit();
        }"""
        for path in ("/logout", "/do/create", f"/api/v1/workspaces/{attacker}/recover"):
            await evil.goto(f"/w/{attacker}/")
            await expect(evil).to_have_title("mine", timeout=WAIT_MS)
            async with evil.expect_navigation() as going:
                await evil.evaluate(send, lab.platform.url + path)
            assert (await going.value).status == 403, path
        home = await browser.new_page()
        await home.goto("/")
        assert await home.get_by_role("button", name="Log out").count() == 1
