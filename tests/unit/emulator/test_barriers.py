"""Barriers with numbers, messages that are answered, jumps relative to the program counter: by what kernels leave.

RDNA 4 ISA, 16.3 (S_BARRIER_SIGNAL_ISFIRST, S_GET_BARRIER_STATE, S_SENDMSG_RTN_B64); LLVM,
AMDGPUExecutionSynchronization ("s_barrier", GFX12). Named here, since HIP has other words for some of them:
s_barrier_signal, s_barrier_signal_isfirst, s_barrier_wait, s_barrier_init, s_barrier_join, s_get_barrier_state.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
from launching import FLAGS, HEADER, launch

from luthier_py.base.errors import DeviceError, Unsupported
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.native.clocks import WALL_CLOCK_KHZ
from luthier_py.emulator.options.checks import ALL, Checks, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.isa import target

WAVES = 4
TIMED = LaunchOptions(time_limit=20)
SOURCE = r"""
#define WAVE __builtin_amdgcn_readfirstlane(X / 32)
#define GROUP asm volatile("s_wait_dscnt 0\n s_barrier_signal -1\n s_barrier_wait -1" ::: "memory")
"""
BOTH = r"""
KERNEL void first(u32 *out) {
  u32 rounds = 0, firsts = 0;
  for (; rounds < 5; ++rounds) {
    u32 scc;
    asm volatile("s_cmp_eq_u32 0, 0\n s_barrier_signal_isfirst -1\n s_barrier_wait -1\n s_cselect_b32 %0, 1, 0"
                 : "=s"(scc) :: "scc", "memory");
    firsts += scc;
  }
  out[X] = firsts;
}
KERNEL void state(u32 *out) {
  u32 before, after;
  asm volatile("s_get_barrier_state %0, -1\n s_wait_kmcnt 0" : "=s"(before));
  GROUP;
  if (WAVE == 0) {
    asm volatile("s_barrier_signal -1\n s_get_barrier_state %0, -1\n s_wait_kmcnt 0" : "=s"(after) :: "memory");
    out[X] = before; out[X + 32] = after;
    asm volatile("s_barrier_wait -1" ::: "memory");
  } else {
    asm volatile("s_sleep 1\n s_sleep_var 1\n s_barrier_signal -1\n s_barrier_wait -1" ::: "memory");
  }
}
KERNEL void privileged(u32 *out) {
  u32 scc;
  asm volatile("s_cmp_eq_u32 0, 0\n s_barrier_signal -2\n s_barrier_signal_isfirst -2\n s_cselect_b32 %0, 7, 5\n"
               "s_barrier_wait -2" : "=s"(scc) :: "scc", "memory");
  out[X] = scc;
}
KERNEL void asked(u64 *out) {
  u64 early, late, doorbell; u32 low, number;
  asm volatile("s_sendmsg_rtn_b64 %0, sendmsg(MSG_RTN_GET_REALTIME)\n"
               "s_sendmsg_rtn_b32 %1, sendmsg(MSG_RTN_GET_REALTIME)\n"
               "s_sendmsg_rtn_b64 %2, sendmsg(MSG_RTN_GET_DOORBELL)\n s_sendmsg_rtn_b32 %3, sendmsg(MSG_RTN_GET_DDID)\n"
               "s_sendmsg_rtn_b64 %4, sendmsg(MSG_RTN_GET_REALTIME)\n s_wait_kmcnt 0"
               : "=s"(early), "=s"(low), "=s"(doorbell), "=s"(number), "=s"(late));
  out[0] = early; out[1] = low; out[2] = late; out[3] = doorbell + number;
}
KERNEL void unanswered(u64 *out) {
  asm volatile("s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_SAVE_WAVE)" ::: "s4", "s5");
  out[0] = 1;
}
"""
NAMED = r"""
DEVICE void enter(u32 id, u32 count) {
  asm volatile("s_mov_b32 m0, %0\n s_barrier_init m0" :: "s"(id | count << 16) : "memory");
}
DEVICE void join(u32 id) { asm volatile("s_mov_b32 m0, %0\n s_barrier_join m0" :: "s"(id) : "memory"); }
DEVICE void meet(u32 id) {
  asm volatile("s_wait_dscnt 0\n s_mov_b32 m0, %0\n s_barrier_signal m0\n s_barrier_wait 1" :: "s"(id) : "memory");
}
// Each of two pairs of waves counts up in turn, without the other pair: a partner is never more than one ahead.
KERNEL void pairs(u32 *out) {
  SHARED u32 turn[4];
  u32 id = 1 + WAVE / 2, wrong = 0;
  if (WAVE == 0) { enter(1, 2); enter(2, 2); }
  turn[WAVE] = 0;
  GROUP;
  join(id);
  GROUP;
  for (u32 i = 1; i <= 6 + 20 * (id == 2); ++i) {
    for (u32 wait = 0; wait < 50 * (WAVE & 1); ++wait) asm volatile("s_sleep 1");
    turn[WAVE] = i;
    meet(id);
    wrong += turn[WAVE ^ 1] != i;
    meet(id);
  }
  out[X] = wrong * 100 + turn[WAVE];
}
// A wave that only signals: one works for the three that wait. The number of members comes with the signal.
KERNEL void one_for_all(u32 *out) {
  SHARED u32 made;
  if (WAVE == 0) enter(5, 100);
  GROUP;
  if (WAVE) join(5);
  GROUP;
  if (WAVE == 0) {
    for (u32 wait = 0; wait < 100; ++wait) asm volatile("s_sleep 1");
    made = 42;
    asm volatile("s_wait_dscnt 0\n s_mov_b32 m0, %0\n s_barrier_signal m0" :: "s"(5 | 1 << 16) : "memory");
    out[X] = 42;
  } else { asm volatile("s_barrier_wait 5" ::: "memory"); out[X] = made; }
}
// The same, where waves signal and do not wait.
KERNEL void hurried(u32 *out) {
  SHARED u32 turn[4];
  u32 id = 1 + WAVE / 2, wrong = 0;
  if (WAVE == 0) { enter(1, 2); enter(2, 2); }
  GROUP;
  join(id);
  GROUP;
  for (u32 i = 1; i <= 6; ++i) {
    turn[WAVE] = i;
    asm volatile("s_wait_dscnt 0\n s_mov_b32 m0, %0\n s_barrier_signal m0" :: "s"(id) : "memory");
    wrong += turn[WAVE ^ 1] != i;
  }
  out[X] = wrong;
}
KERNEL void states(u32 *out) {
  u32 before, scc, after;
  asm volatile("s_mov_b32 m0, %3\n s_barrier_init m0\n s_get_barrier_state %0, 3\n s_wait_kmcnt 0\n"
               "s_barrier_signal_isfirst 3\n s_cselect_b32 %1, 10, 20\n s_barrier_signal_isfirst 3\n"
               "s_addc_u32 %1, %1, 0\n s_get_barrier_state %2, m0\n s_wait_kmcnt 0"
               : "=&s"(before), "=&s"(scc), "=&s"(after) : "s"(3 | 9 << 16) : "scc", "memory");
  out[X] = before; out[X + 32] = scc; out[X + 64] = after;
}
KERNEL void nobody(u32 *out) {
  enter(1, 2);
  join(1);
  meet(1);
  out[X] = 1;
}
KERNEL void ahead(u32 *out) {
  u32 x = 1;
  asm volatile("s_add_pc_i64 4\n s_mov_b32 %0, 2" : "+s"(x));
  out[X] = x;
}
KERNEL void clusters(u32 *out) { asm volatile("s_barrier_signal -3" ::: "memory"); out[X] = 1; }
"""


class Compiled:
    """Kernels for a target, launched with one work-group of WAVES waves."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name

    def run(self, kernel: str, words: int = 32 * WAVES, waves: int = WAVES, type: type = np.uint32,
            options: LaunchOptions = TIMED) -> np.ndarray:
        out, device = np.zeros(words, type), EmulatorDevice(target(self.name), options=options)
        launch(device, self.data, kernel, [out], block=(32 * waves, 1, 1))
        self.findings = device.findings
        return out


