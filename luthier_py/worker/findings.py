"""What checks of launches found, told to people and to who started the program.

In: findings of a launch. Out: each in lines on stderr; a line of JSON for the launch in the file that LUTHIER_FINDINGS
names, findings or not. Invariant: a file that cannot be written stops no launch; it is said once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from luthier_py.emulator.checks import NAMES, Checked, Checks, parse_checks
from luthier_py.emulator.schedule import parse_schedule
from luthier_py.emulator.scrutiny import Scrutiny
from luthier_py.errors import Invalid, how_many
from luthier_py.worker.edge import say

Parsed = TypeVar("Parsed")
CHECK, SCHEDULE = "LUTHIER_CHECK", "LUTHIER_SCHEDULE"
FILE = "LUTHIER_FINDINGS"
"""A file that gets one line of JSON for each launch that is checked."""


def chosen_scrutiny(environment: Mapping[str, str]) -> Scrutiny:
    """By LUTHIER_SCHEDULE and LUTHIER_CHECK; Invalid for what makes no sense."""
    schedule = _parsed(SCHEDULE, environment.get(SCHEDULE, ""), parse_schedule)
    checks = _parsed(CHECK, environment.get(CHECK, ""), parse_checks)
    return Scrutiny(schedule, checks, teller(environment.get(FILE, "")))


def teller(file: str = "") -> Callable[[Checked], None]:
    """Tells findings, in a file, too, if one is named."""
    failed: list[OSError] = []

    def tell(checked: Checked) -> None:
        for finding in checked.findings:
            say(finding.text(_shown))
        for words in checked.left_out:
            say(f"checks stopped in kernel {_shown(checked.kernel)}: {words}")
        if not file or failed:
            return
        try:
            with Path(file).open("a") as output:
                row = {"kernel": checked.kernel, "findings": [finding.facts() for finding in checked.findings],
                       "left_out": checked.left_out}
                output.write(json.dumps(row) + "\n")
        except OSError as error:
            failed.append(error)
            say(f"{FILE}={file}: {error.strerror}")

    return tell


def _shown(kernel: str) -> str:
    from luthier_py.tool.names import demangled  # a worker that finds nothing needs nothing of tools

    return demangled(kernel)


def say_summary(checks: Checks, launches: int, findings: int) -> None:
    """Of all launches, if any check was asked for."""
    if not checks:
        return
    names = ", ".join(name for name, check in NAMES.items() if check in checks)
    found = how_many(findings, "finding") if findings else "nothing found"
    say(f"checks ({names}): {found} in {launches} launch{'es' * (launches != 1)}")


def chosen_checks(check: str | None) -> Checks:
    """By an option and the environment."""
    return parse_checks(given_or_set(None, check)[CHECK])


def given_or_set(schedule: str | None, check: str | None) -> dict[str, str]:
    """What was given as an option, and where nothing was what the environment has; Invalid names the option."""
    for option, text, parse in (("--schedule", schedule, parse_schedule), ("--check", check, parse_checks)):
        if text is not None:
            _parsed(option, text, parse)
    if check is not None and not check.strip(" ,"):
        raise Invalid("--check names no check; give all, or some as bounds,races")
    given = {SCHEDULE: schedule, CHECK: check, FILE: None}
    return {name: os.environ.get(name, "") if text is None else text for name, text in given.items()}


def _parsed(name: str, text: str, parse: Callable[[str], Parsed]) -> Parsed:
    try:
        return parse(text)
    except Invalid as error:
        raise Invalid(f"{name}={text}: {error.message}") from None
