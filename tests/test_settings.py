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


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("QUEUE_SILENT_SECONDS", "300", "HEARTBEAT_SECONDS=300: must be more than QUEUE_SILENT_SECONDS, which is 300"),
        ("QUEUE_WAITING_SECONDS", "99", "WAITING_SECONDS=99: must be more than QUEUE_HEARTBEAT_SECONDS, which is 300"),
        ("QUEUE_EVENT_SECONDS", "299", "EVENT_SECONDS=299: must be more than QUEUE_HEARTBEAT_SECONDS, which is 300"),
    ],
)
def test_settings_that_do_not_go_together_are_named_with_what_is_wrong(name: str, value: str, complaint: str) -> None:
    loaded, problems = settings.load_checked({name: value})
    assert problems == [f"QUEUE_{complaint}"]
    assert loaded.queue == settings.QueueConfig()


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


SCHOOL = {"CODEHUB_OPENID_HAN_BIT_ISSUER": "https://login.example.org/", "CODEHUB_OPENID_HAN_BIT_CLIENT_ID": "codehub"}


def test_a_provider_comes_from_the_file_and_the_environment_wins(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "codehub.toml"
    file.write_text(
        """
        [openid.school]
        issuer = "https://login.example.org"
        client_id = "codehub"
        client_secret = "from-the-file"
        scopes = ["email"]
        create = true
        [openid.school.roles]
        "cn=staff, ou=people" = "teacher"
        [openid.company]
        issuer = "http://localhost:9000"
        client_id = "labs"
        """
    )
    loaded = settings.load({"CODEHUB_OPENID_SCHOOL_CLIENT_SECRET": "from-the-environment"}, file)
    school, company = loaded.openid.providers
    assert (school.name, school.client_secret, school.create) == ("school", "from-the-environment", True)
    assert (school.scopes, school.roles) == (("openid", "email"), (("cn=staff, ou=people", "teacher"),))
    assert (company.name, company.client_secret, company.create) == ("company", None, False)
    assert settings.load(settings.to_environ(loaded)).openid == loaded.openid
    assert "from-the-environment" not in repr(loaded)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("ISSUER", "http://login.example.org", "must begin with https://"),
        ("ISSUER", "login.example.org", "must be a URL"),
        ("ISSUER", "https://login.example.org?x=1", "without a query"),
        ("CREATE", "perhaps", "must be true or false"),
        ("ROLE", "admin", "must be learner or teacher"),
        ("ROLES", '{"staff": "king"}', "must say for each group one of"),
        ("ROLES", "staff=teacher", "must be JSON"),
        ("CLASSES", '{"3b": "Class 3B"}', "the id of a class"),
        ("TITLE", "x" * 61, "more than 60"),
        ("TITLE", "a\u202eb", "text in quotes"),
        ("SCOPES", 'a"b', "must be a list"),
        ("CLIENT_SECRET", " ", "text in quotes"),
    ],
)
def test_a_wrong_setting_of_a_provider_is_named(name: str, value: str, complaint: str) -> None:
    variable = f"CODEHUB_OPENID_HAN_BIT_{name}"
    loaded, problems = settings.load_checked({**SCHOOL, variable: value})
    assert [problem.startswith(f"{variable}=") and complaint in problem for problem in problems] == [True], problems
    assert loaded.openid.providers == ()


def test_a_provider_needs_an_issuer_and_a_client_id_and_two_have_two_issuers(tmp_path: pathlib.Path) -> None:
    _, problems = settings.load_checked({"CODEHUB_OPENID_SCHOOL_TITLE": "School"})
    assert problems == ["[openid.school]: issuer is missing", "[openid.school]: client_id is missing"]
    twice = {name.replace("HAN_BIT", "OTHER"): value for name, value in SCHOOL.items()}
    _, problems = settings.load_checked({**SCHOOL, **twice})
    assert problems == ["[openid.other]: has the same issuer as [openid.han-bit]"]
    file = tmp_path / "codehub.toml"
    file.write_text("[openid.school]\nissuer = 'https://x.org'\nclient_id = 'a'\nsecret = 'b'\n")
    _, problems = settings.load_checked({}, file)
    assert [("unknown setting [openid.school] secret" in problem) for problem in problems] == [True]
    file.write_text("openid = 'school'\n")
    assert "must be tables" in settings.load_checked({}, file)[1][0]


def test_names_of_providers_are_no_spelling_mistakes() -> None:
    assert settings.unknown_names({**SCHOOL, "CODEHUB_OPENID_SCHOOL_SECRET": "x"}) == ["CODEHUB_OPENID_SCHOOL_SECRET"]


def test_a_providers_secret_is_not_repeated_in_a_complaint() -> None:
    _, problems = settings.load_checked({**SCHOOL, "CODEHUB_OPENID_HAN_BIT_CLIENT_SECRET": "hunter2\n3"})
    assert len(problems) == 1
    assert "hunter2" not in problems[0]
