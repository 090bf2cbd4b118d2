"""A tool under a program: what makes the program's processes load it, and what it has written when they are over.

In: a tool, options, where it is to stand. Out: an environment, verdicts. Invariant: what is wrong with the tool is
said before a program starts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from luthier_py.base.storage import write_file
from luthier_py.features.exec.missing_output import describe_undelivered
from luthier_py.features.settings.levels import HIP, HSA, choose_level, level_environment, level_library
from luthier_py.report.spool import facts_of
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.rewrite.tool.discover import absolute, is_file_tool

VERDICT = "LUTHIER_VERDICT"
WORKER_SECONDS = 10  # that a worker gets to end after its program


class Observation:
    """One run. ``ours``: the program has the emulator's HIP runtime below it; ``reports``: verdicts have those of all
    launches."""

    def __init__(self, tool: str, options: Mapping[str, str], level: str | None, ours: bool, reports: bool) -> None:
        self._name, self._options, self._reports = tool, options, reports
        self._tool = load_tool(tool, options)
        self._ours, self._level = ours, choose_level(level, ours, self._tool)
        self._paths: list[Path] = []

    def check(self, program: Path, device: str | None) -> None:
        """ToolError where the tool fails for whatever the program's file has."""
        if any(is_file_tool(type(part).__module__) for part in self._tool.together):
            from luthier_py.features.exec.check_tools import check_instrument  # imports what instruments

            check_instrument(self._tool, program, device)

    def environment(self, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
        """What loads the tool; ``folder``: for what it writes."""
        return {
            **level_environment(self._level, environment),
            "LUTHIER_TOOL": absolute(self._name),
            "LUTHIER_TOOL_OPTIONS": _lines(_files_here(self._tool, self._options)),
            VERDICT: str(folder / "%w.json"),
            "LUTHIER_VERDICT_REPORTS": str(int(self._reports or bool(os.environ.get(VERDICT)))),
            "LUTHIER_PYTHON": sys.executable,
        }

    def verdicts(self, folder: Path) -> tuple[Mapping[str, Any], ...]:
        """One for each process with the tool under it, or one that nothing was launched."""
        self._paths = _await_verdicts(folder)
        found = tuple(json.loads(path.read_text()) if self._reports else facts_of(path) for path in self._paths)
        self._found = found or (_nothing_launched(self._tool),)
        return self._found

    def describe_undelivered(self, verdicts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Requested outputs of the tool that did not come, a line for each."""
        return describe_undelivered(self._tool, verdicts)

    def hints(self, verdicts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Where nothing was observed: what the tool cannot have seen."""
        if self._ours or self._level == HSA or any(facts["launches"] for facts in verdicts):
            return ()
        return ("launches of a library that opens HIP for itself (RTLD_DEEPBIND) go past a tool at the level of HIP; "
                "--level hsa sees them",)

    def hand_out(self, verdict: Mapping[str, Any] | None) -> None:
        """Write the verdict to the file that LUTHIER_VERDICT names."""
        path = os.environ.get(VERDICT)
        if not path or verdict is None:
            return
        if not self._paths:
            write_file(Path(path), json.dumps(verdict).encode())
            return
        number = next(number for number, one in enumerate(self._found) if one is verdict)
        with self._paths[number].open("rb") as written:
            write_file(Path(path), written)


def build_tool(tool: str, options: Mapping[str, str], output: Path, level: str = HIP) -> None:
    """Write a library that has this tool in it."""
    choose_level(level, False, load_tool(tool, options))
    write_file(output, level_library(level, absolute(tool), _lines(options)).read_bytes())
    output.chmod(0o755)


def _nothing_launched(tool: Tool) -> dict[str, Any]:
    """No process came so far that it had the tool: the verdict and the file of counts say so all the same."""
    from luthier_py.report.output import Output  # few programs launch nothing
    from luthier_py.report.verdict import Verdict

    verdict = Verdict(tool)
    tool.selection = tool.selection.of_process(os.getpid())
    Output(tool).finish(verdict)
    return {**verdict.facts(), "failed": [], "worker": os.getpid(), "ended": True, "reports": []}


def _await_verdicts(folder: Path) -> list[Path]:
    """The verdicts that workers have written, in order; a worker whose program was killed may still be at it."""
    limits = time.monotonic() + WORKER_SECONDS
    paths = list(folder.glob("*.json"))
    for path in paths:
        while not (facts := facts_of(path))["ended"] and time.monotonic() < limits:
            if not Path(f"/proc/{facts['worker']}").exists():
                break
            time.sleep(0.01)
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns)


def _files_here(tool: Tool, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with files in this folder and not in the one that the program changes to."""
    chosen = {"LUTHIER_OUTPUT": tool.selection.output, "LUTHIER_REPORT": tool.selection.report,
              "LUTHIER_RECORDS": tool.selection.records, "LUTHIER_SOURCES": tool.selection.sources}
    others = {name: value for name, value in options.items() if name.upper() not in chosen}
    return {**others, **{name: str(path.absolute()) for name, path in chosen.items() if path is not None}}


def _lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in options.items())
