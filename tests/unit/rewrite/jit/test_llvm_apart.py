"""What LLVM makes no code of is an error that names the hook, not the end of the process."""

from __future__ import annotations

import os
import re

import pytest

from luthier_py.base import llvm
from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.tool import Hook, Hooks, Lane, array, device, hook, ptr, u32, u64

ISA = instruction_set(target("gfx90a"))


@device(depth=20000)
def deep(x: Lane[u32]) -> Lane[u32]:
    if x < 2:
        return x
    return deep(x - 1) + deep(x - 2)


@hook
def levels(o: ptr[u32], x: Lane[u32]) -> None:
    o[0] = deep(x)


@hook
def arrays(o: ptr[u32], x: Lane[u32]) -> None:
    first = array(u64, 4096)
    second = array(u64, 4096)
    third = array(u64, 4096)
    fourth = array(u64, 4096)
    first[x], second[x], third[x], fourth[x] = u64(1), u64(1), u64(1), u64(1)
    o[0] = u32(first[x + 1] + second[x + 2] + third[x + 3] + fourth[x + 4])


def refused(one: Hook) -> str:
    with pytest.raises(Unsupported) as error:
        compile_keys({PayloadKey(one, (None,) * len(one.signature.parameters)): None}, ISA)
    return error.value.message


def test_frames_that_are_too_large_are_told() -> None:
    found = refused(levels)
    assert re.search(r"test_llvm_apart.py:\d+: hook levels: LLVM makes no code of it .*: stack frame size", found)
    assert "fewer levels of recursion" in found


def test_arrays_that_are_too_large_together_are_told() -> None:
    assert "hook arrays: LLVM makes no code of it for gfx90a: stack frame size (131080) exceeds" in refused(arrays)


@pytest.mark.usefixtures("clang")
def test_frames_in_cpp_are_told_and_so_is_what_a_target_lacks() -> None:
    hooks = Hooks.from_hip("""
#include <luthier/hooks.h>
using namespace luthier;
LUTHIER_HOOK() void large(u32 *o, lane<u32> x) { u32 a[1 << 16]; a[x] = 1; o[0] = a[3]; }
LUTHIER_HOOK() void sine(u32 *o, lane<u32> x) { o[0] = __builtin_sin(f64(x)); }
""")
    assert "hook large: LLVM makes no code of it for gfx90a: stack frame size (262160) exceeds" in refused(hooks.large)
    assert "hook sine: LLVM makes no code of it for gfx90a" in refused(hooks.sine)


def test_a_child_gives_bytes_or_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert llvm.apart(lambda: b"x" * 100_000) == b"x" * 100_000
    with pytest.raises(Invalid, match="no such luck"):
        llvm.apart(lambda: raising("no such luck"))
    with pytest.raises(Invalid, match="without a word"):
        llvm.apart(os.abort)
    assert capfd.readouterr() == ("", "")


def raising(words: str) -> bytes:
    raise RuntimeError(words)
