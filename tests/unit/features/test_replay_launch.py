"""What a replay does around its launch: memory put back, arguments, comparison; no kernel runs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from made_records import BASE, CODE, KERNEL, OBJECT, Bytes, arg, loaded_page, made, page, with_args

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import KernelArg
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.emulator.interface import Buffer
from luthier_py.emulator.memory.device_memory import ALIGNMENT, GAP, Allocation
from luthier_py.emulator.memory.touched import PAGE_BYTES, TouchedMemory, TouchedPage
from luthier_py.features.replay import rerun as replaying
from luthier_py.features.replay.address_map import MappedRange, RecordedBytes
from luthier_py.features.replay.differing import BufferDifference
from luthier_py.features.replay.rerun import (
    ReplayComparison,
    ReplayLaunch,
    check_layout,
    compare_memory,
    find_unrecorded_pages,
    place_allocations,
    replay_arguments,
    with_memory,
)
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.rewrite.tool import LiveAllocation

FIRST = BASE + (1 << 20)
HERE, VARIABLE_HERE = 0x5000, 0x9000
DIFFERENCE = BufferDifference("a", FIRST, 8, "u8", False, 1, ())


@pytest.mark.parametrize("what", [{"differences": (DIFFERENCE,)}, {"unrecorded": (FIRST,)}, {"missing": ("x",)}, {}])
def test_whatever_is_other_than_it_was_is_not_the_same(what: dict[str, Any]) -> None:
    assert ReplayComparison(**{"compared_bytes": 8, "differences": (), **what}).same == (not what)


def test_memory_is_put_back_and_then_compared() -> None:
    """The allocation and a variable, before arguments and launch; what it leaves is read when it has ended."""
    record = made(loaded_page(before=b"\5" * 32), page(FIRST, b"\1" * 16, b"\1" * 8 + b"\2" * 8),
                  allocations=[Allocation(FIRST, 16, "a")], kernarg=FIRST.to_bytes(8, "little") + b"\7" * 64)
    seen = []

    def kernel(device: Bytes, kernarg: bytes) -> None:
        seen.append((device.read(HERE, 16), device.read(VARIABLE_HERE, 32)))
        device.write(HERE, b"\1" * 8 + b"\3" * 8)

    device = Bytes(variables={"operations": Buffer(VARIABLE_HERE, 32)}, runs=kernel)
    subject = replace(KERNEL, args=(arg(0), *KERNEL.args[5:]))
    launch = ReplayLaunch(record, subject, [MappedRange("a", FIRST, 16, HERE, "u8")], None, False, 0.0)
    told: list[Sequence[LiveAllocation]] = []
    outputs, kernarg = launch.run(device, device, "clone", told.append)  # type: ignore[arg-type]
    assert (outputs, kernarg[:8]) == ({}, HERE.to_bytes(8, "little"))
    assert len(kernarg) == KERNEL.descriptor.kernarg_size, "hidden arguments that were not recorded are there, too"
    assert device.launches == [("handle of clone", (2, 3, 1), (64, 1, 1), kernarg, 512)]
    assert seen == [(b"\1" * 16, b"\5" * 32)]
    assert told == [[LiveAllocation(HERE, HERE + 16, "a"),
                     LiveAllocation(VARIABLE_HERE, VARIABLE_HERE + 32, "variable operations")]]
    found = launch.comparison
    assert found is not None and (found.compared_bytes, found.unrecorded, found.missing) == (48, (), ())
    assert [(each.buffer, each.count, each.offset) for each in found.differences] == [
        ("variable operations", 8, 0), ("a", 8, 8)]
    launch.home = Bytes()  # type: ignore[assignment]  # where the program's variables are, which the copy has not
    launch.run(device, device, "clone")  # type: ignore[arg-type]
    assert launch.comparison is not None and launch.comparison.missing == ("operations",)


def test_pieces_of_a_buffer_are_compared_together() -> None:
    one, other, same = (MappedRange(name, FIRST + 64 * n, 64, 64 * n, "f32") for n, name in enumerate("abc"))
    parts = [RecordedBytes(one, 0, b"", b"\0" * 4), RecordedBytes(one, 32, b"", b"\0" * 4),
             RecordedBytes(other, 4, b"", b"\0\0\x80\x3f"), RecordedBytes(same, 8, b"", b"same")]
    device: Any = Bytes()
    for part, now in zip(parts, (b"\1\0\0\0", b"\2\0\0\0", b"\1\0\x80\x3f", b"same"), strict=True):
        device.write(part.now, now)
    found = [*compare_memory(device, parts, 0.0)]
    assert [(each.buffer, each.address, each.size, each.count, [value.offset for value in each.first])
            for each in found] == [("a", FIRST, 64, 2, [0, 32]), ("b", FIRST + 64, 64, 1, [4])]
    assert all((each.type, each.guessed) == ("f32", False) for each in found)
    assert (found[1].first[0].expected, found[1].first[0].got) == (1.0, pytest.approx(1.0, rel=1e-6))
    assert [each.buffer for each in compare_memory(device, parts, 1e-6)] == ["a"]


class Places:
    """Mutable: what is asked of a device's memory."""

    def __init__(self) -> None:
        self.reserved: list[tuple[int, int]] = []
        self.registered: list[Allocation] = []

    def reserve_at(self, address: int, size: int) -> None:
        assert all(end + GAP <= address for _, end in self.reserved)
        self.reserved.append((address, address + size))

    def register(self, allocation: Allocation) -> None:
        assert self.reserved[-1][0] <= allocation.address <= allocation.end <= self.reserved[-1][1]
        self.registered.append(allocation)


