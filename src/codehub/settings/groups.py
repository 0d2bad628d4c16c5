"""The settings themselves, in frozen groups: each with its environment name, and its unit and reason as `help`.

Read by `codehub.settings`, which all other packages import them from.
"""

import os
import pathlib
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from codehub import allowlist
from codehub.settings.containers import ContainerConfig
from codehub.settings.fields import (
    at_least,
    between,
    host_names,
    keys_long_enough,
    long_enough,
    one_of,
    setting,
    url_of,
)
from codehub.settings.kubernetes import KubernetesConfig
from codehub.settings.openid import OpenIdConfig
from codehub.settings.queue import QueueConfig
from codehub.settings.roles import RolesConfig
from codehub.settings.schedules import ScheduleConfig
from codehub.settings.server_urls import postgres_problem, redis_problem
from codehub.settings.sessions import PracticeConfig, SessionConfig
from codehub.settings.shares import ShareConfig
from codehub.settings.warm_starts import WarmStartConfig

Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class ServerConfig:
    host: str = setting("CODEHUB_HOST", "127.0.0.1", "Address to listen on.")
    port: int = setting("CODEHUB_PORT", 8000, "TCP port to listen on; 0 takes a free one.", check=between(0, 65535))
    public_url: str | None = setting(
        "CODEHUB_PUBLIC_URL",
        None,
        "What people type, when a TLS proxy stands in front; links and origin checks use it.",
        check=url_of("http", "https"),
    )
    workspace_domain: str | None = setting(
        "CODEHUB_WORKSPACE_DOMAIN",
        None,
        "Below it every workspace gets a name of its own, as *.labs.example.org; needs CODEHUB_PUBLIC_URL. "
        "Unset: below `localhost` on loopback, otherwise nothing can be shared, owners are told what "
        "that means before they enter, and admins do not enter.",
    )
    trusted_proxies: tuple[Network, ...] = setting(
        "CODEHUB_TRUSTED_PROXIES", (), "Networks whose X-Forwarded-* headers are believed, separated by commas."
    )
    allowed_hosts: tuple[str, ...] = setting(
        "CODEHUB_ALLOWED_HOSTS",
        (),
        "Further names that people and programs reach us by, separated by commas; a request for any other is refused.",
        check=host_names,
    )
    metrics_networks: tuple[Network, ...] = setting(
        "CODEHUB_METRICS_NETWORKS",
        (),
        "Networks that may read /metrics without a login, separated by commas; this machine itself and admins always.",
    )
    max_body_bytes: int = setting(
        "CODEHUB_MAX_BODY_BYTES",
        65_536,
        "Largest request body of the API, in bytes; the longest that makes sense has some thousands.",
        check=at_least(1024),
    )
    head_seconds: float = setting(
        "CODEHUB_HEAD_SECONDS", 15.0, "Seconds that the head of a request may take to arrive.", check=at_least(0.1)
    )
    drain_seconds: float = setting(
        "CODEHUB_DRAIN_SECONDS",
        10.0,
        "Seconds that requests under way may take to finish at a stop.",
        check=at_least(0),
    )
    user: str | None = setting(
        "CODEHUB_USER",
        None,
        "Unprivileged account for servers, API and proxy when we are root; unset: `codehub`, which is made at "
        "the first start, or `nobody` where it cannot be.",
    )


