"""A server extension, loaded by JupyterLab inside workspaces: pages take the shared static files; npm is not run; what
notebooks install is found; kernels start warm.

`jupyter_server_config.d/codehub.json` turns it on, beside the JupyterLab of this installation and no other. A person's
own configuration comes before that.
"""

import contextlib
import os
import pathlib
import shutil
import site
import sys
from collections.abc import Callable
from typing import Any

from codehub.jupyter import identity, kernels

HEADER = "X-Codehub-Jupyterlab"  # added by the front door to requests for a page; a client's own does not pass it
Hook = Callable[[Any, dict[str, Any]], dict[str, Any]]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "codehub.jupyter.server_extension"}]


def _load_jupyter_server_extension(server: Any) -> None:
    settings = server.web_app.settings
    settings["page_config_hook"] = with_shared_files(settings.get("page_config_hook"))
    make_user_site()
    kernels.use(server)
    # Extensions are loaded in the order of their names: `jupyter_lsp` has not looked yet.
    language_servers = server.config.LanguageServerManager
    if "node_roots" not in language_servers:
        language_servers.node_roots = [str(root) for root in node_roots()]


def make_user_site() -> None:
    """Python looks there only if it exists when it starts: what a notebook installs is then there at once."""
    if site.ENABLE_USER_SITE:
        with contextlib.suppress(OSError):  # the home is full, or closed
            pathlib.Path(site.getusersitepackages()).mkdir(parents=True, exist_ok=True)


def with_shared_files(before: Hook | None) -> Hook:
    """`before`: another extension's hook."""

    def hook(handler: Any, page_config: dict[str, Any]) -> dict[str, Any]:
        page_config = before(handler, page_config) if before else page_config
        offered = handler.request.headers.get(HEADER, "")
        if not offered or not _is_ours(handler.extensionapp, offered):
            return page_config
        # A copy: the next request gets the same dictionary, and may come without an offer.
        return {**page_config, "fullStaticUrl": offered}

    return hook


def _is_ours(app: Any, offered: str) -> bool:
    """Are the files that are offered those that this application would serve itself?"""
    if getattr(app, "override_static_url", "") or len(app.static_paths) != 1:
        return False  # another place was configured
    try:
        return identity.of(pathlib.Path(app.static_paths[0])) == offered.rpartition("/")[2]
    except OSError:
        return False


def node_roots() -> list[pathlib.Path]:
    """Where language servers written for Node may lie: the places `jupyter_lsp` knows, without asking npm.

    `npm prefix -g` takes half a second of each start; what it would say is known from the same sources.
    """
    roots = [pathlib.Path.cwd(), pathlib.Path(sys.prefix, "lib"), pathlib.Path(sys.prefix)]
    for prefix in _npm_prefixes():
        roots += [prefix / "lib", prefix]
    return list(dict.fromkeys(roots))


def _npm_prefixes() -> list[pathlib.Path]:
    told = [os.environ.get("NPM_CONFIG_PREFIX", ""), _from_npmrc()]
    node = shutil.which("node") or shutil.which("nodejs")
    beside_node = [pathlib.Path(node).resolve().parents[1]] if node else []
    return [*(pathlib.Path(prefix).expanduser() for prefix in told if prefix), *beside_node, pathlib.Path("/usr/local")]


def _from_npmrc() -> str:
    try:
        lines = pathlib.Path("~/.npmrc").expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError, RuntimeError):
        return ""
    pairs = (line.partition("=") for line in lines)
    found = [value.strip().strip("\"'") for name, _, value in pairs if name.strip() == "prefix"]
    return found[-1].replace("${HOME}", "~") if found else ""
