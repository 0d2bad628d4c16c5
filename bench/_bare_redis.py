"""What Redis alone does: the script of `status`, sent by redis-benchmark. For `waiting_room`.

redis-benchmark puts another random number in every place that it is told to, so the id and the sequence of a person
would not belong together. It therefore asks an event of its own, with as many people who all have the same sequence:
equal scores are ordered by id, which costs Redis no less. The keys that are renewed are those of other people.
"""

import subprocess
import time

from bench._proxies import PROXY_CORE, go_first
from bench._waiting import Polled, Redis, pid
from codehub.waiting_room import keys

CLIENTS = 64
ANY = "__rand_int__"  # twelve digits


class Bare:
    def __init__(self, redis: Redis, like: str, event: str, people: int) -> None:
        """`like`: the line that is copied; `event`: one that is open and empty."""
        self._redis = redis
        self._like = like
        self._event = event
        self._people = people
        self._digest = redis.load_script("status")
        whole, live, _, beat = keys.of_event(like)[:4]
        to_whole, to_live, _, to_beat = keys.of_event(event)[:4]
        client = redis.client
        for source, target in ((whole, to_whole), (live, to_live)):
            client.execute_command("ZUNIONSTORE", target, 1, source, "WEIGHTS", 0)
        client.execute_command("ZUNIONSTORE", to_beat, 1, beat)
        answer = client.evalsha(self._digest, 11, *self._names([pid(0)]), int(time.time() * 1000), f"{pid(0)} 0")
        assert answer[1][:2] == [0, 1], answer

    def _names(self, people: list[str]) -> list[str]:
        own = [name for one in people for name in (keys.heartbeat(self._like, one), keys.waiting(self._like, one))]
        return [*keys.of_event(self._event), *own]

    def run(self, together: int, calls: int) -> Polled:
        """So many people in a call."""
        names = self._names([ANY] * together)
        asked = " ".join([f"{ANY} 0"] * together)
        command = ["EVALSHA", self._digest, str(len(names)), *names, str(int(time.time() * 1000)), asked]
        options = ["-s", self._redis.socket, "-a", self._redis.password, "-c", str(CLIENTS), "-n", str(calls)]
        options += ["-r", str(self._people), "--csv"]
        before, begun = self._redis.cpu(), self._redis.calls()
        child = subprocess.Popen(
            ["taskset", "-c", PROXY_CORE, "redis-benchmark", *options, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        go_first(child.pid)
        said, _ = child.communicate(timeout=120)
        made = self._redis.calls() - begun
        assert made >= calls, f"redis-benchmark made {made} calls"
        rate, _, _, p50, _, p99, _ = (float(field.strip('"')) for field in said.strip().rsplit(",", 7)[1:])
        return Polled(rate * together, p50, p99, 0.0, (self._redis.cpu() - before) / (made * together) * 1e6, together)

    def drop(self) -> None:
        self._redis.client.unlink(*keys.of_event(self._event))