@dataclass(frozen=True)
class StorageConfig:
    data_dir: pathlib.Path = setting(
        "CODEHUB_DATA_DIR",
        None,
        "Where everything kept on this machine lives; /var/lib/codehub as root, ~/.local/share/codehub otherwise.",
    )
    database_url: str | None = setting(
        "CODEHUB_DATABASE_URL",
        None,
        "PostgreSQL (14 or newer) to use, of several hosts as postgresql://USER@h1:5432,h2:5432/NAME; unset: one is "
        "started below the data directory.",
        check=postgres_problem,
        secret=True,
    )
    redis_url: str | None = setting(
        "CODEHUB_REDIS_URL",
        None,
        "Redis or Valkey (6.2 or newer) to use: redis://, rediss://, unix://, redis+sentinel://h1,h2,h3/PRIMARY or "
        "redis+cluster://h1,h2,h3 (rediss+…: TLS); unset: one is started below the data directory.",
        check=redis_problem,
        secret=True,
    )
    archive_url: str | None = setting(
        "CODEHUB_ARCHIVE_URL",
        None,
        "Object store for archives, file:///FOLDER or s3://BUCKET/PREFIX (endpoint and credentials by the usual AWS_… "
        "variables); unset: the folder `archives` in the data directory.",
        check=url_of("file", "s3"),
    )
    database_pool_size: int = setting(
        "CODEHUB_DATABASE_POOL_SIZE", 10, "Database connections of one process, at most.", check=between(2, 500)
    )

    @property
    def object_store_url(self) -> str:
        """Where archives are: the one that was set, or the default below the data directory."""
        return self.archive_url or f"file://{self.data_dir / 'archives'}"


@dataclass(frozen=True)
class AuthConfig:
    admin_token: str | None = setting(
        "CODEHUB_ADMIN_TOKEN",
        None,
        "A bearer token that acts as the user `admin`, for automation.",
        check=long_enough,
        secret=True,
    )
    secret_key: str | None = setting(
        "CODEHUB_SECRET_KEY",
        None,
        "Signs cookies, and proves processes to each other. Shared by all of them. To rotate, put the new one first: "
        "`new,old`; where several machines are restarted one by one, `old,new` on all of them before. Unset: made and "
        "kept.",
        check=keys_long_enough,
        secret=True,
    )
    session_seconds: int = setting(
        "CODEHUB_SESSION_SECONDS", 14 * 86400, "A browser unused for so many seconds is logged out.", check=at_least(60)
    )
    session_rotate_seconds: int = setting(
        "CODEHUB_SESSION_ROTATE_SECONDS",
        3600,
        "A session's cookie is replaced after so many seconds.",
        check=at_least(120),
    )
    login_link_seconds: int = setting(
        "CODEHUB_LOGIN_LINK_SECONDS", 86400, "A login link is good for so many seconds, once.", check=at_least(60)
    )
    passkey_seconds: int = setting(
        "CODEHUB_PASSKEY_SECONDS",
        300,
        "Seconds that a person may take to answer a passkey's prompt: each question to a passkey is good once, and so "
        "long.",
        check=between(30, 3600),
    )
    token_days: int = setting(
        "CODEHUB_TOKEN_DAYS",
        90,
        "Days that an access token is good for unless asked otherwise.",
        check=at_least(1),
    )


@dataclass(frozen=True)
class RuntimeConfig(ShareConfig, WarmStartConfig, ContainerConfig, KubernetesConfig):
    templates_dir: pathlib.Path | None = setting(
        "CODEHUB_TEMPLATES_DIR", None, "Folder with more templates (*.toml); one named like a built-in replaces it."
    )
    isolation: str = setting(
        "CODEHUB_ISOLATION",
        "auto",
        "How workspaces are kept apart: auto takes namespaces, else bubblewrap, else lets only admins start one; "
        "bubblewrap or namespaces insist on one; none runs them unprotected.",
        check=one_of("auto", "bubblewrap", "namespaces", "none"),
    )
    network: str = setting(
        "CODEHUB_NETWORK",
        "internet",
        "What workspaces reach where a template does not say, each from a network of its own: internet (what is "
        "outside, never this machine, other workspaces or private networks), allowlist (the hosts of "
        "CODEHUB_NETWORK_ALLOW), none; or host, this machine's own network with everything in it.",
        check=one_of("internet", "allowlist", "none", "host"),
    )
    network_via: str = setting(
        "CODEHUB_NETWORK_VIA",
        "auto",
        "How they go out: auto takes slirp4netns, else pasta, else veth, else relay (an HTTP proxy of our own, which "
        "is always there); one that is named is insisted on, as far as this machine has it.",
        check=one_of("auto", "slirp4netns", "pasta", "veth", "relay"),
    )
    network_allow: tuple[str, ...] = setting(
        "CODEHUB_NETWORK_ALLOW",
        (),
        "Hosts for `allowlist`, separated by commas: mirror.example.org, *.example.net, 10.1.2.3, git.example.org:22.",
        check=allowlist.complaint,
    )
    network_private: tuple[Network, ...] = setting(
        "CODEHUB_NETWORK_PRIVATE",
        (),
        "Private networks that workspaces may reach all the same, separated by commas; never this machine itself.",
    )
    network_host_for: str = setting(
        "CODEHUB_NETWORK_HOST_FOR",
        "admins",
        "Whose workspaces may run with `network = host`: admins, or everybody. Such a one can reach what listens on "
        "this machine's loopback, and the others.",
        check=one_of("admins", "everybody"),
    )
    log_max_bytes: int = setting(
        "CODEHUB_LOG_MAX_BYTES",
        8 * 1024 * 1024,
        "Bytes of its log that are kept of each workspace, at most.",
        check=at_least(65536),
    )
    uid_base: int = setting(
        "CODEHUB_UID_BASE",
        200_000,
        "As root, each workspace runs as a user of its own, numbered from here upwards; no account may lie there.",
        check=between(1000, 2_000_000_000),
    )
    disk_usage_seconds: float = setting(
        "CODEHUB_DISK_USAGE_SECONDS", 30.0, "Seconds that measuring one home may take.", check=at_least(0.1)
    )


