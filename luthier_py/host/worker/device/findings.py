"""Findings of checks and of the cycle model, reported to the user and in the files that the environment names.

In: the report of a launch, or how one failed. Out: findings in lines on stderr; a line of JSON for the launch in the
file that LUTHIER_FINDINGS names, findings or not, and in that of LUTHIER_FAILURES for one that failed. Invariant: a
file that cannot be written stops no launch; it is said once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from luthier_py.base.errors import DeviceError, how_many, one_line
from luthier_py.base.names import demangle
from luthier_py.emulator.options.checks import Checks, join_checks
from luthier_py.emulator.watching.findings import LaunchReport, Reporter
from luthier_py.host.worker.error_boundary import say
from luthier_py.host.worker.watchdog import nobody_waits

FILE = "LUTHIER_FINDINGS"
"""A file that gets one line of JSON for each launch that is checked, or runs by the cycle model."""
FAILURES = "LUTHIER_FAILURES"
"""A file that gets one line of JSON for each launch that failed."""
TRACE = "LUTHIER_TRACE"
"""1: of launches by the model these lines have the times of all work-groups, too."""


def reporter(environment: Mapping[str, str]) -> Reporter:
    """A function that reports findings, also to the file of LUTHIER_FINDINGS; it prints notes of one launch only."""
    file, times = environment.get(FILE, ""), environment.get(TRACE) == "1"
    failed: list[OSError] = []
    noted = threading.Lock()  # the first thread that prints notes never releases it

    def tell(report: LaunchReport) -> None:
        for finding in report.findings:
            say(finding.text(demangle))
        for words in report.left_out:
            say(f"checks stopped in kernel {demangle(report.kernel)}: {words}")
        if report.notes and noted.acquire(blocking=False):
            say(f"kernel {demangle(report.kernel)}: {'; '.join(report.notes)}")
        if not file or failed or not report.looked_at:
            return
        try:
            with Path(file).open("a") as output:
                row = {"kernel": report.kernel, "findings": [finding.facts() for finding in report.findings],
                       "left_out": report.left_out, "device": report.device,
                       **({} if report.cycles is None else report.cycles.facts()),
                       **({} if report.cycles is None or not times else {"times": report.cycles.times()})}
                output.write(json.dumps(row) + "\n")
        except OSError as error:
            failed.append(error)
            say(f"{FILE}={file}: {error.strerror}")

    return tell


def failure_facts(error: Exception) -> dict[str, Any]:
    """``fault``: what a wave did; of waves that did nothing wrong and did not end, None. ``refused``: the emulator does
    not run it."""
    fault = error.fault if isinstance(error, DeviceError) else None
    return {"error": one_line(error), "fault": None if fault is None else fault.kind.value,
            "refused": not isinstance(error, DeviceError)}


def tell_failure(environment: Mapping[str, str], error: Exception, program: int) -> None:
    """In the file that LUTHIER_FAILURES names. ``program``: the process whose launch failed."""
    if (file := environment.get(FAILURES)) and not nobody_waits(Path(file)):
        try:
            with Path(file).open("a") as output:
                output.write(json.dumps({**failure_facts(error), "program": program}) + "\n")
        except OSError as failed:
            say(f"{FAILURES}={file}: {failed.strerror}")


def has_failed(environment: Mapping[str, str], program: int) -> bool:
    """Whether a launch of this process has failed, as :func:`tell_failure` reported it."""
    file = Path(environment.get(FAILURES, ""))
    try:
        text = file.read_text() if file.is_file() else ""
    except OSError:  # `exec` has removed it
        return False
    whole = text[: text.rfind("\n") + 1].splitlines()  # another worker may be in the middle of a line
    return any(json.loads(line).get("program") == program for line in whole)


def say_summary(checks: Checks, launches: int, findings: int) -> None:
    """Print how many findings all launches have, if any check is on."""
    if not checks:
        return
    found = how_many(findings, "finding") if findings else "nothing found"
    say(f"checks ({join_checks(checks, ', ')}): {found} in {launches} launch{'es' * (launches != 1)}")
