"""A program under a tool, on a device, in one call: the environment that makes it so, and what became of it.

In: a command, a tool, a device. Out: the program's exit code and the tool's verdict. Invariant: the program itself is
not changed, and its output and exit code are its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.runtime.hip import runtime_folder, tool_library
from luthier_py.runtime.time_limit import VARIABLE, check_time_limit
from luthier_py.session.files import write_file
from luthier_py.tool import load_tool
from luthier_py.worker.targets import chosen_targets

VERDICT = "LUTHIER_VERDICT"
WORKER_SECONDS = 10  # that a worker gets to end after its program
SIGNALLED = 128  # a shell's exit code for a signal is this much more


@dataclass(frozen=True, slots=True)
class Executed:
    """``verdicts``: one for each process with a tool under it, in the order in which they ended."""

    exit_code: int
    verdicts: tuple[Mapping[str, Any], ...]

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """Of the process that launched most."""
        return max(self.verdicts, key=lambda facts: int(facts["launches"]), default=None)

    @property
    def observed(self) -> bool:
        return any(facts["reports"] for facts in self.verdicts)


def execute(
    command: Sequence[str], tool: str | None, options: Mapping[str, str], device: str | None,
    time_limit: float | None = None,
) -> Executed:
    """Run ``command``. ``device``: emulator:TARGET, or None for what the program finds."""
    if shutil.which(command[0]) is None:
        raise Invalid(f"there is no program {command[0]}")
    environment = {**os.environ, **device_environment(device, time_limit)}
    if tool is None:
        return Executed(_run(command, environment), ())
    load_tool(tool, options)  # what is wrong with it is said before the program starts
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "LD_PRELOAD": _first(str(tool_library()), environment.get("LD_PRELOAD"), " "),
            "LUTHIER_TOOL": tool,
            "LUTHIER_TOOL_OPTIONS": _lines(options),
            VERDICT: str(Path(folder) / "%w.json"),
            "LUTHIER_PYTHON": sys.executable,
        }
        done = Executed(_run(command, {**environment, **settings}), _verdicts(Path(folder)))
    if (path := os.environ.get(VERDICT)) and done.verdict is not None:
        write_file(Path(path), json.dumps(done.verdict).encode())
    return done


def _verdicts(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """What the workers have written; one whose program was killed may still be at it."""
    patience = time.monotonic() + WORKER_SECONDS
    ended: list[tuple[int, Mapping[str, Any]]] = []
    for path in folder.glob("*.json"):
        facts = json.loads(path.read_text())
        while not facts["ended"] and time.monotonic() < patience and Path(f"/proc/{facts['worker']}").exists():
            time.sleep(0.01)
            facts = json.loads(path.read_text())
        ended.append((path.stat().st_mtime_ns, facts))
    return tuple(facts for _, facts in sorted(ended, key=lambda pair: pair[0]))


def device_environment(device: str | None, time_limit: float | None = None) -> dict[str, str]:
    """What makes a program find the emulator in the runtime's place; ``time_limit``: seconds of a launch."""
    if device is None:
        if time_limit is not None:
            raise Invalid("a time limit is for kernels on the emulator; give a device, as emulator:TARGET")
        return {}
    if not device.startswith("emulator"):
        raise Invalid(f"device {device} is unknown; give emulator:TARGET, or nothing for the GPU")
    chosen_targets(device)  # what is wrong with it is said before the program starts
    limit = {}
    if time_limit is not None:
        limit = {VARIABLE: str(check_time_limit(time_limit))}
    folder = str(runtime_folder())
    libraries = _first(folder, os.environ.get("LD_LIBRARY_PATH"), os.pathsep)
    return {**limit, "LUTHIER_DEVICE": device, "LD_LIBRARY_PATH": libraries, "ROCM_PATH": folder}


def build_tool(tool: str, options: Mapping[str, str], output: Path) -> None:
    """Write a library for LD_PRELOAD that has this tool in it."""
    load_tool(tool, options)
    name = str(Path(tool).resolve()) if tool.endswith(".py") else tool
    write_file(output, tool_library(name, _lines(options)).read_bytes())
    output.chmod(0o755)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    with subprocess.Popen(command, env=environment) as process:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the program's
        try:
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
    return code if code >= 0 else SIGNALLED - code


def _first(first: str, others: str | None, separator: str) -> str:
    return f"{first}{separator}{others}" if others else first


def _lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in options.items())
