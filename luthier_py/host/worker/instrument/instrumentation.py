"""A tool under a running program: patches its kernels, and reports what each launch counted.

In: messages of host/native/protocol from the preloaded library. Out: instrumented copies; what `tool_run` reports.
Invariant: a kernel that cannot be instrumented is named once with the reason, and runs as it is.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid, Location, LuthierError, one_line
from luthier_py.base.records import replace
from luthier_py.binary.loader import load
from luthier_py.binary.loader.origins import keep_original
from luthier_py.emulator.interface.arguments import with_hidden
from luthier_py.host.native import protocol
from luthier_py.host.native.protocol import Message
from luthier_py.host.worker import bundles
from luthier_py.host.worker.device import properties
from luthier_py.host.worker.device.findings import has_failed
from luthier_py.host.worker.device.launch_settings import checks_are_wanted
from luthier_py.host.worker.error_boundary import Refused, is_on, run_guarded, say
from luthier_py.host.worker.instrument.allocations import AccessibleMemory, accessible_code, accessible_memory
from luthier_py.host.worker.instrument.answers import NOT_SELECTED, describe_arguments, describe_copy
from luthier_py.host.worker.instrument.copy_facts import CopyFacts, facts_of
from luthier_py.host.worker.instrument.patching import patch
from luthier_py.host.worker.instrument.reported import ReportRing, ToolWire
from luthier_py.host.worker.instrument.tool_run import ToolRun, make_report_spool, open_tool
from luthier_py.isa import parse_target_id
from luthier_py.report.spool import SpooledRows
from luthier_py.rewrite.tool import (
    Allocations,
    Channel,
    LaunchParameter,
    LaunchResult,
    Refusal,
)

if TYPE_CHECKING:
    from luthier_py.host.worker.wire import Request

TOOL, OPTIONS, STRICT = "LUTHIER_TOOL", "LUTHIER_TOOL_OPTIONS", "LUTHIER_STRICT"
COUNTS_FD = 4
"""What the program gives the worker beside the socket."""
_RESULT = struct.Struct("<12I")
_RECORDS = _REPORTS = struct.Struct("<2IQ")

_KEPT_BYTES = 8 << 20
"""Of a code object that is stored for faults alone, which are rare."""


class ToolService:
    """Mutable: the tool of the program at ``wire``: the environment's from the start, or that of SETTINGS."""

    def __init__(self, wire: ToolWire) -> None:
        self._wire, self.program = wire, wire.program
        self._counts = map_inherited_counts()
        self.strict = is_on(STRICT)
        self._run: ToolRun | None = None
        self._told: set[str] = set()  # why kernels run as they are: a mistake in a tool meets each of them
        self._code: dict[tuple[int, int], bytes] = {}
        self._originals: set[tuple[int, int]] = set()  # those of them that are stored
        self._channels: list[Channel] = []  # by number
        self._kept: dict[tuple[int, int, str], CopyFacts] = {}
        self._arguments: dict[int, bytes] = {}  # of launches that have begun, by their numbers
        self._accessible: dict[int, AccessibleMemory] = {}  # likewise
        if name := os.environ.get(TOOL):
            self._run = open_tool(name, os.environ.get(OPTIONS, ""), self.program, make_report_spool())

    @property
    def run(self) -> ToolRun:
        """The tool and its results so far; Invalid before a tool is chosen, and after the end of the run."""
        if self._run is None:
            raise Invalid(f"no tool: set {TOOL}")
        return self._run

    @property
    def over(self) -> bool:
        """Under LUTHIER_STRICT the first failure is the end, and of the program as well."""
        return self.strict and self._run is not None and bool(self._run.failed)

    def answer(self, request: Request) -> bytes | None:
        """Carry out one message of the program. Refused where the kernel or launch is to run as it is, or the run has
        failed (FINISH); Invalid for an unknown message."""
        content = request.content
        if request.code == Message.SETTINGS:
            return self._settings(content)
        if request.code == Message.IMAGE:
            self._image(content)
            return b""
        if request.code == Message.INSTRUMENT:
            image, device, whole = struct.unpack_from("<3I", content)
            return self._instrument(image, device, content[12:].decode(), bool(whole))
        if request.code == Message.RESULT:
            result = self._result(content)
            self.run.report(result)
            self.run.received.end(result.index)
            return None
        if request.code == Message.ARGUMENTS:
            self._receive_arguments(content)
            return None
        if request.code == Message.REPORTED:
            return None
        if request.code == Message.REPORTS:
            return self._reports(content)
        if request.code == Message.BEGIN:
            return self._begin(content)
        if request.code == Message.SIZES:
            return self._sizes(content)
        if request.code == Message.ALLOCATIONS:
            return self._allocations(content)
        if request.code == Message.RECORDS:
            channel, device, dropped = _RECORDS.unpack_from(content)
            self.run.take(self._channels[channel], device, dropped, content[_RECORDS.size :])
            return None
        if request.code == Message.RANGE:
            return bytes([self.run.tool.selection.in_range(text_of(content))])
        if request.code == Message.FORGET:
            self._forget(*struct.unpack("<I", content))
            return None
        if request.code == Message.VERDICT:
            self._count()
            return b"".join(self.run.facts())
        if request.code == Message.FINISH:
            self._count()
            self.finish()
            return b""
        raise Invalid(f"message {request.code} is unknown")

    def handle_exit(self) -> None:
        """The program is gone without a word: killed, or by exec or _exit. What it had counted is reported."""
        if self._run is None:
            return
        self._count()
        self._run.verdict.cut = True
        if self._run.verdict.launches:
            self.finish()
        else:
            self._run.write_verdict(ended=True)

    def finish(self) -> None:
        """The end of the run; Refused if anything of the tool has failed."""
        run, self._run = self.run, None
        run.attempt("records", run.received.close)
        run.attempt("output", partial(run.output.finish, run.verdict))
        run.write_verdict(ended=True)
        run.close()
        if run.failed:
            raise Refused("something failed", protocol.STATUS_UNKNOWN)

    def _settings(self, content: bytes) -> bytes:
        bytes_of_name = int.from_bytes(content[:4], "little")
        name, options = content[4 : 4 + bytes_of_name].decode(), content[4 + bytes_of_name :].decode()
        if name:
            self._run = open_tool(name, options, self.program, SpooledRows())
        run = self.run
        if echo := run.tool.echo():
            run.attempt("output", partial(print, echo, file=run.output.stream, flush=True))
        run.write_verdict(ended=False)
        chosen = run.tool.selection
        return struct.pack(
            "<2Q6I", chosen.start_grid_num, chosen.end_grid_num, chosen.active_from_start, bool(run.tool.per_launch),
            chosen.own_kernels, bool(chosen.within), bool(run.tool.marks_memory), 0,
        )

    def _reports(self, content: bytes) -> bytes:
        """Refused: launches are to be waited for."""
        try:
            self._wire.listen_to(ReportRing(*_REPORTS.unpack(content)))
        except (OSError, ValueError) as error:  # the process hides what it has open
            raise Refused("no reports", protocol.STATUS_NOT_SUPPORTED) from error
        return b""

    def _count(self) -> None:
        verdict = self.run.verdict
        counts = protocol.COUNTS.unpack_from(self._counts)
        verdict.launches, verdict.selected, verdict.failed, explained, verdict.unseen, verdict.detached = counts
        verdict.lost = max(0, verdict.selected - verdict.instrumented - verdict.failed - explained)
        failed = verdict.lost > 0 and has_failed(os.environ, self.program)
        verdict.unfinished = verdict.lost if failed else min(verdict.lost, self._wire.unfinished)

    def _image(self, content: bytes) -> None:
        number, device, form = struct.unpack_from("<3I", content)
        name = properties.target_name(content[12 : 12 + protocol.PROPERTIES_BYTES], protocol.Form(form))
        try:
            code = bundles.code_for(content[12 + protocol.PROPERTIES_BYTES :], parse_target_id(name))
        except Refused as error:
            self.run.verdict.without_binary = error.message
            raise
        self._code[number, device] = code

    def _forget(self, image: int) -> None:
        self._code = {key: code for key, code in self._code.items() if key[0] != image}
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != image}

    def _instrument(self, image: int, device: int, kernel: str, whole: bool) -> bytes:
        run = self.run
        if not run.tool.selection.kernel(kernel):
            run.verdict.not_chosen.add(kernel)
            return NOT_SELECTED
        make = partial(patch, self._code[image, device], run.tool, kernel, whole)
        copy = run_guarded(make, f"kernel {run.tool.selection.shown(kernel)} runs as it is", self._told)
        if isinstance(copy, Exception):
            run.verdict.refuse(refusal_of(kernel, copy))
            raise Refused("not instrumented", protocol.STATUS_UNKNOWN)
        made = copy.made
        told = run.tool.reports_untouched if made.cloned is None else run.tool.wants_arguments
        wanted = told and run.tool.per_launch and not made.refused
        record = load(self._code[image, device]).kernel(kernel) if wanted else None
        accessible = accessible_code(copy, self._code[image, device], kernel)
        self._kept[image, device, kernel] = facts_of(copy, record, accessible)
        refused = self._add_advice(made.refused, self._code[image, device])
        run.verdict.add(() if made.cloned is None else (made.cloned,), refused, copy.seconds, copy.cached)
        if made.cloned is None and record is None and kernel not in run.verdict.refused:
            run.verdict.add_untouched(kernel, load(self._code[image, device]), copy.notes())
        for refusal in refused:
            say(f"kernel {run.tool.selection.shown(refusal.kernel)} runs as it is: {refusal.reason}")
        answer = describe_arguments(record)
        if made.cloned is None:
            return answer
        self._keep_original(image, device)
        return answer + describe_copy(copy, made.cloned, self._number)

    def _keep_original(self, image: int, device: int) -> None:
        """Findings and faults name its lines; once for all of its kernels, as it is read and digested."""
        code = self._code[image, device]
        if (image, device) not in self._originals and (checks_are_wanted(os.environ) or len(code) <= _KEPT_BYTES):
            self._originals.add((image, device))
            keep_original(code)

    def _number(self, channel: Channel) -> int:
        if channel not in self._channels:
            self._channels.append(channel)
        return self._channels.index(channel)

    def _add_advice(self, refused: tuple[Refusal, ...], code: bytes) -> tuple[Refusal, ...]:
        """The first refusal of a run says what would serve that kernel."""
        if not refused or self.run.verdict.refused:
            return refused
        from luthier_py.report.remedies import advice  # it instruments with other tools

        first, *others = refused
        more = self.run.attempt("advice", partial(advice, code, self.run.tool, first.kernel)) or ""
        return replace(first, reason=first.reason + more), *others

    def _sizes(self, content: bytes) -> bytes:
        """A launch is prepared: what it needs for the variables that it sizes. Refused: it is to run as it is."""
        launch, known, _ = self._launch(content, {})
        verdict, name = self.run.verdict, self.run.tool.selection.shown(launch.kernel)
        try:
            found = known.compute_sizes(launch)
        except Invalid as error:
            if launch.kernel not in verdict.refused:
                say(f"launches of kernel {name} run as they are: {one_line(error)}")
                verdict.refuse(Refusal(launch.kernel, one_line(error), Location(launch.kernel)))
            raise Refused("too large", protocol.STATUS_OUT_OF_MEMORY) from error
        return struct.pack(f"<{len(found)}Q", *found.values())

    def _begin(self, content: bytes) -> bytes:
        """A launch of a kernel that has channels or launch parameters: the values of these."""
        launch, known, _ = self._launch(content, {})
        run = self.run
        run.received.begin(launch)
        run.attempt(f"{type(run.tool).__name__}.launching", partial(run.tool.launching, launch))
        parameters = [variable for variable in known.variables if isinstance(variable, LaunchParameter)]
        return b"".join(parameter.encode_value(run.tool, launch.index) for parameter in parameters)

    def _allocations(self, content: bytes) -> bytes:
        """A launch is prepared: the table of what it may access; nothing where that is not known."""
        launch, known, at = self._launch(content, {})
        assert known.accessible is not None
        found = self._accessible[launch.index] = accessible_memory(content[at:], known.accessible)
        return Allocations.encode_table(found.live) if found.live else b""

    def _result(self, content: bytes) -> LaunchResult:
        memory: dict[str, bytes] = {}
        launch, known, at = self._launch(content, memory)
        for name, size in known.read(launch):
            memory[name] = content[at : at + size]
            at += size
        memory_of = self._accessible.pop(launch.index, AccessibleMemory())
        return replace(launch, arguments=self._arguments.pop(launch.index, None), allocations=memory_of.live,
                       freed=memory_of.freed)

    def _receive_arguments(self, content: bytes) -> None:
        """The arguments of a launch; where the tool has no code in the kernel, that is all there is to report."""
        memory: dict[str, bytes] = {}
        launch, known, at = self._launch(content, memory)
        assert known.record is not None
        if self.run.tool.wants_arguments:
            self._arguments[launch.index] = with_hidden(known.record, content[at:], launch.grid, launch.block)
        if not known.has_code:
            memory.update((name, bytes(size)) for name, size in known.read(launch))
            arguments = self._arguments.pop(launch.index, None)
            self.run.report(replace(launch, arguments=arguments), without_code=True)

    def _launch(self, content: bytes, memory: Mapping[str, bytes]) -> tuple[LaunchResult, CopyFacts, int]:
        """What a message about a launch begins with; what its kernel became; where the rest of the message begins."""
        image, device, index, launches, *shape, name_bytes, range_bytes = _RESULT.unpack_from(content)
        at = _RESULT.size + name_bytes
        kernel = content[_RESULT.size : at].decode()
        ranges = tuple(map(text_of, content[at : at + range_bytes].split(b"\0")[:-1]))
        known = self._kept[image, device, kernel]
        grid, block = (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5])
        return LaunchResult(index, kernel, grid, block, memory, launches, device, known.notes(),
                            program=known.program, ranges=ranges), known, at + range_bytes


def refusal_of(kernel: str, error: Exception) -> Refusal:
    """Of a kernel for which no copy could be made."""
    if isinstance(error, LuthierError):
        return Refusal(kernel, error.message, error.where or Location(kernel))
    return Refusal(kernel, one_line(error), Location(kernel))


def map_inherited_counts() -> mmap.mmap:
    """How many launches the program makes, as it counts them."""
    try:
        if not os.readlink(f"/proc/self/fd/{COUNTS_FD}").startswith(f"/memfd:{protocol.COUNTS_NAME} "):
            raise Invalid("the program gave something else than its counts of launches: it has closed their file")
        return mmap.mmap(COUNTS_FD, protocol.COUNTS_BYTES, prot=mmap.PROT_READ)
    finally:
        os.close(COUNTS_FD)


def text_of(name: bytes) -> str:
    """What a program calls a range, which may be any bytes."""
    return name.decode(errors="backslashreplace")