@pytest.fixture(scope="module", params=["gfx1201", "gfx1250"])
def compiled(request, require_tool, tmp_path_factory):
    return compile_for(request.param, require_tool, tmp_path_factory, SOURCE + BOTH)


@pytest.fixture(scope="module")
def newer(require_tool, tmp_path_factory):
    return compile_for("gfx1250", require_tool, tmp_path_factory, SOURCE + NAMED)


def compile_for(name, require_tool, tmp_path_factory, source):
    folder = tmp_path_factory.mktemp(f"barriers-{name}")
    (folder / "k.hip").write_text(HEADER + source)
    flags = [f"--offload-arch={name}" if flag.startswith("--offload-arch") else flag for flag in FLAGS]
    command = [require_tool("clang-22"), *flags, str(folder / "k.hip"), "-o", str(folder / "k.co")]
    subprocess.run(command, check=True, capture_output=True)
    return Compiled((folder / "k.co").read_bytes(), name)


def test_one_wave_is_the_first(compiled):
    """In each of five rounds, whichever it is; where a wave is alone SCC stays, which compilers set before."""
    firsts = compiled.run("first").reshape(WAVES, 32)
    assert (firsts == firsts[:, :1]).all() and firsts[:, 0].sum() == 5
    assert set(compiled.run("first", 32, 1).tolist()) == {5}


