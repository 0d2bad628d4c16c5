"""What an operator may set about runtimes and templates: a group of the settings."""

from codehub.settings import RuntimeConfig

__all__ = ["RuntimeConfig"]