@pytest.mark.parametrize(("sizes_and_gaps", "blocks"), [
    ([], []), ([(24, 0)], [(0, 24)]), ([(ALIGNMENT, GAP), (8, 0)], [(0, ALIGNMENT), (ALIGNMENT + GAP, 8)]),
    ([(ALIGNMENT, GAP - 1), (8, 0)], [(0, ALIGNMENT + GAP + 7)]), ([(4, 4), (8, 8), (8, 0)], [(0, 32)]),
    ([(300, 100), (300, 100), (300, 0)], [(0, 1100)]),
    ([(1, 2 * ALIGNMENT - 1), (8, 4096), (16, 0)], [(0, 1), (512, 8), (4616, 16)]),
    ([(1, 2 * ALIGNMENT - 2), (8, 4096), (16, 0)], [(0, 519), (4615, 16)]),
])
def test_allocations_with_less_than_a_gap_between_them_are_one_block(
    sizes_and_gaps: Sequence[tuple[int, int]], blocks: Sequence[tuple[int, int]]
) -> None:
    allocations, at = [], FIRST
    for size, gap in sizes_and_gaps:
        allocations.append(Allocation(at, size, f"at {at:x}"))
        at += size + gap
    memory: Any = Places()
    place_allocations(memory, allocations)
    assert [(start - FIRST, end - start) for start, end in memory.reserved] == blocks
    assert memory.registered == allocations


@pytest.mark.parametrize("spare", [0, 0x3000])
def test_memory_of_a_replay_is_where_it_was(spare: int) -> None:
    """Below the code object and behind it; nothing else is where kernels may touch bytes behind an allocation."""
    before, behind = Allocation(BASE - (1 << 20), 0x100, "before"), Allocation(FIRST, 0x1000, "behind", spare=spare)
    record = made(page(BASE, b""), allocations=[before, behind])
    with with_memory(record, OBJECT, run_settings("emulator"), OBJECT.target) as (device, addresses, original):
        assert (device.target.name, addresses) == ("gfx90a", [before.address, behind.address])
        assert original is not None and original.base == BASE
        assert device.memory.between(before.address, behind.end)[0] == before  # type: ignore[attr-defined]
        device.write(behind.end - 4, b"last")
        assert device.alloc(1 << 32).address >= behind.usable_end
    with with_memory(record, OBJECT, run_settings("emulator:gfx1100"), OBJECT.target) as (device, addresses, original):
        assert (device.target.name, len(addresses), original) == ("gfx1100", 2, None)


