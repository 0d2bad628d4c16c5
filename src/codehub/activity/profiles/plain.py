"""For programs nothing is known of: every request and every data message counts."""

from codehub.activity.model import Kind
from codehub.activity.profiles.base import Followers, Tell, uniform


class Plain:
    by_query: tuple[bytes, ...] = ()

    def request(self, _method: bytes, _path: bytes, _query: bytes) -> Kind:
        return Kind.REQUEST

    def followers(self, _path: bytes, _query: bytes, say: Tell, hear: Tell) -> Followers:
        return uniform(Kind.MESSAGE, say, hear)
