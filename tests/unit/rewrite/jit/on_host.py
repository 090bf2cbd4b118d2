"""Hooks on this computer: the frontend's IR, compiled for the host instead of a GPU.

In: hooks with uniform numbers for parameters and results. Out: callables. Only words that name the GPU (calling
convention, address spaces) are changed in the IR.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

from luthier_py.base import llvm
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit.python.frontend import HookIr, hook_ir, module
from luthier_py.rewrite.tool import Hook

ISA = instruction_set(target("gfx90a"), 64)
WIDTH = 8  # bytes that a number takes in the buffers


def on_host(hooks: Sequence[Hook]) -> list[Callable[..., Any]]:
    """One callable per hook; it takes and gives Python numbers."""
    irs = [hook_ir(hook, (None,) * len(hook.signature.parameters), ISA) for hook in hooks]
    text = module(irs)
    text = re.sub(r" addrspace\([15]\)", "", re.sub(r", addrspace\(5\)", "", text)).replace("amdgpu_cs ", "")
    text = text.replace(" inreg", "") + "".join(_wrapper(i, ir) for i, ir in enumerate(irs))
    code = llvm.HostCode(llvm.host_object(text, llvm.Effort.OPTIMISE), [f"run{i}" for i in range(len(irs))], {})
    return [_callable(code, i, hook, ir) for i, (hook, ir) in enumerate(zip(hooks, irs, strict=True))]


def _wrapper(index: int, ir: HookIr) -> str:
    header = ir.function.partition("\n")[0].replace(" inreg", "").replace("amdgpu_cs ", "")
    result = header.removeprefix("define ").partition(" @hook")[0]
    types = re.findall(r"(\w+) %p\d+", header)
    parts = re.findall(r"i32|i64", result)
    lines = [f"define void @run{index}(ptr %in, ptr %out) {{"]
    for k, type in enumerate(types):
        lines += [f"%i{k} = getelementptr i64, ptr %in, i32 {k}", f"%a{k} = load {type}, ptr %i{k}"]
    args = ", ".join(f"{type} %a{k}" for k, type in enumerate(types))
    lines.append(f"%r = call {result} @h{index}({args})")
    for k, type in enumerate(parts):
        lines.append(f"%o{k} = getelementptr i64, ptr %out, i32 {k}")
        if len(parts) == 1:
            lines.append(f"store {type} %r, ptr %o{k}")
        else:
            lines += [f"%e{k} = extractvalue {result} %r, {k}", f"store {type} %e{k}, ptr %o{k}"]
    return "\n".join([*lines, "ret void", "}", ""])


def _callable(code: llvm.HostCode, index: int, hook: Hook, ir: HookIr) -> Callable[..., Any]:
    run = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)(code.address(f"run{index}"))
    taken = sorted(ir.params, key=lambda seat: seat.index)
    given = sorted(ir.results, key=lambda seat: seat.index)

    def call(*args: Any) -> Any:
        numbers = [(seat.type, seat.type(args[seat.position])) for seat in taken]
        data = b"".join(type.pack(number).ljust(WIDTH, b"\0") for type, number in numbers)
        out = ctypes.create_string_buffer(WIDTH * max(1, len(given)))
        run(data, out)
        found = {}
        for k, seat in enumerate(given):
            found[seat.position] = seat.type.unpack(out.raw[WIDTH * k :][: seat.type.size_bytes])
        values = tuple(found[i] for i in range(len(found)))
        return values if len(hook.signature.results) != 1 else values[0]

    call.code = code  # type: ignore[attr-defined]  # keeps the machine code alive
    return call
