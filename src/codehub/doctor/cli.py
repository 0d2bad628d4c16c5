"""`codehub doctor`."""

import asyncio
import dataclasses
import os

import typer
from rich.console import Console
from rich.table import Table

from codehub.command import output
from codehub.doctor.model import Finding, Level
from codehub.logs import redact_text

SIGNS = {Level.OK: "[green]✓ ok[/]", Level.WARN: "[yellow]! warn[/]", Level.FAIL: "[red]✗ fail[/]"}


def doctor() -> None:
    """Check everything a start depends on, and say what to do about it. Starts and changes nothing.

    Run it before the first start, and when something does not work; also beside a running CodeHub. Ends with 1 when
    anything fails; warnings are for your information.
    """
    from codehub.doctor import service  # noqa: PLC0415 (other commands need not load every driver)

    findings = [_without_secrets(finding) for finding in asyncio.run(service.examine(os.environ))]
    failed = sum(finding.level is Level.FAIL for finding in findings)
    if output.as_json:
        output.document({"ok": failed == 0, "checks": [dataclasses.asdict(finding) for finding in findings]})
    else:
        _print(findings, failed)
    if failed:
        raise typer.Exit(1)


def _without_secrets(finding: Finding) -> Finding:
    return dataclasses.replace(finding, detail=redact_text(finding.detail))


def _print(findings: list[Finding], failed: int) -> None:
    table = Table("", "Check", "Finding", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(SIGNS[finding.level], finding.name, _escaped(finding.detail))
        if finding.advice:
            table.add_row("", "", f"[dim]→ {_escaped(finding.advice)}[/]")
    console = Console()
    console.print(table)
    console.print(f"\n{failed} of {len(findings)} checks failed." if failed else "\nNothing stands in the way.")


def _escaped(text: str) -> str:
    """Brackets are text here, not colours."""
    return text.replace("[", r"\[")
