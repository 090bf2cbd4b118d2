"""Luthier-py: instrument AMD GPU code objects with Python.

Everything that a tool or a script needs is importable from here; it is loaded on first use, so that
``import luthier_py`` costs nothing. docs/architecture.md shows the rooms behind these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.base.errors import LuthierError
    from luthier_py.binary.loader import CodeObject, KernelArg, KernelRecord, load
    from luthier_py.features.exec.attach import Attached, attach
    from luthier_py.features.notebook.show import load_ipython_extension, show
    from luthier_py.features.study.table import study_table
    from luthier_py.isa import (
        EXEC,
        M0,
        SCC,
        VCC,
        AccessKind,
        AddressForm,
        Inst,
        InstructionClass,
        MemoryAccess,
        Operand,
        OperandKind,
        OpFlag,
        OpInfo,
        Reg,
        RegFile,
        RegSet,
        Space,
        sgpr,
        vgpr,
    )
    from luthier_py.program.analysis import (
        Definitions,
        Edge,
        Facts,
        Frame,
        Frames,
        LineRange,
        Loop,
        MissingWait,
        Reaching,
        block_graph,
        call_graph,
        dominators,
        line_ranges,
        missing_waits,
        post_dominators,
        source_frames,
        trip_count,
    )
    from luthier_py.program.ir import Block, CallSite, Ending, Function, Instr, Kernel, Program, lift
    from luthier_py.rewrite.pipeline import Instrumented, instrument
    from luthier_py.rewrite.tool import (
        COUNT_WARP_LEVEL,
        EXCLUDE_PRED_OFF,
        LAUNCH_NUMBER,
        Allocations,
        Channel,
        Computed,
        Counted,
        Counting,
        Element,
        Entry,
        Following,
        Hook,
        Hooks,
        Lane,
        LaunchParameter,
        LaunchResult,
        LaunchVariable,
        LiveAllocation,
        LookupTable,
        Mutator,
        Option,
        Region,
        Selection,
        Several,
        Stretch,
        Tool,
        Variable,
        WaveVariable,
        access_bytes,
        access_kind,
        active_lanes,
        address,
        array,
        as_data,
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
        json_text,
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
    "COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF", "EXEC", "LAUNCH_NUMBER", "M0", "SCC", "VCC", "AccessKind",
    "AddressForm", "Allocations", "Attached", "Block", "CallSite", "Channel", "CodeObject", "Computed", "Counted",
    "Counting", "Definitions", "Edge", "Element", "Ending", "Entry", "Facts", "Following", "Frame", "Frames",
    "Function", "Hook", "Hooks", "Inst", "Instr", "InstructionClass", "Instrumented", "Kernel", "KernelArg",
    "KernelRecord", "Lane", "LaunchParameter", "LaunchResult", "LaunchVariable", "LineRange", "LiveAllocation",
    "LookupTable", "Loop", "LuthierError", "MemoryAccess", "MissingWait", "Mutator", "OpFlag", "OpInfo", "Operand",
    "OperandKind", "Option", "Program", "Reaching", "Reg", "RegFile", "RegSet", "Region", "Selection", "Several",
    "Space", "Stretch", "Tool", "Variable", "WaveVariable", "access_bytes", "access_kind", "active_lanes",
    "address", "array", "as_data", "asm", "attach", "bf16", "block_graph", "bool_", "bounds", "call_graph",
    "channel", "computed", "destination", "device", "dominators", "f16", "f32", "f64", "grid_size",
    "hardware_register", "hook", "i16", "i32", "i64", "i8", "instrument", "json_text", "kernel_argument", "lds",
    "lds_size", "lift", "line_ranges", "load", "load_ipython_extension", "missing_waits", "opcode_id",
    "post_dominators", "ptr", "scratch", "sgpr", "show", "site_id", "source", "source_frames", "study_table",
    "taken_lanes", "trip_count", "u16", "u32", "u64", "u8", "vgpr", "wave_in_group", "wave_in_launch",
    "workgroup_id", "workgroup_in_launch", "workgroup_size", "workitem_id", "workitem_in_launch",
]
__getattr__ = make_lazy_loader(__name__, {
    "base.errors": "LuthierError",
    "binary.loader": "CodeObject KernelArg KernelRecord load",
    "features.exec.attach": "Attached attach",
    "features.notebook.show": "load_ipython_extension show",
    "features.study.table": "study_table",
    "isa": (
        "EXEC M0 SCC VCC AccessKind AddressForm Inst InstructionClass MemoryAccess OpFlag OpInfo Operand OperandKind "
        "Reg RegFile RegSet Space sgpr vgpr"
    ),
    "program.analysis": (
        "Definitions Edge Facts Frame Frames LineRange Loop MissingWait Reaching block_graph call_graph dominators "
        "line_ranges missing_waits post_dominators source_frames trip_count"
    ),
    "program.ir": "Block CallSite Ending Function Instr Kernel Program lift",
    "rewrite.pipeline": "Instrumented instrument",
    "rewrite.tool": (
        "COUNT_WARP_LEVEL EXCLUDE_PRED_OFF LAUNCH_NUMBER Allocations Channel Computed Counted Counting Element Entry "
        "Following Hook Hooks Lane LaunchParameter LaunchResult LaunchVariable LiveAllocation LookupTable Mutator "
        "Option Region Selection Several Stretch Tool Variable WaveVariable access_bytes access_kind active_lanes "
        "address array as_data asm bf16 bool_ bounds channel computed destination device f16 f32 f64 grid_size "
        "hardware_register hook i16 i32 i64 i8 json_text kernel_argument lds lds_size opcode_id ptr scratch site_id "
        "source taken_lanes u16 u32 u64 u8 wave_in_group wave_in_launch workgroup_id workgroup_in_launch "
        "workgroup_size workitem_id workitem_in_launch"
    ),
})  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
