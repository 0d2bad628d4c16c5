"""Mutual TLS between the platform and a relay that other machines reach, with a key pair of that one start.

Both ends have the same certificate, which neither shows to anybody else, and accept nothing but it. It follows from the
platform's secret key and a random name, so that the name is all that has to be kept: in the database and on the
cluster's objects, where it is no secret. The relay is given its own pair and can make no other.
"""

import functools
import hashlib
import hmac
import os
import pathlib
import secrets
import ssl
from datetime import UTC, datetime

CERTIFICATE, KEY = "tls.crt", "tls.key"
ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
REMEMBER = 20_000


class Doors:
    """Keys rotate as those of signatures do: the first makes new doors, all open those that are there."""

    def __init__(self, secret_keys: str) -> None:
        derived = [hmac.digest(key.strip().encode(), b"relay-door", "sha256") for key in secret_keys.split(",")]
        self._keys = {hashlib.sha256(key).hexdigest()[:8]: key for key in derived}
        self.client = functools.lru_cache(REMEMBER)(self._client)

    def new(self) -> str:
        """A door's name."""
        return f"{next(iter(self._keys))}-{secrets.token_hex(16)}"

    def pair(self, name: str) -> tuple[bytes, bytes]:
        """Certificate and key: the same whoever makes them, and whenever."""
        from cryptography import x509  # noqa: PLC0415 (a relay needs none of it)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415
        from cryptography.x509.oid import NameOID  # noqa: PLC0415

        key = self._keys.get(name.partition("-")[0])
        if key is None:
            raise ssl.SSLError("this door's key is none of ours: CODEHUB_SECRET_KEY has changed since it was made")
        private = Ed25519PrivateKey.from_private_bytes(hmac.digest(key, name.encode(), "sha256"))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "codehub-relay")])
        certificate = (
            x509.CertificateBuilder(subject, subject, private.public_key(), 1, *ALWAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(private, None)
        )
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return certificate.public_bytes(Encoding.PEM), pem

    def _client(self, name: str) -> ssl.SSLContext:
        """For connecting to it."""
        certificate, key = self.pair(name)
        held = os.memfd_create("door", os.MFD_CLOEXEC)  # the library reads files only
        try:
            os.write(held, certificate + key)
            return _only(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), f"/proc/self/fd/{held}", None, certificate)
        finally:
            os.close(held)


def serving(folder: pathlib.Path) -> ssl.SSLContext:
    """For the relay, which finds its pair in a folder."""
    files = str(folder / CERTIFICATE), str(folder / KEY)
    return _only(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *files, (folder / CERTIFICATE).read_bytes())


def _only(context: ssl.SSLContext, file: str, key: str | None, certificate: bytes) -> ssl.SSLContext:
    context.check_hostname = False  # there is one certificate, and no other is good
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=certificate.decode("ascii"))
    context.load_cert_chain(file, key)
    return context
