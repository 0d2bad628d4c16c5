"""What a new workspace can be: each template with its sentence, what it may take and what is inside. For the forms.

One that is not installed says what to do about it, and to those who can.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codehub.i18n.locales import Locale
from codehub.invocation import command
from codehub.policy import rules as policy
from codehub.policy.actions import Action
from codehub.policy.model import Principal
from codehub.runtimes import limits
from codehub.runtimes.limits import Limits
from codehub.settings import ShareConfig
from codehub.templates.loader import Templates
from codehub.templates.model import Template

FIRST = ("jupyterlab", "code-server", "terminal")  # of the built-in ones, in this order
INSTALLABLE = "code-server"  # by `codehub ide install`
NAMED_FILES = 3  # starter files that are named; the others are counted
GB = 1024  # MB


@dataclass(frozen=True)
class Kind:
    name: str
    title: str
    mark: str
    about: str  # its description; may be empty
    takes: str  # memory, processes, disk
    files: str  # what a new home begins with; may be empty
    missing: str  # why it cannot be made here, and who can change that; empty: it can
    command: str | None  # that changes it
    installs: bool = False  # the reader can have it installed by a button
    installing: bool = False  # it is being installed

    @property
    def available(self) -> bool:
        return not self.missing


def kinds(
    templates: Templates, shares: ShareConfig, locale: Locale, caller: Principal, *, installing: bool = False
) -> list[Kind]:
    """What can be made here first. `installing`: what can be installed is being installed."""
    found = [_kind(template, templates, shares, locale, caller) for template in templates.all()]
    if installing:
        said = locale.say("kind_installing")
        found = [replace(k, missing=said, command=None, installing=True) if k.installs else k for k in found]
    return sorted(
        found, key=lambda k: (not k.available, FIRST.index(k.name) if k.name in FIRST else len(FIRST), k.title)
    )


def _kind(template: Template, templates: Templates, shares: ShareConfig, locale: Locale, caller: Principal) -> Kind:
    missing, how = "", None
    installs = policy.allows(caller, Action.IDE_INSTALL)
    if templates.unavailable(template.name) is not None:
        missing, how = why_missing(template, locale, installs=installs)
    return Kind(
        template.name,
        template.title_in(locale.language),
        template.activity_profile,
        template.description_in(locale.language),
        takes(limits.resolve(template.limits, shares), locale),
        begins_with([file.path for file in template.starter_files], locale),
        missing,
        how,
        installs=how is not None,
    )


def takes(allowed: Limits, locale: Locale) -> str:
    """`2 GB of memory · 1024 processes · 10 GB of disk`; what has no limit is not named."""
    known = {
        "kind_memory": allowed.memory_mb and _size(allowed.memory_mb, locale),
        "kind_processes": allowed.processes,
        "kind_disk": allowed.disk_mb and _size(allowed.disk_mb, locale),
    }
    return " · ".join(locale.say(key, n=amount) for key, amount in known.items() if amount)


def _size(mb: int, locale: Locale) -> str:
    """As the operator wrote it: 2048 is 2 GB."""
    return locale.say("size_gb", n=f"{mb / GB:g}") if mb % (GB // 2) == 0 else locale.say("size_mb", n=mb)


def begins_with(paths: Sequence[str], locale: Locale) -> str:
    """What lies in the home already, by its top: a folder is named once."""
    tops = list(dict.fromkeys(f"{top}/" if rest else top for top, _, rest in (path.partition("/") for path in paths)))
    if not tops:
        return ""
    named, more = ", ".join(tops[:NAMED_FILES]), len(tops) - NAMED_FILES
    return locale.say("kind_files_more", names=named, n=more) if more > 0 else locale.say("kind_files", names=named)


def why_missing(template: Template, locale: Locale, *, installs: bool) -> tuple[str, str | None]:
    """`installs`: an admin reads it, who can be told how."""
    if not installs:
        return locale.say("kind_missing_ask"), None
    if template.process is None:
        return locale.say("kind_missing_process"), None
    program = template.process.command[0]
    if program == INSTALLABLE:
        return locale.say("kind_missing_install"), command(f"ide install {INSTALLABLE}")
    return locale.say("kind_missing_program", program=program), None
