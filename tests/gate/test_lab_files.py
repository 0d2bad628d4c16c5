"""The shared place of JupyterLab's static files, through the front door: where it is, what it answers, who is told."""

import asyncio
import dataclasses
import gzip
import pathlib
import tempfile
from collections.abc import AsyncIterator, Callable

import pytest
import zstandard

from codehub import ids
from codehub.command import operator
from codehub.gate import lab_files
from codehub.gate.origins import Origins
from codehub.jupyter import identity
from codehub.policy.model import Role
from codehub.settings import Settings
from codehub.wiring.api import open_services
from tests.gate.lab import PAGE, Lab, opened
from tests.virtual_time import ManualClock

FOLDER = identity.platform_folder()
assert FOLDER is not None
IDENTITY = identity.of(FOLDER)
MAIN = next(name for name in identity.files(FOLDER) if name.startswith("main."))
PLACE = f"/_codehub/jupyterlab/{IDENTITY}"


@dataclasses.dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


async def ask(lab: Lab, target: str, host: str = "shared-files.localhost", method: str = "GET", **more: str) -> Got:
    """As it is written, byte by byte: a client library would tidy the path up."""
    port = int(lab.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}Connection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(-1), 20)).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Got(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


async def test_a_file_is_compressed_as_the_client_takes_it_and_kept_for_good(lab: Lab) -> None:
    plain = (identity.platform_folder() or pathlib.Path()).joinpath(MAIN).read_bytes()
    unpack: dict[str | None, Callable[[bytes], bytes]] = {
        "zstd": zstandard.decompress,
        "gzip": gzip.decompress,
        None: bytes,
    }
    tags = set()
    for accepted, coding in (("gzip, deflate, br, zstd", "zstd"), ("gzip, br", "gzip"), ("br", None)):
        for _ in range(2):  # made, and made already
            got = await ask(lab, f"{PLACE}/{MAIN}?v=1", Accept_Encoding=accepted, Origin="http://abc.localhost")
            assert got.status == 200
            assert got.headers.get("content-encoding") == coding
            assert got.headers["content-length"] == str(len(got.body))
            assert unpack[coding](got.body) == plain
            assert got.headers["content-type"] == "text/javascript; charset=utf-8"
            assert got.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert got.headers["vary"] == "Accept-Encoding"
            assert got.headers["access-control-allow-origin"] == "*"
            assert got.headers["cross-origin-resource-policy"] == "cross-origin"
            assert got.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in got.headers
        tags.add(got.headers["etag"])
    assert len(tags) == 3


async def test_head_and_a_file_that_the_browser_has_already_have_no_body(lab: Lab) -> None:
    whole = await ask(lab, f"{PLACE}/{MAIN}", Accept_Encoding="zstd")
    head = await ask(lab, f"{PLACE}/{MAIN}", method="HEAD", Accept_Encoding="zstd")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))
    etag = whole.headers["etag"]
    same = await ask(lab, f"{PLACE}/{MAIN}", Accept_Encoding="zstd", If_None_Match=etag)
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", etag)
    assert "content-length" not in same.headers
    other = await ask(lab, f"{PLACE}/{MAIN}", Accept_Encoding="gzip", If_None_Match=etag)
    assert other.status == 200
    assert (await ask(lab, f"{PLACE}/{MAIN}", method="POST")).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/",
        "",
        "/../settings/page_config.json",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/package.json",
        "//etc/passwd",
        f"/./{MAIN}",
        f"/x/../{MAIN}",
        "/..\\index.html",
        f"/{MAIN}%00",
        f"/{MAIN}/",
        "/" + "a" * 5000 + ".js",
    ],
)
async def test_nothing_but_the_named_files_is_there(lab: Lab, path: str) -> None:
    got = await ask(lab, PLACE + path)
    assert got.status == 404
    assert got.headers["cache-control"] == "no-store"


async def test_another_version_is_not_there_and_is_asked_for_again(lab: Lab) -> None:
    for other in ("4.6.5-0123456789abcdef", IDENTITY.upper(), IDENTITY + "0", "", "..", "%2e"):
        got = await ask(lab, f"/_codehub/jupyterlab/{other}/{MAIN}")
        assert (got.status, got.headers["cache-control"]) == (404, "no-store"), other


