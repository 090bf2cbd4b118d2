"""Hooks that read the application's LDS and private memory: what is there is what its own instructions get."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from luthier_py.emulator import EmulatorDevice
from luthier_py.intrinsics import atomic_add
from luthier_py.ir import Instr
from luthier_py.isa import AddressForm
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.samples import sample
from luthier_py.session.demo import launch_of
from luthier_py.session.run import run_instrumented, run_original
from luthier_py.tool import Hook, Lane, Mutator, Tool, Variable, address, destination, hook, lds, ptr, scratch, u32, u64

MOST = 512


@hook
def in_lds(sums: ptr[u64], place: Lane[lds[u32]], dword: u32, number: u32) -> None:
    atomic_add(sums + number, u64(place[dword]))


@hook
def given(sums: ptr[u64], value: Lane[u32], number: u32) -> None:
    atomic_add(sums + number, u64(value))


def dwords(instr: Instr) -> Iterator[tuple[int, int, int]]:
    """Element, dword of it, and dword of the destination."""
    access = instr.memory
    assert access is not None and access.bytes is not None
    each = access.bytes // 4
    for element in range(len(access.offsets)):
        yield from ((element, k, element * each + k) for k in range(each))


def reads(m: Mutator, form: AddressForm) -> Iterator[Instr]:
    for function in m.functions():
        for instr in m.instrs(function):
            access = instr.memory
            if access is not None and access.form is form and access.kind == 1 and (access.bytes or 0) >= 4:
                yield instr


class Read(Tool):
    """What is in LDS where instructions read, and what they get."""

    before = Variable(u64, MOST)
    after = Variable(u64, MOST)
    shift = 0

    def instrument(self, m: Mutator) -> None:
        self.instrument_each(m, AddressForm.LDS, in_lds)

    def instrument_each(self, m: Mutator, form: AddressForm, one: Hook) -> None:
        number = 0
        for instr in reads(m, form):
            for element, dword, into in dwords(instr):
                m.before(instr, one, self.before, address(instr, element), dword + self.shift, number)
                m.after(instr, given, self.after, destination(instr, dword=into), number)
                number += 1
        self.count = number

    def report(self, launch):
        return {"before": launch[self.before], "after": launch[self.after], "count": self.count}


def ran(name: str, tool: Tool, code: bytes = b""):
    one = sample(name)
    code, launch = code or one.path.read_bytes(), launch_of(one)
    device = EmulatorDevice(load(code).target)
    before = run_original(device, code, launch).outputs
    after = run_instrumented(device, instrument(code, tool), tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    return after.report


@pytest.mark.parametrize("name", ["reduce", "matmul", "bitonic_sort", "transpose_padded", "lds_widths"])
def test_what_is_in_lds_is_what_instructions_read(name: str) -> None:
    report = ran(name, Read())
    assert report["count"] > 0 and report["before"] == report["after"] and any(report["before"])


TARGETS = ["gfx900", "gfx90a", "gfx942"]
OPTIONS = ("-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none "
           "-Xclang -target-feature -Xclang +enable-flat-scratch").split()


@pytest.fixture(scope="module", params=TARGETS)
def with_scratch_instructions(request, require_tool, tmp_path_factory) -> bytes:
    """The sample `scratch`, in which private memory is no buffer."""
    path = tmp_path_factory.mktemp("near") / "scratch.co"
    source = sample("scratch").path.with_suffix(".hip")
    subprocess.run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={request.param}", source, "-o", path],
                   check=True)
    return path.read_bytes()


@hook
def in_scratch(sums: ptr[u64], place: Lane[scratch[u32]], dword: u32, number: u32) -> None:
    atomic_add(sums + number, u64(place[dword]))


class ReadPrivate(Read):
    def instrument(self, m: Mutator) -> None:
        self.instrument_each(m, AddressForm.SCRATCH, in_scratch)


def test_what_is_in_private_memory_is_what_instructions_read(with_scratch_instructions: bytes) -> None:
    report = ran("scratch", ReadPrivate(), with_scratch_instructions)
    assert report["count"] > 0 and report["before"] == report["after"] and any(report["before"])
