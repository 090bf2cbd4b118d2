"""A recorded launch, run again: its memory put back, its kernel or a rebuilt one launched, what it wrote compared.

In: a RecordedLaunch, a device, perhaps a tool, or another code object with the kernel. Out: where memory differs from
what the recorded launch left, and what a launch of one's own has. On the emulator all memory lies at the addresses that
it had. A GPU gives addresses as it likes: there the arguments' 8-byte words that point into recorded allocations are
made to point into what stands for them; pointers inside of memory stay as they were. Invariant: nothing outside of the
record is used, and what the launch needs beyond it is told.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.chosen_place import chosen_place
from luthier_py.emulator.memory import ALIGNMENT, GAP, Allocation, Memory
from luthier_py.emulator.module import EmulatorModule, relocated
from luthier_py.emulator.record_file import read_record
from luthier_py.emulator.recorded import RecordedLaunch
from luthier_py.emulator.touched import PAGE_BYTES
from luthier_py.errors import Invalid, LuthierError
from luthier_py.loader import CodeObject, KernelRecord, Symbol, load, read_code
from luthier_py.runtime import Buffer, Device, Module, hidden_value
from luthier_py.session.differing import Difference, Part, difference, pointed_type
from luthier_py.session.launched import emulated, launch_on, open_device
from luthier_py.session.run import Dim, Done, type_names
from luthier_py.session.run_settings import RunSettings
from luthier_py.tool import Tool
from luthier_py.worker.findings import reporter
from luthier_py.worker.patching import program_variables

_ROOM, _MARGIN = 1 << 33, 1 << 16  # bytes for what a replay adds to the recorded memory, behind it and before
_WORD = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Region:
    """Recorded bytes from ``start`` on, which are at ``now``."""

    name: str
    start: int
    size: int
    now: int
    type: str | None = None

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Replayed:
    """``unrecorded``: pages of recorded allocations that this launch came to and the recorded one did not: what a
    rebuilt kernel finds there is 0. ``unplaced``: variables that a rebuilt code object has not, though the launch used
    them."""

    record: RecordedLaunch
    done: Done
    differences: tuple[Difference, ...]
    compared_bytes: int
    unrecorded: tuple[int, ...] = ()
    unplaced: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not (self.differences or self.unrecorded or self.unplaced)


@dataclass(slots=True)
class ReplayLaunch:
    """Mutable: what its last run found. ``home``: the module with the program's variables; None for the one that runs.
    ``strict``: the kernel is another one, so what it touches is looked at."""

    record: RecordedLaunch
    kernel_record: KernelRecord
    allocations: list[Region]
    home: Module | None
    strict: bool
    tolerance: float
    differences: tuple[Difference, ...] = ()
    compared_bytes: int = 0
    unrecorded: tuple[int, ...] = ()
    unplaced: tuple[str, ...] = ()

    @property
    def kernel(self) -> str:
        return self.record.kernel

    @property
    def grid(self) -> Dim:
        return self.record.grid

    @property
    def block(self) -> Dim:
        return self.record.block

    def run(self, device: Device, module: Module, kernel: str) -> dict[int, NDArray[Any]]:
        """Memory as it was before, the launch, and what differs then."""
        record = self.record
        variables, self.unplaced = module_regions(record, self.home or module)
        regions = sorted([*self.allocations, *variables], key=lambda region: region.start)
        for region, offset, before, _ in pieces(record, regions):
            device.write(region.now + offset, before)
        kernarg = moved(self.kernel_record, replay_arguments(record, self.kernel_record), self.allocations)
        handle = module.kernel(kernel)
        if self.strict and isinstance(device, EmulatorDevice):
            ready = device.ready(handle, self.grid, self.block, len(kernarg), record.lds_bytes, touched=True)
            device.run(ready, kernarg)
            self.unrecorded = unrecorded_pages(device, record)
        else:
            device.launch(handle, self.grid, self.block, kernarg, record.lds_bytes)
            device.synchronize()
        self._compare(device, regions)
        return {}

    def _compare(self, device: Device, regions: Sequence[Region]) -> None:
        found: list[Difference] = []
        self.compared_bytes = 0
        for region, several in groupby(pieces(self.record, regions), key=lambda piece: piece[0]):
            parts = []
            for _, offset, _, after in several:
                got = device.read(region.now + offset, len(after))
                self.compared_bytes += len(after)
                if got != after:
                    parts.append(Part(offset, after, got))
            if parts:
                one = difference(region.name, region.start, region.size, region.type, parts, self.tolerance)
                found += [one] if one is not None else []
        self.differences = tuple(found)


def replay_file(path: Path, tool: Tool | None, settings: RunSettings, kernel_from: Path | None = None,
                tolerance: float = 0.0) -> Replayed:
    """LuthierError or OSError says what of the file, or of the launch, is wrong."""
    return replay(read_record(path), path, tool, settings, kernel_from, tolerance)


def replay(record: RecordedLaunch, path: Path, tool: Tool | None, settings: RunSettings,
           kernel_from: Path | None = None, tolerance: float = 0.0) -> Replayed:
    """Run it once. ``kernel_from``: a file with the kernel that is to run in the recorded one's place. ``tolerance``:
    how far floats may be from the recorded ones, relative to the larger."""
    own = load(record.code, str(path))
    code, name = (record.code, path) if kernel_from is None else (
        read_code(kernel_from, own.target, record.kernel), kernel_from)
    kernel = load(code, str(name)).kernel(record.kernel)
    check_layout(own.kernel(record.kernel), kernel, str(name))
    if tool is not None:
        tool.selection = tool.selection.of_process(os.getpid())
    with _on_device(record, own, settings) as (device, allocations, original):
        loaded = original
        if isinstance(device, EmulatorDevice) and kernel_from is not None:
            loaded = device.load(code, str(name))
        launch = ReplayLaunch(record, kernel, allocations, loaded, kernel_from is not None, tolerance)
        done = launch_on(device, path, code, launch, tool, loaded=loaded)
    return Replayed(record, done, launch.differences, launch.compared_bytes, launch.unrecorded, launch.unplaced)


@contextmanager
def _on_device(record: RecordedLaunch, obj: CodeObject,
               settings: RunSettings) -> Iterator[tuple[Device, list[Region], EmulatorModule | None]]:
    """A device with the recorded allocations; on the emulator with the code object, too."""
    names = _names(record, obj.kernel(record.kernel))
    if not (settings.device or "").startswith("emulator"):
        device = open_device(settings, obj.target)
        with ExitStack() as freeing:
            regions = []
            for each in record.allocations:
                buffer = device.alloc(each.size)
                freeing.callback(device.free, buffer)
                regions.append(_region(each, buffer.address, names))
            yield device, regions, None
        return
    target = emulated(settings.device) or obj.target
    with chosen_place(*_range(record)) as place:
        emulator = EmulatorDevice(target, options=settings.launch, memory=Memory(place), report=reporter(os.environ))
        original = emulator.load(record.code, obj.name, record.base)
        place_allocations(emulator.memory, record.allocations)
        yield emulator, [_region(each, each.address, names) for each in record.allocations], original


def _range(record: RecordedLaunch) -> tuple[int, int]:
    """Of addresses, with room."""
    first = min([record.base, *(each.address for each in record.allocations)]) // _MARGIN * _MARGIN - _MARGIN
    last = max([record.base, *(each.end + each.spare for each in record.allocations)])
    return first, -(-(last + _ROOM - first) // _MARGIN) * _MARGIN


def place_allocations(memory: Memory, allocations: Sequence[Allocation]) -> None:
    """At their addresses; those with less than a gap between them, as parts of one reservation are, in one block."""
    blocks: list[list[Allocation]] = []
    for each in allocations:
        if blocks and each.address < -(-blocks[-1][-1].end // ALIGNMENT) * ALIGNMENT + GAP:
            blocks[-1].append(each)
        else:
            blocks.append([each])
    for block in blocks:
        memory.reserve_at(block[0].address, block[-1].end - block[0].address)
        for each in block:
            memory.register(each)


def _names(record: RecordedLaunch, kernel: KernelRecord) -> dict[int, tuple[str, str | None]]:
    """By allocation: what arguments say of it, and its elements' type."""
    found: dict[int, tuple[str, str | None]] = {}
    for number, (arg, type_name) in enumerate(zip(kernel.own_args, type_names(kernel), strict=True)):
        if arg.size != 8 or arg.offset + 8 > len(record.kernarg):
            continue
        pointer = _WORD.unpack_from(record.kernarg, arg.offset)[0]
        for each in record.allocations:
            if each.address <= pointer < each.end:
                words = " ".join(filter(None, [f"argument {number}", arg.name, f"({type_name})" * bool(type_name)]))
                found.setdefault(each.address, (words, pointed_type(type_name)))
    return found


