"""A recorded launch, run again: its memory put back, its kernel or a rebuilt one launched, what it wrote compared.

In: a RecordedLaunch, a device, perhaps a tool, or another code object with the kernel. Out: where memory differs from
what the recorded launch left, and what a new launch has. Invariant: nothing outside of the record is used, and what the
launch needs beyond it is reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path

from luthier_py.base.errors import Invalid, how_many
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import CodeObject, KernelRecord, load, read_code
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.record_file import read_record
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.emulator.interface import Device, Module, compute_hidden_argument
from luthier_py.emulator.memory.chosen_place import reserve_place
from luthier_py.emulator.memory.device_memory import ALIGNMENT, GAP, Allocation, Memory
from luthier_py.features.replay.address_map import (
    MappedRange,
    RecordedBytes,
    inner_pointers,
    map_allocations,
    map_variables,
    pieces,
    relocate_arguments,
)
from luthier_py.features.replay.differing import BufferDifference, ComparedBytes, difference
from luthier_py.features.run.launch import Dim, Done, Left
from luthier_py.features.run.launched import launch_on, open_device, parse_emulator_target
from luthier_py.features.run.reported_allocations import Ready, ignore_allocations
from luthier_py.features.settings.run_settings import EMULATOR, RunSettings
from luthier_py.host.worker.device.findings import reporter
from luthier_py.host.worker.device.properties import architecture
from luthier_py.host.worker.error_boundary import say
from luthier_py.isa import Target
from luthier_py.rewrite.tool import LiveAllocation, Tool

_ROOM, _MARGIN = 1 << 33, 1 << 16  # bytes for what a replay adds to the recorded memory, behind it and before


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """What is other than it was. ``unrecorded``: pages of recorded allocations to which a rebuilt kernel came and the
    recorded one did not; it finds zeros there. ``missing``: variables that the launch used, and that a rebuilt code
    object has not."""

    compared_bytes: int
    differences: tuple[BufferDifference, ...]
    unrecorded: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether memory is what the recorded launch left, and the launch needed nothing else."""
        return not (self.differences or self.unrecorded or self.missing)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded launch that was run again. ``tolerance``: how far floats might be from the recorded ones, relative to
    the larger."""

    record: RecordedLaunch
    done: Done
    comparison: ReplayComparison
    tolerance: float


@dataclass(slots=True)
class OfRecord:
    """What a launch takes from the record that it repeats."""

    record: RecordedLaunch

    @property
    def kernel(self) -> str:
        """The symbol of the recorded kernel."""
        return self.record.kernel

    @property
    def grid(self) -> Dim:
        """Work-groups of the recorded launch."""
        return self.record.grid

    @property
    def block(self) -> Dim:
        """Work-items in each work-group of the recorded launch."""
        return self.record.block


@dataclass(slots=True)
class ReplayLaunch(OfRecord):
    """Mutable: ``comparison`` of its last run. ``subject``: the kernel that runs, ``home``: the module with the
    program's variables, None for the one that runs. ``rebuilt``: it is another kernel, and looked at for what it
    touches."""

    subject: KernelRecord
    allocations: list[MappedRange]
    home: Module | None
    rebuilt: bool
    tolerance: float
    comparison: ReplayComparison | None = None

    def run(self, device: Device, module: Module, kernel: str, ready: Ready = ignore_allocations) -> Left:
        """Memory as it was, the launch, and what differs then."""
        variables, missing = map_variables(self.record, self.home or module)
        recorded = pieces(self.record, sorted([*self.allocations, *variables], key=lambda one: one.start))
        for piece in recorded:
            device.write(piece.now, piece.before)
        ready([LiveAllocation(each.now, each.now + each.size, each.name) for each in (*self.allocations, *variables)])
        kernarg = relocate_arguments(self.subject, replay_arguments(self.record, self.subject), self.allocations)
        unrecorded = self._launch(device, module, kernel, kernarg)
        differences = tuple(compare_memory(device, recorded, self.tolerance))
        size = sum(len(piece.after) for piece in recorded)
        self.comparison = ReplayComparison(size, differences, unrecorded, missing)
        return {}, kernarg

    def _launch(self, device: Device, module: Module, kernel: str, kernarg: bytes) -> tuple[int, ...]:
        """Pages that only a rebuilt kernel came to."""
        handle, lds_bytes = module.kernel(kernel), self.record.lds_bytes
        if self.rebuilt and isinstance(device, EmulatorDevice):
            device.run(device.ready(handle, self.grid, self.block, len(kernarg), lds_bytes, touched=True), kernarg)
            return find_unrecorded_pages(device, self.record)
        device.launch(handle, self.grid, self.block, kernarg, lds_bytes)
        device.synchronize()
        return ()


def replay_file(path: Path, tool: Tool | None, settings: RunSettings, kernel_from: Path | None = None,
                tolerance: float = 0.0) -> Replayed:
    """LuthierError or OSError says what of the file, or of the launch, is wrong."""
    return replay(read_record(path), path, tool, settings, kernel_from, tolerance)


def replay(record: RecordedLaunch, path: Path, tool: Tool | None, settings: RunSettings,
           kernel_from: Path | None = None, tolerance: float = 0.0) -> Replayed:
    """Run it once. ``kernel_from``: a file with the kernel that is to run in the recorded one's place. ``tolerance``:
    how far floats may be from the recorded ones, relative to the larger."""
    own, code, name = load(record.code, str(path)), record.code, path
    if kernel_from is not None:
        wanted = parse_emulator_target(settings.device) or own.target
        code, name = read_code(kernel_from, architecture(wanted), record.kernel), kernel_from
    runs = load(code, str(name))
    subject = runs.kernel(record.kernel)
    check_layout(own.kernel(record.kernel), subject, str(name))
    if tool is not None:
        tool.selection = tool.selection.of_process(os.getpid())
    with with_memory(record, own, settings, runs.target) as (device, addresses, original):
        rebuilt = kernel_from is not None
        home = device.load(code, str(name)) if isinstance(device, EmulatorDevice) and rebuilt else original
        allocations = map_allocations(record, own.kernel(record.kernel), addresses)
        launch = ReplayLaunch(record, subject, allocations, home, rebuilt, tolerance)
        done = launch_on(device, path, code, launch, tool, loaded=home)
    assert launch.comparison is not None
    return Replayed(record, done, launch.comparison, tolerance)


@contextmanager
def with_memory(record: RecordedLaunch, own: CodeObject, settings: RunSettings,
                 of: Target) -> Iterator[tuple[Device, list[int], EmulatorModule | None]]:
    """A device, an emulated one unless it is named for ``of``, and the addresses there of the recorded allocations; on
    the emulator the code object, too, if it runs there."""
    if not (settings.device or "").startswith(EMULATOR):
        device = open_device(settings, of)
        if count := inner_pointers(record):
            say(f"{own.name}: {how_many(count, 'word')} of its memory may be addresses of recorded memory, which is "
                "elsewhere on this device; they stay as they were, so the kernel may fail, or write other results")
        with ExitStack() as freeing:
            buffers = [device.alloc(each.size) for each in record.allocations]
            for buffer in buffers:
                freeing.callback(device.free, buffer)
            yield device, [buffer.address for buffer in buffers], None
        return
    of = parse_emulator_target(settings.device) or of
    with reserve_place(*_range(record)) as place:
        emulator = EmulatorDevice(of, options=settings.launch, memory=Memory(place), report=reporter(os.environ))
        original = emulator.load(record.code, own.name, record.base) if of.runs(own.target) else None
        place_allocations(emulator.memory, record.allocations)
        yield emulator, [each.address for each in record.allocations], original


def _range(record: RecordedLaunch) -> tuple[int, int]:
    """Of addresses, with room."""
    first = min([record.base, *(each.address for each in record.allocations)]) // _MARGIN * _MARGIN - _MARGIN
    last = max([record.base, *(each.usable_end for each in record.allocations)])
    return first, -(-(last + _ROOM - first) // _MARGIN) * _MARGIN


def place_allocations(memory: Memory, allocations: Sequence[Allocation]) -> None:
    """Place allocations at their addresses, with what kernels may touch behind them; those with less than a gap between
    them, as parts of one reservation are, in one block."""
    blocks: list[list[Allocation]] = []
    for each in allocations:
        if blocks and each.address < -(-blocks[-1][-1].usable_end // ALIGNMENT) * ALIGNMENT + GAP:
            blocks[-1].append(each)
        else:
            blocks.append([each])
    for block in blocks:
        memory.reserve_at(block[0].address, max(each.usable_end for each in block) - block[0].address)
        for each in block:
            memory.register(each)


def compare_memory(device: Device, recorded: Sequence[RecordedBytes], tolerance: float) -> Iterator[BufferDifference]:
    """Memory of a device with what the launch left when it was recorded."""
    for one, several in groupby(recorded, key=lambda piece: piece.of):
        read = [ComparedBytes(piece.offset, piece.after, device.read(piece.now, len(piece.after))) for piece in several]
        wrong = [each for each in read if each.expected != each.got]
        found = difference(one.name, one.start, one.size, one.type, wrong, tolerance) if wrong else None
        if found is not None:
            yield found


def check_layout(recorded: KernelRecord, kernel: KernelRecord, name: str) -> None:
    """Invalid unless the recorded arguments are this kernel's."""
    def layout(record: KernelRecord) -> str:
        rows = [f"{arg.size} bytes {arg.value_kind} at {arg.offset}" for arg in record.own_args]
        return ", ".join(rows) or "nothing"

    if layout(recorded) != layout(kernel):
        raise Invalid(f"kernel {kernel.shown} of {name} takes other arguments than the recorded one: {layout(kernel)}; "
                      f"not {layout(recorded)}")


