"""Which HTTP server and framework should the API stand on?

A developer runs it and reads the table. Every pair of server and framework answers the two requests the API
lives on: a waiting-room status that is polled all day, and a small validated creation.

The servers import their application from this very file, so each factory imports its own framework: one stack
never pays for another. All servers stay up and idle while one is measured, and the rounds are interleaved, so a
slow minute of the machine falls on every stack alike.
"""

import argparse
import contextlib
import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

App = Callable[[Any, Any, Any], Awaitable[None]]  # ASGI; its proper types live in the frameworks
Role = Literal["student", "teacher"]
CONNECTIONS = 32
# The servers share one core and the load has another, so neither steals time from the other.
SERVER_CORE, LOAD_CORE = (str(choose(os.sched_getaffinity(0))) for choose in (min, max))
STATUS, PEOPLE = "/status", "/people"
PERSON = {"name": "Ada", "role": "teacher"}
PACKAGES = ["uvicorn", "uvloop", "httptools", "granian", "starlette", "fastapi", "litestar", "msgspec", "pydantic"]
SERVERS = {
    "uvicorn": "--host 127.0.0.1 --loop uvloop --http httptools --no-access-log --log-level warning",
    "granian": "--host 127.0.0.1 --loop uvloop --http 1 --interface asgi --no-access-log --log-level error",
}


def status_of(person: str) -> dict[str, str | int]:
    return {"person": person, "state": "waiting", "position": 17}


def person_struct() -> Any:
    import msgspec  # not at the top: a missing package must be reported, not raised

    return msgspec.defstruct("Person", [("name", str), ("role", Role)])


def raw() -> App:
    import msgspec

    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(person_struct()).decode

    async def answer(send: Any, status: int, value: object) -> None:
        body = encode(value)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise NotImplementedError  # how an application says that it has no lifespan
        if scope["path"] == STATUS:
            query = dict(parse_qsl(scope["query_string"].decode()))
            return await answer(send, 200, status_of(query["person"]))
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        try:
            return await answer(send, 201, decode(body))
        except msgspec.ValidationError as error:
            return await answer(send, 422, {"detail": str(error)})

    return app


def starlette() -> App:
    import msgspec
    from starlette import applications, requests, responses, routing

    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(person_struct()).decode

    def answer(status: int, value: object) -> responses.Response:
        return responses.Response(encode(value), status, media_type="application/json")

    async def status(request: requests.Request) -> responses.Response:
        return answer(200, status_of(request.query_params["person"]))

    async def create(request: requests.Request) -> responses.Response:
        try:
            return answer(201, decode(await request.body()))
        except msgspec.ValidationError as error:
            return answer(422, {"detail": str(error)})

    hot, rest = routing.Route(STATUS, status), routing.Route(PEOPLE, create, methods=["POST"])
    return applications.Starlette(routes=[hot, rest])


def fastapi() -> App:
    import pydantic
    from fastapi import FastAPI

    class Person(pydantic.BaseModel):
        name: str
        role: Role

    app = FastAPI()

    @app.get(STATUS)
    async def status(person: str) -> dict[str, str | int]:
        return status_of(person)

    @app.post(PEOPLE, status_code=201)
    async def create(person: Person) -> Person:
        return person

    return app


def fastapi_fronted() -> App:
    """FastAPI for everything but the hot path, which is answered before FastAPI sees the request."""
    hot, rest = raw(), fastapi()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (hot if scope.get("path") == STATUS else rest)(scope, receive, send)

    return app


def litestar() -> App:
    from litestar import Litestar, get, post

    person_type = person_struct()

    @get(STATUS)
    async def status(person: str) -> dict[str, str | int]:
        return status_of(person)

    @post(PEOPLE)
    async def create(data: person_type) -> person_type:  # type: ignore[valid-type]
        return data

    return Litestar([status, create])


class Stack(NamedTuple):
    server: str
    framework: str
    port: int


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(stack: Stack) -> Iterator[None]:
    """Its own process group keeps Ctrl-C to us, and lets us end the server with all its workers."""
    command = ["taskset", "-c", SERVER_CORE, sys.executable, "-m", stack.server, *SERVERS[stack.server].split()]
    command += f"--port {stack.port} --factory {Path(__file__).stem}:{stack.framework}".split()
    child = subprocess.Popen(command, cwd=Path(__file__).parent, start_new_session=True)
    try:
        wait_until_right(stack, child)
        yield
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=5)
        with contextlib.suppress(ProcessLookupError):  # the usual case: nobody outlived the leader
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def wait_until_right(stack: Stack, child: subprocess.Popen[bytes]) -> None:
    """A fast wrong answer is worth nothing: both requests must be right, and a bad body refused."""
    deadline = time.monotonic() + 20
    while child.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            assert ask(stack, "GET", f"{STATUS}?person=ada") == (200, status_of("ada")), stack
            assert ask(stack, "POST", PEOPLE, PERSON) == (201, PERSON), stack
            assert ask(stack, "POST", PEOPLE, PERSON | {"role": "king"})[0] in (400, 422), stack
            return
        time.sleep(0.05)
    raise RuntimeError(f"{stack.server} with {stack.framework} did not start")


def ask(stack: Stack, method: str, path: str, body: object = None) -> tuple[int, object]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", stack.port, timeout=5)) as client:
        client.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
        response = client.getresponse()
        return response.status, json.load(response)


def rate(stack: Stack, target: list[str], seconds: int) -> float:
    """Requests per second; one refused request voids the run, for refusing is faster than answering."""
    command = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *target[1:]]
    command.append(f"http://127.0.0.1:{stack.port}{target[0]}")
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in report or "Socket errors" in report:
        raise RuntimeError(f"{stack}: {report}")
    return float(report.partition("Requests/sec:")[2].split()[0])


def measure(title: str, target: list[str], stacks: list[Stack], rounds: int, seconds: int) -> None:
    samples: dict[Stack, list[float]] = {stack: [] for stack in stacks}
    for turn in range(rounds):
        for stack in stacks[turn % len(stacks) :] + stacks[: turn % len(stacks)]:
            samples[stack].append(rate(stack, target, seconds))
    base = statistics.median(samples[stacks[0]])
    print(f"\n{title}\n{'server':<9}{'framework':<17}{'req/s':>8}{'min–max':>17}{'ratio':>8}")
    for stack, runs in samples.items():
        middle, spread = statistics.median(runs), f"{min(runs):.0f}–{max(runs):.0f}"
        print(f"{stack.server:<9}{stack.framework:<17}{middle:>8.0f}{spread:>17}{middle / base:>8.2f}")


def missing() -> list[str]:
    tools = [tool for tool in ("wrk", "taskset") if shutil.which(tool) is None]
    return tools + [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of one run; wrk counts whole seconds")
    options = parser.parse_args()
    if lack := missing():
        parser.exit(2, f"install {', '.join(lack)} (wrk and taskset from the system, the rest with pip)\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))  # unwinds, and so ends every server
    apps = (raw, starlette, fastapi, fastapi_fronted, litestar)
    stacks = [Stack(server, app.__name__, free_port()) for server in SERVERS for app in apps]
    post = f"'POST', '{json.dumps(PERSON)}', 'application/json'"
    with contextlib.ExitStack() as running, tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        print(f"wrk.method, wrk.body, wrk.headers['Content-Type'] = {post}", file=lua, flush=True)
        for stack in stacks:
            running.enter_context(serving(stack))
        measure("GET a status", [f"{STATUS}?person=ada"], stacks, options.rounds, options.seconds)
        measure("POST a person", [PEOPLE, "-s", lua.name], stacks, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