def test_who_is_there(compiled):
    before, after = compiled.run("state", 64).reshape(2, 32)
    assert set(before.tolist()) == {WAVES << 4 | 1}
    assert {word & 0xFFF1 for word in after.tolist()} == {WAVES << 4 | 1}
    assert all(1 <= word >> 16 <= WAVES for word in after.tolist())


def test_barriers_of_trap_handlers_are_not_there(compiled):
    assert set(compiled.run("privileged").tolist()) == {5}


def test_time_comes_by_message(compiled):
    now = time.clock_gettime(time.CLOCK_MONOTONIC) * WALL_CLOCK_KHZ * 1000
    early, low, late, others = compiled.run("asked", 4, 1, np.uint64).tolist()
    assert now - 1 <= early <= late <= now + 120 * WALL_CLOCK_KHZ * 1000 and others == 0
    assert low >> 32 == 0 and (low - early) % (1 << 32) <= (late - early)


def test_messages_that_nobody_answers(compiled):
    with pytest.raises(Unsupported, match="message 0x84") as caught:
        compiled.run("unanswered", 4, 1, np.uint64)
    assert caught.value.where.kernel == "unanswered" and caught.value.where.pc


def test_pairs_of_waves_meet_without_the_others(newer):
    last = newer.run("pairs").reshape(WAVES, 32)
    assert last.tolist() == [[6] * 32] * 2 + [[26] * 32] * 2


def test_one_wave_signals_for_all(newer):
    assert set(newer.run("one_for_all").tolist()) == {42}


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_named_barriers_order_accesses(newer, seed):
    schedule = None if seed is None else Schedule(seed)
    watched = replace(TIMED, schedule=schedule, checks=ALL)
    last = newer.run("pairs", options=watched).reshape(WAVES, 32)
    assert last.tolist() == [[6] * 32] * 2 + [[26] * 32] * 2 and not newer.findings
    assert set(newer.run("one_for_all", options=watched).tolist()) == {42} and not newer.findings
    newer.run("hurried", options=replace(watched, checks=Checks.RACES))
    assert {found.kind for found in newer.findings} == {FindingKind.RACE}


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_who_is_first_is_no_mistake(compiled, seed):
    schedule = None if seed is None else Schedule(seed)
    watched = replace(TIMED, schedule=schedule, checks=ALL)
    firsts = compiled.run("first", options=watched).reshape(WAVES, 32)
    assert firsts[:, 0].sum() == 5 and not compiled.findings
    compiled.run("privileged", options=watched)  # which looks at SCC before it has waited
    assert [found.kind for found in compiled.findings] == [FindingKind.WAIT]


def test_what_a_named_barrier_says(newer):
    """Nine members, of which none has come, and then two: the first of them alone was the first."""
    before, firsts, after = newer.run("states", 96, 1).reshape(3, 32)
    assert set(before.tolist()) == {9 << 4 | 1} and set(after.tolist()) == {2 << 16 | 9 << 4 | 1}
    assert set(firsts.tolist()) == {10}


def test_a_partner_that_never_comes(newer):
    with pytest.raises(DeviceError, match="deadlock at a barrier"):
        newer.run("nobody", 32, 1)


def test_a_jump_over_an_instruction(newer):
    assert set(newer.run("ahead", 32, 1).tolist()) == {1}


def test_barriers_of_clusters_are_refused(newer):
    with pytest.raises(Unsupported, match="cluster"):
        newer.run("clusters", 32, 1)
