"""A tool under a running program: patches its kernels, and reports what each launch counted.

In: messages of runtime.hip.protocol from tool.c. Out: instrumented copies; the tool's text, a verdict at the end.
Invariant: a kernel that cannot be instrumented is named once with the reason, and runs as it is.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.inject.model import ClonedKernel
from luthier_py.loader import SegmentFlag, SymbolType
from luthier_py.pipeline import Instrumented, instrument
from luthier_py.runtime.hip import protocol
from luthier_py.runtime.hip.protocol import Message
from luthier_py.tool import LaunchResult, Variable, load_tool
from luthier_py.worker import bundles, properties
from luthier_py.worker.edge import Refused, guarded, say
from luthier_py.worker.wire import Request

TOOL, OPTIONS = "LUTHIER_TOOL", "LUTHIER_TOOL_OPTIONS"
KERNELS, OUTPUT, VERDICT = "LUTHIER_KERNELS", "LUTHIER_OUTPUT", "LUTHIER_VERDICT"
UNIT_ID = "__hip_cuid_"  # clang's mark of a compilation unit; nothing reads it
MANAGED = ".managed"  # the initial value of a managed variable; the runtime has moved it
_RESULT = struct.Struct("<9I")


@dataclass(slots=True)
class Verdict:
    """Mutable: what became of a run."""

    tool: str
    launches: int = 0
    kernels: dict[str, ClonedKernel] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)

    def text(self) -> str:
        sites = sum(kernel.sites for kernel in self.kernels.values())
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return (
            f"verdict: {self.launches} launches, {len(self.reports)} instrumented by {self.tool}; "
            f"{len(self.kernels)} kernels, {sites} sites{refused}"
        )

    def facts(self) -> dict[str, Any]:
        kernels = [{"kernel": name, "clone": k.clone, "sites": k.sites} for name, k in self.kernels.items()]
        refused = [{"kernel": name, "reason": reason} for name, reason in self.refused.items()]
        return {
            "tool": self.tool,
            "launches": self.launches,
            "kernels": kernels,
            "refused": refused,
            "reports": self.reports,
        }


class ToolService:
    """Mutable: one program's tool."""

    def __init__(self) -> None:
        lines = [line for line in os.environ.get(OPTIONS, "").splitlines() if line]
        self.tool = load_tool(os.environ.get(TOOL, ""), dict(_option(line) for line in lines))
        self.wanted = _pattern(os.environ.get(KERNELS, ""))
        self.verdict = Verdict(self.tool.name)
        self._code: dict[int, bytes] = {}
        self._clones: dict[tuple[int, str], tuple[ClonedKernel, tuple[Variable, ...]]] = {}

    def answer(self, request: Request) -> bytes | None:
        content = request.content
        if request.code == Message.IMAGE:
            self._image(content)
            return b""
        if request.code == Message.INSTRUMENT:
            return self._instrument(int.from_bytes(content[:4], "little"), content[4:].decode())
        if request.code == Message.RESULT:
            guarded(partial(self._result, content))
            return None
        if request.code == Message.FINISH:
            self._finish(*struct.unpack("<Q", content))
            return b""
        raise Invalid(f"message {request.code} is unknown")

    def _image(self, content: bytes) -> None:
        number, form = struct.unpack_from("<2I", content)
        layout = properties.LAYOUT_R0600 if form else properties.LAYOUT_R0000
        start = 8 + properties.offset(layout, "gcnArchName")
        architecture = content[start : start + 256].split(b"\0")[0].decode("ascii", "replace")
        self._code[number] = bundles.code_for(content[8 + protocol.PROPERTIES_BYTES :], architecture.partition(":")[0])

    def _instrument(self, image: int, kernel: str) -> bytes:
        if not self.wanted.search(kernel):
            return b""
        made = guarded(partial(instrument, self._code[image], self.tool, "code object", [kernel], keep_going=True))
        if isinstance(made, Exception):
            self.verdict.refused[kernel] = str(made)
            say(f"kernel {kernel} runs as it is")
            raise Refused("not instrumented", protocol.STATUS_UNKNOWN)
        for refusal in made.refused:
            self.verdict.refused[refusal.kernel] = refusal.reason
            say(f"kernel {refusal.kernel} runs as it is: {refusal.reason}")
        cloned = next((row for row in made.patched.report if row.name == kernel), None)
        if cloned is None:
            return b""
        self._clones[image, kernel] = cloned, made.edits.variables
        return _describe(cloned, made)

    def _result(self, content: bytes) -> None:
        image, index, *shape, name_bytes = _RESULT.unpack_from(content)
        at = _RESULT.size + name_bytes
        kernel = content[_RESULT.size : at].decode()
        memory = {}
        self.verdict.kernels[kernel], variables = self._clones[image, kernel]
        for variable in variables:
            memory[variable.name] = content[at : at + variable.size_bytes]
            at += variable.size_bytes
        grid, block = (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5])
        result = LaunchResult(index, kernel, grid, block, memory)
        row: dict[str, Any] = {"launch": index, "kernel": kernel, "grid": grid, "block": block}
        self.verdict.reports.append(row)
        row["report"] = report = self.tool.report(result)
        self._print(self.tool.text(result, report))

    def _finish(self, launches: int) -> None:
        self.verdict.launches = launches
        self._print(f"luthier: {self.verdict.text()}")
        if path := os.environ.get(VERDICT):
            guarded(partial(Path(path).write_text, json.dumps(self.verdict.facts(), default=str)))

    def _print(self, text: str) -> None:
        path = os.environ.get(OUTPUT)
        if not path:
            print(text, file=sys.stderr, flush=True)
            return
        guarded(partial(_append, Path(path), text))


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text + "\n")


def _option(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise Invalid(f"tool option `{line}`: write NAME=VALUE")
    return name, value


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise Invalid(f"{KERNELS}: {text} is no regular expression: {error}") from None


def _describe(cloned: ClonedKernel, made: Instrumented) -> bytes:
    """The reply to INSTRUMENT: the clone's name, the code object, the tool's variables, those of the program."""
    names = [variable.name.encode() for variable in made.edits.variables]
    parts = [_counted(cloned.clone.encode()), _counted(made.data), struct.pack("<I", len(names)), *map(_counted, names)]
    shared = [s for s in made.obj.symbols if s.defined and s.type == SymbolType.OBJECT and s.size]
    shared = [s for s in shared if not s.name.endswith((".kd", MANAGED)) and not s.name.startswith(UNIT_ID)]
    parts.append(struct.pack("<I", len(shared)))
    for symbol in shared:
        changes = any(s.load and s.flags & SegmentFlag.WRITE and s.address <= symbol.address < s.end
                      for s in made.obj.segments)  # fmt: skip
        parts += [_counted(symbol.name.encode()), struct.pack("<I", changes)]
    return b"".join(parts)


def _counted(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data
