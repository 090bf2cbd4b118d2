"""What a clone's descriptor and metadata say: what the original's do, with room for the registers that were added.

In: the loaded original and copy, the claim, and what is proved of its functions. Out: nothing, or CheckFailed.
Invariant: a wave has the registers that its code names and no more than are needed for that, rounded as hardware does;
as many waves run at once as a work-group of the kernel's largest size has, if that many did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.binary.loader import DESCRIPTOR_BYTES, MOST_STACK_BYTES, CodeObject, KernelDescriptor, KernelRecord
from luthier_py.isa import RegSet, Target
from luthier_py.proof.claim import Claim, ClonedFunction
from luthier_py.proof.hashes import make_failure
from luthier_py.proof.initial_state import USER_DWORDS, fields_of, six_bits, user_sgprs
from luthier_py.proof.preloads import loads_arguments
from luthier_py.proof.whole import Proved

_SIZES = ("granulated_workitem_vgpr_count", "granulated_wavefront_sgpr_count", "granulated_accum_offset")
_ENTRY_ALIGN = 256  # AMDGPUUsage, "Kernel Descriptor": of the entry, where it is loaded


def check_kernels(old: CodeObject, new: CodeObject, claim: Claim, proved: Mapping[int, Proved]) -> None:
    """CheckFailed unless the clone of each kernel has the original's descriptor and metadata, but for what it needs
    more. ``proved``: by the original's address."""
    calls = {address: each.callees for address, each in proved.items()}
    beside = {address: set(each.callees) for address, each in proved.items()}
    for address, callees in calls.items():
        for callee in callees:
            beside[callee].add(address)
    together: dict[int, RegSet] = {}  # by function: registers of all that share code with it
    for address in proved:
        if address not in together:
            group = _collect_reachable(beside, address)
            together |= dict.fromkeys(group, _collect_touched_registers(proved, group))
    functions = {function.original: function for function in claim.functions}
    for name, made in claim.kernels.items():
        record = old.kernel(name)
        function = functions.get(record.entry)
        if function is None or function.wave_size != _wave_size(old, record):
            raise CheckFailed("the claim has a kernel without its code", Location(name))
        symbol = new.symbol(function.symbol)
        assert symbol is not None
        used = _collect_touched_registers(proved, _collect_reachable(calls, record.entry))
        _check_kernel(old, new, record, made, symbol.address, used, together[record.entry], function)


def _collect_reachable(edges: Mapping[int, Collection[int]], start: int) -> set[int]:
    seen, work = {start}, [start]
    while work:
        new = set(edges[work.pop()]) - seen
        seen |= new
        work += new
    return seen


def _collect_touched_registers(proved: Mapping[int, Proved], functions: Iterable[int]) -> RegSet:
    return RegSet(reduce(or_, (proved[each].used.bits for each in functions)))


def _wave_size(obj: CodeObject, record: KernelRecord) -> int:
    small = record.descriptor.enable_wavefront_size32 and 32 in obj.target.wave_sizes
    return 32 if small else max(obj.target.wave_sizes)


def _check_kernel(
    old: CodeObject, new: CodeObject, record: KernelRecord, made: str, entry: int, used: RegSet, shared: RegSet,
    function: ClonedFunction,
) -> None:
    """``used``: registers that the clone and what it calls touch; ``shared``: all that share functions with it."""
    target, before = old.target, record.descriptor
    symbol = new.symbol(f"{made}.kd")
    if symbol is None or symbol.size != DESCRIPTOR_BYTES:
        raise make_failure("its clone has no descriptor", record.name)
    clone = new.kernel(made)
    after = clone.descriptor
    grown = {field: getattr(after, field) for field in (*_SIZES, "kernel_code_entry_byte_offset")}
    if loads_arguments(before, after):
        grown |= {"kernarg_preload_length": 0, "kernarg_preload_offset": 0}
    grown |= _compute_added_fields(target, record, after, function)
    grown |= _private(record, clone, function.private)
    if clone.entry != entry or before.replace(**grown).raw != after.raw:
        raise make_failure("the descriptor of its clone is another one", record.name)
    if entry % _ENTRY_ALIGN or symbol.address % DESCRIPTOR_BYTES:
        raise make_failure(f"its clone's entry is no multiple of {_ENTRY_ALIGN}, or its descriptor none of its size",
                     record.name)
    _check_least(target, record, clone, used)
    _check_most(target, record, clone, shared)
    _check_group(target, record, after)


