"""What tool authors import: types, hooks, variables, options, the Tool class and the Mutator."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.rewrite.tool.arguments.addresses import access_bytes, access_kind, address, bounds
    from luthier_py.rewrite.tool.arguments.allocations import Allocations, LiveAllocation, is_outside, unwritten
    from luthier_py.rewrite.tool.arguments.computed import Computed, computed
    from luthier_py.rewrite.tool.arguments.entry import Entry
    from luthier_py.rewrite.tool.arguments.hardware import hardware_register
    from luthier_py.rewrite.tool.arguments.launch_parameter import LAUNCH_NUMBER, LaunchParameter
    from luthier_py.rewrite.tool.arguments.launch_values import (
        grid_size,
        kernel_argument,
        lds_size,
        wave_in_group,
        wave_in_launch,
        workgroup_id,
        workgroup_in_launch,
        workgroup_size,
        workitem_id,
        workitem_in_launch,
    )
    from luthier_py.rewrite.tool.arguments.launch_variable import LaunchVariable
    from luthier_py.rewrite.tool.arguments.values import (
        active_lanes,
        destination,
        opcode_id,
        site_id,
        source,
        taken_lanes,
    )
    from luthier_py.rewrite.tool.arguments.waves import group_and_wave, lanes_of, number_waves, waves_in_group
    from luthier_py.rewrite.tool.base import LaunchResult, Tool, visit
    from luthier_py.rewrite.tool.chosen.counting import Counted, Counting, Following, Region, Stretch
    from luthier_py.rewrite.tool.chosen.paths import FunctionPaths, paths_of
    from luthier_py.rewrite.tool.chosen.selection import (
        COUNT_WARP_LEVEL,
        EVERY_TOOL,
        EXCLUDE_PRED_OFF,
        LAUNCHES,
        OUTPUT,
        Selection,
    )
    from luthier_py.rewrite.tool.clock import Clock
    from luthier_py.rewrite.tool.cpp.hip import Hooks
    from luthier_py.rewrite.tool.discover import amounts_of, load_tool, made_tool, tools
    from luthier_py.rewrite.tool.edits import (
        Arg,
        Constant,
        Destination,
        Edits,
        Field,
        Insertion,
        Place,
        Refusal,
        RuntimeArg,
        Turn,
    )
    from luthier_py.rewrite.tool.hooks.assembly import Assembly
    from luthier_py.rewrite.tool.hooks.author_types import (
        Lane,
        array,
        bf16,
        bool_,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        lds,
        ptr,
        scratch,
        u8,
        u16,
        u32,
        u64,
    )
    from luthier_py.rewrite.tool.hooks.hook import Device, Hook, Lanes, Parameter, Signature, device, hook
    from luthier_py.rewrite.tool.hooks.inline_assembly import asm
    from luthier_py.rewrite.tool.hooks.intrinsic import (
        Effects,
        Intrinsic,
        Ir,
        Operand,
        Result,
        Value,
        intrinsic,
        intrinsics,
    )
    from luthier_py.rewrite.tool.hooks.lane_masks import bits_below, holds, lane_id, mask_of, wave_size
    from luthier_py.rewrite.tool.hooks.types import (
        BF16,
        BOOL,
        F16,
        F32,
        F64,
        I8,
        I16,
        I32,
        I64,
        U8,
        U16,
        U32,
        U64,
        Kind,
        LaneType,
        Pointer,
        Scalar,
        Struct,
        Type,
    )
    from luthier_py.rewrite.tool.mutator import Mutator
    from luthier_py.rewrite.tool.options import Option
    from luthier_py.rewrite.tool.records.amounts import (
        ANY,
        FIRST,
        LEAST,
        MOST,
        SAME,
        SO_FAR,
        SUM,
        Amount,
        Amounts,
        CountsBy,
        Declaration,
        OfSeveral,
        RowsBy,
        amount_at,
        combined,
        declared_at,
        declared_numbers,
        share,
        worked_out,
    )
    from luthier_py.rewrite.tool.records.channel import Channel, ChannelType, channel
    from luthier_py.rewrite.tool.records.data import as_data, encoded, json_text
    from luthier_py.rewrite.tool.records.places import (
        InstrPlace,
        InstrPlaces,
        Omission,
        left_out_lines,
        left_out_of,
        left_out_rows,
        loop_of,
        place_text,
        reason,
    )
    from luthier_py.rewrite.tool.several import Several
    from luthier_py.rewrite.tool.variables import Element, LookupTable, Variable, WaveVariable

__all__ = [
    "ANY", "BF16", "BOOL", "COUNT_WARP_LEVEL", "EVERY_TOOL", "EXCLUDE_PRED_OFF", "F16", "F32", "F64", "FIRST", "I8",
    "I16", "I32", "I64", "LAUNCHES", "LAUNCH_NUMBER", "LEAST", "MOST", "OUTPUT", "SAME", "SO_FAR", "SUM", "U8", "U16",
    "U32", "U64", "Allocations", "Amount", "Amounts", "Arg", "Assembly", "Channel", "ChannelType", "Clock",
    "Computed", "Constant", "Counted", "Counting", "CountsBy", "Declaration", "Destination", "Device", "Edits",
    "Effects", "Element", "Entry", "Field", "Following", "FunctionPaths", "Hook", "Hooks", "Insertion", "InstrPlace",
    "InstrPlaces", "Intrinsic", "Ir", "Kind", "Lane", "LaneType", "Lanes", "LaunchParameter", "LaunchResult",
    "LaunchVariable", "LiveAllocation", "LookupTable", "Mutator", "OfSeveral", "Omission", "Operand", "Option",
    "Parameter", "Place", "Pointer", "Refusal", "Region", "Result", "RowsBy", "RuntimeArg", "Scalar", "Selection",
    "Several", "Signature", "Stretch", "Struct", "Tool", "Turn", "Type", "Value", "Variable", "WaveVariable",
    "access_bytes", "access_kind", "active_lanes", "address", "amount_at", "amounts_of", "array", "as_data", "asm",
    "bf16", "bits_below", "bool_", "bounds", "channel", "combined", "computed", "declared_at", "declared_numbers",
    "destination", "device", "encoded", "f16", "f32", "f64", "grid_size", "group_and_wave", "hardware_register",
    "holds", "hook", "i8", "i16", "i32", "i64", "intrinsic", "intrinsics", "is_outside", "json_text", "kernel_argument",
    "lane_id", "lanes_of", "lds", "lds_size", "left_out_lines", "left_out_of", "left_out_rows", "load_tool", "loop_of",
    "made_tool", "mask_of", "number_waves", "opcode_id", "paths_of", "place_text", "ptr", "reason", "scratch", "share",
    "site_id", "source", "taken_lanes", "tools", "u8", "u16", "u32", "u64", "unwritten", "visit", "wave_in_group",
    "wave_in_launch", "wave_size", "waves_in_group", "worked_out", "workgroup_id", "workgroup_in_launch",
    "workgroup_size", "workitem_id", "workitem_in_launch",
]
__getattr__ = make_lazy_loader(__name__, {
    "arguments.addresses": "access_bytes access_kind address bounds",
    "arguments.allocations": "Allocations LiveAllocation is_outside unwritten",
    "arguments.computed": "Computed computed",
    "arguments.entry": "Entry",
    "arguments.hardware": "hardware_register",
    "arguments.launch_parameter": "LAUNCH_NUMBER LaunchParameter",
    "arguments.launch_values": (
        "grid_size kernel_argument lds_size wave_in_group wave_in_launch workgroup_id workgroup_in_launch "
        "workgroup_size workitem_id workitem_in_launch"
    ),
    "arguments.launch_variable": "LaunchVariable",
    "arguments.values": "active_lanes destination opcode_id site_id source taken_lanes",
    "arguments.waves": "group_and_wave lanes_of number_waves waves_in_group",
    "base": "LaunchResult Tool visit",
    "chosen.counting": "Counted Counting Following Region Stretch",
    "chosen.paths": "FunctionPaths paths_of",
    "chosen.selection": "COUNT_WARP_LEVEL EVERY_TOOL EXCLUDE_PRED_OFF LAUNCHES OUTPUT Selection",
    "clock": "Clock",
    "cpp.hip": "Hooks",
    "discover": "amounts_of load_tool made_tool tools",
    "edits": "Arg Constant Destination Edits Field Insertion Place Refusal RuntimeArg Turn",
    "hooks.assembly": "Assembly",
    "hooks.author_types": "Lane array bf16 bool_ f16 f32 f64 i8 i16 i32 i64 lds ptr scratch u8 u16 u32 u64",
    "hooks.hook": "Device Hook Lanes Parameter Signature device hook",
    "hooks.inline_assembly": "asm",
    "hooks.intrinsic": "Effects Intrinsic Ir Operand Result Value intrinsic intrinsics",
    "hooks.lane_masks": "bits_below holds lane_id mask_of wave_size",
    "hooks.types": "BF16 BOOL F16 F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Kind LaneType Pointer Scalar Struct Type",
    "mutator": "Mutator",
    "options": "Option",
    "records.amounts": (
        "ANY FIRST LEAST MOST SAME SO_FAR SUM Amount Amounts CountsBy Declaration OfSeveral RowsBy amount_at "
        "combined declared_at declared_numbers share worked_out"
    ),
    "records.channel": "Channel ChannelType channel",
    "records.data": "as_data encoded json_text",
    "records.places": (
        "InstrPlace InstrPlaces Omission left_out_lines left_out_of left_out_rows loop_of place_text reason"
    ),
    "several": "Several",
    "variables": "Element LookupTable Variable WaveVariable",
})  # fmt: skip
