"""What browsers and authenticators are asked, and what they answer, by the library `webauthn`. Pure: no I/O.

Of an answer it checks the origin, the name, that its person was there and unlocked the passkey, and the signature. The
counter is for `rules`, once the signature is known to be good: the library would look at it before.

The person must be verified (a fingerprint, a face, a PIN): a passkey is the whole login here, without even a name, so
that one which opens to a touch alone would be the key of an account for the finder.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import webauthn
from webauthn.helpers import (
    options_to_json_dict,
    parse_attestation_object,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AttestationConveyancePreference,
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from codehub.errors import InvalidRequestError
from codehub.passkeys.errors import PasskeyOriginError, PasskeyRefusedError
from codehub.passkeys.model import NewCredential, Passkey, Place

PLATFORM = "CodeHub"
LONGEST_ID, LONGEST_KEY = 1023, 2048  # bytes; the first is the standard's, the second holds RSA with 8192 bits
MALFORMED = "is not what `navigator.credentials` gives"
UNKNOWN = "this passkey is not known here, or its account is not active"
UNSIGNED = "this passkey's answer cannot be verified: try again, or take another way in"


@dataclass(frozen=True)
class Answer:
    """What a browser sent, read but not yet believed."""

    credential: RegistrationCredential | AuthenticationCredential
    challenge: bytes
    origin: object
    cross_origin: bool
    name_hash: bytes  # of the name that the passkey belongs to

    @property
    def credential_id(self) -> bytes:
        return self.credential.raw_id


def creation_options(
    place: Place, user_id: str, name: str, display_name: str, challenge: bytes, seconds: int, known: Collection[Passkey]
) -> dict[str, Any]:
    """For `navigator.credentials.create`. A device that holds one of the known passkeys does not make another."""
    made = webauthn.generate_registration_options(
        rp_id=place.name,
        rp_name=PLATFORM,
        user_id=user_id.encode(),
        user_name=name,
        user_display_name=display_name or name,
        challenge=challenge,
        timeout=seconds * 1000,
        attestation=AttestationConveyancePreference.NONE,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[_descriptor(passkey) for passkey in known],
    )
    return options_to_json_dict(made)


def _descriptor(passkey: Passkey) -> PublicKeyCredentialDescriptor:
    transports = [AuthenticatorTransport(t) for t in passkey.transports]
    return PublicKeyCredentialDescriptor(passkey.credential_id, transports=transports)


def request_options(place: Place, challenge: bytes, seconds: int) -> dict[str, Any]:
    """For `navigator.credentials.get`: of whichever account the person chooses a passkey."""
    made = webauthn.generate_authentication_options(
        rp_id=place.name,
        challenge=challenge,
        timeout=seconds * 1000,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json_dict(made)


def read_creation(sent: object) -> Answer:
    try:
        credential = parse_registration_credential_json(sent)  # type: ignore[arg-type]
        name_hash = parse_attestation_object(credential.response.attestation_object).auth_data.rp_id_hash
        return _answer(credential, name_hash)
    except Exception as e:  # the library lets errors of JSON, CBOR and base64 through
        raise InvalidRequestError(MALFORMED, field="credential") from e


def read_request(sent: object) -> Answer:
    try:
        credential = parse_authentication_credential_json(sent)  # type: ignore[arg-type]
        return _answer(credential, credential.response.authenticator_data[:32])
    except Exception as e:
        raise InvalidRequestError(MALFORMED, field="credential") from e


def _answer(credential: RegistrationCredential | AuthenticationCredential, name_hash: bytes) -> Answer:
    client = parse_client_data_json(credential.response.client_data_json)
    return Answer(credential, client.challenge, client.origin, bool(client.cross_origin), name_hash)


def check_origin(answer: Answer, place: Place) -> None:
    """Exactly ours: a workspace's page, of the same site, could ask a passkey too; so could a frame of another site."""
    named = hashlib.sha256(place.name.encode()).digest()
    if answer.origin != place.origin or answer.cross_origin or answer.name_hash != named:
        raise PasskeyOriginError(f"passkeys are used at {place.origin} here, and from no other address")


def verify_creation(answer: Answer, place: Place) -> NewCredential:
    credential = answer.credential
    assert isinstance(credential, RegistrationCredential)  # noqa: S101 (read as such)
    try:
        found = webauthn.verify_registration_response(
            credential=credential,
            expected_challenge=answer.challenge,
            expected_rp_id=place.name,
            expected_origin=place.origin,
            require_user_verification=True,
        )
    except Exception as e:
        raise PasskeyRefusedError(UNSIGNED) from e
    if len(found.credential_id) > LONGEST_ID or len(found.credential_public_key) > LONGEST_KEY:
        raise InvalidRequestError("is too long", field="credential")
    transports = [transport.value for transport in credential.response.transports or []]
    return NewCredential(
        found.credential_id, found.credential_public_key, found.sign_count, list(dict.fromkeys(transports))
    )


def verify_request(answer: Answer, place: Place, passkey: Passkey) -> int:
    """The counter that it was signed with."""
    credential = answer.credential
    assert isinstance(credential, AuthenticationCredential)  # noqa: S101 (read as such)
    if credential.response.user_handle != passkey.user_id.encode():
        raise PasskeyRefusedError(UNKNOWN)
    try:
        found = webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=answer.challenge,
            expected_rp_id=place.name,
            expected_origin=place.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception as e:
        raise PasskeyRefusedError(UNSIGNED) from e
    return found.new_sign_count