@pytest.mark.parametrize("words", [(), (FIRST, BASE, 5)])
def test_elsewhere_pointers_in_memory_are_told(
    words: Sequence[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freed: list[Buffer] = []
    gpu = SimpleNamespace(alloc=lambda size: Buffer(HERE * size, size), free=freed.append)
    monkeypatch.setattr(replaying, "open_device", lambda settings, of: gpu)
    allocations = [Allocation(FIRST, 3, "a"), Allocation(FIRST + 0x1000, 7, "b")]
    record = made(page(FIRST, b"".join(each.to_bytes(8, "little") for each in words)), allocations=allocations)
    with with_memory(record, OBJECT, run_settings("hip"), OBJECT.target) as (device, addresses, original):
        assert device is gpu and (addresses, original, freed) == ([HERE * 3, HERE * 7], None, [])
    assert sorted(each.size for each in freed) == [3, 7]
    assert ("2 words of its memory may be addresses of recorded" in capsys.readouterr().err) == bool(words)


@pytest.mark.parametrize(("other", "same"), [
    ([arg(0), arg(8, 4, "by_value")], True),
    ([arg(0, name="x"), arg(8, 4, "by_value"), arg(16, kind="hidden_a")], True),
    ([arg(0), arg(8, 8, "by_value")], False), ([arg(0), arg(12, 4, "by_value")], False), ([arg(0)], False),
    ([arg(0), arg(8, 4, "global_buffer")], False), ([], False),
])
def test_a_kernel_with_other_arguments_is_refused(other: list[KernelArg], same: bool) -> None:
    recorded = with_args(arg(0), arg(8, 4, "by_value"), arg(16, kind="hidden_b"))
    if same:
        return check_layout(recorded, with_args(*other), "it.co")
    with pytest.raises(Invalid, match=r"f of it\.co takes other arguments .*; not 8 bytes global_buffer at 0, 4 b"):
        check_layout(recorded, with_args(*other), "it.co")


def test_hidden_arguments_are_where_the_kernel_that_runs_has_them() -> None:
    """Those of the record by their kinds, others as a launch of this shape has them."""
    given = bytes(each % 251 for each in range(1, 1 + KERNEL.descriptor.kernarg_size))
    record = made(page(BASE, b""), kernarg=given)
    assert replay_arguments(record, KERNEL) == given
    end = max(each.offset + each.size for each in KERNEL.args)
    hidden = {each.value_kind: each for each in KERNEL.args if each.hidden}
    size_y = hidden["hidden_group_size_y"]
    subject = replace(KERNEL, args=(
        *KERNEL.own_args, arg(40, 2, "hidden_group_size_y"), arg(44, 4, "hidden_dynamic_lds_size"),
        arg(48, 8, "hidden_none_such"), arg(56, 4, "hidden_group_size_y"), arg(60, 1, "hidden_group_size_y"),
        arg(end + 8, 4, "by_value")))
    found = replay_arguments(record, subject)
    own = given[size_y.offset : size_y.offset + size_y.size]
    assert (found[:4], found[8:40]) == (given[:4], given[8:40])
    assert (found[40:42], found[56:60], found[60:61]) == (own, own + bytes(2), own[:1])
    assert "hidden_dynamic_lds_size" not in hidden and found[44:56] == (512).to_bytes(12, "little")
    assert len(found) == max(end + 12, KERNEL.descriptor.kernarg_size)
    small = replace(subject, args=KERNEL.own_args, descriptor=KERNEL.descriptor.replace(kernarg_size=400))
    assert len(replay_arguments(record, small)) == 400


def test_pages_that_only_the_rebuilt_kernel_came_to() -> None:
    """In recorded allocations: neither recorded ones, nor the kernel's own memory, nor a neighbour on the same page."""
    others = Allocation(FIRST + (1 << 20), 8, "other")
    record = made(page(FIRST, b""), allocations=[Allocation(FIRST, 3 * PAGE_BYTES + 64, "a"), others])
    every, second = (1 << 64) - 1, 2
    lines = {-1: every, 0: every, 1: second, 3: second, 2: every}
    pages = tuple(TouchedPage(FIRST + number * PAGE_BYTES, bits, b"", False) for number, bits in lines.items())
    device: Any = SimpleNamespace(touched=TouchedMemory(pages, False))
    assert find_unrecorded_pages(device, record) == (FIRST + PAGE_BYTES, FIRST + 2 * PAGE_BYTES)


def test_a_replay_launches_the_kernel_of_the_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The recorded one, unless there is another; its variables are then of that file's module."""
    launches: list[tuple[bytes, ReplayLaunch, Any]] = []

    def launch_on(device: Any, path: Any, code: bytes, launch: ReplayLaunch, tool: None, loaded: Any) -> str:
        launches.append((code, launch, loaded))
        launch.comparison = ReplayComparison(0, ())
        return "done"

    monkeypatch.setattr(replaying, "launch_on", launch_on)
    record: RecordedLaunch = made(page(BASE, b""), allocations=[Allocation(FIRST, 8, "a")])
    path, settings = tmp_path / "it.lrec", run_settings("emulator")
    found = replaying.replay(record, path, None, settings, tolerance=0.25)
    assert (found.record, found.done, found.tolerance) == (record, "done", 0.25)
    (tmp_path / "new.co").write_bytes(CODE)
    replaying.replay(record, path, None, settings, tmp_path / "new.co")
    (tmp_path / "other.co").write_bytes(CODE.replace(b".offset\x08", b".offset\x04"))  # in its metadata
    with pytest.raises(Invalid, match="takes other arguments than the recorded one"):
        replaying.replay(record, path, None, settings, tmp_path / "other.co")
    (code, own, loaded), (_, rebuilt, its) = launches
    assert (code, own.rebuilt, own.tolerance, own.home) == (CODE, False, 0.25, loaded) and loaded.base == BASE
    assert rebuilt.rebuilt and rebuilt.home is its and its.base != BASE and rebuilt.subject.name == KERNEL.name
    assert [each.now for each in own.allocations] == [FIRST]
