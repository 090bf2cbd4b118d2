"""A launch's tool gets the memory that the launch may access.

In: a module, the tool's tables, allocations. Out: cells of the module that lead to a table in memory, while the launch
runs. Invariant: nothing is put anywhere where a tool has no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from luthier_py.binary.loader import load
from luthier_py.rewrite.tool.arguments.allocations import Allocations, LiveAllocation, collect_loaded_segments

if TYPE_CHECKING:
    from luthier_py.emulator.interface import Device, Module
    from luthier_py.rewrite.pipeline import Instrumented

Ready = Callable[[Sequence[LiveAllocation]], None]
"""Called with a launch's allocations before it begins."""


def ignore_allocations(allocations: Sequence[LiveAllocation]) -> None:
    """For a launch whose tool does not ask for its allocations."""


def own_memory(module: Module, made: Instrumented, tables: Sequence[Allocations]) -> list[LiveAllocation]:
    """Where the program's own segments are loaded; a tool's variable says how far from their addresses."""
    if not tables:
        return []
    symbol = load(made.data).symbol(tables[0].name)
    assert symbol is not None
    base = module.variable(tables[0].name).address - symbol.address
    return collect_loaded_segments(made.obj, base, made.obj.name)


@contextmanager
def publish_allocations(
    device: Device, module: Module, tables: Sequence[Allocations], known: Sequence[LiveAllocation]
) -> Iterator[None]:
    """Memory with the table, to which the module's cells lead."""
    if not tables:
        yield
        return
    data = Allocations.encode_table(known)
    place = device.alloc(len(data))
    device.write(place.address, data)
    for table in tables:
        device.write(module.variable(table.name).address, place.address.to_bytes(8, "little"))
    try:
        yield
    finally:
        device.free(place)
