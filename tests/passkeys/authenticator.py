"""An authenticator in software, for requests that no browser would send: it signs what a test tells it to."""

import dataclasses
import hashlib
import json
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from codehub import ids

ORIGIN = "http://localhost:8000"
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclasses.dataclass
class Authenticator:
    """One passkey. What is set here goes into its answers, right or wrong."""

    key: ec.EllipticCurvePrivateKey = dataclasses.field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = dataclasses.field(default_factory=lambda: ids.new(20).encode())
    origin: str = ORIGIN
    name: str = "localhost"
    flags: int = PRESENT | VERIFIED
    count: int = 0
    counts: bool = True
    user_handle: bytes = b"u1"
    client: dict[str, Any] = dataclasses.field(default_factory=dict)  # more of what the browser says

    def create(self, question: Any) -> dict[str, Any]:
        options = question["options"]
        self.user_handle = decode(options["user"]["id"])
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + self._public_key()
        data = self._data(ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._credential(
            clientDataJSON=encode(self._client("webauthn.create", options)),
            attestationObject=encode(attestation),
            transports=["internal"],
        )

    def get(self, question: Any) -> dict[str, Any]:
        self.count += self.counts
        client = self._client("webauthn.get", question["options"])
        data = self._data()
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._credential(
            clientDataJSON=encode(client),
            authenticatorData=encode(data),
            signature=encode(signature),
            userHandle=encode(self.user_handle),
        )

    def _client(self, kind: str, options: Any) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps({**said, **self.client}).encode()

    def _data(self, more: int = 0) -> bytes:
        return hashlib.sha256(self.name.encode()).digest() + struct.pack(">BI", self.flags | more, self.count)

    def _public_key(self) -> bytes:
        numbers = self.key.public_key().public_numbers()
        x, y = (n.to_bytes(32, "big") for n in (numbers.x, numbers.y))
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})

    def _credential(self, **response: Any) -> dict[str, Any]:
        id_ = encode(self.credential_id)
        return {"id": id_, "rawId": id_, "type": "public-key", "response": response, "clientExtensionResults": {}}
