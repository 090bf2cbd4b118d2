"""Waves that give their vector registers back before they end, change how many they have, or ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled, left_by

from luthier_py import Lane, Mutator, Tool, Variable, array, hook, ptr, u32
from luthier_py.base.errors import CheckFailed, DeviceError, FaultKind, Unsupported
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import instruction_set, target, vgpr
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.rewrite.inject import apply, clauses
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

GPUS = ("gfx1100", "gfx1201")
WAIT = {"gfx1100": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_kmcnt 0x0", "gfx1250": "s_wait_kmcnt 0x0"}
WORK = """s_load_b64 s[2:3], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_add_nc_u32 v2, 7, v0
{wait}
global_store_b32 v1, v2, s[2:3]
"""
GIVE = "s_nop 0\ns_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n"
ENDS = {
    "at the end": GIVE + "s_endpgm",
    "before scalar code": GIVE + "s_mov_b32 s4, 5\ns_endpgm",
    "on one way": f"s_cmp_eq_u32 s2, s3\ns_cbranch_scc1 end\n{GIVE}end:\ns_endpgm",
    "behind a branch": f"s_cmp_eq_u32 s2, s3\ns_cbranch_scc1 end\ns_nop 0\nend:\n{GIVE}s_endpgm",
    "before a branch": f"{GIVE}s_branch end\ns_nop 5\nend:\ns_endpgm",
    "twice": f"s_cmp_eq_u32 s2, s3\ns_cbranch_scc1 other\n{GIVE}s_endpgm\nother:\n{GIVE}s_endpgm",
}


class Everywhere(Tool):
    """In each lane that is active, at each instruction and at the end."""

    rows = Variable(u32, 64)

    @hook
    def count(rows: ptr[u32]) -> None:
        atomic_add(rows + lane_id(), u32(1))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                m.before(instr, self.count, self.rows)
        for kernel in m.kernels:
            m.at_exit(kernel, self.count, self.rows)


class Begin(Tool):
    rows = Variable(u32, 64)

    @hook
    def add(rows: ptr[u32], x: Lane[u32]) -> None:
        atomic_add(rows + lane_id(), x)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.add, self.rows, vgpr(0))


@pytest.fixture
def kernel(require_tool: Callable[[str], str], tmp_path: Path) -> Callable[..., bytes]:
    def made(gpu: str, end: str, **options: int) -> bytes:
        body = WORK.format(wait=WAIT[gpu]) + end
        return assembled(require_tool("clang-22"), tmp_path, gpu, body, **options)
    return made


def stands(data: bytes, gpu: str) -> int:
    """How many messages are in the copy's kernel."""
    obj, isa = load(data), instruction_set(target(gpu), 32)
    symbol = obj.symbol("k.luthier")
    code, at, found = obj.read(symbol.address, symbol.size), 0, 0
    while at < len(code):
        inst = isa.decode(code, at)
        found, at = found + gives_back_vectors(inst, isa.target), at + inst.size_bytes
    return found


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("gpu", GPUS)
def test_hooks_have_vector_registers_up_to_the_end(kernel: Callable[..., bytes], gpu: str, end: str) -> None:
    data = kernel(gpu, ENDS[end])
    before = left_by(data, gpu)
    for tool in (Everywhere(), load_tool("instr_count")):
        made = instrument(data, tool)
        assert not stands(made.data, gpu)
        assert left_by(made.data, gpu, "k.luthier") == before


@pytest.mark.parametrize("end", ["at the end", "twice", "behind a branch"])
def test_waves_give_them_back_where_nothing_is_inserted_behind(kernel: Callable[..., bytes], end: str) -> None:
    data = kernel("gfx1100", ENDS[end])
    made = instrument(data, Begin())
    assert stands(made.data, "gfx1100") == ENDS[end].count("DEALLOC")
    assert left_by(made.data, "gfx1100", "k.luthier") == left_by(data, "gfx1100")


def test_private_memory_of_a_tool_is_kept_to_the_end(kernel: Callable[..., bytes]) -> None:
    data = kernel("gfx1100", ENDS["at the end"])

    class Deep(Begin):
        @hook
        def add(rows: ptr[u32], x: Lane[u32]) -> None:
            many = array(u32, 64)
            many[x & u32(63)] = x
            atomic_add(rows + lane_id(), many[lane_id()])

    made = instrument(data, Deep())
    assert made.patched.report[0].private_bytes > 0 and not stands(made.data, "gfx1100")


