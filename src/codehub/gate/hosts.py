"""Which `Host` is one of ours. Pure; asked by the front door and by the API before anything else.

Another site's page can point a name of its own at this machine (DNS rebinding): for the visitor's browser it is
then their origin, and our answers are theirs to read. No name of theirs gets an answer. An address cannot be pointed
elsewhere, so addresses always pass, and health checks need no name.
"""

import base64
import hashlib
import html
import socket
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from codehub import ids
from codehub.gate.origins import of
from codehub.hostnames import LOCALHOST, is_loopback, split
from codehub.settings import Settings

STATUS, CODE, TITLE = 421, "MISDIRECTED_REQUEST", "Misdirected Request"
DETAIL = (
    "this server is not known by the name in `Host`: use its own address, or name it in CODEHUB_PUBLIC_URL or "
    "CODEHUB_ALLOWED_HOSTS"
)
STYLE = (
    "html{background:Canvas;color:CanvasText}body{font:1rem/1.6 system-ui,sans-serif;word-break:keep-all;"
    "overflow-wrap:anywhere;max-width:36rem;margin:15vh auto;padding:0 1.5rem}h1{font-size:1.5rem}"
)
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()  # this style, and no other that gets in
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>{style}</style></head><body><main><h1>{title}</h1><p>{text}</p>{link}<p>{operator}</p></main></body></html>"""
WORDS = {
    "en": {
        "title": "CodeHub does not go by this name",
        "text": "The server answers, but not at this address. Check the address, or ask who gave it to you.",
        "operator": "You run this server? Name this address in <code>CODEHUB_PUBLIC_URL</code>, or in "
        "<code>CODEHUB_ALLOWED_HOSTS</code> when it has several.",
    },
    "ko": {
        "title": "이 주소로는 CodeHub를 열 수 없습니다",
        "text": "서버는 작동하고 있지만 이 주소로는 열리지 않습니다. 주소를 다시 확인하거나, 주소를 알려 준 분에게 "
        "문의하세요.",
        "operator": "서버 운영자라면 이 주소를 <code>CODEHUB_PUBLIC_URL</code>에 설정하세요. 주소가 여러 개라면 "
        "<code>CODEHUB_ALLOWED_HOSTS</code>에 적으면 됩니다.",
    },
}


@dataclass(frozen=True)
class Hosts:
    names: frozenset[str]  # in lower case
    domain: str | None  # below which workspaces have their names
    public_url: str | None

    def accepts(self, host: str) -> bool:
        name = split(host)[0]
        return name in self.names or _is_address(name) or self._is_a_workspaces(name)

    def _is_a_workspaces(self, name: str) -> bool:
        label, dot, domain = name.partition(".")
        return bool(dot) and domain == self.domain and ids.is_label(label)

    def page(self, accept_language: str) -> str:
        """For a person. It stands alone: under this name there is not even a style sheet."""
        language = "ko" if accept_language.lower().startswith("ko") else "en"
        url = html.escape(self.public_url or "")
        link = f'<p><a href="{url}">{url}</a></p>' if url else ""
        return PAGE.format(lang=language, style=STYLE, link=link, **WORDS[language])


def of_settings(settings: Settings) -> Hosts:
    server = settings.server
    names = {LOCALHOST, server.host, *server.allowed_hosts}
    if server.public_url:
        names.add(urlsplit(server.public_url).hostname or "")
    elif not is_loopback(server.host):  # what people in the same network type
        names |= {socket.gethostname(), f"{socket.gethostname()}.local"}
    return Hosts(frozenset(split(name)[0] for name in names) - {""}, of(settings).domain, server.public_url)


@lru_cache(maxsize=1024)
def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
