"""Passkeys: a way in that a device holds and its person unlocks, by WebAuthn; several a person, each with a name."""
