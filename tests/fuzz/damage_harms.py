"""Classes of harmful insertion: what a wrong pass, a wrong compiler or a wrong hook could put beside the application.

In: a Copy, a random.Random. Out: Damaged, or None where the target or the kernel has no such thing. Invariant: HARMS
are all of them by name. INSERTED are lines of assembly, with registers of the application, that are put into inserted
code, and claimed as that; OTHERS damage what links the copy to the outside.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

from damage_bytes import DESCRIPTOR_FIELDS, Damage, aims, number_in_metadata, wait, with_descriptor_field
from damage_copy import Copy, Damaged, Line, next_own

from luthier_py.base.errors import LuthierError
from luthier_py.isa import InstructionSet, OpFlag, RegFile

# Each class: spellings, of which one is taken that the target has; ";" stands between instructions. Registers: s, t
# single, ss, tt pairs, ssss four, of scalars; v, w, vv and a of vectors.
INSERTED: dict[str, tuple[str, ...]] = {
    # state of the wave
    "MODE from a register": ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), {s}", "s_setreg_b32 hwreg(HW_REG_MODE), {s}",
                             "s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), {s}"),
    "another rounding": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5",
                         "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 15",
                         "s_round_mode 0x3"),
    "denormals flushed": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0", "s_denorm_mode 0x0"),
    "another hardware register": ("s_setreg_b32 hwreg(HW_REG_TRAPSTS), {s}", "s_setreg_b32 hwreg(HW_REG_STATUS), {s}",
                                  "s_setreg_b32 hwreg(HW_REG_WAVE_STATUS), {s}"),
    "s_setvskip": ("s_setvskip -1, 0", "s_setvskip {s}, 0"),
    "index mode": ("s_set_gpr_idx_on {s}, gpr_idx(SRC0,DST)", "s_set_gpr_idx_mode gpr_idx(SRC0,DST)",
                   "s_set_gpr_idx_on 1, gpr_idx(SRC0,SRC1,SRC2,DST)", "s_set_gpr_idx_idx {s}", "s_set_vgpr_msb 1"),
    "s_setprio": ("s_setprio 3",),
    "s_sethalt": ("s_sethalt 1",),
    "s_trap": ("s_trap 2", "s_trap 3"),
    "s_sendmsg": ("s_sendmsg sendmsg(MSG_INTERRUPT)", "s_sendmsghalt sendmsg(MSG_INTERRUPT)",
                  "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"),
    "s_setkill": ("s_setkill 1",),
    # control
    "an early end": ("s_endpgm", "s_endpgm_saved"),
    "s_barrier": ("s_barrier", "s_barrier_wait -1", "s_barrier_signal -1; s_barrier_wait -1"),
    "s_sleep": ("s_sleep 1",),
    "an endless loop": ("s_branch 65535", "s_nop 0; s_branch 65534"),
    "a loop while SCC": ("s_cbranch_scc1 65535", "s_cbranch_scc0 65535", "s_cbranch_execnz 65535"),
    "code once more": ("s_cbranch_scc1 {back}", "s_cbranch_scc0 {back}"),
    "a branch over the next instruction": ("s_branch {over}", "s_cbranch_scc0 {over}", "s_cbranch_execnz {over}"),
    "a branch to another block": ("s_branch {astray}", "s_cbranch_vccnz {astray}", "s_cbranch_vccz {astray}"),
    "a jump through a register": ("s_setpc_b64 {ss}",),
    "a call": ("s_swappc_b64 {ss}, {tt}", "s_call_b64 {ss}, {over}", "s_call_b64 {ss}, {astray}"),
    # memory
    "a store to LDS": ("ds_write_b32 {v}, {w}", "ds_write_b64 {v}, {vv}", "ds_store_b32 {v}, {w}",
                       "ds_store_b64 {v}, {vv}"),
    "an atomic in LDS": ("ds_add_u32 {v}, {w}", "ds_max_rtn_u32 {w}, {v}, {w}"),
    "a count in LDS": ("ds_append {v}", "ds_consume {v}"),
    "a global store": ("global_store_dword {vv}, {w}, off", "global_store_dword {v}, {w}, {ss}",
                       "global_store_byte {vv}, {w}, off", "global_store_b32 {vv}, {w}, off",
                       "global_store_b32 {v}, {w}, {ss}", "global_store_b8 {vv}, {w}, off"),
    "a flat store": ("flat_store_dword {vv}, {w}", "flat_store_b32 {vv}, {w}"),
    "a buffer store": ("buffer_store_dword {v}, off, {ssss}, 0", "buffer_store_dword {v}, {w}, {ssss}, 0 offen",
                       "buffer_store_dword {v}, off, {ssss}, null", "buffer_store_b32 {v}, off, {ssss}, 0",
                       "buffer_store_b32 {v}, off, {ssss}, null"),
    "a scratch store": ("scratch_store_dword off, {v}, {s}", "scratch_store_dword {v}, {w}, off",
                        "scratch_store_b32 off, {v}, {s}", "scratch_store_b32 {v}, {w}, off"),
    "a scalar store": ("s_store_dword {s}, {ss}, 0x0", "s_store_dwordx2 {ss}, {tt}, 0x8"),
    "a global atomic": ("global_atomic_add {vv}, {w}, off", "global_atomic_add_u32 {vv}, {w}, off",
                        "global_atomic_swap {vv}, {w}, off"),
    "a flat atomic": ("flat_atomic_add {vv}, {w}", "flat_atomic_add_u32 {vv}, {w}"),
    "a buffer atomic": ("buffer_atomic_add {v}, off, {ssss}, 0", "buffer_atomic_add_u32 {v}, off, {ssss}, null"),
    "a load into the application's vectors": ("global_load_dword {v}, {vv}, off", "ds_read_b32 {v}, {w}",
                                              "flat_load_dword {v}, {vv}", "global_load_b32 {v}, {vv}, off",
                                              "ds_load_b32 {v}, {w}", "flat_load_b32 {v}, {vv}"),
    "a load into the application's scalars": ("s_load_dword {s}, {ss}, 0x0", "s_load_dwordx2 {ss}, {tt}, 0x0",
                                              "s_load_b32 {s}, {ss}, 0x0", "s_load_b64 {ss}, {tt}, 0x0"),
    "a load from nowhere": ("s_load_dword {s}, exec, 0x0", "flat_load_dword {v}, {vv}; s_waitcnt 0",
                            "global_load_dword {v}, {vv}, off offset:1024", "s_load_b32 {s}, exec, 0x0",
                            "global_load_b32 {v}, {vv}, off offset:1024"),
    # registers
    "SCC": ("s_cmp_eq_u32 {s}, {t}", "s_cmp_lg_u32 0, 0", "s_cmp_eq_u32 0, 0"),
    "VCC": ("s_mov_b64 vcc, {ss}", "s_mov_b32 vcc_lo, {s}", "v_cmp_lt_u32_e32 vcc, {v}, {w}",
            "v_cmp_lt_u32_e32 vcc_lo, {v}, {w}",
            "v_add_co_u32_e32 {v}, vcc, {v}, {w}", "s_not_b64 vcc, vcc", "s_mov_b32 vcc_hi, {s}"),
    "M0": ("s_mov_b32 m0, {s}", "s_mov_b32 m0, -1", "s_add_u32 m0, m0, 1"),
    "FLAT_SCRATCH": ("s_mov_b32 flat_scratch_lo, {s}", "s_mov_b64 flat_scratch, 0"),
    "XNACK_MASK": ("s_mov_b32 xnack_mask_lo, {s}", "s_mov_b64 xnack_mask, 0"),
    "EXEC narrowed": (
        "s_and_b64 exec, exec, {ss}", "s_mov_b64 exec, 1", "s_lshr_b64 exec, exec, 1", "s_mov_b64 exec, 0",
        "s_and_b32 exec_lo, exec_lo, {s}", "s_and_saveexec_b64 {ss}, {tt}", "s_mov_b32 exec_hi, 0",
        "v_cmpx_lt_u32_e32 {v}, {w}", "v_cmpx_lt_u32_e32 vcc, {v}, {w}"),
    "EXEC widened": ("s_mov_b64 exec, -1", "s_not_b64 exec, exec", "s_mov_b32 exec_lo, -1",
                     "s_or_b64 exec, exec, {ss}"),
    "a scalar register": ("s_mov_b32 {s}, 0", "s_mov_b64 {ss}, {tt}", "s_not_b32 {s}, {s}",
                          "v_readfirstlane_b32 {s}, {v}",
                          "s_movreld_b32 {s}, {t}"),
    "a vector register": ("v_mov_b32 {v}, {w}", "v_not_b32 {v}, {v}", "v_swap_b32 {v}, {w}", "v_mov_b32 {v}, 0"),
    "a lane of a vector register": ("v_writelane_b32 {v}, {s}, 3", "v_writelane_b32 {v}, {s}, 0",
                                     "v_writelane_b32 {v}, {s}, m0"),
    "a vector register in all lanes": (
        "s_or_saveexec_b64 {ss}, -1; v_not_b32 {v}, {v}; s_mov_b64 exec, {ss}",
        "s_not_b64 exec, exec; v_mov_b32 {v}, 0; s_not_b64 exec, exec",
        "s_not_b32 exec_lo, exec_lo; v_mov_b32 {v}, 0; s_not_b32 exec_lo, exec_lo"),
    "an accumulator": ("v_accvgpr_write_b32 {a}, {v}", "v_accvgpr_write_b32 {a}, 0"),
    "a register that a load still owes": ("v_mov_b32 {pending}, 0",),
}


def inserted(spellings: tuple[str, ...], copy: Copy, rng: random.Random) -> Damaged | None:
    """One of the spellings, somewhere in inserted code or where that ends."""
    line = _somewhere(copy, rng)
    text = rng.choice(spellings)
    code = _code(copy, line, text, rng)
    return None if code is None else copy.with_code(line, code)


def _somewhere(copy: Copy, rng: random.Random) -> Line:
    """An inserted instruction, or the one behind."""
    lines = [line for before, line in zip(copy.lines, copy.lines[1:], strict=False)
             if not line.own or not before.own and before.clone == line.clone]
    return rng.choice(lines)


def _code(copy: Copy, line: Line, text: str, rng: random.Random) -> bytes | None:
    chosen = registers(copy, line, rng)
    if chosen is None:
        return None
    try:
        return assembled(copy.isa, text.format(**chosen))
    except (LuthierError, KeyError):
        return None


@cache
def assembled(isa: InstructionSet, text: str) -> bytes | None:
    """None where the target has no such instruction, or not with these registers."""
    try:
        return b"".join(isa.parse(each.strip()).raw for each in text.split(";"))
    except LuthierError:
        return None


def registers(copy: Copy, line: Line, rng: random.Random) -> dict[str, str] | None:
    """Some that the application uses, and distances to its instructions."""
    scalars, vectors = _used(copy)
    if not scalars or not vectors:
        return None
    s, t, v, w = rng.choice(scalars), rng.choice(scalars), rng.choice(vectors), rng.choice(vectors)
    pair = lambda kind, first: f"{kind}[{first & ~1}:{first | 1}]"  # noqa: E731
    found = {"s": f"s{s}", "t": f"s{t}", "ss": pair("s", s), "tt": pair("s", t), "v": f"v{v}", "w": f"v{w}",
             "vv": pair("v", v), "ssss": f"s[{s & ~3}:{s | 3}]", "a": f"a{rng.randrange(2)}"}
    found |= _distances(copy, line, rng)
    pending = _owed(copy, line)
    return found | ({"pending": f"v{pending}"} if pending is not None else {})


@cache
def _used(copy: Copy) -> tuple[list[int], list[int]]:
    regs = {o.reg for line in copy.own for o in line.inst.operands if o.reg is not None}
    indices = lambda file, most: sorted({r.index + i for r in regs if r.file is file  # noqa: E731
                                         for i in range(r.dwords) if r.index + i < most})
    return indices(RegFile.SGPR, 100), indices(RegFile.VGPR, 256)


def _distances(copy: Copy, line: Line, rng: random.Random) -> dict[str, str]:
    """From behind one dword before the line, which moves what is behind it by that dword."""
    lines = [each for each in copy.own if each.clone == line.clone]
    here = line.offset + 4
    next_line = next_own(copy.lines, line)
    over = next_line.offset + next_line.inst.size_bytes + 4 if next_line else here
    before = [each.offset for each in lines if each.offset < line.offset]
    back = before[-min(len(before), rng.randrange(1, 6))] if before else line.offset
    goal = rng.choice(lines).offset
    astray = goal if goal <= line.offset else goal + 4
    goals = {"over": over, "back": back, "astray": astray}
    return {name: str((to - here) // 4 % (1 << 16)) for name, to in goals.items()}


def _owed(copy: Copy, line: Line) -> int | None:
    """A vector register of the last load before the line with no wait between."""
    for each in reversed([each for each in copy.lines if each.clone == line.clone and each.offset < line.offset]):
        if each.inst.op.flags & (OpFlag.WAIT | OpFlag.BRANCH):
            return None
        loaded = each.inst.find("vdst") if each.own and each.inst.op.flags & (OpFlag.VMEM | OpFlag.LDS) else None
        if loaded is not None and loaded.reg is not None:
            return loaded.reg.index
    return None


def _wrong_pair(copy: Copy, rng: random.Random) -> Damaged | None:
    """A call leaves its return address elsewhere, or a return looks elsewhere."""
    lines = [line for line in copy.lines if line.inst.op.base in ("S_SWAPPC_B64", "S_SETPC_B64", "S_CALL_B64")]
    if not lines:
        return None
    line = rng.choice(lines)
    name = "sdst" if line.inst.find("sdst") else "src0"
    new = copy.isa.with_registers(
        line.inst, lambda o: 0 if o.reg is None else o.reg.index + (2 if o.name == name else 0))
    return copy.with_bytes(line.at, new.raw)


def _wrong_block(copy: Copy, rng: random.Random) -> Damaged | None:
    """A branch of the application goes to some other instruction of it."""
    lines = [line for line in copy.own if aims(line.inst)]
    if not lines:
        return None
    line = rng.choice(lines)
    goal = rng.choice([each for each in copy.own if each.clone == line.clone])
    name = aims(line.inst)
    assert name is not None
    return copy.with_bytes(line.at, copy.isa.with_field(line.inst, name, (goal.offset - line.offset - 4) // 4).raw)


def _off_by_one(copy: Copy, rng: random.Random) -> Damaged | None:
    """An address that a chain behind s_getpc builds is of the neighbouring instruction."""
    after = [b for a, b in zip(copy.lines, copy.lines[1:], strict=False)
             if a.inst.op.base == "S_GETPC_B64" and b.inst.literal is not None]
    if not after:
        return None
    line = rng.choice(after)
    at = line.at + line.inst.size_bytes - 4
    value = int.from_bytes(copy.data[at : at + 4], "little") + rng.choice((-4, 4))
    return copy.with_bytes(at, (value % (1 << 32)).to_bytes(4, "little"))


def _descriptor(chosen: Callable[[str], bool], copy: Copy, rng: random.Random) -> Damaged | None:
    kernel = copy.linked.kernel(copy.subject.clone)
    field = rng.choice(list(filter(chosen, DESCRIPTOR_FIELDS)))
    return with_descriptor_field(copy, copy.at(kernel.descriptor_address), field, rng)


def _named(*words: str) -> Callable[[str], bool]:
    return lambda name: any(word in name for word in words)


OTHERS: dict[str, Damage] = {
    "a wait weakened": lambda copy, rng: wait(rng.random() < 0.5, copy, rng),
    "a return address in the wrong pair": _wrong_pair,
    "a branch of the application to the wrong block": _wrong_block,
    "an address one instruction off": _off_by_one,
    "the descriptor: registers and what a wave begins with": partial(
        _descriptor, _named("enable_", "granulated", "count", "accum")),
    "the descriptor: float mode, priority, privilege": partial(
        _descriptor, _named("float", "ieee", "clamp", "priv", "priority", "debug")),
    "the descriptor: sizes of LDS, scratch, kernel arguments": partial(_descriptor, _named("size", "preload")),
    "the descriptor: wave size and entry": partial(_descriptor, _named("wavefront_size32", "entry")),
    "the metadata: sizes and counts": partial(
        number_in_metadata,
        (".kernarg_segment_size", ".group_segment_fixed_size", ".private_segment_fixed_size", ".wavefront_size",
         ".vgpr_count", ".sgpr_count", ".max_flat_workgroup_size")),
}
HARMS: dict[str, Damage] = {name: partial(inserted, spellings) for name, spellings in INSERTED.items()} | OTHERS