def _region(each: Allocation, now: int, names: dict[int, tuple[str, str | None]]) -> Region:
    name, kind = names.get(each.address, (f"{each.name} at 0x{each.address:x}", None))
    return Region(name, each.address, each.size, now, kind)


def module_regions(record: RecordedLaunch, module: Module) -> tuple[list[Region], tuple[str, ...]]:
    """Where the recorded code object's memory is: all of it where the module is itself, at its place; otherwise those
    variables that were no more as loading leaves them, by name, and the names of such that the module has not."""
    own = load(record.code)
    if isinstance(module, EmulatorModule) and module.base == record.base:
        parts = [(record.base + each.address, each.memory_size) for each in own.segments if each.load]
        return [Region(f"code object at 0x{start:x}", start, size, start) for start, size in parts if size], ()
    found, nowhere = [], []
    for variable in program_variables(own):
        symbol = own.symbol(variable.name)
        assert symbol is not None
        region = Region(f"variable {symbol.name}", record.base + symbol.address, symbol.size, 0)
        first = _loaded(own, record.base, symbol)
        if all(before == after == first[offset : offset + len(before)]
               for _, offset, before, after in pieces(record, [region])):
            continue
        try:
            there = module.variable(symbol.name)
        except LuthierError:  # a runtime need not know the names of all
            there = Buffer(0, 0)
        if there.size == symbol.size:
            found.append(replace(region, now=there.address))
        else:
            nowhere.append(symbol.name)
    return found, tuple(nowhere)


