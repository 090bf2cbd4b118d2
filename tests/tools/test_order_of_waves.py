"""Waves take turns in the same order bare and under every tool, so programs that race end alike, and retry as often."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from block_traces import OPTIONS

from luthier_py.binary.loader import load
from luthier_py.binary.loader.origins import read_origins
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented, run_loaded, run_original
from luthier_py.features.run.receiving import ChannelEnd, Receiving
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

HEAD = """
typedef unsigned u32;
#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((device, amdgpu_kernel))
#define THREAD __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define BARRIER __builtin_amdgcn_s_barrier()
#define SHARED __attribute__((device, shared))
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")
#define NEXT(p) __atomic_fetch_add(p, 1u, __ATOMIC_RELAXED)
#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
DEVICE static bool swap(u32 *p, u32 old, u32 value)
{ return __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); }
DEVICE static u32 add_float(float *p, float x) {
  u32 turns = 0, old = LOAD((u32 *)p);
  ROLLED for (;; ++turns) {
    float sum = __builtin_bit_cast(float, old) + x;
    u32 seen = old;
    if (__atomic_compare_exchange_n((u32 *)p, &old, __builtin_bit_cast(u32, sum), false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) return turns;
    (void)seen;
  }
}
DEVICE __attribute__((noinline)) u32 work(u32 x, u32 times) {
  ROLLED for (u32 i = 0; i < times; ++i) x = x * 1664525u + 1013904223u;
  return x;
}
DEVICE __attribute__((noinline)) u32 deep(u32 x) { return x < 2 ? x : deep(x - 1) + 1; }
"""
BODIES = {  # p[0] and what follows it are counters; rows from p[64] on are what each thread, or each turn, leaves
    "retries": "p[64 + THREAD] = add_float((float *)p, 1.0f);",
    "retries_of_groups": "p[64 + 256 * GROUP + THREAD] = add_float((float *)p, 1.0f);",
    "retries_of_different_sizes": "p[64 + THREAD] = add_float((float *)p, 1.0f + (THREAD >> 6));",
    "tickets_in_loops": "ROLLED for (u32 i = 0; i < 70; ++i) if (!(THREAD & 63)) p[64 + NEXT(p)] = THREAD + i;",
    "tickets_after_work": "u32 x = work(THREAD, 40 + (THREAD >> 6) * 9); p[64 + NEXT(p)] = THREAD; p[1] = x;",
    "tickets_after_calls": "ROLLED for (u32 i = 0; i < 20; ++i) { work(i, 3); p[64 + NEXT(p)] = THREAD; }",
    "tickets_after_recursion": "u32 x = deep(40 + (THREAD >> 6)); p[64 + NEXT(p)] = THREAD + x;",
    "tickets_between_barriers": "for (u32 i = 0; i < 3; ++i) { work(i, 50); p[64 + NEXT(p)] = THREAD; BARRIER; }",
    "last_writer": "ROLLED for (u32 i = 0; i < 200; ++i) STORE(p + 64 + (i & 7), THREAD + i);",
    "last_writer_in_lds": "SHARED static u32 s[8]; ROLLED for (u32 i = 0; i < 99; ++i) *(volatile u32 *)&s[i & 7] = "
                          "THREAD * i; p[64 + THREAD] = *(volatile u32 *)&s[THREAD & 7];",
    "lost_updates": "ROLLED for (u32 i = 0; i < 90; ++i) STORE(p, LOAD(p) + 1); p[64 + THREAD] = LOAD(p);",
    "lock": "if (!(THREAD & 63)) { ROLLED while (!swap(p, 0, 1)) ++p[65]; p[66 + p[64]++] = THREAD; work(1, 45); "
            "STORE(p, 0); }",
    "waits_for_a_flag": "if (THREAD >= 192) { work(THREAD, 400); STORE(p, 1); } else { u32 n = 0; "
                        "ROLLED while (!LOAD(p)) ++n; p[64 + THREAD] = n; }",
    "waits_in_turn": "u32 n = 0; ROLLED while (LOAD(p) != THREAD >> 6) ++n; p[64 + THREAD] = n; STORE(p, (THREAD >> 6) "
                     "+ 1);",
    "sleeps": "ROLLED for (u32 i = 0; i < 9; ++i) { p[64 + NEXT(p)] = THREAD; __builtin_amdgcn_s_sleep(1); }",
    "nested_loops": "for (u32 i = 0; i < 9; ++i) ROLLED for (u32 j = 0; j < 8; ++j) if (!(THREAD & 63)) "
                    "p[64 + NEXT(p)] = i * 8 + j;",
    "divergent_loops": "ROLLED for (u32 i = 0; i < (THREAD * 7) % 90; ++i) STORE(p + 64 + (THREAD & 31), i);",
    "maxima": "u32 x = work(THREAD, 33); ROLLED for (u32 i = 0; i < 60; ++i) if (x > LOAD(p)) { STORE(p, x); "
              "p[64 + NEXT(p + 1) % 999] = THREAD; x = work(x, 2); }",
    "stack": "ROLLED for (u32 i = 0; i < 12; ++i) { u32 top; do top = LOAD(p); while (!swap(p, top, top + 1)); "
             "p[64 + top] = THREAD + 256 * i; }",
    "clocks": "ROLLED for (u32 i = 0; i < 80; ++i) p[64 + 4 * i + (THREAD >> 6)] = __builtin_amdgcn_s_memtime();",
    "waits_for_the_clock": "unsigned long long end = __builtin_amdgcn_s_memtime() + 900; u32 n = 0; "
                           "ROLLED while (__builtin_amdgcn_s_memtime() < end) ++n; p[64 + THREAD] = n;",
    "two_counters": "ROLLED for (u32 i = 0; i < 64; ++i) { u32 a = NEXT(p + (i & 1)); if (a < 900) p[64 + a] = THREAD; "
                    "}",
    "waits_for_another_group": "if (GROUP == 3) { work(THREAD, 9000); STORE(p, 1); } else { u32 n = 0; "
                               "ROLLED while (!LOAD(p)) ++n; p[64 + 256 * GROUP + THREAD] = n; }",
}
GROUPS = {"retries_of_groups": 4, "waits_for_another_group": 4}
QUICK = {"retries", "tickets_after_calls", "lock", "clocks"}
TOOLS = ("instr_count", "opcode_histogram", "branch_divergence", "memory_divergence", "lds_bank_conflicts",
         "hot_blocks", "loop_counts", "path_profile", "branch_edges", "floatcheck", "memcheck", "racecheck",
         "initcheck", "synccheck", "waitcheck", "wave_metrics", "load_balance", "compressibility", "exactness",
         "roofline", "call_graph", "mem_trace", "record_reg_vals", "mem_printf", "memory_locality",
         "instr_count,branch_divergence,memory_divergence")
FREQUENT = "memory_divergence"  # its hook has loops
RECORDS = "mem_trace", "record_reg_vals", "mem_printf"  # waves wait for the host where these fill the channel
FILLED = "lock"
LONG = "waits_for_another_group"
OFTEN = {*((FREQUENT, name) for name in QUICK), (RECORDS[0], FILLED)}


@cache
def program(clang: str, folder: Path) -> bytes:
    source = HEAD + "".join(f"KERNEL void {name}(u32 *p) {{ {body} }}\n" for name, body in BODIES.items())
    (folder / "races.hip").write_text(source)
    command = [clang, *OPTIONS, "--offload-arch=gfx90a", folder / "races.hip", "-o", folder / "races.co"]
    subprocess.run(command, check=True)
    return (folder / "races.co").read_bytes()


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return program(require_tool("clang-22"), tmp_path_factory.mktemp("races"))


def launch(name: str) -> Launch:
    return Launch(name, (GROUPS.get(name, 1), 1, 1), (256, 1, 1), (parse_argument("out:u32[65536]"),))


@cache
def bare(code: bytes, name: str) -> tuple[bytes, dict[int, int]]:
    """What is left in memory, and how often each instruction ran."""
    device = EmulatorDevice(load(code).target)
    [left] = run_original(device, code, launch(name)).outputs.values()
    return left.tobytes(), {pc: count for pc, count in device.profile.counts.items() if count}


def under(code: bytes, name: str, tool: str) -> tuple[bytes, dict[int, int]]:
    """The same of the application's instructions in a copy."""
    loaded = load_tool(tool, {})
    made = instrument(code, loaded, kernels=name)
    device = EmulatorDevice(made.obj.target)
    [left] = run_instrumented(device, made, loaded, launch(name)).outputs.values()
    origins = read_origins(load(made.data))
    at = (lambda pc: pc) if origins is None else origins.at  # None: there was nothing for the tool
    own = ((at(pc), count) for pc, count in device.profile.counts.items() if count)
    return left.tobytes(), {pc: count for pc, count in own if pc is not None}


@pytest.mark.parametrize(("tool", "name"), [
    pytest.param(tool, name, marks=() if (tool, name) in OFTEN else pytest.mark.slow)
    for tool in TOOLS for name in BODIES if not (tool in RECORDS and name == LONG)])  # fmt: skip
def test_a_program_runs_as_it_does_bare(code: bytes, name: str, tool: str) -> None:
    (left, counts), (wanted, times) = under(code, name, tool), bare(code, name)
    assert counts == times
    differing = np.flatnonzero(np.frombuffer(left, np.uint32) != np.frombuffer(wanted, np.uint32))
    assert differing.tolist()[:8] == []


def test_a_host_that_takes_its_time_changes_nothing(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves that wait for it keep their turns, whatever the machine does meanwhile."""
    def drain_late(receiving: Receiving, end: ChannelEnd) -> int:
        time.sleep(1.0)
        return drain(receiving, end)

    drain = Receiving._drain
    monkeypatch.setattr(Receiving, "_drain", drain_late)
    test_a_program_runs_as_it_does_bare(code, "last_writer", "record_reg_vals")


@pytest.mark.parametrize("name", ["tickets_after_calls", "tickets_after_recursion"])
def test_what_has_to_be_compiled_decides_nothing(
    code: bytes, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that waits for code goes on where it was: the second launch finds all of it."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", "off")
    device = EmulatorDevice(load(code).target)
    module = device.load(code, "races")
    first, again = (run_loaded(device, module, launch(name)).outputs for _ in range(2))
    assert {key: data.tobytes() for key, data in first.items()} == {key: data.tobytes() for key, data in again.items()}
