"""A launch under checks: native code that watches its waves, and the findings that it leaves.

In: checks, a launch's shape. Out: an address for layout's WORKER, functions for generated code, Findings. Invariant:
what native code takes is given back when the launch ends; its layout is that of layout, by a header made here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.errors import DeviceError, Location
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.code.code_place import code_place
from luthier_py.emulator.instructions.steps import register_name
from luthier_py.emulator.memory.device_memory import Memory
from luthier_py.emulator.memory.touched import TOUCHED_COLUMNS, TouchedPage, make_touched_page
from luthier_py.emulator.options.checks import Checks, FindingKind
from luthier_py.emulator.records.layout import LAUNCH
from luthier_py.emulator.records.words import Words, address_of
from luthier_py.emulator.watching.findings import Actor, Finding, LaunchReport, describe_finding
from luthier_py.emulator.watching.watching_library import MOST_BYTES, MOST_PAGES, PAGE, load_watching_library
from luthier_py.emulator.waves.cycle_account import LaunchCycles
from luthier_py.emulator.waves.launch import group_id_places, id_rows
from luthier_py.emulator.waves.shape import Shape

_COLUMNS = ("kind", "detail", "pc", "other_pc", "group", "wave", "lane", "other_group", "other_wave", "other_lane",
            "address", "size", "count", "lanes")
_STOPPED = {
    1: f"races were looked for in the first {MOST_PAGES * PAGE >> 20} MiB that it touched",
    2: "more kinds of findings than are kept", 4: "more code objects than are told apart",
    8: f"of the first {MOST_BYTES} dwords that were accessed in parts, each byte; of others the last access alone",
}
_STOPPED_MEMORY = 16
MOST_MEMORY = 1 << 62
"""Bytes that may be taken for one launch."""
Rows = NDArray[np.uint64]


class LaunchWatch:
    """Mutable: of one launch, until it is closed."""

    def __init__(self, checks: Checks, shape: Shape, launch: Words) -> None:
        """``launch``: its record; what is watched stops it where memory runs out."""
        self._shape = shape
        scalars = group_id_places(shape.target, shape.record.descriptor)[3]
        scalars += int(shape.record.descriptor.enable_private_segment)
        vectors = id_rows(shape)
        self.address: int = load_watching_library().luthier_watch_new(
            checks.value, shape.wave_size, shape.waves, shape.groups, scalars, vectors, MOST_MEMORY,
            address_of(launch) + LAUNCH["stop"])
        if not self.address:
            raise self._out_of_memory()

    def require_memory(self) -> None:
        """DeviceError where it ran out; accesses are left out from then on."""
        if load_watching_library().luthier_watch_stopped(self.address) & _STOPPED_MEMORY:
            raise self._out_of_memory()

    def _out_of_memory(self) -> DeviceError:
        what = (f"no memory for what checks know of {self._shape.groups} work-groups and what they touch; look for "
                "less at a time, or at a smaller launch")
        return DeviceError(what, Location(self._shape.kernel))

    def close(self) -> None:
        """Free what native code keeps of the launch; reports are made before."""
        load_watching_library().luthier_watch_free(self.address)

    def report(self, codes: Sequence[HostedCode], memory: Memory, cycles: LaunchCycles | None) -> LaunchReport:
        """So far."""
        stopped = load_watching_library().luthier_watch_stopped(self.address)
        left_out = tuple(words for bit, words in _STOPPED.items() if stopped & bit)
        return LaunchReport(self._shape.kernel, self._findings(codes, memory), left_out, cycles)

    def _findings(self, codes: Sequence[HostedCode], memory: Memory) -> list[Finding]:
        """In the order in which they came."""
        rows = self._rows(load_watching_library().luthier_watch_findings, len(_COLUMNS))
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows.tolist()]
        return [self._make_finding(row, codes, memory.nearest) for row in found if row["count"]]

    def collect_touched_pages(self) -> tuple[TouchedPage, ...]:
        """The pages that the launch has come to so far, ascending."""
        rows = self._rows(load_watching_library().luthier_watch_touched, TOUCHED_COLUMNS)
        rows = rows[rows[:, 0] != 0]
        return tuple(make_touched_page(row) for row in rows[rows[:, 0].argsort()].tolist())

    def _rows(self, give: Callable[[int, Any], int], columns: int) -> Rows:
        """A table of native code, as long as it does not change."""
        place = ctypes.c_uint64()
        count = give(self.address, ctypes.byref(place))
        if not count:
            return np.empty((0, columns), np.uint64)
        words = ctypes.cast(place.value or 0, ctypes.POINTER(ctypes.c_uint64))
        return np.ctypeslib.as_array(words, (count, columns))

    def _make_finding(self, row: dict[str, int], codes: Sequence[HostedCode], nearest: Callable[[int], str]) -> Finding:
        kind = FindingKind(row["kind"])
        limits = self._shape.lds_bytes, self._shape.scratch_bytes
        other = code_place(row["other_pc"], codes) if row["other_pc"] else None
        raced = kind is FindingKind.RACE
        return Finding(
            kind,
            self._shape.kernel,
            describe_finding(row, register_name, nearest, limits),
            code_place(row["pc"], codes),
            Actor(row["group"], row["wave"], row["lane"]),
            row["count"],
            other,
            Actor(row["other_group"], row["other_wave"], row["other_lane"]) if raced else None,
            row["address"] if row["size"] else None,
        )
