"""`codehub backup` and `codehub restore` as a person runs them: moving house, and everything that is refused."""

import pathlib
import stat

import aiohttp

from tests.platform import Platform, codehub, running


async def make_people(platform: Platform) -> tuple[str, str]:
    """A learner with a bearer token, and the admin in a browser; returns token and cookie."""
    async with platform.client() as admin:
        async with admin.post("/api/v1/users", json={"name": "mina", "role": "learner"}) as answer:
            assert answer.status == 201
        async with admin.post("/api/v1/users/mina/tokens", json={}) as answer:
            token: str = (await answer.json())["token"]
    link = platform.login_link()
    assert link
    async with platform.client(token=None) as browser:
        async with browser.get(link) as answer:
            assert answer.status == 200
        cookie = next(c.value for c in browser.cookie_jar if c.key == "codehub")
    return token, cookie


async def who(platform: Platform, *, token: str | None = None, cookie: str | None = None) -> str | None:
    cookies = {"codehub": cookie} if cookie else None
    async with platform.client(token) as client, aiohttp.ClientSession(cookies=cookies) as browser:
        chosen = client.get("/api/v1/me") if token else browser.get(platform.url + "/api/v1/me")
        async with chosen as answer:
            return (await answer.json())["name"] if answer.status == 200 else None


async def test_a_platform_moves_to_another_machine_and_nobody_notices(data_dir: pathlib.Path) -> None:
    file, new_home = data_dir.parent / "move.codehub", data_dir.parent / "new"
    with running(data_dir) as platform:
        token, cookie = await make_people(platform)
        made = codehub("backup", str(file), CODEHUB_DATA_DIR=str(data_dir))
        assert made.returncode == 0, made.stderr
        assert "tables" in made.stdout
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for more in ([], ["--replace"]):
            refused = codehub("restore", str(file), *more, CODEHUB_DATA_DIR=str(data_dir))
            assert refused.returncode == 1
            assert refused.stderr == f"codehub: CodeHub is running on {data_dir}: stop it first, then restore\n"
        assert await who(platform, token=token) == "mina"
    restored = codehub("restore", str(file), CODEHUB_DATA_DIR=str(new_home))
    assert restored.returncode == 0, restored.stderr
    assert "2 rows  ✓" in restored.stdout.split("users", 1)[1].splitlines()[0]
    assert "people stay logged in" in restored.stdout
    assert stat.S_IMODE((new_home / "secrets" / "signing-key").stat().st_mode) == 0o600
    with running(new_home) as moved:
        assert moved.login_link() is None  # the admin has logged in before the move
        assert await who(moved, token=token) == "mina"
        assert await who(moved, cookie=cookie) == "admin"


async def test_a_stopped_platform_is_backed_up_and_put_back_in_its_place(data_dir: pathlib.Path) -> None:
    file = data_dir.parent / "night.codehub"
    Platform(data_dir).prepare()
    home = {"CODEHUB_DATA_DIR": str(data_dir)}
    assert codehub("user", "add", "mina", **home).returncode == 0
    assert codehub("backup", str(file), **home).returncode == 0
    assert codehub("user", "add", "late", **home).returncode == 0

    again = codehub("backup", str(file), **home)
    assert (again.returncode, "--force" in again.stderr) == (1, True)

    refused = codehub("restore", str(file), **home)
    assert refused.returncode == 1
    assert "--replace" in refused.stderr
    assert "late" in codehub("user", "ls", **home).stdout

    replaced = codehub("restore", "--replace", str(file), **home)
    assert replaced.returncode == 0, replaced.stderr
    people = codehub("user", "ls", **home).stdout
    assert "mina" in people
    assert "late" not in people
    _damage_is_one_line_and_touches_nothing(file, data_dir.parent / "new")


def _damage_is_one_line_and_touches_nothing(file: pathlib.Path, new_home: pathlib.Path) -> None:
    whole = file.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle], whole[:middle] + b"?" + whole[middle + 1 :], b"something else"):
        file.write_bytes(damaged)
        result = codehub("restore", str(file), CODEHUB_DATA_DIR=str(new_home))
        assert result.returncode == 1
        assert "cannot be restored" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert not new_home.exists()


async def test_a_key_of_ones_own_is_kept_and_its_meaning_said(
    database_url: str, empty_url: str, data_dir: pathlib.Path
) -> None:
    """With servers and key given, nothing is written to this machine but the file."""
    file = data_dir.parent / "given.codehub"
    given = {"CODEHUB_DATA_DIR": str(data_dir), "CODEHUB_REDIS_URL": "redis://127.0.0.1:1"}
    old, new = "the-old-key-of-this-place", "the-new-key-of-this-place"
    made = codehub("backup", str(file), CODEHUB_DATABASE_URL=database_url, CODEHUB_SECRET_KEY=old, **given)
    assert made.returncode == 0, made.stderr
    for keys, meaning in ((new, "have to log in again"), (f"{new},{old}", "stay logged in")):
        result = codehub(
            "restore", "--replace", str(file), CODEHUB_DATABASE_URL=empty_url, CODEHUB_SECRET_KEY=keys, **given
        )
        assert result.returncode == 0, result.stderr
        assert meaning in result.stdout
        assert old not in result.stdout + result.stderr
    assert {path.name for path in data_dir.rglob("*")} <= {"archives"}  # an empty folder, where they would be
