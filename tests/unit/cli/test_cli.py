"""The command line as a user meets it: output, exit codes, one line for each error."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from fat_binaries import bundle

from luthier_py.binary.loader import load
from luthier_py.isa import target
from luthier_py.rewrite.tool.chosen.selection import COUNTING, EVERY_TOOL
from luthier_py.samples import sample


def path(name):
    return sample(name).path


SAXPY = ["--kernel", "saxpy", "--grid", "4", "--block", "256"]
SAXPY_ARGS = ["u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"]


def test_info(luthier):
    code, out, _ = luthier("info", path("matmul"))
    assert code == 0 and "gfx90a" in out and "matmul" in out
    code, out, _ = luthier("info", path("matmul"), "--json")
    facts = json.loads(out)
    assert facts["kernels"][0]["lds_bytes"] == 2048 and len(facts["kernels"][0]["arguments"]) == 4


@pytest.mark.parametrize("name", ["vector_add", "nbody", "device_call", "function_pointers", "scratch"])
def test_disasm_prints_what_llvm_objdump_prints(luthier, require_tool, name):
    code, out, _ = luthier("disasm", path(name))
    assert code == 0
    command = [require_tool("llvm-objdump-22"), "-d", str(path(name))]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [line for line in out.splitlines() if line.startswith("\t")]
    assert ours and set(ours) <= set(theirs)
    padding = [line for line in theirs if line.startswith("\t") and line not in set(ours)]
    assert all(
        line.startswith(("\ts_nop 0", "\ts_code_end")) for line in padding
    )  # between functions, and behind the last


def test_disasm_blocks(luthier):
    code, out, _ = luthier("disasm", path("reduce"), "--blocks", "--kernel", "reduce")
    assert code == 0 and ".bb1:" in out and "live" in out


def test_disasm_host(luthier):
    code, out, _ = luthier("disasm", path("vector_add"), "--host")
    assert code == 0 and "<vector_add> on" in out and out.count("ret") >= 1 and len(out.splitlines()) > 50


def test_what_runs_on_a_target(luthier, tmp_path):
    first, second = (path(name).read_bytes() for name in ("vector_add", "nbody"))
    other = second[:48] + bytes([target("gfx1100").elf_mach]) + second[49:]  # the first byte of e_flags
    file, triple = tmp_path / "app", "hipv4-amdgcn-amd-amdhsa--"
    file.write_bytes(bundle((f"{triple}gfx90a", first), (f"{triple}gfx1100", other)))
    for words in (["info", "--kernels"], ["disasm"]):
        for name, has, has_not in (("gfx90a:sramecc+", "vector_add", "nbody"), ("gfx1100", "nbody", "vector_add")):
            code, out, _ = luthier(*words, file, "--target", name)
            assert code == 0 and has in out and has_not not in out
        missing = "has code for gfx90a, gfx1100, and nothing that runs on gfx942"
        misused(luthier(*words, file, "--target", "gfx942"), missing)


def test_the_empty_tool_reproduces_the_file(luthier, tmp_path):
    code, out, _ = luthier("instrument", path("nbody"), "-t", "none", "-o", tmp_path / "copy.co")
    assert code == 0 and "identical" in out
    assert (tmp_path / "copy.co").read_bytes() == path("nbody").read_bytes()


def test_instrument_writes_original_and_clone(luthier, tmp_path):
    code, out, _ = luthier("instrument", path("nbody"), "-t", "instr_count", "-o", tmp_path / "nbody.co", "--json")
    assert code == 0
    facts = json.loads(out)
    names = [k.name for k in load((tmp_path / "nbody.co").read_bytes()).kernels]
    assert names == ["nbody", "nbody.luthier"] and facts["kernels"][0]["clone"] == "nbody.luthier"
    assert [p.name for p in tmp_path.iterdir()] == ["nbody.co"]  # nothing temporary is left


def test_run_saves_outputs(luthier, tmp_path):
    code, out, _ = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "--save", tmp_path / "out")
    assert code == 0 and "verdict" in out
    got = np.load(tmp_path / "out" / "arg3.npy")
    x, y = (np.random.default_rng(seed).random(1000).astype(np.float32) for seed in (1, 2))
    np.testing.assert_allclose(got, np.float32(0.7) * x + y, rtol=1e-6)


def test_run_with_a_tool(luthier):
    code, out, _ = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count")
    assert code == 0 and "kernel 0 - saxpy - #workgroups 4, kernel instructions 400, total instructions 400" in out
    lanes = ["-O", "count_warp_level=0", "-O", "EXCLUDE_PRED_OFF=1"]
    code, out, _ = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count", *lanes, "--json")
    assert code == 0 and json.loads(out)["launches"][0]["report"]["instructions"] == 25192


def test_a_run_says_which_figures_have_the_tool_in_them(luthier):
    command = ["run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count"]
    _, out, _ = luthier(*command, "--json")
    run = json.loads(out)["run"]
    assert run["device_instructions"] - run["tool_instructions"] == 400 and run["tool_instructions"] > 0
    _, out, _ = luthier(*command)
    assert "with the tool, counts without it" in out
    executed, own = run["device_instructions"], run["tool_instructions"]
    assert f"\n{executed} wave instructions executed, {own} of them the tool's\n" in out
    _, out, _ = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS)
    assert "400 wave instructions executed" in out and "the tool's" not in out


def test_a_tool_that_inserts_nothing_is_exit_code_3(luthier, tmp_path):
    (tmp_path / "idle.py").write_text(
        "from luthier_py import Tool\nclass Idle(Tool):\n    def instrument(self, m):\n        pass\n"
    )
    code, _, err = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", tmp_path / "idle.py")
    assert code == 3 and "observed nothing" in err


def test_options_are_echoed_with_their_meaning(luthier, monkeypatch):
    monkeypatch.setenv("MANGLED_NAMES", "1")
    _, _, err = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count", "-O", "count_warp_level=0")
    given = [line.split()[1:4] for line in err.splitlines() if line.startswith("  *")]
    assert given == [["COUNT_WARP_LEVEL", "=", "0"], ["MANGLED_NAMES", "=", "1"]]
    assert "1: count an instruction once per wave, 0: once per thread" in err


@pytest.mark.parametrize(
    "option", ["START_GRID_NUM=1", "END_GRID_NUM=0", "ACTIVE_FROM_START=0", "LUTHIER_KERNELS=nbody", "INSTR_BEGIN=999"]
)
def test_what_is_not_selected_runs_as_it_is(luthier, option, tmp_path):
    command = ["run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "--save", tmp_path]
    code, out, err = luthier(*command, "-t", "instr_count", "-O", option)
    assert code == 3 and "0 instrumented by instr_count" in out and "observed nothing" in err
    x, y = (np.random.default_rng(seed).random(1000).astype(np.float32) for seed in (1, 2))
    np.testing.assert_allclose(np.load(tmp_path / "arg3.npy"), np.float32(0.7) * x + y, rtol=1e-6)


def test_the_verdict_and_its_details(luthier):
    command = ["run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count"]
    code, out, _ = luthier(*command, "-O", "TOOL_VERBOSE=1")
    verdict = out[out.index("verdict: ") :].splitlines()
    assert verdict[0].startswith("verdict: 1 launch, 1 selected, 1 instrumented by instr_count; 1 kernel, 3 sites, ")
    assert verdict[1].startswith("  saxpy: 3 sites, ") and "waves/SIMD 8" in verdict[1] and "check" in verdict[2]
    facts = json.loads(luthier(*command, "--json")[1])["verdict"]
    assert facts["observed"] and facts["kernels"][0]["waves_per_simd"] == [8, 8] and facts["seconds"]["inject"] > 0


def test_counts_as_a_file(luthier, tmp_path):
    command = ["run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "opcode_histogram", "--output"]
    code, out, _ = luthier(*command, tmp_path / "o.csv")
    assert code == 0 and f"-> {tmp_path / 'o.csv'}" in out
    header, row = (tmp_path / "o.csv").read_text().splitlines()
    assert header.startswith("launch,kernel,grid,block,") and row.startswith("0,saxpy,4x1x1,256x1x1,")
    assert dict(zip(header.split(","), row.split(","), strict=True))["opcodes.s_endpgm"] == "16"
    luthier(*command, tmp_path / "o.json")
    assert json.loads((tmp_path / "o.json").read_text())["launches"][0]["report"]["opcodes"]["s_endpgm"] == 16
    luthier(*command, tmp_path / "o.txt")
    assert "  s_endpgm = 16\n" in (tmp_path / "o.txt").read_text()


def test_options_that_nobody_could_follow(luthier, tmp_path):
    run = ["run", path("saxpy"), *SAXPY, *SAXPY_ARGS]
    misused(luthier(*run, "--output", tmp_path / "o.csv"), "LUTHIER_OUTPUT", "there is no tool", "-t")
    misused(luthier(*run, "-t", "instr_count", "--output", tmp_path / "o.xls"), "o.xls", ".csv or .json")
    misused(luthier(*run, "-t", "instr_count", "-O", "a=1", "-O", "a=1"), "option a is given twice")
    misused(luthier(*run, "-t", "lds_bank_conflicts", "-O", "COUNT_WARP_LEVEL=0"), "COUNT_WARP_LEVEL=0", "only 1")
    command = ["instrument", path("saxpy"), "-t", "instr_count", "-o", tmp_path / "o.co", "-O"]
    misused(luthier(*command, "START_GRID_NUM=1"), "START_GRID_NUM", "launches")
    assert luthier(*command, "INSTR_BEGIN=1")[0] == 0


def test_the_readme_s_tool_runs(luthier, tmp_path):
    """The tool that the README shows whole, with the command that it shows."""
    root = path("saxpy").parents[2]
    text = (root / "README.md").read_text()
    start = text.index("    from luthier_py import Mutator")
    block = text[start : text.index("Save it as")]
    (tmp_path / "count.py").write_text("\n".join(line[4:] for line in block.splitlines()))
    code, out, _ = luthier("run", path("saxpy"), *SAXPY, "-t", tmp_path / "count.py", *SAXPY_ARGS)
    assert code == 0 and "400" in out


def test_the_readme_has_every_option_with_its_default(luthier):
    text = (path("saxpy").parents[2] / "README.md").read_text()
    for name, option in {**COUNTING, **EVERY_TOOL}.items():
        assert f"`{name}={option.show(option.default)}" in text or f" {name}={option.show(option.default)}`" in text


def test_the_numbers_of_the_tool_s_page(luthier):
    text = (path("saxpy").parents[2] / "tools" / "instr_count" / "README.md").read_text()
    for wave, active in ((1, 0), (1, 1), (0, 0), (0, 1)):
        options = ["-O", f"COUNT_WARP_LEVEL={wave}", "-O", f"EXCLUDE_PRED_OFF={active}"]
        _, out, _ = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "-t", "instr_count", *options, "--json")
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {wave} | {active} |")]
        assert row.endswith(f"| {json.loads(out)['launches'][0]['report']['instructions']} |")


def test_tools(luthier):
    code, out, _ = luthier("tools")
    assert code == 0 and "instr_count" in out and "opcode_histogram" in out
    code, out, _ = luthier("tools", "--json")
    facts = json.loads(out)
    found = {tool["name"]: tool for tool in facts["tools"]}
    assert {"none", "instr_count", "opcode_histogram"} <= found.keys()
    assert facts["every_tool"]["START_GRID_NUM"]["default"] == 0
    assert found["instr_count"]["aliases"] == ["instr_count_bb"]


# -- bad input: one clear line, exit code 1, or 2 where the request itself makes no sense -------------


def misused(result, *words):
    fails(result, *words, exit_code=2)


def fails(result, *words, exit_code=1):
    code, _, err = result
    assert code == exit_code, err
    assert err.count("\n") == 1 and err.startswith("luthier: "), err
    for word in words:
        assert word in err, err


def damaged(tmp_path, name, change):
    data = bytearray(path(name).read_bytes())
    change(data)
    out = tmp_path / f"{name}.bad.co"
    out.write_bytes(data)
    return out


def test_no_such_file(luthier, tmp_path):
    fails(luthier("info", tmp_path / "none.co"), "none.co", "No such file", exit_code=2)


@pytest.mark.parametrize("size", [0, 3, 63, 64, 500, 5000])
def test_truncated_elf(luthier, tmp_path, size):
    file = tmp_path / "short.co"
    file.write_bytes(path("nbody").read_bytes()[:size])
    fails(luthier("info", file), "short.co")


def test_wrong_machine(luthier, tmp_path):
    file = damaged(tmp_path, "nbody", lambda d: struct.pack_into("<H", d, 18, 62))
    fails(luthier("info", file), "machine", "AMD")


def test_descriptor_outside_the_file(luthier, tmp_path):
    def move(data):
        symbol = load(bytes(data)).symbol("nbody.kd")
        entry = struct.pack("<QQ", symbol.address, symbol.size)
        at = bytes(data).find(entry)
        while at >= 0:
            if data[at - 4] & 15 == 1:  # st_info of a symbol table entry: STT_OBJECT
                struct.pack_into("<Q", data, at, 0x7FFF_0000)
            at = bytes(data).find(entry, at + 1)

    path = damaged(tmp_path, "nbody", move)
    fails(luthier("disasm", path, "--kernel", "nbody"), "nbody.kd", "0x7fff0000")
    code, out, _ = luthier("info", path)
    assert code == 0 and "left out: nbody: " in out and "0x7fff0000" in out


def unknown_opcode(data):
    obj = load(bytes(data))
    entry = obj.kernel("vector_add").entry
    segment = next(s for s in obj.segments if s.load and s.address <= entry < s.address + s.file_size)
    struct.pack_into("<I", data, segment.offset + entry - segment.address + 16, 0xFFFF_FFFF)


def test_unknown_opcode_when_instrumenting(luthier, tmp_path):
    file = damaged(tmp_path, "vector_add", unknown_opcode)
    command = ["instrument", file, "-t", "instr_count", "-o", tmp_path / "o.co"]
    fails(luthier(*command), "vector_add", "0x1910")
    assert not (tmp_path / "o.co").exists()
    code, out, _ = luthier(*command, "--keep-going")
    assert code == 3 and "refused: vector_add" in out


def test_unknown_opcode_when_running(luthier, tmp_path):
    file = damaged(tmp_path, "vector_add", unknown_opcode)
    arguments = ["in:f32[64]=ones", "in:f32[64]=ones", "out:f32[64]"]
    fails(luthier("run", file, "--kernel", "vector_add", "--grid", 1, "--block", 64, *arguments), "vector_add")


def test_missing_kernel(luthier):
    misused(luthier("run", path("nbody"), "--kernel", "nobody", "--grid", 1, "--block", 64), "nobody", "nbody")
    misused(luthier("disasm", path("nbody"), "--kernel", "nobody"), "nobody")


def test_wrong_number_of_arguments(luthier):
    misused(luthier("run", path("saxpy"), *SAXPY, "u32=1"), "saxpy", "takes 4 arguments")


@pytest.mark.parametrize(
    "position, text, words",
    [
        (2, "u32=5", ["argument 2", "buffer"]),
        (0, "in:f32[4]=ones", ["argument 0", "scalar"]),
        (0, "f64=1", ["argument 0", "4 bytes"]),
        (0, "u32=banana", ["banana"]),
        (0, "u32=-1", ["u32=-1"]),
        (2, "in:f33[4]=ones", ["f33"]),
        (2, "in:f32[1000]=sometimes", ["sometimes"]),
        (2, "in:f32[1000]", ["needs"]),
        (2, "in:f32[1000]=file:/nowhere.npy", ["/nowhere.npy"]),
        (2, "whatever", ["whatever", "in:f32[1024]=random:1"]),
    ],
)
def test_wrong_arguments(luthier, position, text, words):
    arguments = [*SAXPY_ARGS]
    arguments[position] = text
    misused(luthier("run", path("saxpy"), *SAXPY, *arguments), *words)


def test_out_of_bounds_pointer_in_a_kernel(luthier):
    """n says 1000, the buffer has 900 elements: lane, address, instruction and place are named."""
    arguments = ["u32=1000", "f32=0.7", "in:f32[900]=random:1", "inout:f32[1000]=random:2"]
    fails(luthier("run", path("saxpy"), *SAXPY, *arguments), "saxpy", "pc 0x1954", "global_load_dword", "lane", "0x")


@pytest.mark.parametrize(
    "grid, block, word",
    [("0", "64", "--grid"), ("1", "2048", "1024"), ("1,2,3,4", "64", "--grid"), ("x", "64", "--grid")],
)
def test_wrong_shape(luthier, grid, block, word):
    misused(luthier("run", path("saxpy"), "--kernel", "saxpy", "--grid", grid, "--block", block, *SAXPY_ARGS), word)


def test_unknown_tool_and_option(luthier):
    misused(luthier("instrument", path("nbody"), "-t", "nothing_like_it"), "nothing_like_it", "instr_count")
    command = ["instrument", path("nbody"), "-t", "instr_count", "-O"]
    misused(luthier(*command, "mode=galaxy"), "mode", "block or instruction")
    misused(luthier(*command, "depth=1"), "depth")
    misused(luthier(*command, "mode"), "NAME=VALUE")


def test_unknown_device(luthier):
    misused(luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "--device", "abacus"), "abacus", "emulator")


def test_a_hook_that_is_not_device_python(luthier, tmp_path):
    (tmp_path / "bad.py").write_text(
        "from luthier_py import Tool, hook, u32\n"
        "class Bad(Tool):\n"
        "    @hook\n"
        "    def f(x: u32) -> None:\n"
        "        open(x)\n"
        "    def instrument(self, m):\n"
        "        m.at_entry(m.kernels[0], self.f, 1)\n"
    )
    fails(luthier("instrument", path("nbody"), "-t", tmp_path / "bad.py"), "bad.py:5", "open")


def test_output_that_cannot_be_written(luthier, tmp_path):
    missing = luthier("instrument", path("nbody"), "-t", "none", "-o", tmp_path / "no" / "folder.co")
    fails(missing, "No such file", f"{tmp_path / 'no'}:")  # not a temporary file's name


def test_a_copy_without_insertions_says_why(luthier, tmp_path):
    """README: exit code 3 means that a tool observed nothing, and says why."""
    command = ("instrument", path("saxpy"), "-o", tmp_path / "copy.co", "-t")
    code, _, err = luthier(*command, "instr_count", "-O", "LUTHIER_KERNELS=nix")
    assert code == 3 and "inserted nothing: LUTHIER_KERNELS=nix leaves out 1 kernel saxpy" in err
    code, _, err = luthier(*command, "lds_bank_conflicts")
    assert code == 3 and "inserted nothing: there is nothing for lds_bank_conflicts in 1 kernel saxpy" in err


def test_an_object_of_another_target_names_file_and_device(luthier):
    other = luthier("run", path("saxpy"), *SAXPY, *SAXPY_ARGS, "--device", "emulator:gfx906")
    misused(other, "saxpy.co: compiled for gfx90a", "emulator:gfx90a")


def test_the_package_runs_as_the_command() -> None:
    starts = ("-m", "luthier_py"), ("-c", "from luthier_py.cli import main; main()")
    module, command = (subprocess.check_output([sys.executable, *start, "tools", "--json"]) for start in starts)
    assert module == command and b"instr_count" in module
