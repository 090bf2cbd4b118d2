"""What LLVM itself offers to code, and hooks may call: computing, values of other lanes, copies in memory.

In: the module of a hook, and the units that it is made of. Out: nothing; Unsupported names what else it calls, and
where its source does. Invariant: what is not listed is refused: code in the middle of an application's kernel does not
get what a kernel's own code would, ids and addresses that the hardware leaves in registers, barriers, a MODE to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from luthier_py.base.errors import Unsupported
from luthier_py.rewrite.llvm_text.functions import find_callees
from luthier_py.rewrite.llvm_text.modules import fields_of, locations_of
from luthier_py.rewrite.tool.cpp.device_ir import DeviceIr
from luthier_py.rewrite.tool.hooks.hook import Hook

_OF_INTEGERS = (
    "abs smax smin umax umin bswap bitreverse ctpop ctlz cttz fshl fshr scmp ucmp sadd uadd ssub usub smul umul sshl "
    "ushl"
)
_OF_FLOATS = (
    "fabs fma fmuladd sqrt floor ceil trunc rint nearbyint round roundeven copysign minnum maxnum minimum maximum "
    "minimumnum maximumnum canonicalize is.fpclass ldexp frexp modf exp exp2 exp10 log log2 log10 pow powi sin cos tan "
    "lrint llrint lround llround fptosi.sat fptoui.sat convert.to.fp16 convert.from.fp16"
)
_OF_COMPILERS = (
    "expect assume is.constant objectsize lifetime dbg donothing sideeffect experimental.noalias.scope.decl invariant "
    "launder.invariant.group strip.invariant.group annotation ptr.annotation var.annotation ssa.copy ptrmask"
)
_OF_MEMORY = "memcpy memmove memset readcyclecounter readsteadycounter"
_OF_VECTORS = "vector.reduce vector.insert vector.extract vector.reverse vector.splice"
_OF_THE_GPU = (  # computing
    "alignbyte alignbit bfe bfi bfm bitop3 class cos cubeid cubema cubesc cubetc cvt div.fixup div.fmas div.scale exp2 "
    "fdiv.fast fdot2 fma.legacy fmad.ftz fmed3 fmul.legacy fract frexp.exp frexp.mant ldexp lerp log log.clamp "
    "mqsad msad mul.i24 mul.u24 mulhi.i24 mulhi.u24 perm qsad rcp rsq s.bitreplicate s.quadmask s.wqm sad sbfe sdot2 "
    "sdot4 sdot8 sffbh sin sqrt sudot4 sudot8 tanh trig.preop ubfe udot2 udot4 udot8 wavefrontsize"
)
_OF_LANES = (
    "ballot ds.bpermute ds.permute ds.swizzle fcmp icmp inverse.ballot mbcnt.hi mbcnt.lo mov.dpp mov.dpp8 permlane16 "
    "permlane32 permlane64 permlanex16 readfirstlane readlane update.dpp wave.reduce writelane"
)
_OF_TIME = "s.memtime s.memrealtime s.sleep s.getreg wave.barrier sched.barrier sched.group.barrier"
_GPU = "amdgcn."
_ALLOWED = {
    *" ".join([_OF_INTEGERS, _OF_FLOATS, _OF_COMPILERS, _OF_MEMORY, _OF_VECTORS]).split(),
    *(f"{_GPU}{name}" for name in " ".join([_OF_THE_GPU, _OF_LANES, _OF_TIME]).split()),
}

_ID = 'pass {}("x") (or "y", "z") to it as an argument'
_MODE = "a hook says how its floats are rounded as @hook(mode=...), in C++ application_mode"
_INSTEAD = {
    "amdgcn.workitem.id": _ID.format("workitem_id"),
    "amdgcn.workgroup.id": _ID.format("workgroup_id"),
    "amdgcn.workgroup.size": _ID.format("workgroup_size"),
    "amdgcn.dispatch.ptr": 'pass workgroup_size("x"), grid_size("x") or DISPATCH_PTR to it as an argument',
    "amdgcn.dispatch.id": "pass DISPATCH_ID to it as an argument",
    "amdgcn.queue.ptr": "pass QUEUE_PTR to it as an argument",
    "amdgcn.implicitarg.ptr": 'pass workgroup_size("x"), grid_size("x") or kernel_argument(...) to it as an argument',
    "amdgcn.kernarg.segment.ptr": "pass kernel_argument(...) or KERNARG_PTR to it as an argument",
    "amdgcn.lds.kernel.id": "pass what it needs to it as an argument",
    "amdgcn.s.setreg": _MODE,
    "set.rounding": _MODE,
    "set.fpmode": _MODE,
    "amdgcn.s.barrier": "hooks cannot wait for other waves at barriers",
    "trap": "a hook cannot end the wave; push a record, or assert in Python",
    "stacksave": "give arrays a length that is known when the hook is compiled",
    "amdgcn.mfma": "matrix instructions take what all lanes have, of those that are not active too",
    "amdgcn.endpgm": "a hook cannot end the wave; use if",
}
_NEITHER = ("it neither computes, nor takes values of lanes, nor loads and stores by pointers; pass what it gives as "
            "an argument, or leave it out")


def check_calls(hook: Hook, text: str, units: Iterable[DeviceIr], start: Iterable[str]) -> None:
    """``text``: the hook's module, in which nothing else is called any more. ``start``: functions of the units that it
    was made of. Raises Unsupported."""
    for called in find_callees(text):
        name = called.removeprefix("llvm.")
        if not _is_among(name, _ALLOWED):
            why = next((instead for key, instead in _INSTEAD.items() if _is_among(name, {key})), _NEITHER)
            caller = next(_callers(called, units, start), "")
            raise Unsupported(f"{hook.place}: hook {hook.name} calls llvm.{name}{caller and f' in {caller}'}: {why}")


def _is_among(name: str, names: Iterable[str]) -> bool:
    """Whether it is one of these, perhaps with types behind it."""
    return any(name == each or name.startswith(f"{each}.") for each in names)


def _callers(called: str, units: Iterable[DeviceIr], start: Iterable[str]) -> Iterator[str]:
    """Functions and lines of the source that have such a call."""
    for unit in units:
        reached = (name for symbol in start if symbol in unit.symbols for name in unit.collect_reachable(symbol))
        for text in map(unit.symbols.__getitem__, reached):
            for line in text.splitlines() if text.startswith("define ") else ():
                if called in find_callees(line):
                    yield from (place for number in locations_of(line) for place in _place(unit, number))


def _place(unit: DeviceIr, number: int) -> Iterator[str]:
    location = fields_of(unit.nodes[number])
    scope, line = location.get("scope"), location.get("line")
    if not isinstance(scope, int):
        return
    file = fields_of(unit.nodes[scope]).get("file")
    while isinstance(scope, int) and not unit.nodes[scope].startswith("!DISubprogram"):
        scope = fields_of(unit.nodes[scope]).get("scope")
    if isinstance(file, int) and isinstance(scope, int) and "name" in (function := fields_of(unit.nodes[scope])):
        yield f"{function['name']} ({fields_of(unit.nodes[file]).get('filename')}:{line})"