@dataclass(frozen=True)
class LimitsConfig:
    max_running_per_user: int = setting(
        "CODEHUB_MAX_RUNNING_PER_USER",
        2,
        "Workspaces of one person that may run at a time; 0 = no limit.",
        check=at_least(0),
    )
    max_running_global: int = setting(
        "CODEHUB_MAX_RUNNING_GLOBAL", 100, "Workspaces that may run at a time; 0 = no limit.", check=at_least(0)
    )
    max_workspaces_per_user: int = setting(
        "CODEHUB_MAX_WORKSPACES_PER_USER",
        100,
        "Workspaces that one person may have, those in the trash included; teachers ten times as many, admins any "
        "number; 0 = no limit.",
        check=at_least(0),
    )
    max_tokens_per_user: int = setting(
        "CODEHUB_MAX_TOKENS_PER_USER",
        50,
        "Access tokens that one person may have made for themselves; teachers ten times as many, admins any number; "
        "0 = no limit.",
        check=at_least(0),
    )
    max_passkeys_per_user: int = setting(
        "CODEHUB_MAX_PASSKEYS_PER_USER",
        20,
        "Passkeys that one person may have: a browser is told of all of them when another is added; 0 = no limit.",
        check=at_least(0),
    )
    max_classes_per_user: int = setting(
        "CODEHUB_MAX_CLASSES_PER_USER",
        20,
        "A tenth of the classes that one teacher may have made; admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_accounts_per_user: int = setting(
        "CODEHUB_MAX_ACCOUNTS_PER_USER",
        300,
        "A tenth of the accounts that one teacher may have made for their classes; admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_class_members: int = setting(
        "CODEHUB_MAX_CLASS_MEMBERS", 1000, "People that one class may have; 0 = no limit.", check=at_least(0)
    )
    max_invitations_per_class: int = setting(
        "CODEHUB_MAX_INVITATIONS_PER_CLASS",
        20,
        "Invitations of one class that are not over: each is a code that lets people in; 0 = no limit.",
        check=at_least(0),
    )
    max_shares_per_workspace: int = setting(
        "CODEHUB_MAX_SHARES_PER_WORKSPACE",
        50,
        "People whom a workspace may be shared with; for teachers ten times as many, for admins any number; "
        "0 = no limit.",
        check=at_least(0),
    )
    max_shares_with_one: int = setting(
        "CODEHUB_MAX_SHARES_WITH_ONE",
        10,
        "Workspaces that one person may share with one other, so that no dashboard is filled unasked; for "
        "teachers ten times as many, for admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_streams_per_user: int = setting(
        "CODEHUB_MAX_STREAMS_PER_USER",
        30,
        "Open event streams and followed logs of one person in an API process: one for each tab; for teachers ten "
        "times as many, for admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_streams: int = setting(
        "CODEHUB_MAX_STREAMS",
        800,
        "Open event streams and followed logs in an API process; each holds one of the proxy's connections to "
        "it; 0 = no limit.",
        check=at_least(0),
    )
    max_changes_per_minute: int = setting(
        "CODEHUB_MAX_CHANGES_PER_MINUTE",
        300,
        "Changes and downloads that one person may ask for in a minute; teachers ten times as many, admins any "
        "number; 0 = no limit.",
        check=at_least(0),
    )
    max_creations_per_minute: int = setting(
        "CODEHUB_MAX_CREATIONS_PER_MINUTE",
        60,
        "Workspaces, tokens and shares that one person may make in a minute, of each; teachers ten times as many, "
        "admins any number; 0 = no limit.",
        check=at_least(0),
    )
    max_keep_awake_seconds: int = setting(
        "CODEHUB_MAX_KEEP_AWAKE_SECONDS",
        86400,
        "How far ahead `keep awake until` may reach, in seconds.",
        check=at_least(0),
    )
    max_standby_seconds: int = setting(
        "CODEHUB_MAX_STANDBY_SECONDS",
        0,
        "The longest time without activity, in seconds, after which people may let a workspace of theirs sleep; "
        "teachers ten times as long, admins any time and never; 0 = no limit.",
        check=at_least(0),
    )


