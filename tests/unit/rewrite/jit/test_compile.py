"""Compiling edits: once per hook and constants, kept in the process and on disk; no LLVM when nothing is new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hook_files import load_text

from luthier_py.base import llvm
from luthier_py.isa import InstructionSet, OpFlag, instruction_set, target
from luthier_py.rewrite.jit import PayloadKey, compile, compile_hooks, compile_keys, payload_key
from luthier_py.rewrite.tool import (
    Constant,
    Edits,
    Hook,
    Insertion,
    Place,
    Variable,
    WaveVariable,
    f32,
    hook,
    ptr,
    u32,
    u64,
)

pytestmark = pytest.mark.usefixtures("own_cache")


@hook
def add(count: u64, n: u32) -> u64:
    return count + n


@hook(lanes="one")
def keep(total: ptr[u64], count: u64) -> None:
    total[0] = count


@hook
def same_as_add(count: u64, n: u32) -> u64:
    return count + n


@hook
def scaled(x: f32, by: f32) -> f32:
    return x * by


@pytest.fixture
def isa() -> InstructionSet:
    return instruction_set(target("gfx90a"), 64)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that LLVM was given, from an empty process cache on."""
    texts: list[str] = []
    emit = llvm.amdgpu_object

    def counted(text: str, cpu: str, wave_size: int) -> bytes:
        texts.append(text)
        return emit(text, cpu, wave_size)

    monkeypatch.setattr(llvm, "amdgpu_object", counted)
    monkeypatch.setattr(compile, "_codes", {})
    return texts


def key(hook: Hook, *constants: Constant | None) -> PayloadKey:
    return PayloadKey(hook, constants)


def keys(*wanted: PayloadKey) -> dict[PayloadKey, None]:
    return dict.fromkeys(wanted)


def test_each_hook_and_constant_is_compiled_once(isa: InstructionSet, calls: list[str]) -> None:
    total, count = Variable(u64), WaveVariable(u64)
    instr: Any = object()

    def insertion(order: int, used: Hook, *args: Any, into: tuple[Any, ...] = ()) -> Insertion:
        return Insertion(((instr, Place.BEFORE),), used, args, into, order)

    insertions = [insertion(i, add, count, 10 + i % 3, into=(count,)) for i in range(9)]
    insertions.append(insertion(9, keep, total, count))
    payloads = compile_hooks(Edits(tuple(insertions), (total,), (count,)), isa)
    assert len(payloads) == 4 and len(calls) == 1
    assert calls[0].count("define amdgpu_cs") == 4
    assert [len(payloads[payload_key(i)].params) for i in insertions] == [1] * 9 + [2]


def test_the_same_code_under_two_names_is_one(isa: InstructionSet, calls: list[str]) -> None:
    payloads = compile_keys(keys(key(add, None, 3), key(same_as_add, None, 3)), isa)
    assert len(payloads) == 2 and calls[0].count("define amdgpu_cs") == 1


def test_disk_cache(isa: InstructionSet, calls: list[str], own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_keys(keys(key(add, None, 3)), isa)[key(add, None, 3)]
    monkeypatch.setattr(compile, "_codes", {})
    again = compile_keys(keys(key(add, None, 3)), isa)[key(add, None, 3)]
    assert len(calls) == 1
    assert [i.raw for i in again.instrs] == [i.raw for i in first.instrs] and again.params == first.params
    files = [path for path in own_cache.rglob("*") if path.is_file()]
    assert len(files) == 1
    for damage in (b"", b"short", files[0].read_bytes()[:-1], files[0].read_bytes() + b"x"):
        files[0].write_bytes(damage)
        monkeypatch.setattr(compile, "_codes", {})
        compile_keys(keys(key(add, None, 3)), isa)
    assert len(calls) == 5


def test_targets_and_wave_sizes_do_not_mix(isa: InstructionSet, calls: list[str]) -> None:
    for name, wave_size in (("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32), ("gfx1100", 64)):
        compile_keys(keys(key(add, None, 3)), instruction_set(target(name), wave_size))
    assert len(calls) == 4


def test_a_cache_that_cannot_be_used_is_no_error(
    isa: InstructionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(blocked / "below"))
    monkeypatch.setattr(compile, "_codes", {})
    assert compile_keys(keys(key(add, None, 5)), isa)


def test_float_constants(isa: InstructionSet, calls: list[str]) -> None:
    made = compile_keys(keys(key(scaled, None, 2.0), key(scaled, None, 0.1)), isa)
    texts = ["\n".join(map(isa.text, payload.instrs)) for payload in made.values()]
    assert "0x3dcccccd" not in texts[0] and "0x3dcccccd" in texts[1]


def test_kept_code_needs_no_llvm(own_cache: Path, isa: InstructionSet, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from luthier_py.isa import instruction_set, target\n"
        "from luthier_py.rewrite.jit import PayloadKey, compile_keys\n"
        "from luthier_py.rewrite.tool import hook, u32, u64\n"
        "@hook\ndef add(count: u64, n: u32) -> u64:\n    return count + n\n"
        "assert 'llvmlite' not in sys.modules\n"
        "compile_keys({PayloadKey(add, (None, 9)): None}, instruction_set(target('gfx90a'), 64))\n"
        "print('llvmlite' in sys.modules)\n"
    )
    root = Path(__file__).parents[4]
    runs = [
        subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, cwd=root,
                       env={"PYTHONPATH": str(root), "LUTHIER_CACHE_DIR": str(own_cache)}).stdout.strip()
        for _ in range(2)
    ]
    assert runs == ["True", "False"]


def test_hooks_that_are_wanted_together_are_compiled_together(isa: InstructionSet, calls: list[str]) -> None:
    for n in range(2, 7):
        compile_keys(keys(key(add, None, n), key(keep, None, n)), isa)
    assert len(calls) == 5


def test_the_example_of_the_manual(isa: InstructionSet, tmp_path: Path) -> None:
    manual = (Path(__file__).parents[4] / "docs" / "device-python.md").read_text()
    example = load_text(tmp_path, manual.split("```python\n")[1].partition("```")[0])
    made = compile_keys(keys(key(example.trace, None, None, None)), isa)[key(example.trace, None, None, None)]
    assert sum(bool(inst.op.flags & OpFlag.ATOMIC) for inst in made.instrs) == 1
