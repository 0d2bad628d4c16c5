"""The cluster's own CA, made at its first start, and a certificate for each who speaks with the API server."""

import base64
import datetime as dt
import ipaddress
import json
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster.layout import CONTROL, DNS_DOMAIN, NODES, Place

VALID = dt.timedelta(days=3650)
# Whom the API server takes each for: name and group.
CLIENTS = {
    "admin": ("admin", "system:masters"),
    "apiserver-client": ("apiserver", "system:masters"),  # to kubelets: logs and exec
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
    "kube-proxy": ("system:kube-proxy", None),
    "provisioner": ("codehub-cluster:provisioner", None),
    **{node: (f"system:node:{node}", "system:nodes") for node in NODES},
}


def make(place: Place) -> None:
    """What is missing of it; what is there stays."""
    place.pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _authority(place.pki)
    if not (place.pki / "service-accounts.key").exists():
        _write_private(place.pki / "service-accounts.key", ec.generate_private_key(ec.SECP256R1()))
    for name, (user, group) in CLIENTS.items():
        _issue(place.pki, name, authority, user, group)
    service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DNS_DOMAIN}"]
    served = [place.address(CONTROL), place.uplink_address, place.api_service, "127.0.0.1", "localhost", *service]
    _issue(place.pki, "kube-apiserver", authority, "kube-apiserver", None, served)
    _issue(place.pki, "etcd", authority, "etcd", None, ["127.0.0.1", "localhost"])
    for node in NODES:
        _issue(
            place.pki, f"{node}-server", authority, f"system:node:{node}", "system:nodes", [place.address(node), node]
        )


def add_client(place: Place, name: str, user: str, group: str | None = None) -> None:
    """One more who speaks with the API server."""
    _issue(place.pki, name, _authority(place.pki), user, group)


def kubeconfig(place: Place, client: str) -> str:
    """With the certificates in it, so that the file can be copied. JSON is YAML, too."""

    def content(name: str) -> str:
        return base64.b64encode((place.pki / name).read_bytes()).decode()

    cluster = {"server": place.server, "certificate-authority-data": content("ca.crt")}
    user = {"client-certificate-data": content(f"{client}.crt"), "client-key-data": content(f"{client}.key")}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": place.name, "cluster": cluster}],
            "users": [{"name": client, "user": user}],
            "contexts": [{"name": place.name, "context": {"cluster": place.name, "user": client}}],
            "current-context": place.name,
        },
        indent=1,
    )


Authority = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _authority(folder: pathlib.Path) -> Authority:
    certificate, key_file = folder / "ca.crt", folder / "ca.key"
    if not certificate.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("codehub-cluster", None)
        built = _unsigned(name, name, key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        _write_private(key_file, key)
        _write(certificate, built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    loaded = serialization.load_pem_private_key(key_file.read_bytes(), None)
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{key_file} is not of ours")
    return x509.load_pem_x509_certificate(certificate.read_bytes()), loaded


def _issue(
    folder: pathlib.Path, name: str, authority: Authority, user: str, group: str | None, served: list[str] | None = None
) -> None:
    if (folder / f"{name}.crt").exists():
        return
    issuer, signing_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    built = _unsigned(_name(user, group), issuer.subject, key.public_key())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if served:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        built = built.add_extension(x509.SubjectAlternativeName([_alternative(one) for one in served]), critical=False)
    built = built.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    _write_private(folder / f"{name}.key", key)
    _write(folder / f"{name}.crt", built.sign(signing_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return (
        built.serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + VALID)
    )


def _name(user: str, group: str | None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    return x509.Name([*parts, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else parts)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_private(path: pathlib.Path, key: ec.EllipticCurvePrivateKey) -> None:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    path.touch(mode=0o600)
    _write(path, key.private_bytes(*form))


def _write(path: pathlib.Path, content: bytes) -> None:
    """Whole or not at all: a certificate that is there is valid."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(path)