@dataclass(frozen=True)
class ActivityConfig:
    mode: str = setting(
        "CODEHUB_ACTIVITY",
        "traffic",
        "What counts as activity where a template does not say: traffic (what passes) or connections (an open tab).",
        check=one_of("traffic", "connections"),
    )
    flush_interval: float = setting(
        "ACTIVITY_FLUSH_INTERVAL",
        30.0,
        "Seconds that a proxy keeps activity in memory before it tells Redis.",
        check=at_least(0.1),
    )


@dataclass(frozen=True)
class TtlConfig:
    standby_seconds: int = setting(
        "TTL_STANDBY_SECONDS",
        600,
        "A running workspace without activity for so many seconds is put to sleep; 0 = never.",
        check=at_least(0),
    )
    archive_seconds: int = setting(
        "TTL_ARCHIVE_SECONDS",
        1800,
        "A workspace asleep for so many seconds is stored away; 0 = never.",
        check=at_least(0),
    )


@dataclass(frozen=True)
class CoordinatorConfig:
    idle_interval: float = setting(
        "COORDINATOR_IDLE_INTERVAL",
        15.0,
        "Seconds between looks at workspaces when nothing moves.",
        check=at_least(0.1),
    )
    active_interval: float = setting(
        "COORDINATOR_ACTIVE_INTERVAL", 1.0, "Seconds between looks while anything moves.", check=at_least(0.05)
    )
    ttl_interval: float = setting(
        "COORDINATOR_TTL_INTERVAL",
        60.0,
        "Seconds between looks for workspaces that are not used any more.",
        check=at_least(0.1),
    )
    max_concurrent_starts: int = setting(
        "CODEHUB_MAX_CONCURRENT_STARTS",
        max(2, (os.cpu_count() or 1) * 2),
        "Workspaces that start at the same time; by cores, because starting is mostly CPU.",
        check=at_least(1),
    )
    max_concurrent_packs: int = setting(
        "CODEHUB_MAX_CONCURRENT_PACKS",
        max(2, (os.cpu_count() or 1) // 2),
        "Homes that are packed into archives at the same time; by half the cores: the others are for people.",
        check=at_least(1),
    )
    max_concurrent_unpacks: int = setting(
        "CODEHUB_MAX_CONCURRENT_UNPACKS",
        max(2, os.cpu_count() or 1),
        "Homes that come back from archives at the same time; by cores, because their owners wait.",
        check=at_least(1),
    )
    max_concurrent_deletions: int = setting(
        "CODEHUB_MAX_CONCURRENT_DELETIONS",
        2,
        "Workspaces that are deleted at the same time: mostly work for the disk.",
        check=at_least(1),
    )
    max_retry: int = setting(
        "CODEHUB_MAX_RETRY", 3, "Failed attempts at an operation before the workspace is in error.", check=at_least(0)
    )
    stop_grace_seconds: float = setting(
        "CODEHUB_STOP_GRACE_SECONDS", 10.0, "Seconds an IDE may take to stop before it is killed.", check=at_least(0)
    )
    housekeeping_interval: float = setting(
        "COORDINATOR_HOUSEKEEPING_INTERVAL",
        3600.0,
        "Seconds between removals of what has expired.",
        check=at_least(0.1),
    )
    history_days: int = setting("CODEHUB_HISTORY_DAYS", 90, "Days that history and audit are kept.", check=at_least(1))
    event_hours: int = setting(
        "CODEHUB_EVENT_HOURS",
        24,
        "Hours that events are kept for clients that come back; one that was away for longer is told to begin again.",
        check=at_least(1),
    )


@dataclass(frozen=True)
class ArchiveConfig:
    restore_points: int = setting(
        "CODEHUB_RESTORE_POINTS",
        3,
        "Archives of a workspace that are kept to go back to, the newest ones.",
        check=at_least(1),
    )
    trash_seconds: int = setting(
        "CODEHUB_TRASH_SECONDS",
        7 * 86400,
        "Seconds that a deleted workspace can be brought back; then its files and archives are destroyed.",
        check=at_least(0),
    )
    orphan_seconds: int = setting(
        "CODEHUB_ORPHAN_SECONDS",
        2 * 3600,
        "Seconds that something must have been of no use before the garbage collection takes it.",
        check=at_least(0),
    )
    gc_interval: float = setting(
        "COORDINATOR_GC_INTERVAL", 4 * 3600.0, "Seconds between garbage collections.", check=at_least(0.1)
    )
    max_downloads: int = setting(
        "CODEHUB_MAX_DOWNLOADS",
        max(2, os.cpu_count() or 1),
        "Homes that are packed for a download at the same time; by cores, because packing is mostly CPU. Further "
        "downloads take turns with them.",
        check=at_least(1),
    )
    max_downloads_per_user: int = setting(
        "CODEHUB_MAX_DOWNLOADS_PER_USER",
        2,
        "Downloads of one person at a time; for teachers ten times as many, for admins any number; 0 = no limit.",
        check=at_least(0),
    )
    keep_backups: int = setting(
        "CODEHUB_KEEP_BACKUPS",
        3,
        "Backups made on the admins' page that are kept in the data directory, the newest ones; each is about as large "
        "as everything that people have.",
        check=between(1, 100),
    )


@dataclass(frozen=True)
class LogConfig:
    level: str = setting(
        "CODEHUB_LOG_LEVEL", "info", "debug, info, warning or error.", check=one_of("debug", "info", "warning", "error")
    )
    format: str = setting(
        "CODEHUB_LOG_FORMAT", "auto", "json, text, or auto: text on a terminal.", check=one_of("auto", "json", "text")
    )


@dataclass(frozen=True)
class Settings:
    server: ServerConfig
    storage: StorageConfig
    auth: AuthConfig
    runtime: RuntimeConfig
    limits: LimitsConfig
    activity: ActivityConfig
    ttl: TtlConfig
    coordinator: CoordinatorConfig
    archives: ArchiveConfig
    sessions: SessionConfig
    practice: PracticeConfig
    queue: QueueConfig
    schedules: ScheduleConfig
    roles: RolesConfig
    log: LogConfig
    openid: OpenIdConfig

    @property
    def secure(self) -> bool:
        """Do browsers come by TLS? Decides the cookies' names and flags."""
        return (self.server.public_url or "").startswith("https://")

    @property
    def session_cookie(self) -> str:
        """The login's cookie. `__Host-` makes browsers refuse it from anywhere but this very host, by TLS."""
        return "__Host-codehub" if self.secure else "codehub"
