"""Random sequences of instructions as LLVM's machine IR, and what its hazard recogniser inserts into them.

In: a target, a wave size and a random generator. Out: sequences as MIR lines; through llc, the instructions that they
are, with and without what LLVM inserts. The registers are few, so that most sequences have something in common.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence

from luthier_py.isa import Inst, InstructionSet
from luthier_py.isa.model.target import Target

PASSES = "post-RA-hazard-rec"
LINE = re.compile(r"\t([a-z]\w+(?:[ \t].*?)?)\s*(?:;.*)?$")
Where = Callable[[Target], bool]


def always(target: Target) -> bool:
    return True


def gfx9(target: Target) -> bool:
    return target.generation == 9


def gfx9_on(target: Target) -> bool:
    return target.generation >= 9


def before_gfx10(target: Target) -> bool:
    return target.generation < 10


def gfx10(target: Target) -> bool:
    return target.generation == 10


def gfx10_on(target: Target) -> bool:
    return target.generation >= 10


def before_gfx12(target: Target) -> bool:
    return target.generation < 12


def gfx12(target: Target) -> bool:
    return target.generation == 12


def agprs(target: Target) -> bool:
    return target.has_agprs


def gfx90a_on(target: Target) -> bool:
    return target.unified_agprs


def gfx950(target: Target) -> bool:
    return (target.generation, target.minor, target.sc_cache_bits) == (9, 5, True)


def depctr(target: Target) -> bool:
    """Where the recogniser does not merge waits that are there with its own."""
    return target.generation == 10


# {s} {t} {u}: SGPRs; {S} {T}: pairs of them; {Q}: four; {v} {w} {x}: VGPRs; {V}: pair; {W}: four; {A} {B}: four AGPRs;
# {m}: a lane mask in SGPRs; {vcc} {exec}: of the wave size; {w32}: 32 or 64.
TEMPLATES: tuple[tuple[str, Where], ...] = (
    ("$vgpr{v} = V_MOV_B32_e32 $vgpr{w}, implicit $exec", always),
    ("$vgpr{v} = V_MOV_B32_e32 $sgpr{s}, implicit $exec", always),
    ("$vgpr{v} = V_ADD_F32_e32 $vgpr{w}, $vgpr{x}, implicit $mode, implicit $exec", always),
    ("$vgpr{v} = V_ADD_F32_e32 $sgpr{s}, $vgpr{x}, implicit $mode, implicit $exec", always),
    ("$vgpr{v} = V_EXP_F32_e32 $vgpr{w}, implicit $mode, implicit $exec", always),
    ("$sgpr{s} = V_READFIRSTLANE_B32 $vgpr{v}, implicit $exec", always),
    ("$sgpr{s} = V_READLANE_B32 $vgpr{v}, $sgpr{t}", always),
    ("$vgpr{v} = V_WRITELANE_B32 $sgpr{s}, 3, $vgpr{v}", always),
    ("V_CMP_EQ_U32_e32 $vgpr{v}, $vgpr{w}, implicit-def $vcc, implicit $exec", always),
    ("{m} = V_CMP_EQ_U32_e64 $vgpr{v}, $vgpr{w}, implicit $exec", always),
    ("V_CMPX_EQ_U32_e32 $vgpr{v}, $vgpr{w}, implicit-def $exec, implicit-def $vcc, implicit $exec", before_gfx10),
    ("V_CMPX_EQ_U32_nosdst_e32 $vgpr{v}, $vgpr{w}, implicit-def $exec, implicit $exec", gfx10_on),
    ("$vgpr{v} = V_CNDMASK_B32_e32 $vgpr{w}, $vgpr{x}, implicit $exec, implicit $vcc", always),
    ("$vgpr{v} = V_CNDMASK_B32_e64 0, $vgpr{w}, 0, $vgpr{x}, {m}, implicit $exec", always),
    ("$vgpr{v} = V_DIV_FMAS_F32_e64 0, $vgpr{v}, 0, $vgpr{w}, 0, $vgpr{x}, 0, 0, implicit $mode, implicit $vcc, "
     "implicit $exec", always),
    ("$vgpr{v} = V_MOV_B32_dpp $vgpr{v}, $vgpr{w}, 0, 15, 15, 0, implicit $exec", always),
    ("$vgpr{v} = V_ADD_U32_sdwa 0, $vgpr{w}, 0, $vgpr{x}, 0, 1, 0, 6, 6, implicit $exec", gfx9),
    ("$vgpr{v}, $vgpr{w} = V_PERMLANE32_SWAP_B32_e32 $vgpr{v}, $vgpr{w}, implicit $exec", gfx950),
    ("$vgpr{v} = V_PERMLANE16_B32_e64 0, $vgpr{w}, 0, $sgpr{s}, 0, $sgpr{t}, $vgpr{v}, 0, implicit $exec", gfx10_on),
    ("V_NOP_e32 implicit $exec", gfx10_on),
    ("$sgpr{s} = S_MOV_B32 0", always),
    ("$sgpr{s} = S_MOV_B32 $sgpr{t}", always),
    ("{S} = S_MOV_B64 {T}", always),
    ("$sgpr{s} = S_ADD_U32 $sgpr{t}, 1, implicit-def $scc", always),
    ("{vcc} = S_MOV_B{w32} 0", always),
    ("{exec} = S_MOV_B{w32} -1", always),
    ("$m0 = S_MOV_B32 0", always),
    ("S_SENDMSG 3, implicit $exec, implicit $m0", before_gfx10),
    ("S_SETREG_IMM32_B32 5, 4097, implicit-def $mode, implicit $mode", before_gfx12),
    ("$sgpr{s} = S_GETREG_B32 4097, implicit $mode", before_gfx12),
    ("S_DENORM_MODE 3, implicit-def $mode, implicit $mode", gfx10_on),
    ("$sgpr{s} = S_LOAD_DWORD_IMM {S}, 0, 0", always),
    ("$vgpr{v} = GLOBAL_LOAD_DWORD_SADDR {S}, $vgpr{w}, 0, 0, implicit $exec", gfx9_on),
    ("GLOBAL_STORE_DWORD_SADDR $vgpr{v}, $vgpr{w}, {S}, 0, 0, implicit $exec", gfx9_on),
    ("GLOBAL_ATOMIC_FMIN_SADDR $vgpr{v}, $vgpr{w}, {S}, 0, 0, implicit $exec", gfx10),
    ("GLOBAL_STORE_DWORDX4 {V}, {W}, 0, 0, implicit $exec", gfx9_on),
    ("$vgpr{v} = BUFFER_LOAD_DWORD_OFFSET {Q}, 0, 0, 0, 0, implicit $exec", before_gfx12),
    ("$vgpr{v} = BUFFER_LOAD_DWORD_VBUFFER_OFFSET {Q}, $sgpr_null, 0, 0, 0, implicit $exec", gfx12),
    ("$vgpr{v} = DS_READ_B32_gfx9 $vgpr{w}, 0, 0, implicit $exec", gfx9_on),
    ("DS_WRITE_B32_gfx9 $vgpr{v}, $vgpr{w}, 0, 0, implicit $exec", gfx9_on),
    ("S_NOP 0", before_gfx10),
    ("S_WAITCNT 0", before_gfx12),
    ("S_WAITCNT_DEPCTR 65507", depctr),
    ("S_WAITCNT_DEPCTR 65534", depctr),
    ("{A} = V_MFMA_F32_4X4X1F32_e64 $vgpr{v}, $vgpr{w}, {A}, 0, 0, 0, implicit $mode, implicit $exec", agprs),
    ("{A} = V_MFMA_F32_4X4X1F32_e64 $vgpr{v}, $vgpr{w}, {B}, 0, 0, 0, implicit $mode, implicit $exec", agprs),
    ("{A} = V_MFMA_F32_16X16X4F32_e64 $vgpr{v}, $vgpr{w}, {A}, 0, 0, 0, implicit $mode, implicit $exec", agprs),
    ("{A} = V_MFMA_F32_16X16X4F32_e64 $vgpr{v}, $vgpr{w}, {B}, 0, 0, 0, implicit $mode, implicit $exec", agprs),
    ("$vgpr{v} = V_ACCVGPR_READ_B32_e64 $agpr{a}, implicit $exec", agprs),
    ("$agpr{a} = V_ACCVGPR_WRITE_B32_e64 $vgpr{v}, implicit $exec", agprs),
    ("{W} = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr{v}, $vgpr{w}, {W}, 0, 0, 0, implicit $mode, implicit $exec",
     gfx90a_on),
    ("$vgpr{v} = V_DOT2_F32_F16 8, $vgpr{w}, 8, $vgpr{x}, 8, $vgpr{v}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
     agprs),
    ("{V} = V_FMA_F64_e64 0, {V}, 0, {V}, 0, {V}, 0, 0, implicit $mode, implicit $exec", gfx90a_on),
    ("{A2} = V_MFMA_F64_4X4X4F64_e64 {V}, {V}, {A2}, 0, 0, 0, implicit $mode, implicit $exec", gfx90a_on),
)


def draw(chance: random.Random, target: Target, wave_size: int) -> str:
    """One instruction."""
    usable = [text for text, where in TEMPLATES if where(target)]
    text = chance.choice(usable)
    s, t = chance.sample(range(4, 10), 2)
    v, w, x = (chance.randrange(6) for _ in range(3))
    pairs = [chance.choice((4, 6, 8)) for _ in range(3)]
    a, b = chance.choice(((0, 4), (0, 2), (4, 0), (8, 0)))
    quad, pair = chance.choice((0, 8)), chance.choice((0, 2, 4))
    mask = _tuple("sgpr", pairs[2], 2) if wave_size == 64 else f"$sgpr{t}"
    return text.format(
        s=s, t=t, v=v, w=w, x=x, a=chance.randrange(4), S=_tuple("sgpr", pairs[0], 2), T=_tuple("sgpr", pairs[1], 2),
        Q=_tuple("sgpr", chance.choice((4, 8)), 4), V=_tuple("vgpr", pair, 2), W=_tuple("vgpr", quad, 4),
        A=_tuple("agpr", a, 4), B=_tuple("agpr", b, 4), A2=_tuple("agpr", chance.choice((0, 2)), 2), m=mask,
        vcc="$vcc" if wave_size == 64 else "$vcc_lo", exec="$exec" if wave_size == 64 else "$exec_lo", w32=wave_size)


def _tuple(file: str, first: int, count: int) -> str:
    return "$" + "_".join(f"{file}{first + k}" for k in range(count))


def module(sequences: Sequence[Sequence[str]]) -> str:
    """A MIR file with a kernel for each sequence."""
    kernels = "".join(f"  define amdgpu_kernel void @f{k}() {{ unreachable }}\n" for k in range(len(sequences)))
    bodies = "".join(
        f"---\nname: f{k}\ntracksRegLiveness: false\nbody: |\n  bb.0:\n"
        + "".join(f"    {line}\n" for line in sequence) + "    S_ENDPGM 0\n...\n"
        for k, sequence in enumerate(sequences))
    return f"--- |\n{kernels}...\n{bodies}"


def through_llc(llc: str, isa: InstructionSet, sequences: Sequence[Sequence[str]], recognise: bool) -> list[list[Inst]]:
    """The instructions that the sequences are; with ``recognise``, and what LLVM inserts."""
    start = f"-start-before={PASSES}" if recognise else "-start-before=branch-relaxation"
    size = [f"-mattr=+wavefrontsize{isa.wave_size}"] if isa.target.generation >= 10 else []
    command = [llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={isa.target.name}", *size, start, "-x", "mir", "-", "-o", "-",
               "-amdgpu-enable-delay-alu=0", "-amdgpu-sgpr-hazard-wait=1"]
    made = subprocess.run(command, input=module(sequences), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return [instructions for _, instructions in sorted(_functions(isa, made.stdout.splitlines()))]


def _functions(isa: InstructionSet, lines: Iterable[str]) -> Iterable[tuple[int, list[Inst]]]:
    number, found = -1, list[Inst]()
    for line in lines:
        if (label := re.match(r"f(\d+):", line)) is not None:
            number, found = int(label.group(1)), []
        elif number >= 0 and (text := LINE.match(line)) is not None:
            inst = isa.parse(text.group(1))
            if inst.op.base == "S_ENDPGM":
                yield number, found
                number = -1
            else:
                found.append(inst)


def as_mir(inst: Inst) -> str:
    """An instruction that cures a hazard."""
    base = inst.op.base
    if base in ("S_WAITCNT_DEPCTR", "S_NOP"):
        return f"{base} {inst['simm16'].value & 0xFFFF}"
    if base == "S_WAITCNT_VSCNT":
        return f"S_WAITCNT_VSCNT $sgpr_null, {inst['simm16'].value & 0xFFFF}"
    if base == "V_MOV_B32":
        return f"${inst['vdst'].reg} = V_MOV_B32_e32 ${inst['src0'].reg}, implicit $exec".replace("$v", "$vgpr")
    return {"V_NOP": "V_NOP_e32 implicit $exec", "S_MOV_B32": "$sgpr_null = S_MOV_B32 0"}[base]


class Merged(Exception):
    """LLVM changed an instruction that was there: it takes what it would insert, and a wait before that, together."""


def inserted(plain: Sequence[Inst], full: Sequence[Inst]) -> list[list[Inst]]:
    """What stands in ``full`` before each instruction of ``plain``, and at the end."""
    found: list[list[Inst]] = [[]]
    left = iter(plain)
    following = next(left, None)
    for inst in full:
        if following is not None and inst.raw == following.raw:
            found.append([])
            following = next(left, None)
        else:
            found[-1].append(inst)
    if following is not None:
        raise Merged
    return found
