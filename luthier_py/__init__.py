"""Luthier-py: instrument AMD GPU code objects with Python.

Everything that a tool or a script needs is importable from here; it is loaded on first use, so that
``import luthier_py`` costs nothing. docs/architecture.md shows the rooms behind these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.errors import LuthierError
    from luthier_py.isa import EXEC, M0, SCC, VCC, OpFlag, Reg, RegFile, RegSet, sgpr, vgpr
    from luthier_py.loader import load
    from luthier_py.pipeline import Instrumented, instrument
    from luthier_py.session.attach import Attached, attach
    from luthier_py.session.notebook import load_ipython_extension, show
    from luthier_py.session.study.table import study_table
    from luthier_py.tool import (
        COUNT_WARP_LEVEL,
        EXCLUDE_PRED_OFF,
        LAUNCH_NUMBER,
        Channel,
        Entry,
        Hooks,
        Lane,
        LaunchParameter,
        LaunchResult,
        LaunchVariable,
        LookupTable,
        Mutator,
        Option,
        Several,
        Tool,
        Variable,
        WaveVariable,
        access_bytes,
        access_kind,
        active_lanes,
        address,
        array,
        asm,
        bf16,
        bool_,
        bounds,
        channel,
        computed,
        destination,
        device,
        f16,
        f32,
        f64,
        grid_size,
        hardware_register,
        hook,
        i8,
        i16,
        i32,
        i64,
        kernel_argument,
        lds,
        lds_size,
        opcode_id,
        ptr,
        scratch,
        site_id,
        source,
        taken_lanes,
        u8,
        u16,
        u32,
        u64,
        wave_in_group,
        wave_in_launch,
        workgroup_id,
        workgroup_in_launch,
        workgroup_size,
        workitem_id,
        workitem_in_launch,
    )

__version__ = "0.1.0"
__all__ = [
    "COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF", "EXEC", "LAUNCH_NUMBER", "M0", "SCC", "VCC", "Attached", "Channel", "Entry",
    "Hooks", "Instrumented", "Lane", "LaunchParameter", "LaunchResult", "LaunchVariable", "LookupTable", "LuthierError",
    "Mutator", "OpFlag", "Option", "Reg", "RegFile", "RegSet", "Several", "Tool", "Variable", "WaveVariable",
    "access_bytes", "access_kind", "active_lanes", "address", "array", "asm", "attach", "bf16", "bool_", "bounds",
    "channel", "computed", "destination", "device", "f16", "f32", "f64", "grid_size", "hardware_register", "hook",
    "i16", "i32", "i64", "i8", "instrument", "kernel_argument", "lds", "lds_size", "load", "load_ipython_extension",
    "opcode_id", "ptr", "scratch", "sgpr", "show", "site_id", "source", "study_table", "taken_lanes", "u16", "u32",
    "u64", "u8", "vgpr", "wave_in_group", "wave_in_launch", "workgroup_id", "workgroup_in_launch", "workgroup_size",
    "workitem_id", "workitem_in_launch",
]
__getattr__ = make_lazy_loader(__name__, {
    "errors": "LuthierError",
    "isa": "EXEC M0 SCC VCC OpFlag Reg RegFile RegSet sgpr vgpr",
    "loader": "load",
    "pipeline": "Instrumented instrument",
    "session.attach": "Attached attach",
    "session.notebook": "load_ipython_extension show",
    "session.study.table": "study_table",
    "tool": (
        "COUNT_WARP_LEVEL EXCLUDE_PRED_OFF LAUNCH_NUMBER Channel Entry Hooks Lane LaunchParameter LaunchResult "
        "LaunchVariable LookupTable Mutator Option Several Tool Variable WaveVariable access_bytes access_kind "
        "active_lanes address array asm bf16 bool_ bounds channel computed destination device f16 f32 f64 grid_size "
        "hardware_register hook i8 i16 i32 i64 kernel_argument lds lds_size opcode_id ptr scratch site_id source "
        "taken_lanes u8 u16 u32 u64 wave_in_group wave_in_launch workgroup_id workgroup_in_launch workgroup_size "
        "workitem_id workitem_in_launch"
    ),
})  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