def _loaded(obj: CodeObject, base: int, symbol: Symbol) -> bytes:
    """A variable as loading leaves it."""
    content = bytearray(obj.read(symbol.address, symbol.size))
    for address, data in relocated(obj, base):
        offset = address - symbol.address
        if 0 <= offset <= len(content) - len(data):
            content[offset : offset + len(data)] = data
    return bytes(content)


def pieces(record: RecordedLaunch, regions: Sequence[Region]) -> Iterator[tuple[Region, int, bytes, bytes]]:
    """What the record has of each region: offset, bytes before the launch and after it. Both ascend."""
    waiting, held = iter(regions), list[Region]()
    following = next(waiting, None)
    found: dict[Region, list[tuple[int, bytes, bytes]]] = {region: [] for region in regions}
    for page in record.pages:
        end = page.address + PAGE_BYTES
        while following is not None and following.start < end:
            held.append(following)
            following = next(waiting, None)
        held = [region for region in held if region.end > page.address]
        for region in held:
            first, last = max(region.start, page.address), min(region.end, end)
            inside = slice(first - page.address, last - page.address)
            found[region].append((first - region.start, page.before[inside], page.after[inside]))
    for region, rows in found.items():
        for offset, before, after in rows:
            yield region, offset, before, after


def check_layout(recorded: KernelRecord, kernel: KernelRecord, name: str) -> None:
    """Invalid unless the recorded arguments are this kernel's."""
    def layout(record: KernelRecord) -> list[tuple[int, int, str]]:
        return [(arg.offset, arg.size, arg.value_kind) for arg in record.own_args]

    if layout(recorded) != layout(kernel):
        def told(record: KernelRecord) -> str:
            return ", ".join(f"{size} bytes {kind} at {at}" for at, size, kind in layout(record)) or "nothing"

        raise Invalid(f"kernel {kernel.name} of {name} takes other arguments than the recorded one: {told(kernel)}; "
                      f"not {told(recorded)}")


def replay_arguments(record: RecordedLaunch, kernel: KernelRecord) -> bytes:
    """The kernarg segment for a kernel: the program's arguments, and hidden ones wherever this kernel has them."""
    own = load(record.code).kernel(record.kernel)
    if kernel.args == own.args:
        return record.kernarg
    size = max([kernel.descriptor.kernarg_size, *(arg.offset + arg.size for arg in kernel.args)])
    segment = bytearray(size)
    hidden = {arg.value_kind: record.kernarg[arg.offset : arg.offset + arg.size] for arg in own.args if arg.hidden}
    for arg in kernel.args:
        given = record.kernarg[arg.offset : arg.offset + arg.size]
        if arg.hidden:
            default = hidden_value(arg.value_kind, record.grid, record.block, record.lds_bytes)
            given = hidden.get(arg.value_kind, default.to_bytes(arg.size, "little"))
        segment[arg.offset : arg.offset + arg.size] = given.ljust(arg.size, b"\0")[: arg.size]
    return bytes(segment)


def moved(kernel: KernelRecord, kernarg: bytes, allocations: Sequence[Region]) -> bytes:
    """With words that point into allocations pointing to where these are now."""
    changed = bytearray(kernarg)
    for arg in kernel.own_args:
        for offset in range(-(-arg.offset // 8) * 8, min(arg.offset + arg.size, len(kernarg)) - 7, 8):
            value = _WORD.unpack_from(kernarg, offset)[0]
            region = next((each for each in allocations if each.start <= value < max(each.end, each.start + 1)), None)
            if region is not None:
                _WORD.pack_into(changed, offset, region.now + value - region.start)
    return bytes(changed)


def unrecorded_pages(device: EmulatorDevice, record: RecordedLaunch) -> tuple[int, ...]:
    """Of recorded allocations, that the last launch came to and the record does not have."""
    assert device.touched is not None
    known = {page.address for page in record.pages}
    spans = [(each.address, each.end) for each in record.allocations]
    return tuple(page.address for page in device.touched.pages if page.address not in known and any(
        start < page.address + PAGE_BYTES and page.address < end for start, end in spans))

