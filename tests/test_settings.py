"""Settings come from environment and file; a wrong one is one clear line."""

import pathlib

import pytest

from codehub import settings
from codehub.errors import SettingsError


def test_defaults_need_nothing() -> None:
    loaded = settings.load({"HOME": "/home/mina"})
    assert loaded.server.port == 8000
    assert loaded.storage.database_url is None


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("CODEHUB_PORT", "eighty", "must be a whole number"),
        ("CODEHUB_PORT", "70000", "must be between 0 and 65535"),
        ("CODEHUB_DATABASE_URL", "mysql://x", "must be a URL beginning with postgresql:// or postgres://"),
        ("CODEHUB_ADMIN_TOKEN", "short", "at least 16 characters"),
        ("CODEHUB_TRUSTED_PROXIES", "10.0.0.0/99", "10.0.0.0/99"),
        ("CODEHUB_LOG_LEVEL", "loud", "must be one of debug, info, warning, error"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wrong(name: str, value: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load({name: value})
    assert name in str(caught.value)
    assert complaint in str(caught.value)


def test_a_secret_is_not_repeated_in_the_complaint() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load({"CODEHUB_ADMIN_TOKEN": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_the_environment_wins_over_the_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "codehub.toml"
    file.write_text('CODEHUB_PORT = 9000\nCODEHUB_HOST = "::1"\n')
    loaded = settings.load({"CODEHUB_PORT": "9001"}, file)
    assert (loaded.server.port, loaded.server.host) == (9001, "::1")


def test_an_unknown_name_in_the_file_is_refused_with_a_suggestion(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "codehub.toml"
    file.write_text("CODEHUB_PROT = 9000\n")
    with pytest.raises(SettingsError, match="did you mean CODEHUB_PORT"):
        settings.load({}, file)


def test_settings_survive_the_way_to_a_child_process() -> None:
    loaded = settings.load({"CODEHUB_TRUSTED_PROXIES": "10.0.0.0/8,::1", "CODEHUB_PUBLIC_URL": "https://x.org"})
    assert settings.load(settings.to_environ(loaded)) == loaded


def test_secrets_do_not_show_in_a_representation() -> None:
    loaded = settings.load({"CODEHUB_SECRET_KEY": "very-secret-very-secret"})
    assert "very-secret" not in repr(loaded)
