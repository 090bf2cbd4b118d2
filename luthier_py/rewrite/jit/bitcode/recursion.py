"""Recursion of hooks, taken out of LLVM's text: functions that call themselves become loops over frames of their own.

In: a module in which functions that call themselves, or each other, are not inlined; their greatest depth. Out: the
module without such calls. Invariant: there is a frame for each level that is declared; a call that would need one more
is not made, gives 0, and is reported to the hook (`TOO_DEEP`). Lanes of a wave may be at different levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from luthier_py.base.errors import Unsupported
from luthier_py.rewrite.jit.bitcode.frames import TOO_DEEP, FramedLoop
from luthier_py.rewrite.jit.python.builder import PRIVATE
from luthier_py.rewrite.llvm_text.functions import (
    TextCall,
    TextFunction,
    find_derived_pointers,
    insert_at_start,
    label_of,
    read_alloca,
    read_call,
    rename_sources,
    rewrite_calls,
)
from luthier_py.rewrite.llvm_text.modules import (
    add_attribute,
    functions_of,
    remove_attribute,
    rewrite_functions,
    without_declarations,
)
from luthier_py.rewrite.llvm_text.names import rename_values, symbol_of, symbols_in, values_in
from luthier_py.rewrite.tool.cpp.device_ir import Depth

DEEPEST = "luthier.deepest"  # asks for what TOO_DEEP was called with, or 0
SIMPLER = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "tail_call_elimination", "simplify_cfg",
           "lower_switch", "instruction_namer")  # fmt: skip
"""Passes that leave less to keep in frames, and each value a name."""
IN_MEMORY = "register_to_memory", "instruction_namer"
"""Passes after which no value lives on from one block to another."""

def recursive(text: str) -> list[frozenset[str]]:
    """Functions of a module that call themselves or each other, those together that do."""
    calls = {name: set(symbols_in(part.partition("\n")[2])) for name, part in functions_of(text)}
    reached = {name: _collect_reachable(name, calls) for name in calls}
    groups = {frozenset(other for other in reached[name] if name in reached[other])
              for name in calls if name in reached[name]}
    return sorted(groups, key=min)


def _collect_reachable(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    found, todo = set[str](), [name]
    while todo:
        new = (calls[todo.pop()] & calls.keys()) - found
        found |= new
        todo += new
    return found


def without_recursion(text: str, depths: Mapping[str, Depth], passes: Callable[..., str], where: str) -> str:
    """``passes``: a module after LLVM's passes of the given names. Raises Unsupported where no depth is declared."""
    for group in recursive(text):
        text = rewrite_functions(text, group, lambda part: remove_attribute(part, "alwaysinline"))
    text = passes(text, *SIMPLER)
    groups = recursive(text)
    kept = {name: _same_at_each_level(part) for group in groups for name, part in functions_of(text, group)}
    for group in groups:
        text = rewrite_functions(text, group, lambda part, group=group: _prepare_for_frames(part, group, kept, where))  # type: ignore[misc]
    text = passes(text, *IN_MEMORY) if groups else text
    for group in groups:
        declared = [depths[name] for name in sorted(group) if name in depths]
        if not declared:
            raise Unsupported(f"{where} calls {min(group)}, which calls itself: declare how deep, with "
                              "LUTHIER_DEPTH(levels) before it, or use a loop")
        parts = [TextFunction.read(part) for _, part in functions_of(text, group)]
        same = kept[parts[0].name] if len(group) == 1 else frozenset[int]()
        depth = min(declared, key=lambda each: each.levels)
        loops = {part.name: FramedLoop(parts, same, depth, where) for part in parts}
        text = rewrite_functions(text, group, lambda part, loops=loops: loops[symbol_of(part)].text(symbol_of(part)))  # type: ignore
    ending = f"\ndeclare void @{TOO_DEEP}(i64)\n" if groups else ""
    return add_attribute(text, "alwaysinline", "define internal ") + ending  # all but the hook


