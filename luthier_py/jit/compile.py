"""Hooks of recorded edits to payloads: each hook with the constants that are folded into it is compiled once.

In: Edits and an InstructionSet. Out: payloads by key. Invariant: the same IR, target and LLVM give the same code, so
code is kept in the process and on disk under a hash of these.
"""

from __future__ import annotations

from functools import cache as memoize
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from luthier_py import llvm
from luthier_py.isa import InstructionSet
from luthier_py.jit import cache, fragment
from luthier_py.jit.called import needs_stack, with_stack
from luthier_py.jit.frontend import HookIr, hook_ir, module
from luthier_py.jit.inserted_text import has_text, with_text, without_text
from luthier_py.jit.native_link import calls_bitcode, with_natives
from luthier_py.jit.object import Code, functions
from luthier_py.jit.payload import Payload, PayloadKey, payload_key
from luthier_py.tool import Assembly, Edits

_codes: dict[str, Code] = {}


def compile_hooks(edits: Edits, isa: InstructionSet, compiled: set[str] | None = None) -> dict[PayloadKey, Payload]:
    """Payloads of all hooks that ``edits`` insert; raises HookError, Unsupported.

    ``compiled`` gets the cache keys of those that were not in the cache.
    """
    return compile_keys(dict.fromkeys(map(payload_key, edits.insertions)), isa, compiled)


def compile_keys(
    keys: dict[PayloadKey, None], isa: InstructionSet, compiled: set[str] | None = None
) -> dict[PayloadKey, Payload]:
    """Payloads of the given hooks and constants, in one LLVM module."""
    irs = {key: _ir(key, isa) for key in keys if not isinstance(key.hook.function, Assembly)}
    compiled = compiled if compiled is not None else set()
    codes = _compiled({_name(ir, isa): ir for ir in irs.values()}, isa, compiled)
    for key, ir in irs.items():
        if needs_stack(codes[_name(ir, isa)], isa):
            irs[key] = with_stack(ir)
    codes |= _compiled({_name(ir, isa): ir for ir in irs.values() if ir.called}, isa, compiled)
    return {
        key: fragment.payload(key.hook, codes[_name(irs[key], isa)], irs[key], isa)
        if key in irs else fragment.payload_of_text(key.hook, isa) for key in keys
    }


def _compiled(wanted: dict[str, HookIr], isa: InstructionSet, compiled: set[str]) -> dict[str, Code]:
    """Code by cache key."""
    for name in wanted.keys() - _codes.keys():
        kept = cache.read(name)
        if kept is not None:
            _codes[name] = Code.unpacked(kept)
    missing = [name for name in wanted if name not in _codes]
    compiled.update(missing)
    apart = [name for name in missing if wanted[name].alone or has_text(wanted[name].function)]
    together = [name for name in missing if name not in apart]
    for names in ([together] if together else []) + [[name] for name in apart]:
        made = _made(module([wanted[name] for name in names]), isa)
        for i, name in enumerate(names):
            _codes[name] = made[f"h{i}"]
            cache.write(name, _codes[name].packed())
    return {name: _codes[name] for name in wanted}


def _made(text: str, isa: InstructionSet) -> dict[str, Code]:
    """Code of a module's functions."""
    found = functions(llvm.amdgpu_object(without_text(text), isa.target.name, isa.wave_size))
    if has_text(text):
        listing = llvm.amdgpu_listing(text, isa.target.name, isa.wave_size)
        found = {name: with_text(code, listing, name, isa) for name, code in found.items()}
    return found


def payload_name(key: PayloadKey, isa: InstructionSet) -> str:
    """The cache key of its code: equal for equal code; raises HookError."""
    if isinstance(key.hook.function, Assembly):
        return key.hook.function.code.hex()
    return _name(_ir(key, isa), isa)


@lru_cache(maxsize=1 << 12)
def _ir(key: PayloadKey, isa: InstructionSet) -> HookIr:
    ir = hook_ir(key.hook, key.constants, isa)
    return with_natives(key.hook, ir, isa) if calls_bitcode(ir) else ir


def _name(ir: HookIr, isa: InstructionSet) -> str:
    return cache.key(ir.function, isa.target.name, str(isa.wave_size), *llvm.OPTIONS, _llvm_version())


@memoize
def _llvm_version() -> str:
    try:
        return version("llvmlite")
    except PackageNotFoundError:
        return ""