async def test_it_is_no_ones_origin_but_its_own(lab: Lab) -> None:
    """The dashboard's pages accept scripts of their own origin: these are not there."""
    for host in ("localhost", "127.0.0.1", "abcdefghijkl.localhost", "shared-files.example.org"):
        assert (await ask(lab, f"{PLACE}/{MAIN}", host=host)).status in (404, 421), host


async def test_a_page_of_jupyterlab_is_told_and_nothing_else_is(lab: Lab) -> None:
    w = await lab.workspace("admin", "jupyterlab")
    await lab.put(w, "RUNNING", desired_state="RUNNING")
    terminal = await lab.running("admin")
    async with lab.browser("admin") as browser:
        for one, path in ((w, "lab"), (terminal, "")):
            async with browser.get(f"{lab.url}/w/{one.id}/{path}", headers={**PAGE, **FORGED}) as answer:
                assert answer.status == 200
        async with browser.get(f"{lab.origin(w.id)}/w/{w.id}/api/contents", headers=FORGED) as answer:
            assert answer.status == 200
    seen = {(r["path"], r["headers"].get("X-Codehub-Jupyterlab")) for r in lab.ide.requests}
    place = f"http://shared-files.localhost:{lab.url.rpartition(':')[2]}{PLACE}"
    assert {told for path, told in seen if path.endswith("/lab")} == {place}
    assert {told for path, told in seen if not path.endswith("/lab")} == {None}


FORGED = {"X-Codehub-Jupyterlab": "https://example.org/mine/4.6.6"}


@pytest.fixture
async def without_origins(settings: Settings, clock: ManualClock) -> AsyncIterator[Lab]:
    away = dataclasses.replace(settings, server=dataclasses.replace(settings.server, host="0.0.0.0"))
    with tempfile.TemporaryDirectory(prefix="codehub-") as folder:
        async with open_services(away, clock) as services, opened(services, pathlib.Path(folder)) as started:
            await services.people.create_user(operator(), "mina", Role.LEARNER)
            yield started


async def test_where_workspaces_have_no_origins_it_is_a_path_beside_theirs(without_origins: Lab) -> None:
    got = await ask(without_origins, f"{PLACE}/{MAIN}", host="127.0.0.1", Accept_Encoding="zstd")
    assert (got.status, got.headers["content-encoding"]) == (200, "zstd")
    assert (await ask(without_origins, "/_codehub/jupyterlab/x/y.js", host="127.0.0.1")).status == 404


def test_the_address_is_of_the_workspaces_domain_with_its_scheme_and_port() -> None:
    def told(origins: Origins, host: bytes) -> bytes:
        offered = lab_files.of_platform(origins)
        assert offered is not None
        return offered.offer(host)[1]

    place = PLACE.encode()
    local = Origins("localhost", None, "http")
    assert told(local, b"abc.localhost:9000") == b"http://shared-files.localhost:9000" + place
    away = Origins("labs.example.org", "https://example.org", "https", ":8443")
    assert told(away, b"abc.labs.example.org:8443") == b"https://shared-files.labs.example.org:8443" + place
    assert told(Origins(None, "http://10.0.0.5:8000", "http"), b"10.0.0.5:8000") == place


async def test_a_class_that_comes_at_once_from_one_address_gets_everything(lab: Lab) -> None:
    """They have no cookies there, and are strangers to the front door: none waits behind the others, or is refused."""
    names = [name for name in identity.files(pathlib.Path(FOLDER or "")) if name.endswith(".js")][:10]
    async with lab.browser() as browser:
        shared = f"{lab.origin('shared-files')}{PLACE}"

        async def one(name: str) -> int:
            async with browser.get(f"{shared}/{name}") as answer:
                await answer.read()
                return answer.status

        assert set(await asyncio.gather(*(one(name) for name in names for _ in range(30)))) == {200}


def test_no_id_of_a_workspace_can_be_the_name_of_the_place() -> None:
    assert not set(lab_files.LABEL) <= set(ids.ALPHABET)
    assert ids.is_label(lab_files.LABEL)
