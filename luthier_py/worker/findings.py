"""What checks of launches found, told to people and to who started the program.

In: findings of a launch. Out: a line on stderr for each, and a line of JSON in the file that LUTHIER_FINDINGS names.
Invariant: a file that cannot be written stops no launch; it is said once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from luthier_py.emulator.checks import VARIABLE as CHECK
from luthier_py.emulator.checks import Finding, parse_checks
from luthier_py.emulator.schedule import VARIABLE as SCHEDULE
from luthier_py.emulator.schedule import parse_schedule
from luthier_py.emulator.scrutiny import Scrutiny
from luthier_py.worker.edge import say

FILE = "LUTHIER_FINDINGS"
"""A file that gets one line of JSON for each finding."""


def chosen_scrutiny(environment: Mapping[str, str]) -> Scrutiny:
    """By LUTHIER_SCHEDULE and LUTHIER_CHECK; Invalid for what makes no sense."""
    checks = parse_checks(environment.get(CHECK, ""))
    return Scrutiny(parse_schedule(environment.get(SCHEDULE, "")), checks, teller(environment.get(FILE, "")))


def teller(file: str = "") -> Callable[[list[Finding]], None]:
    """Tells findings, in a file, too, if one is named."""
    failed: list[OSError] = []

    def tell(findings: list[Finding]) -> None:
        for finding in findings:
            say(f"check: {finding}")
        if not file or failed:
            return
        try:
            with Path(file).open("a") as output:
                output.write("".join(json.dumps(finding.facts()) + "\n" for finding in findings))
        except OSError as error:
            failed.append(error)
            say(f"{FILE}={file}: {error.strerror}")

    return tell


def given_or_set(schedule: str | None, check: str | None) -> dict[str, str]:
    """What was given, and where nothing was what the environment has."""
    given = {SCHEDULE: schedule, CHECK: check}
    return {name: os.environ.get(name, "") if text is None else text for name, text in given.items()}