def with_deepest(text: str) -> str:
    """A module that has the hook alone, which gets what exceeded the depth."""
    if f"@{DEEPEST}(" not in text and f"@{TOO_DEEP}(" not in text:
        return text
    where = f"ptr {PRIVATE} %deepest"

    def note(call: TextCall) -> str:
        return f"{call.start}store i64 {call.arguments[0].value}, {where}"

    text = rewrite_calls(without_declarations(text, (TOO_DEEP, DEEPEST)), TOO_DEEP, note)
    text = rewrite_calls(text, DEEPEST, lambda call: f"{call.start}load i64, {where}")
    return insert_at_start(text, f"  %deepest = alloca i64, {PRIVATE}\n  store i64 0, ptr {PRIVATE} %deepest\n")


def _same_at_each_level(text: str) -> frozenset[int]:
    """Parameters that the function gives itself as they are."""
    function = TextFunction.read(text)
    calls = [call for call in map(read_call, function.lines) if call is not None and call.callee == function.name]
    return frozenset(at for at, (_, name) in enumerate(function.parameters)
                     if all(call.arguments[at].value == name for call in calls))


def _prepare_for_frames(text: str, group: frozenset[str], kept: Mapping[str, frozenset[int]], where: str) -> str:
    """Its arguments are values of the entry block, and each call of the group ends a block."""
    function = TextFunction.read(text)
    if any(not type for type, _ in function.parameters):
        raise Unsupported(f"{where} calls {function.name}, which calls itself and takes or gives a structure in "
                          "memory; give it a pointer instead")
    same = kept[function.name] if len(group) == 1 else frozenset[int]()
    given = [(type, name) for at, (type, name) in enumerate(function.parameters) if at not in same]
    own = {name: f"%argument{at}" for at, (_, name) in enumerate(given)}
    body = text.partition("\n")[2]
    body = rename_values(body, lambda name: own.get(name, name))
    lines, count = [function.header], 0
    for line in body.splitlines():
        lines.append(line)
        if label_of(line) and len(lines) == 2:
            lines += [f"  {own[name]} = freeze {type} {name}" for type, name in given]
        call = read_call(line)
        if call is not None and call.callee in group:
            lines += [f"  br label %after.call{count}", "", f"after.call{count}:"]
            count += 1
    return _with_own_addresses(_phis_renamed("\n".join(lines) + "\n"))


def _with_own_addresses(text: str) -> str:
    """Each block works out the addresses of arrays for itself: as values in memory they would be of unknown memory."""
    function = TextFunction.read(text)
    arrays = {found.name for found in map(read_alloca, function.lines) if found is not None}
    derived: dict[str, str] = {}
    while True:
        more = {name: line for line in function.lines for name, base in find_derived_pointers(line)
                if base in arrays | derived.keys() and name not in derived}
        if not more:
            break
        derived |= more
    lines = [function.header]
    for number, (label, body) in enumerate(function.blocks.items()):
        lines += [f"{label}:", *_block_with_addresses(body, derived, f".{number}"), ""]
    return "\n".join([*lines[:-1], "}", ""])


def _block_with_addresses(body: Sequence[str], derived: Mapping[str, str], suffix: str) -> list[str]:
    phis = [line for line in body if " = phi " in line]
    rest = "\n".join(body[len(phis):])
    derived = {name: line for name, line in derived.items() if line not in body}
    used, todo = set[str](), set(values_in(rest)) & derived.keys()
    while todo:
        used |= todo
        todo = {name for each in todo for name in values_in(derived[each])} & derived.keys() - used

    def own(text: str) -> str:
        return rename_values(text, lambda name: f"{name}{suffix}" if name in used else name)

    return [*phis, *(own(line) for name, line in derived.items() if name in used), *own(rest).splitlines()]


def _phis_renamed(text: str) -> str:
    """What comes from a block comes from the last of those that it has become."""
    last: dict[str, str] = {}
    block = first = ""
    for line in text.splitlines():
        if label := label_of(line):
            block = label
            first = first if block.startswith("after.call") else block
            last[first] = block
    return rename_sources(text, last)
