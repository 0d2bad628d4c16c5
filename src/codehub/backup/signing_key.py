"""The signing key as a part of a backup: with it, cookies and links of the old machine are good on the new one."""

import os
import pathlib

from codehub.backup import rules
from codehub.embedded.datadir import DataDir
from codehub.errors import StartError
from codehub.settings import Settings


def current(settings: Settings) -> str | None:
    """The key in use; None when none was ever made, so that nothing signed by it exists."""
    if settings.auth.secret_key:
        return settings.auth.secret_key
    data = DataDir(settings.storage.data_dir)
    return data.secret("signing-key") if (data.secrets / "signing-key").exists() else None


def put_back(settings: Settings, key: str | None) -> str:
    """Make the key ours, where it is ours to choose; returns what that means for people."""
    if key is None:
        return "The backup has no signing key: people have to log in again."
    if ours := settings.auth.secret_key:
        if rules.stays_logged_in(key, ours):
            return "CODEHUB_SECRET_KEY is that of the backup: people stay logged in."
        return (
            "CODEHUB_SECRET_KEY is not that of the backup: people have to log in again. "
            "To avoid that, set it to `yours,theirs`."
        )
    _write(DataDir(settings.storage.data_dir).secrets / "signing-key", key)
    return "The signing key was restored: people stay logged in."


def _write(path: pathlib.Path, key: str) -> None:
    """Whole or not at all, and never readable by others."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as e:
        raise StartError(
            f"the data was restored, but the signing key could not be written to {path}: {e.strerror}. "
            "People have to log in again, or you restore once more with --replace"
        ) from e
