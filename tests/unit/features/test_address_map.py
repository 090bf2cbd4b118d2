"""What stands for recorded memory: bytes of pages, names by arguments, variables that changed, pointers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_records import BASE, OBJECT, OPERATIONS, VARIABLE, Bytes, arg, loaded_page, made, page, with_args

from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.interface import Buffer
from luthier_py.emulator.memory.device_memory import Allocation, Memory
from luthier_py.emulator.memory.touched import PAGE_BYTES
from luthier_py.emulator.native.clocks import ExecutedInstructions
from luthier_py.features.replay.address_map import (
    MappedRange,
    inner_pointers,
    map_allocations,
    map_variables,
    pieces,
    relocate_arguments,
)

FIRST = BASE + (1 << 20)  # behind the code object


def words(*numbers: int) -> bytes:
    return b"".join(each.to_bytes(8, "little") for each in numbers)


def test_each_recorded_byte_is_in_one_piece_of_what_it_belongs_to() -> None:
    """Parts of a page, several pages, a page that is not recorded, ends on the borders of pages."""
    numbers = bytes(range(256)) * 16
    pages = [page(FIRST + at * PAGE_BYTES, numbers[at:] + bytes(at), numbers[::-1]) for at in (0, 1, 3, 4)]
    spans = {"begin": (0, 8), "inside": (16, 32), "over": (4090, 4100), "none": (4100, 4100),
             "far": (5000, 3 * 4096 + 4), "hole": (2 * 4096, 3 * 4096), "end": (4 * 4096 - 1, 4 * 4096),
             "border": (4 * 4096, 4 * 4096 + 50), "behind": (5 * 4096, 5 * 4096 + 70)}  # fmt: skip
    parts = [MappedRange(name, FIRST + start, end - start, 0x1000 * number)
             for number, (name, (start, end)) in enumerate(spans.items())]
    found = pieces(made(*pages), parts)
    assert [(each.of.name, each.offset, len(each.before)) for each in found] == [
        ("begin", 0, 8), ("inside", 0, 16), ("over", 0, 6), ("over", 6, 4), ("far", 0, 3192), ("far", 7288, 4),
        ("end", 0, 1), ("border", 0, 50)]  # fmt: skip
    held = {each.address: each for each in pages}
    for each in found:
        number, place = divmod(each.of.start + each.offset, PAGE_BYTES)
        inside = slice(place, place + len(each.before))
        one = held[number * PAGE_BYTES]
        assert (each.before, each.after) == (one.before[inside], one.after[inside])
        assert each.now == each.of.now + each.offset


def test_allocations_are_named_by_the_arguments_that_point_into_them() -> None:
    """Its first byte and its last, not the one behind it; a type is known where all that point there agree."""
    sizes = 64, 64, 64, 0, 64
    allocations = [Allocation(FIRST + 0x1000 * n, size, f"a{n}") for n, size in enumerate(sizes)]
    starts = [each.address for each in allocations]
    pointers = [starts[0], starts[0] + 63, starts[1] + 64, starts[2], starts[2] + 8, starts[3]]
    kernel = with_args(
        arg(0, name="x", type_name="float*"), arg(8, type_name="float const*"), arg(16, name="end", type_name="int*"),
        arg(24, type_name="int*"), arg(32, type_name="float*"), arg(40), arg(48, 4, "by_value"), arg(52),
        arg(64, name="left out"))  # fmt: skip
    record = made(allocations=allocations, kernarg=words(*pointers) + bytes(4) + words(starts[4]))
    found = map_allocations(record, kernel, range(5))
    assert [(each.start, each.size, each.now) for each in found] == [*zip(starts, sizes, range(5), strict=True)]
    assert [(each.name, each.type) for each in found] == [
        ("argument 0 x (float*) and argument 1 (float const*)", "f32"), (f"a1 at {starts[1]:#x}", None),
        ("argument 3 (int*) and argument 4 (float*)", None), ("argument 5", None), ("argument 7", None)]
    short = made(allocations=allocations, kernarg=words(*pointers) + bytes(4) + words(starts[4])[:7])
    assert map_allocations(short, kernel, range(5))[4].name == f"a4 at {starts[4]:#x}"
    with pytest.raises(ValueError, match="zip"):
        map_allocations(record, kernel, range(4))


def test_a_module_at_its_place_is_all_of_its_memory() -> None:
    module = EmulatorModule(Memory(), OBJECT, ExecutedInstructions(), lambda name: None)
    record = made(loaded_page(after=bytes(VARIABLE.size)))
    variable = MappedRange("variable operations", OPERATIONS, VARIABLE.size, module.base + VARIABLE.address)
    assert map_variables(record, module) == ([variable], ())
    found, nowhere = map_variables(replace(record, base=module.base), module)
    spans = [(module.base + each.address, each.memory_size) for each in OBJECT.segments if each.load]
    assert found == [MappedRange(f"code object at {start:#x}", start, size, start) for start, size in spans]
    assert nowhere == ()


@pytest.mark.parametrize(("content", "size", "there", "missing"), [
    ({}, 32, False, ()), ({"before": bytes(32), "after": bytes(32)}, 32, True, ()),
    ({"after": bytes(32)}, 32, True, ()), ({"before": bytes(32)}, 32, True, ()),
    ({"after": bytes(32)}, 24, False, ("operations",)), ({"after": bytes(32)}, 40, False, ("operations",)),
    ({"after": bytes(32)}, None, False, ("operations",)),
    ({}, None, False, ()), (None, 32, False, ()),
])
def test_variables_that_changed_have_their_like_in_another_module(
    content: dict[str, bytes] | None, size: int | None, there: bool, missing: tuple[str, ...]
) -> None:
    """As loading leaves it, it needs none; before the launch and after it, and where it is not recorded."""
    module = Bytes(variables={} if size is None else {"operations": Buffer(0x5000, size)})
    record = made(page(BASE, b"")) if content is None else made(loaded_page(**content))
    assert VARIABLE.size == 32 and OPERATIONS % PAGE_BYTES > 0
    one = MappedRange("variable operations", OPERATIONS, 32, 0x5000)
    assert map_variables(record, module) == ([one] if there else [], missing)


def test_words_of_arguments_that_point_into_allocations_go_where_these_are() -> None:
    """Aligned ones of the program's own arguments, within structures too."""
    one, empty = MappedRange("a", 0x10000, 0x100, 0x90000), MappedRange("b", 0x20000, 0, 0xB0000)
    kernel = with_args(arg(0), arg(8, 4, "by_value"), arg(12, 36, "by_value"), arg(48), arg(56, kind="hidden_none"),
                       arg(64))
    given = words(0x10000, 0x100FF, 0x10100, 0x20000, 0x20001, 0xFFFF, 0x10004, 0x10008, 0x1000C)
    assert relocate_arguments(kernel, given, [one, empty]) == words(
        0x90000, 0x100FF, 0x10100, 0xB0000, 0x20001, 0xFFFF, 0x90004, 0x10008, 0x9000C)
    structure = with_args(arg(4, 20, "by_value"), arg(24, 12, "by_value"))
    assert relocate_arguments(structure, words(*[0x10010] * 4) + words(0x10010)[:4], [one]) == words(
        0x10010, 0x90010, 0x90010, 0x90010) + words(0x10010)[:4]


def test_words_that_look_like_addresses_are_counted() -> None:
    """Of allocations and of the code object: first and last bytes, not what is behind."""
    size = max(each.end for each in OBJECT.segments if each.load)
    allocation = Allocation(FIRST, 24, "a")
    inside = [FIRST, FIRST + 23, BASE, BASE + size - 1]
    outside = [FIRST - 1, FIRST + 24, BASE - 1, BASE + size, 7]
    record = made(page(FIRST, words(*inside), words(*outside, *inside)), page(FIRST + 0x1000, words(*outside, FIRST)),
                  allocations=[allocation])  # fmt: skip
    assert inner_pointers(record) == 5
    assert inner_pointers(made(page(FIRST, words(*inside)))) == 2