@pytest.mark.parametrize("end", ENDS)
def test_the_proof_refuses_hooks_behind_the_message(
    monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., bytes], end: str
) -> None:
    monkeypatch.setattr(clauses, "gives_back_vectors", lambda inst, target: False)
    with pytest.raises(CheckFailed, match=r"has given back its vector registers.*DEALLOC_VGPRS"):
        instrument(kernel("gfx1100", ENDS[end]), Everywhere())


@pytest.mark.parametrize(("gpu", "line", "why"), [
    ("gfx1201", "s_alloc_vgpr 32", "changes how many vector registers"),
    ("gfx1100", "s_getreg_b32 s8, hwreg(HW_REG_GPR_ALLOC)", "reads how many registers"),
    ("gfx1201", "s_getreg_b32 s8, hwreg(HW_REG_WAVE_GPR_ALLOC, 4, 8)", "reads how many registers"),
    ("gfx1201", "s_getreg_b32 s8, hwreg(HW_REG_WAVE_DVGPR_ALLOC_LO)", "reads how many registers"),
    ("gfx1100", "s_getreg_b32 s8, hwreg(HW_REG_TRAPSTS, 0, 7)", "which exceptions floats have raised"),
    ("gfx1201", "s_getreg_b32 s8, hwreg(HW_REG_WAVE_EXCP_FLAG_USER)", "which exceptions floats have raised"),
    ("gfx1100", "s_endpgm_saved", "registers a trap handler has saved"),
])
def test_what_sees_inserted_code_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., bytes], gpu: str, line: str, why: str
) -> None:
    data = kernel(gpu, f"{line}\ns_endpgm")
    with pytest.raises(Unsupported, match=rf"{why}.*kernel k, pc 0x.*{line.split()[0]}"):
        instrument(data, load_tool("instr_count"))
    (refused,) = instrument(data, load_tool("instr_count"), keep_going=True).refused
    assert refused.kernel == "k" and why in refused.reason
    monkeypatch.setattr(apply, "sees_inserted_code", lambda inst, target: "")
    with pytest.raises(CheckFailed, match=why):
        instrument(data, load_tool("instr_count"))


def test_hooks_use_registers_that_operands_name(kernel: Callable[..., bytes]) -> None:
    """A wave may have up to 1,024, of which instructions name the first 256."""
    data = kernel("gfx1250", "s_set_vgpr_msb 0x41\nv_mov_b32 v3, v2\ns_set_vgpr_msb 0\ns_endpgm", vgprs=300)
    (refused,) = instrument(data, Everywhere(), keep_going=True).refused
    assert "VGPR operands may mean other registers here" in refused.reason
    assert not instrument(data, Begin()).refused


@pytest.mark.parametrize(("behind", "fails"), [
    ("v_mov_b32 v3, v0", True), ("v_mov_b32 v3, 0", True), ("v_readfirstlane_b32 s9, v0", True),
    ("global_store_b32 v1, v2, s[2:3] offset:8", True), ("ds_store_b32 v1, v2", True),
    ("scratch_load_b32 v3, off, off", True), ("scratch_store_b32 off, v3, off", True),
    ("s_setpc_b64 s[10:11]", True), ("s_mov_b32 s9, 0", False), ("s_nop 7", False),
    ("s_cmp_eq_u32 s2, s2\ns_cbranch_scc1 over\nv_mov_b32 v3, v0\nover:\ns_nop 0", False),
    ("s_cmp_lg_u32 s2, s2\ns_cbranch_scc1 over\nv_mov_b32 v3, v0\nover:\ns_nop 0", True),
])
def test_the_emulator_ends_waves_that_want_what_they_gave_back(
    kernel: Callable[..., bytes], behind: str, fails: bool
) -> None:
    data = kernel("gfx1100", f"{GIVE}{behind}\ns_endpgm", private=64)
    if not fails:
        left_by(data, "gfx1100")
        return
    with pytest.raises(DeviceError, match=r"wave 0 of work-group 0 has given back its vector registers") as caught:
        left_by(data, "gfx1100")
    line = next(line for line in reversed(behind.splitlines()) if line[0] in "vgd" or "scratch" in line or "pc" in line)
    assert caught.value.where.text.split()[0].startswith(line.split()[0])
    assert caught.value.fault.kind is FaultKind.NO_REGISTERS


def test_waves_that_give_nothing_back_go_on(kernel: Callable[..., bytes]) -> None:
    """The same code behind both ways, in a loop too."""
    end = f"s_cmp_eq_u32 s2, s2\ns_cbranch_scc1 end\n{GIVE}end:\nv_mov_b32 v3, 1\ns_cmp_lg_u32 s2, s2\n" \
        "s_cbranch_scc1 end\ns_endpgm"
    left_by(kernel("gfx1100", end), "gfx1100")