def _compute_added_fields(
    target: Target, record: KernelRecord, after: KernelDescriptor, function: ClonedFunction
) -> dict[str, int]:
    """What waves start with beside what they were: what the tool keeps of it, all of it counted."""
    before, kept = record.descriptor, [name for name in function.locations if isinstance(name, str)]
    added = {field: 1 for field in fields_of(target, kept, bool(function.private)) if not getattr(before, field)}
    had, has = (user_sgprs(target, each) for each in (before, after))
    used = after.kernarg_preload_length + sum(
        dwords for field, dwords in USER_DWORDS.items() if getattr(after, field))
    if has != (max(had, used) if added else had) or has > max(had, target.user_sgpr_limit):
        raise make_failure("the descriptor of its clone counts other user SGPRs than it has", record.name)
    ids = {"enable_vgpr_workitem_id": 2} if "first_workitem" in kept else {}
    return added | ids | ({"user_sgpr_count_6_bits" if six_bits(target) else "user_sgpr_count": has} if added else {})


def _private(record: KernelRecord, clone: KernelRecord, private: range) -> dict[str, int]:
    """Private memory of the tool's, which is behind the application's."""
    before, key, grows = record.descriptor, ".private_segment_fixed_size", ".uses_dynamic_stack"
    if not private:
        for each in (key, grows):
            if clone.metadata.get(each) != record.metadata.get(each):
                raise make_failure(f"{each} in the metadata of its clone is another one", record.name)
        return {}
    own = before.private_segment_fixed_size
    if before.uses_dynamic_stack or record.metadata.get(grows):
        own += MOST_STACK_BYTES
    if private.start < own or clone.metadata.get(key) != private.stop or clone.metadata.get(grows):
        raise make_failure("the tool's private memory may be the application's", record.name)
    return {"private_segment_fixed_size": private.stop, "enable_private_segment": 1, "uses_dynamic_stack": 0}


def _count_registers(target: Target, used: RegSet) -> tuple[int, int, int]:
    """SGPRs with those that VCC and others take, VGPRs, AGPRs."""
    sgprs = (used.sgpr & (1 << target.sgpr_limit) - 1).bit_length() + target.extra_sgprs
    return sgprs, used.vgpr.bit_length(), used.agpr.bit_length()


def _check_least(target: Target, record: KernelRecord, clone: KernelRecord, used: RegSet) -> None:
    sgprs, vgprs, agprs = _count_registers(target, used)
    had, room = [(each.sgpr_count(target), each.arch_vgpr_count(target), each.agpr_count(target))
                 for each in (record.descriptor, clone.descriptor)]
    needs = (sgprs if target.generation < 10 else 0, vgprs, agprs)
    if any(have < max(need, own if k != 2 or agprs else 0)
           for k, (have, need, own) in enumerate(zip(room, needs, had, strict=True))):
        raise make_failure("the descriptor of its clone has too few registers", record.name)
    shares = target.generation in (10, 11) and record.descriptor.wave_size == 64 and record.descriptor.shared_vgpr_count
    if shares and room[1] != had[1]:
        raise make_failure("both halves of its waves share registers, whose numbers are others in its clone",
                           record.name)
    if clone.descriptor.count_addressable_vgprs(target) < max(vgprs, agprs):
        raise make_failure("the descriptor of its clone counts fewer vector registers than its code names", record.name)
    for key, need in ((".sgpr_count", sgprs), (".vgpr_count", max(vgprs, agprs))):
        if isinstance(record.metadata.get(key), int) and clone.metadata.get(key, 0) < need:
            raise make_failure(f"{key} in the metadata of its clone is too small", record.name)


def _check_most(target: Target, record: KernelRecord, clone: KernelRecord, used: RegSet) -> None:
    before, after = record.descriptor, clone.descriptor
    sgprs, vgprs, agprs = _count_registers(target, used)
    total, most = max(vgprs, agprs), before
    if target.unified_agprs and vgprs > before.accum_offset:
        most = most.with_accum_offset(vgprs)
    if target.unified_agprs and agprs:
        total = most.accum_offset + max(before.agpr_count(target), agprs)
    most = most.with_vgpr_count(target, total).with_sgpr_count(target, sgprs)
    if any(getattr(after, field) > max(getattr(before, field), getattr(most, field)) for field in _SIZES):
        raise make_failure("the descriptor of its clone has more registers than it needs", record.name)
    for key, need in ((".sgpr_count", sgprs), (".vgpr_count", total), (".agpr_count", agprs)):
        had = record.metadata.get(key)
        if isinstance(had, int) and clone.metadata.get(key, 0) > max(had, need):
            raise make_failure(f"{key} in the metadata of its clone is too large", record.name)


def _check_group(target: Target, record: KernelRecord, after: KernelDescriptor) -> None:
    had, has = (target.waves_for(each.vgpr_count(target), each.sgpr_count(target), wave_size=each.wave_size)
                for each in (record.descriptor, after))
    if has < min(had, target.waves_of_group(record.max_workitems, after.wave_size, bool(after.wgp_mode))):
        raise make_failure(f"its clone has no room for a work-group of {record.max_workitems}", record.name)
