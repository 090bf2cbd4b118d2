"""What a wave did wrong, in words and as data.

In: a wave's fault fields, and the code that it runs. Out: a DeviceError with kernel, pc, instruction and lane.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind, Location, Malformed, how_many
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import KernelRecord
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.code.code_place import code_place
from luthier_py.emulator.memory.device_memory import Memory, read_bytes
from luthier_py.emulator.records.layout import Fault, SurfaceRefusal
from luthier_py.emulator.waves.shape import Shape
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.properties.vector_modes import BANKS
from luthier_py.isa.semantics.refusals import WhyRefused

_KINDS = {
    Fault.ADDRESS: FaultKind.BAD_ADDRESS, Fault.MISALIGNED: FaultKind.MISALIGNED, Fault.READ_ONLY: FaultKind.READ_ONLY,
    Fault.LDS: FaultKind.LDS, Fault.SCRATCH: FaultKind.SCRATCH, Fault.SURFACE: FaultKind.SURFACE,
}  # fmt: skip
_REFUSED = {
    SurfaceRefusal.FORMAT: "a format in its resource that is none, or not emulated",
    SurfaceRefusal.RESERVED_SELECT: "a destination select in its resource that is reserved",
    SurfaceRefusal.NARROW_INTEGER: "an integer of more than 16 bits that is to be loaded as one of 16",
    SurfaceRefusal.SELECTED_TWICE: "destination selects in its resource by which two components go to one place",
    SurfaceRefusal.DOES_NOT_FIT: "a number to store that its resource's format cannot hold",
    SurfaceRefusal.SWIZZLE: "a resource with an order of bytes that is not emulated",
    SurfaceRefusal.IMAGE: "an image that is not linear, has levels or samples, or whose rows are of unknown length",
    SurfaceRefusal.DATA_TYPE: "a data type in M0 that is not used",
    SurfaceRefusal.LANE_GROUP: "lanes in groups of another size than a power of two, or one 64 or more lanes away",
    SurfaceRefusal.OTHER_LANE: "a lane that is not active",
}
_RENAMED = WhyRefused.RENAMED
_WRITES = OpFlag.MAY_STORE | OpFlag.ATOMIC


@dataclass(frozen=True, slots=True)
class FaultyWave:
    """``field`` reads the wave's record."""

    group: int
    wave: int
    field: Callable[[str], int]

    def __str__(self) -> str:
        return f"wave {self.wave} of work-group {self.group}"


def device_error(wave: FaultyWave, code: HostedCode, shape: Shape, memory: Memory, kernarg: int) -> DeviceError:
    """``kernarg``: address of the launch's segment."""
    kind, kernel, address = Fault(wave.field("fault_kind")), shape.kernel, wave.field("fault_address")
    absolute = wave.field("pc")
    pc = absolute - code.base
    if kind is Fault.JUMP:
        left = wave.field("left_at") - code.base  # there is no other way to leave for what is not code
        what = f"{wave}: jump to 0x{absolute:x}, which is not code; {memory.nearest(absolute)}"
        return DeviceError(what, _where(code, left, kernel), DeviceFault(FaultKind.BAD_JUMP, absolute))
    if kind is Fault.MODE:
        what = (f"MODE is 0x{address:x} here, from a register: it may become what it was "
                "before in the function, and must be at calls and returns what it is at the start")
        if address & BANKS and code.source.target.vector_banks:
            what += f"; bits 19:12 of the register choose banks: {_RENAMED.reason}; {_RENAMED.advice}"
        return DeviceError(what, _where(code, pc, kernel), DeviceFault(FaultKind.MODE, absolute))
    if kind is Fault.SKIPS:
        what = "vector instructions are skipped here (s_setvskip): a function must not be left or called so"
        return DeviceError(what, _where(code, pc, kernel), DeviceFault(FaultKind.MODE, absolute))
    if kind is Fault.RELEASED:
        what = (f"{wave} has given back its vector registers and private memory (sendmsg MSG_DEALLOC_VGPRS), which are "
                "wanted here; leave them alone from there on, or leave the message out")
        return DeviceError(what, _where(code, pc, kernel), DeviceFault(FaultKind.NO_REGISTERS, absolute))
    pc = code.numbers.sites[wave.field("fault_site")]
    lane = wave.field("fault_lane")
    inst = code.insts[pc]
    words = _trap(inst) if kind is Fault.TRAP else _words(kind, address, inst, shape, memory)
    if kind in (Fault.ADDRESS, Fault.READ_ONLY):
        words += _from_argument(address, shape.record, memory, kernarg)
    what = f"lane {lane} of {wave}: {words}"
    return DeviceError(what, _where(code, pc, kernel), _fault(kind, pc, address, code))


