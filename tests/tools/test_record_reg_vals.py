"""Values of registers: as often as the emulator counts; what was written is read next; matrices as NumPy has them."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from emulated import ISA, code_object

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import OpFlag, agpr, sgpr, vgpr
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

TOOL = Path(__file__).resolve().parents[2] / "tools" / "record_reg_vals"
AGPRS, VGPRS = 2000, 1000  # where their numbers begin


def recorded(code: bytes, launch: Launch, **options):
    """Records in their order, and what the emulator counted without the tool."""
    device, tool = EmulatorDevice(load(code).target), load_tool(f"{TOOL}/", {"print_records": False, **options})
    found: list[np.ndarray] = []
    received = tool.received
    tool.received = lambda channel, launch, records: (found.append(records.copy()), received(channel, launch, records))
    before = run_original(device, code, launch).outputs
    profile = device.profile
    after = run_instrumented(device, instrument(code, tool), tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    records = np.concatenate(found)
    assert after.report["records"] == len(records)
    return records, profile


def is_on(records: np.ndarray) -> np.ndarray:
    return records["lanes"][:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1) == 1


@pytest.mark.parametrize("name", ["saxpy", "device_call", "reduce"])
def test_each_register_of_each_execution(name: str) -> None:
    one = sample(name)
    code, launch = one.path.read_bytes(), launch_of(one)
    records, profile = recorded(code, launch)
    instrs = {instr.pc: instr for function in lift(load(code, name)).functions for block in function.blocks
              for instr in block.instrs}
    seen = Counter(zip(records["pc"].tolist(), records["written"].tolist(), records["register"].tolist(), strict=True))
    lanes = defaultdict(int)
    for key, on in zip(zip(records["pc"].tolist(), records["written"].tolist(), records["register"].tolist(),
                           strict=True), is_on(records).sum(axis=1).tolist(), strict=True):
        lanes[key] += on
    for (pc, written, register), count in seen.items():
        assert count <= profile.counts[pc]  # a wave without an active lane has nothing to tell
        if not written:
            assert lanes[pc, written, register] == profile.lanes[pc]
    for pc, instr in instrs.items():
        named = {reg.index + 1000 * reg.file.value for operand in instr.inst.operands for reg in dwords(operand.reg)
                 if reg.index < 106 and reg.bits & instr.inst.reads.bits}
        found = {register for at, written, register in seen if at == pc and not written}
        assert not profile.lanes.get(pc) or named <= found


def dwords(reg):
    return [] if reg is None else [type(reg)(reg.file, reg.index + k, 1) for k in range(reg.dwords)]


@pytest.mark.parametrize("name", ["vector_add", "histogram"])
def test_what_was_written_is_what_is_read(name: str) -> None:
    """Lane by lane, in each wave's order. Scalars that branches and calls write are not followed."""
    one = sample(name)
    code, launch = one.path.read_bytes(), launch_of(one)
    records, _ = recorded(code, launch)
    leaving = [instr for function in lift(load(code, name)).functions for block in function.blocks
               for instr in block.instrs if instr.op.flags & (OpFlag.CALL | OpFlag.INDIRECT | OpFlag.BRANCH)]
    unknown = {index for instr in leaving for index in range(108) if instr.inst.writes.sgpr >> index & 1}
    held: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
    compared, on = 0, is_on(records)
    for row, active in zip(records, on, strict=True):
        register = int(row["register"])
        key = (*(int(row[f"workgroup_{axis}"]) for axis in "xyz"), int(row["wave"]), register)
        known, values = held.get(key, (np.zeros(64, bool), np.zeros(64, np.uint32)))
        if row["written"]:
            held[key] = (known | active if register >= VGPRS else np.ones(64, bool),
                         np.where(active, row["value"], values) if register >= VGPRS else
                         np.full(64, row["value"][int(np.argmax(active))]))
        elif register not in unknown:
            both = known & active
            assert np.array_equal(values[both], row["value"][both])
            compared += int(both.sum())
    assert compared > 1000


def test_what_is_loaded_and_stored_is_memory() -> None:
    one = sample("saxpy")
    code, launch = one.path.read_bytes(), launch_of(one)
    records, _ = recorded(code, launch)
    device = EmulatorDevice(load(code).target)
    (result,) = run_original(device, code, launch).outputs.values()
    isa = lift(load(code, "saxpy"))
    stores = [instr for function in isa.functions for block in function.blocks for instr in block.instrs
              if instr.op.flags & OpFlag.MAY_STORE and instr.op.flags & OpFlag.VMEM]
    (store,) = stores
    data = store.inst["vdata"].reg if store.inst.find("vdata") is not None else store.inst["data"].reg
    rows = records[(records["pc"] == store.pc) & (records["register"] == VGPRS + data.index)]
    for row in rows:
        first = int(row["workgroup_x"]) * 256 + int(row["wave"]) * 64
        lanes = [lane for lane in range(64) if int(row["lanes"]) >> lane & 1]
        assert np.array_equal(row["value"][lanes], result.view(np.uint32)[first + np.array(lanes)])


def test_scalars_vectors_and_matrices() -> None:
    """4 x 4 matrices, 16 of them: D = A B + C, with C and D in accumulators."""
    rows = [("s_mov_b32", sgpr(20), 3), ("v_cvt_f32_u32", vgpr(1), vgpr(0)), ("v_mul_f32", vgpr(2), 2.0, vgpr(1)),
            ("v_mul_u32_u24", vgpr(3), sgpr(20), vgpr(0))]
    for k in range(4):
        rows += [("v_add_f32", vgpr(4), float(1 << k), vgpr(1)), ("s_nop", 1),
                 ("v_accvgpr_write_b32", agpr(k), vgpr(4))]
    rows += [("s_nop", 4), ISA.make("v_mfma_f32_4x4x1f32", agpr(0, 4), vgpr(1), vgpr(2), agpr(0, 4)).raw,
             ("s_nop", 15), ("s_endpgm", 0)]
    code = code_object({"k": rows}, agprs=8)
    launch = Launch("k", (1, 1, 1), (64, 1, 1), tuple(map(parse_argument, ["in:f32[64]=zeros"] * 2 + ["out:f32[64]"])))
    records, _ = recorded(code, launch)
    item = np.arange(64, dtype=np.float32)
    read = {(int(row["register"]), int(row["written"])): row["value"] for row in records}
    assert read[20, 0].tolist() == [3] * 64 and read[VGPRS + 3, 1].tolist() == [3 * x for x in range(64)]
    matrix = [row for row in records if row["pc"] == records["pc"][records["register"] >= AGPRS].max()]
    given = {int(row["register"]): row["value"].view(np.float32) for row in matrix if not row["written"]}
    made = {int(row["register"]): row["value"].view(np.float32) for row in matrix if row["written"]}
    accumulators = set(range(AGPRS, AGPRS + 4))
    assert given.keys() == {VGPRS + 1, VGPRS + 2} | accumulators and made.keys() == accumulators
    a, b = item.reshape(16, 4), 2 * item.reshape(16, 4)
    c = np.stack([item + np.float32(1 << k) for k in range(4)])
    for k in range(4):
        assert np.array_equal(given[AGPRS + k], c[k])
        assert np.array_equal(made[AGPRS + k], c[k] + (a[:, k, None] * b).reshape(64))


@pytest.mark.parametrize(("when", "kinds"), [("read", {0}), ("written", {1})])
def test_what_is_wanted_is_recorded(when: str, kinds: set[int]) -> None:
    one = sample("vector_add")
    records, _ = recorded(one.path.read_bytes(), launch_of(one), operands=when)
    assert set(records["written"].tolist()) == kinds
