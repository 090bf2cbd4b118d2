"""Launches whose grid counts work-items: the last work-groups need not be whole, if the kernel is compiled for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = """
typedef __attribute__((address_space(4))) const unsigned *words;
typedef __attribute__((address_space(4))) const unsigned short *halves;
extern "C" __attribute__((global)) void count(unsigned *out) {
    words hidden = (words)__builtin_amdgcn_implicitarg_ptr();
    unsigned x = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    unsigned y = __builtin_amdgcn_workgroup_id_y() * 2 + __builtin_amdgcn_workitem_id_y();
    __atomic_fetch_add(out, 1, 0);
    if (x == 699 && y == 2) {
        out[1] = hidden[0], out[2] = hidden[1];                      // whole work-groups
        out[3] = ((halves)hidden)[9], out[4] = ((halves)hidden)[10]; // what the last ones have
    }
}
"""
SETUP = """
import ctypes, sys
hip = ctypes.CDLL("libamdhip64.so", mode=ctypes.RTLD_GLOBAL)
pointer, number = ctypes.c_void_p, ctypes.c_uint
hip.hipExtModuleLaunchKernel.argtypes = [pointer, *[number] * 6, ctypes.c_size_t, *[pointer] * 5, number]
hip.hipMemcpy.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_int]
hip.hipMemset.argtypes = [pointer, ctypes.c_int, ctypes.c_size_t]

def check(code):
    assert code == 0, code

module, kernel, out = pointer(), pointer(), pointer()
check(hip.hipModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read()))
check(hip.hipModuleGetFunction(ctypes.byref(kernel), module, b"count"))
check(hip.hipMalloc(ctypes.byref(out), ctypes.c_size_t(20)))
check(hip.hipMemset(out, 0, 20))
args, found = (pointer * 1)(ctypes.addressof(out)), (number * 5)()

def launch(x, y, stream=None, block=(256, 2)):
    return hip.hipExtModuleLaunchKernel(kernel, x, y, 1, *block, 1, 0, stream, args, None, None, None, 0)

def show(*codes):
    check(hip.hipMemcpy(found, out, 20, 2))
    print(*codes, *found)
"""
LAUNCHES = SETUP + "show(*(launch(x, y) for x, y in ((700, 3), (700, 3), (512, 2), (100, 1))))"
GRAPH = SETUP + """
stream, graph, other, executable, second = (pointer() for _ in range(5))
check(hip.hipStreamCreate(ctypes.byref(stream)))
check(hip.hipStreamBeginCapture(stream, 0))
check(launch(700, 3, stream))
check(hip.hipStreamEndCapture(stream, ctypes.byref(graph)))
check(hip.hipGraphInstantiate(ctypes.byref(executable), graph, None, None, ctypes.c_size_t(0)))
check(hip.hipGraphClone(ctypes.byref(other), graph))
check(hip.hipGraphInstantiate(ctypes.byref(second), other, None, None, ctypes.c_size_t(0)))
for each in executable, executable, second:
    check(hip.hipGraphLaunch(each, stream))
check(hip.hipStreamSynchronize(stream))
show()
"""
REFUSED = SETUP + """
show(launch(64, 1, None, (2048, 1)), launch(64, 1, None, (64, 64)), launch(64, 0), launch(64, 1, None, (0, 1)))
"""
Compiled = Callable[[str], Path]


@pytest.fixture(scope="module")
def compiled(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder, clang = tmp_path_factory.mktemp("partial"), require_tool("clang-22")
    (folder / "k.hip").write_text(SOURCE)

    def compile_so(option: str) -> Path:
        made = folder / f"k{option}.co"
        subprocess.run([clang, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc",
                        "-O2", "-fuse-cuid=none", f"-f{option}", "--offload-arch=gfx90a", folder / "k.hip", "-o", made],
                       check=True)
        return made

    return compile_so


def ran(path: Path, *options: str, program: str = LAUNCHES, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "luthier_py", "exec", "--device", "emulator:gfx90a", *options, "--",
                           sys.executable, "-c", program, path], capture_output=True, text=True,
                          env=os.environ | environment)


def test_the_last_work_groups_need_not_be_whole(compiled: Compiled, tmp_path: Path) -> None:
    path, wanted = compiled("no-offload-uniform-block"), f"0 0 0 0 {2 * 2100 + 1024 + 100} 2 1 188 1\n"
    bare = ran(path, LUTHIER_DEVICE_PROFILE=str(tmp_path / "profile"))
    assert (bare.returncode, bare.stdout) == (0, wanted), bare.stderr
    under = ran(path, "-t", "instr_count", "--output", str(tmp_path / "counts.json"))
    assert (under.returncode, under.stdout) == (0, wanted), under.stderr
    rows = json.loads((tmp_path / "counts.json").read_text())["launches"]
    executed = [json.loads(line)["instructions"] for line in (tmp_path / "profile").read_text().splitlines()]
    assert [row["report"]["instructions"] for row in rows] == executed and len(executed) == 4


def test_what_foresees_counts_says_that_it_does_not(compiled: Compiled) -> None:
    done = ran(compiled("no-offload-uniform-block"), "-t", "wave_metrics")
    assert done.returncode == 1 and "launches whose last work-groups are not whole are not foreseen" in done.stderr


def test_kernels_compiled_for_whole_ones_refuse_others(compiled: Compiled) -> None:
    done = ran(compiled("offload-uniform-block"))
    assert (done.returncode, done.stdout) == (0, f"1 1 0 0 {1024 + 100} 0 0 0 0\n"), done.stderr


@pytest.mark.parametrize("options", [(), ("-t", "instr_count"), ("-t", "memcheck")])
def test_graphs_keep_them(compiled: Compiled, options: tuple[str, ...]) -> None:
    done = ran(compiled("no-offload-uniform-block"), *options, program=GRAPH)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{3 * 2100} 2 1 188 1"), done.stderr


def test_what_the_runtime_refuses_is_refused_under_a_tool(compiled: Compiled) -> None:
    path = compiled("no-offload-uniform-block")
    bare, under = ran(path, program=REFUSED), ran(path, "-t", "instr_count", program=REFUSED)
    assert bare.stdout == under.stdout and bare.stdout.startswith("9 9 9 9 0 "), bare.stderr