def _from_argument(address: int, record: KernelRecord, memory: Memory, kernarg: int) -> str:
    """How far it is from where a pointer among the kernel's arguments points, the closest one."""
    found = []
    for number, arg in enumerate(record.own_args):
        if arg.value_kind == "global_buffer" and arg.size == 8:
            start = int.from_bytes(read_bytes(kernarg + arg.offset, 8), "little")
            if memory.find(start) is not None:
                found.append((abs(address - start), number, arg.name, address < start))
    if not found:
        return ""
    distance, number, name, before = min(found)
    named = f"argument {number} ({name})" if name else f"argument {number}"
    place = f"{how_many(distance, 'byte')} {'behind' if before else 'before'} it" if distance else "to it"
    return f"; {named} points {place}"


def _where(code: HostedCode, pc: int, kernel: str) -> Location:
    """The application's place, also of its copy."""
    place = code_place(code.base + pc, [code])
    return Location(kernel, place.pc, place.text, place.lines, place.inserted)


def illegal_instruction(error: Malformed, pc: int, kernel: str, wave: FaultyWave | None = None) -> DeviceError:
    """A wave came to ``pc``, a device address, where nothing can be decoded; every wave, if ``wave`` is None."""
    what = error.message if wave is None else f"{wave}: {error.message}"
    return DeviceError(what, error.where or Location(kernel), DeviceFault(FaultKind.ILLEGAL_INSTRUCTION, pc))


_TRAPS = {  # AMDGPUUsage, "Trap Handler ABI"
    1: "a breakpoint, and no debugger is attached",
    2: "the program gives up here (llvm.trap: abort, __builtin_trap, a failed assert)",
}


def _trap(inst: Inst) -> str:
    """Why a program has such an instruction."""
    number = inst["simm16"].value
    return f"s_trap {number}: {_TRAPS.get(number, 'no trap handler answers this number')}"


def _fault(kind: Fault, pc: int, address: int, code: HostedCode) -> DeviceFault:
    inst = code.insts[pc]
    if kind is Fault.TRAP:
        return DeviceFault(FaultKind.TRAP, code.base + pc, trap=inst["simm16"].value)
    return DeviceFault(_KINDS[kind], code.base + pc, address, bool(inst.op.flags & _WRITES))


def _words(kind: Fault, address: int, inst: Inst, shape: Shape, memory: Memory) -> str:
    if kind is Fault.MISALIGNED and OpFlag.LDS in inst.op.flags:
        return f"misaligned LDS address 0x{address & 0xFFFFFFFF:x}; the work-group has {shape.lds_bytes} bytes"
    if kind is Fault.LDS:
        return f"LDS address 0x{address & 0xFFFFFFFF:x} is outside the work-group's {shape.lds_bytes} bytes"
    if kind is Fault.SCRATCH:
        return f"scratch address 0x{address & 0xFFFFFFFF:x} is outside the lane's {shape.scratch_bytes} bytes"
    if kind is Fault.SURFACE:
        return f"{_REFUSED[SurfaceRefusal(address)]}: manuals do not say what becomes of it"
    reason = {Fault.MISALIGNED: "misaligned address", Fault.READ_ONLY: "write to read-only memory at"}
    return f"{reason.get(kind, 'bad address')} 0x{address:x}; {memory.nearest(address)}"
