"""Runs a verb of the Kubernetes runtime in a process that is ended by SIGKILL at a given call.

Started by `test_kubernetes_crashes`, like `docker_crash_points`. What acts is a call that changes something in the
cluster, or a request to a pod's door: a point is the number of one, and whether the process ends just before it or just
after its answer.
"""

import asyncio
import contextlib
import os
import pathlib
import signal
from collections.abc import AsyncIterator
from typing import Any

from codehub.runtimes.base import Runtime
from codehub.runtimes.kubernetes.api import Api
from codehub.runtimes.kubernetes.asking import Asked, Asking
from tests import kubernetes_cluster
from tests.runtimes.docker_crash_points import VERBS, serve

__all__ = ["VERBS", "Runtime"]
call, under_way = Api.call, Asking.under_way


class Points:
    def __init__(self, point: str) -> None:
        self._moment, _, number = point.partition("-")
        self._number = int(number or 0)
        self.count = 0

    def next(self) -> int:
        self.count += 1
        return self.count

    def end_at(self, moment: str, number: int) -> None:
        if (moment, number) == (self._moment, self._number):
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """From here on, in this process."""

        async def counted(api: Api, method: str, *arguments: Any, **options: Any) -> Any:
            if method == "GET":
                return await call(api, method, *arguments, **options)
            number = self.next()
            self.end_at("before", number)
            answer = await call(api, method, *arguments, **options)
            self.end_at("after", number)
            return answer

        @contextlib.asynccontextmanager
        async def asked(asking: Asking, *arguments: Any, **options: Any) -> AsyncIterator[Asked]:
            number = self.next()
            self.end_at("before", number)
            async with under_way(asking, *arguments, **options) as one:
                yield one
            self.end_at("after", number)

        Api.call = counted  # type: ignore[method-assign,assignment]
        Asking.under_way = asked  # type: ignore[method-assign,assignment]


def carry_out(tell: int, data_dir: str, verb: str, point: str = "") -> None:
    runtime = kubernetes_cluster.open_runtime(pathlib.Path(data_dir))
    points = Points(point)
    points.watch()
    asyncio.run(_run(verb, runtime))
    os.write(tell, str(points.count).encode())


async def _run(verb: str, runtime: kubernetes_cluster.KubernetesRuntime) -> None:
    await VERBS[verb](runtime)
    await runtime.close()


if __name__ == "__main__":
    serve(carry_out)
