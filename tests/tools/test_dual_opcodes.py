"""Dual instructions (VOPD): one instruction, two opcodes, in all that counts by opcode."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from block_traces import OPTIONS

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.rewrite.tool.chosen.filters import compile_filter
from luthier_py.tools.script import Script

SOURCE = """
extern "C" __attribute__((device, amdgpu_kernel)) void dual(float *p) {
  asm volatile("v_dual_mul_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6\\n"
               "v_dual_add_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6\\n"
               "v_add_f32 v7, v8, v9" ::: "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9");
}
"""
WAVES = 3
LAUNCH = Launch("dual", (WAVES, 1, 1), (32, 1, 1), (parse_argument("out:f32[64]"),))
EXPECTED = {"v_dual_mul_f32": WAVES, "v_dual_add_f32": 3 * WAVES, "v_add_f32_e32": WAVES}


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("dual")
    (folder / "k.hip").write_text(SOURCE)
    command = [require_tool("clang-22"), *OPTIONS, "--offload-arch=gfx1100", folder / "k.hip", "-o", folder / "k.co"]
    subprocess.run(command, check=True)
    return (folder / "k.co").read_bytes()


def run(code: bytes, tool: Tool) -> Ran:
    made = instrument(code, tool)
    return run_instrumented(EmulatorDevice(made.obj.target), made, tool, LAUNCH)


def test_histogram_has_both_and_instructions_once(code: bytes) -> None:
    tool = load_tool("opcode_histogram", {})
    ran = run(code, tool)
    opcodes = ran.report["opcodes"]
    assert {name: n for name, n in opcodes.items() if name.startswith("v_")} == EXPECTED
    program = lift(load(code))
    assert ran.report["instructions"] == WAVES * sum(1 for f in program.functions for _ in f.instrs)
    assert f"kernel instructions {ran.report['instructions']}," in tool.text(ran.result, ran.report)


@pytest.mark.parametrize(("text", "lanes"), [
    ("count(by=opcode)", 1), ("sum(active, by=opcode)", 32), ("count(by=(opcode, wave))", 1),
])  # fmt: skip
def test_scripts_have_both(code: bytes, text: str, lanes: int) -> None:
    ran = run(code, Script(f'on("vector_alu"): {text}'))
    found = {row["opcode"]: row.get("sum", row["count"]) for row in ran.report["tables"][0]["rows"]}
    assert found == {name: lanes * n for name, n in EXPECTED.items()}


def test_a_filter_finds_either(code: bytes) -> None:
    program = lift(load(code))
    instrs = [instr for function in program.functions for instr in function.instrs]
    chosen = {name: sum(map(compile_filter(f"opcode = {name}", program), instrs)) for name in EXPECTED}
    assert chosen == {"v_dual_mul_f32": 1, "v_dual_add_f32": 2, "v_add_f32_e32": 1}


def test_the_emulator_counts_both(code: bytes) -> None:
    device = EmulatorDevice(load(code).target)
    run_original(device, code, LAUNCH)
    assert {name: n for name, n in device.profile.opcodes().items() if name.startswith("v_")} == EXPECTED
    assert sum(device.profile.opcodes().values()) == device.profile.total + 2 * WAVES
