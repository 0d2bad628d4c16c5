"""How processes of one platform know each other over a network: TLS on both sides, by CODEHUB_SECRET_KEY alone.

A certificate authority follows from the secret key, so that every process has the same one without being given it. Each
process makes a certificate of its own when it starts, for a key that never leaves its memory, and takes nobody who has
none of that authority: neither a stranger who reaches a port, nor one who got an address that was ours a moment ago.
Used by the front door, the API and the coordinator, when they are on different machines.
"""

import datetime as dt
import hmac
import os
import ssl
from dataclasses import dataclass

PURPOSE = b"peers"
HANDSHAKE_SECONDS = 10.0  # in which the other side proves who it is
# Certificates end with their process, and the authority with the secret key: no clock decides about them.
SINCE = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
UNTIL = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Peers:
    server: ssl.SSLContext
    client: ssl.SSLContext


def of(keys: str) -> Peers:
    """Keys rotate as those of signatures do: the first vouches for us, all of them for others."""
    from cryptography import x509  # noqa: PLC0415 (only where roles are apart)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    derived = [hmac.digest(key.strip().encode(), PURPOSE, "sha256") for key in keys.split(",")]
    authorities = [Ed25519PrivateKey.from_private_bytes(seed) for seed in derived]

    def name_of(key: Ed25519PrivateKey) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, key.public_key().public_bytes_raw().hex())])

    def certificate(key: Ed25519PrivateKey, by: Ed25519PrivateKey, *, authority: bool) -> bytes:
        own = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "codehub")])
        usage = {"key_cert_sign": authority, "crl_sign": False, "digital_signature": not authority}
        others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        never = dict.fromkeys([*others, "encipher_only", "decipher_only"], False)
        made = (
            x509.CertificateBuilder()
            .subject_name(name_of(key) if authority else own)
            .issuer_name(name_of(by))
            .public_key(key.public_key())
            .serial_number(1 if authority else x509.random_serial_number())
            .not_valid_before(SINCE)
            .not_valid_after(UNTIL)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.KeyUsage(**usage, **never), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False)
        )
        return made.sign(by, None).public_bytes(Encoding.PEM)

    ours = Ed25519PrivateKey.generate()
    pem = ours.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    mine = pem + certificate(ours, authorities[0], authority=False)
    trusted = b"".join(certificate(key, key, authority=True) for key in authorities).decode()
    return Peers(_context(ssl.PROTOCOL_TLS_SERVER, mine, trusted), _context(ssl.PROTOCOL_TLS_CLIENT, mine, trusted))


def _context(side: int, mine: bytes, trusted: str) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.check_hostname = False  # nobody else has a certificate of this authority: which of us it is does not matter
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=trusted)
    if side == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # connections are kept; each new one shows its certificate
    # OpenSSL reads keys from files: this one is never on a disk.
    file = os.memfd_create("peer", os.MFD_CLOEXEC)
    try:
        os.write(file, mine)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context
