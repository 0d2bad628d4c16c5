"""PostgreSQL and Valkey as a pod of the platform's own image, which carries both: for tests of the chart."""

PASSWORD = "for-tests-alone"
TOKEN = "an-admin-token-for-tests"
SCRIPT = f"""
import os, pathlib, subprocess, time
from codehub.embedded import postgres, redis
data, binaries = pathlib.Path("/data/pg"), postgres.binaries()
pathlib.Path("/tmp/password").write_text("{PASSWORD}")
if not data.exists():
    subprocess.run([binaries / "initdb", "-D", data, "-U", "codehub", "--pwfile", "/tmp/password",
        "--auth=scram-sha-256", "-E", "UTF8", "--locale=C"], check=True)
    with (data / "pg_hba.conf").open("a") as file:
        file.write("host all all all scram-sha-256\\n")
subprocess.Popen([redis.binary(), "--bind", "0.0.0.0", "--requirepass", "{PASSWORD}", "--dir", "/tmp", "--save", ""])
program = str(binaries / "postgres")
os.execv(program, [program, "-D", str(data), "-c", "listen_addresses=*", "-c", "max_connections=300",
    "-c", "unix_socket_directories=/tmp"])
"""


def manifests(namespace: str, image: str) -> list[dict[str, object]]:
    metadata = {"name": "servers", "namespace": namespace, "labels": {"app": "servers"}}
    host = f"servers.{namespace}.svc"
    container = {
        "name": "servers",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/codehub/bin/python", "-c", SCRIPT],
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "readinessProbe": {"tcpSocket": {"port": 5432}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "names", "mountPath": "/etc/passwd", "subPath": "passwd"},
        ],
    }
    security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = {
        "containers": [container],
        "securityContext": security,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "names", "configMap": {"name": "names"}}],
    }
    text = {
        "database-url": f"postgresql://codehub:{PASSWORD}@{host}:5432/postgres",
        "redis-url": f"redis://:{PASSWORD}@{host}:6379/0",
        "secret-key": "a-signing-key-for-tests",
        "admin-token": TOKEN,
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "names", "namespace": namespace},
            "data": {"passwd": "root:x:0:0::/:/bin/sh\ncodehub:x:65532:65532::/tmp:/bin/sh\n"},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "selector": {"app": "servers"},
                "ports": [{"name": "postgres", "port": 5432}, {"name": "redis", "port": 6379}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "codehub", "namespace": namespace},
            "stringData": text,
        },
    ]
