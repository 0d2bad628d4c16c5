"""`codehub backup` and `codehub restore` as a person runs them, and everything that is refused."""

import pathlib

from tests.platform import Platform, codehub


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
