"""Hooks of recorded edits to payloads: each hook with the constants that are folded into it is compiled once.

In: Edits and an InstructionSet. Out: payloads by key. Invariant: the same IR, target and LLVM give the same code, so
code is cached in the process and on disk under a hash of these.
"""

from __future__ import annotations

from functools import lru_cache

from luthier_py.base import llvm
from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.base.late_modules import llvmlite_version
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.jit import cache, fragment
from luthier_py.rewrite.jit.bitcode.native_link import calls_bitcode, with_natives
from luthier_py.rewrite.jit.called import needs_stack, with_stack
from luthier_py.rewrite.jit.inserted_text import has_text, with_text, without_text
from luthier_py.rewrite.jit.object import Code, functions
from luthier_py.rewrite.jit.payload import Payload, PayloadKey, payload_key
from luthier_py.rewrite.jit.python.frontend import HookIr, hook_ir, module
from luthier_py.rewrite.llvm_text.functions import read_alloca
from luthier_py.rewrite.llvm_text.names import array_of
from luthier_py.rewrite.tool import Assembly, Edits, Hook

_LARGE_BYTES = 1 << 16  # of arrays: LLVM takes half of a frame more, and what it spills
_WIDEST_BYTES = 8       # of a number
_ADVICE = "use smaller arrays, fewer levels of recursion, and what this target has"
_codes: dict[str, Code] = {}
_payloads: dict[tuple[Hook, str], Payload] = {}  # by the name of their code


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
    hooks = {ir.function: key.hook for key, ir in irs.items()}
    codes = _load_or_compile({_name(ir, isa): ir for ir in irs.values()}, isa, compiled, hooks)
    for key, ir in irs.items():
        if needs_stack(codes[_name(ir, isa)], isa):
            irs[key] = with_stack(ir)
    hooks |= {ir.function: key.hook for key, ir in irs.items()}
    codes |= _load_or_compile({_name(ir, isa): ir for ir in irs.values() if ir.called}, isa, compiled, hooks)
    return {
        key: _payload(key.hook, irs[key], codes, isa) if key in irs else fragment.payload_of_text(key.hook, isa)
        for key in keys
    }


def _payload(hook: Hook, ir: HookIr, codes: dict[str, Code], isa: InstructionSet) -> Payload:
    """The same for all kernels: what is proved of a large hook takes longer than all else of a copy."""
    name = _name(ir, isa)
    if (hook, name) not in _payloads:
        _payloads[hook, name] = fragment.payload(hook, codes[name], ir, isa)
    return _payloads[hook, name]


def _load_or_compile(
    wanted: dict[str, HookIr], isa: InstructionSet, compiled: set[str], hooks: dict[str, Hook]
) -> dict[str, Code]:
    """Code by cache key. ``hooks``: by text."""
    for name in wanted.keys() - _codes.keys():
        kept = cache.read(name)
        if kept is not None:
            _codes[name] = Code.unpack(kept)
    missing = [name for name in wanted if name not in _codes]
    compiled.update(missing)
    apart = [name for name in missing if _may_fail(wanted[name])]
    together = [name for name in missing if name not in apart]
    made = (
        dict(zip(together, _compile_module(module([wanted[name] for name in together]), isa), strict=True))
        if together
        else {}
    )
    for name in apart:
        (made[name],) = _compile_in_child(module([wanted[name]]), isa, hooks[wanted[name].function])
    for name, code in made.items():
        _codes[name] = code
        cache.write(name, code.pack())
    return {name: _codes[name] for name in wanted}


def _may_fail(ir: HookIr) -> bool:
    """Whether it has what LLVM may make no code of: separately linked code, assembly, large arrays."""
    found = (array_of(each.type) for each in map(read_alloca, ir.function.splitlines()) if each is not None)
    arrays = sum(length * (element.count(",") + 1) for length, element in filter(None, found))
    return ir.alone or has_text(ir.function) or arrays * _WIDEST_BYTES >= _LARGE_BYTES


def _compile_module(text: str, isa: InstructionSet) -> list[Code]:
    """Code of a module's functions."""
    found = functions(llvm.amdgpu_object(text, isa.target.name, isa.wave_size))
    return [found[f"h{i}"] for i in range(len(found))]


def _compile_in_child(text: str, isa: InstructionSet, hook: Hook) -> list[Code]:
    """The same, with assembly perhaps, where LLVM may fail; raises Unsupported."""
    target, bare = (isa.target.name, isa.wave_size), without_text(text)
    try:
        if has_text(text):
            listing = llvm.apart(lambda: llvm.amdgpu_listing(text, *target).encode()).decode()
            made = llvm.amdgpu_object(bare, *target)  # the same, but for comments
        else:
            listing, made = "", llvm.apart(lambda: llvm.amdgpu_object(bare, *target))
    except Invalid as error:
        raise Unsupported(f"{hook.place}: hook {hook.name}: LLVM makes no code of it for {isa.target.name}: "
                          f"{error.message}; {_ADVICE}") from error
    found = functions(made)
    return [with_text(code, listing, name, isa) if listing else code for name, code in found.items()]


def payload_name(key: PayloadKey, isa: InstructionSet) -> str:
    """The cache key of its code: equal for equal code; raises HookError."""
    if isinstance(key.hook.function, Assembly):
        return key.hook.function.code.hex()
    return _name(_ir(key, isa), isa)


def makes_pointers(key: PayloadKey, isa: InstructionSet) -> bool:
    """Whether it makes a pointer of a number."""
    return not isinstance(key.hook.function, Assembly) and " inttoptr " in _ir(key, isa).function


@lru_cache(maxsize=1 << 12)
def _ir(key: PayloadKey, isa: InstructionSet) -> HookIr:
    ir = hook_ir(key.hook, key.constants, isa)
    return with_natives(key.hook, ir, isa) if calls_bitcode(ir) else ir


def _name(ir: HookIr, isa: InstructionSet) -> str:
    return cache.key(ir.function, isa.target.name, str(isa.wave_size), *llvm.OPTIONS, llvmlite_version())
