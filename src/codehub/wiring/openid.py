"""Logins by providers: built once for an API process."""

from codehub.auth.credentials import Credentials
from codehub.auth.logins import Logins
from codehub.auth.sealing import Sealer
from codehub.classes.service import Classes
from codehub.clock import Clock
from codehub.db import Database, redis
from codehub.openid.client import Client
from codehub.openid.fetch import Fetcher
from codehub.openid.flows import Flows
from codehub.openid.service import OpenId
from codehub.settings import OpenIdConfig


def build(
    config: OpenIdConfig,
    database: Database,
    client: redis.Client,
    clock: Clock,
    key: str,
    parts: tuple[Credentials, Logins, Classes],
) -> OpenId:
    fetcher = Fetcher()
    clients = {provider.name: Client(provider, fetcher, clock) for provider in config.providers}
    flows, sealer = Flows(client, clock, key), Sealer(key, "openid-id-token")
    return OpenId(config, database, clock, flows, sealer, clients, *parts, close=fetcher.aclose)
