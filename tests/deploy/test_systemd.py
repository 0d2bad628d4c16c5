"""The units for one server and the TLS in front of them, read by systemd's and nginx' own checks."""

import pathlib
import shutil
import subprocess

import pytest

from tests.deploy.helm import ROOT

pytestmark = pytest.mark.cluster
UNITS = ROOT / "deploy/systemd"


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: pathlib.Path) -> None:
    for unit in [*UNITS.glob("*.service"), *UNITS.glob("*.timer")]:  # where nothing is installed in /opt
        text = unit.read_text().replace("/opt/codehub/bin/codehub serve", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    found = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *found], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_in_a_unit_would_be_found(tmp_path: pathlib.Path) -> None:
    unit = tmp_path / "codehub.service"
    unit.write_text((UNITS / "codehub.service").read_text().replace("KillMode=process", "KillMode=nobody"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert "kill mode" in done.stderr


def test_nginx_takes_the_configuration(tmp_path: pathlib.Path) -> None:
    assert shutil.which("nginx"), "install nginx-light"
    key, certificate = tmp_path / "codehub.key", tmp_path / "codehub.crt"
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=labs.example.org", "-days", "1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    site = (UNITS / "nginx.conf").read_text().replace("/etc/nginx/codehub", f"{tmp_path}/codehub")
    (tmp_path / "site.conf").write_text(site)
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ access_log off; include {tmp_path}/site.conf; }}\n")
    done = subprocess.run(
        ["nginx", "-t", "-e", tmp_path / "log", "-c", whole], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