def replay_arguments(record: RecordedLaunch, kernel: KernelRecord) -> bytes:
    """The kernarg segment for a kernel: the program's arguments, and hidden ones wherever this kernel has them."""
    own = load(record.code).kernel(record.kernel)
    if kernel.args == own.args:
        return record.kernarg
    hidden = {arg.value_kind: record.kernarg[arg.offset : arg.offset + arg.size] for arg in own.args if arg.hidden}
    segment = bytearray(kernel.kernarg_bytes)
    for arg in kernel.args:
        given = record.kernarg[arg.offset : arg.offset + arg.size]
        if arg.hidden:
            default = compute_hidden_argument(arg.value_kind, record.grid, record.block, record.lds_bytes)
            given = hidden.get(arg.value_kind, default.to_bytes(arg.size, "little"))
        segment[arg.offset : arg.offset + arg.size] = given.ljust(arg.size, b"\0")[: arg.size]
    return bytes(segment)


def find_unrecorded_pages(device: EmulatorDevice, record: RecordedLaunch) -> tuple[int, ...]:
    """Pages of recorded allocations that the last launch came to and the record does not have."""
    assert device.touched is not None
    known = {page.address for page in record.pages}
    return tuple(page.address for page in device.touched.pages if page.address not in known
                 and any(page.touches(each.address, each.end) for each in record.allocations))
