"""What a wave finds in scalar registers when its kernel starts: which values, and where each is.

In: a target and a kernel descriptor. Out: registers by value, and descriptors with more values enabled. Invariant: the
order is that of AMDGPUUsage, "Initial Kernel Execution State": user SGPRs from s0 on, then system SGPRs, each only
if it is enabled, without gaps but those that the count of user SGPRs leaves behind the last of them.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from luthier_py.base.errors import OutOfRegisters
from luthier_py.binary.loader.codeobject import KernelRecord
from luthier_py.binary.loader.descriptor import KernelDescriptor
from luthier_py.isa import Reg, sgpr
from luthier_py.isa.model.target import Target


class Initial(Enum):
    """A value that a wave may be started with: the descriptor's bit that enables it, and its dwords."""

    PRIVATE_SEGMENT_BUFFER = ("enable_sgpr_private_segment_buffer", 4)
    DISPATCH_PTR = ("enable_sgpr_dispatch_ptr", 2)
    QUEUE_PTR = ("enable_sgpr_queue_ptr", 2)
    KERNARG_SEGMENT_PTR = ("enable_sgpr_kernarg_segment_ptr", 2)
    DISPATCH_ID = ("enable_sgpr_dispatch_id", 2)
    FLAT_SCRATCH_INIT = ("enable_sgpr_flat_scratch_init", 2)
    PRIVATE_SEGMENT_SIZE = ("enable_sgpr_private_segment_size", 1)
    PRELOADED_KERNARGS = ("kernarg_preload_length", 0)
    WORKGROUP_ID_X = ("enable_sgpr_workgroup_id_x", 1)
    WORKGROUP_ID_Y = ("enable_sgpr_workgroup_id_y", 1)
    WORKGROUP_ID_Z = ("enable_sgpr_workgroup_id_z", 1)
    WORKGROUP_INFO = ("enable_sgpr_workgroup_info", 1)
    SCRATCH_WAVE_OFFSET = ("enable_private_segment", 1)

    @property
    def enabled_by(self) -> str:
        """The field of KernelDescriptor that is not 0 where waves start with this value."""
        return self.value[0]

    @property
    def dwords(self) -> int:
        """0 for preloaded arguments, of which the descriptor has the number."""
        return self.value[1]


_USER = tuple(Initial)[: tuple(Initial).index(Initial.WORKGROUP_ID_X)]
_GROUP_IDS = (Initial.WORKGROUP_ID_X, Initial.WORKGROUP_ID_Y, Initial.WORKGROUP_ID_Z)


def initial_places(target: Target, descriptor: KernelDescriptor) -> dict[Initial, Reg]:
    """Where each enabled value is; not those that come in other registers than SGPRs."""
    found: dict[Initial, Reg] = {}
    at = 0
    for value in Initial:
        if value is Initial.WORKGROUP_ID_X:
            at = max(at, user_sgpr_count(target, descriptor))
        dwords = _dwords(target, descriptor, value)
        if dwords:
            found[value] = sgpr(at, dwords)
        at += dwords
    return found


def initial_count(target: Target, descriptor: KernelDescriptor) -> int:
    """Scalar registers that hold something when a wave starts, those that nothing says the meaning of included."""
    system = [value for value in Initial if value not in _USER]
    return user_sgpr_count(target, descriptor) + sum(_dwords(target, descriptor, value) for value in system)


def with_initial(target: Target, descriptor: KernelDescriptor, wanted: Collection[Initial]) -> KernelDescriptor:
    """A copy with ``wanted`` enabled, too; OutOfRegisters if those are too many user SGPRs."""
    added = [value for value in wanted if not getattr(descriptor, value.enabled_by)]
    used = sum(_dwords(target, descriptor, value) or (value in added) * value.dwords for value in _USER)
    user = max(user_sgpr_count(target, descriptor), used)
    field = "user_sgpr_count_6_bits" if _six_bits(target) else "user_sgpr_count"
    if added and user > target.user_sgpr_limit:
        names = ", ".join(value.name.lower() for value in added if value in _USER)
        preloaded = descriptor.kernarg_preload_length
        raise OutOfRegisters(f"waves of this kernel would start with {user} user SGPRs, and there are at most "
                             f"{target.user_sgpr_limit}; hooks cannot be given {names} here" + (
                                 f": {preloaded} hold preloaded arguments; compile without these (-mllvm "
                                 "-amdgpu-kernarg-preload-count=0)" if preloaded else ""))
    return descriptor.replace(**{value.enabled_by: 1 for value in added}, **{field: user}) if added else descriptor


def start_of(target: Target, record: KernelRecord) -> int:
    """Where its waves start: behind the code that loads arguments, where these are preloaded (AMDGPUUsage, "Preloaded
    Kernel Arguments")."""
    return record.entry + target.preload_entry * bool(record.descriptor.kernarg_preload_length)


def user_sgpr_count(target: Target, descriptor: KernelDescriptor) -> int:
    """The count that the descriptor of a kernel for ``target`` has."""
    return descriptor.user_sgpr_count_6_bits if _six_bits(target) else descriptor.user_sgpr_count


def _six_bits(target: Target) -> bool:
    """Whether the count of user SGPRs has six bits."""
    return target.user_sgpr_limit > 16


def _dwords(target: Target, descriptor: KernelDescriptor, value: Initial) -> int:
    if value is Initial.PRELOADED_KERNARGS:
        return descriptor.kernarg_preload_length
    elsewhere = target.architected_sgprs if value in _GROUP_IDS else (
        target.architected_flat_scratch and value is Initial.SCRATCH_WAVE_OFFSET)
    return value.dwords if getattr(descriptor, value.enabled_by) and not elsewhere else 0
