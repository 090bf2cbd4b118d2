"""Descriptions of devices and of loaded code, as the worker sends them to a program.

In: targets, loaded modules. Out: the replies to OPEN and LOAD, as device.c and modules.c read them.
"""

from __future__ import annotations

import struct

from luthier_py.binary.loader import SymbolType
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.recorded_launch import HOSTCALLS
from luthier_py.emulator.waves.residency import COMPUTE_UNITS
from luthier_py.host.worker.device import printing, properties
from luthier_py.host.worker.wire import prefix_with_length
from luthier_py.isa import MAX_WORKITEMS, Target


def describe_device(of: Target, number: int, memory_bytes: int) -> bytes:
    """One device in the reply to OPEN."""
    values = properties.properties(of, number, memory_bytes)
    head = struct.pack(
        "<4IQ",
        COMPUTE_UNITS,
        of.wave_sizes[0],
        of.lds_bytes,
        MAX_WORKITEMS,
        memory_bytes,
    )
    pairs = properties.attributes(values)
    forms = [properties.pack_fields(layout, values) for layout in (properties.LAYOUT_R0000, properties.LAYOUT_R0600)]
    numbers = [number for pair in pairs for number in pair]
    return b"".join(
        [
            head,
            *(prefix_with_length(form) for form in forms),
            struct.pack(f"<I{len(numbers)}i", len(pairs), *numbers),
            prefix_with_length(properties.device_name(of).encode()),
        ]
    )


def describe_module(number: int, module: EmulatorModule, of: Target) -> bytes:
    """The reply to LOAD: kernels and variables. HIP knows of kernels by the metadata alone."""
    kernels = [kernel for kernel in module.object.kernels if kernel.states_arguments]
    variables = [
        s
        for s in module.object.symbols
        if s.defined and s.type == SymbolType.OBJECT and s.size and not s.name.endswith(".kd")
    ]
    prints = any(arg.value_kind in (HOSTCALLS, printing.ARGUMENT) for record in kernels for arg in record.args)
    parts = [struct.pack("<4I", number, prints, len(kernels), len(variables))]
    for record in kernels:
        descriptor = record.descriptor
        parts += [
            prefix_with_length(record.name.encode()),
            struct.pack(
                "<8I",
                record.kernarg_bytes,
                descriptor.group_segment_fixed_size,
                descriptor.private_segment_fixed_size,
                descriptor.vgpr_count(of),
                descriptor.sgpr_count(of),
                record.max_workitems,
                record.metadata.get(".uniform_work_group_size") == 1,
                len(record.own_args),
            ),
            *(struct.pack("<2I", arg.offset, arg.size) for arg in record.own_args),
        ]
    for symbol in variables:
        place = module.variable(symbol.name)
        parts += [prefix_with_length(symbol.name.encode()), struct.pack("<2Q", place.address, place.size)]
    return b"".join(parts)
