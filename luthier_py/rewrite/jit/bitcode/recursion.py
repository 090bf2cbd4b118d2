"""Recursion of hooks, taken out of LLVM's text: functions that call themselves become loops over frames of their own.

In: a module in which functions that call themselves, or each other, are not inlined; how deep they may go. Out: the
module without such calls. Invariant: there is a frame for each level that is declared; a call that would need one more
is not made, gives 0, and is told to the hook (`TOO_DEEP`). Lanes of a wave may be at different levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from luthier_py.base.errors import Unsupported
from luthier_py.rewrite.jit.bitcode.frames import TOO_DEEP, FramedLoop
from luthier_py.rewrite.jit.bitcode.private_memory import start_of_body
from luthier_py.rewrite.jit.bitcode.text_functions import (
    ALLOCA,
    CALL,
    FUNCTION,
    LABEL,
    NAME,
    arguments,
    functions_of,
    names_in,
    parse_function,
    rewrite_functions,
    symbol_of,
)
from luthier_py.rewrite.jit.python.builder import PRIVATE
from luthier_py.rewrite.tool.cpp.device_ir import SYMBOL, Depth, unquote_name

DEEPEST = "luthier.deepest"  # asks for what TOO_DEEP was called with, or 0
SIMPLER = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "tail_call_elimination", "simplify_cfg",
           "lower_switch", "instruction_namer")  # fmt: skip
"""Passes that leave less to keep in frames, and each value a name."""
IN_MEMORY = "register_to_memory", "instruction_namer"
"""Passes after which no value lives on from one block to another."""

_ADDRESS = re.compile(r"^ *(%[-\w$.]+) = (addrspacecast|getelementptr [^%]*,) ptr(?: addrspace\(5\))? (%[-\w$.]+)"
                      r"(?:(?:, i\d+ \d+)*| to ptr)$")


def recursive(text: str) -> list[frozenset[str]]:
    """Functions of a module that call themselves or each other, those together that do."""
    calls = {unquote_name(found[1]): {unquote_name(name) for name in SYMBOL.findall(found[0].partition("\n")[2])}
             for found in FUNCTION.finditer(text)}
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
        text = rewrite_functions(text, group,
                                 lambda part: re.sub(r"^(define [^\n]*\)[^\n()]*?) alwaysinline", r"\1", part))
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
        parts = [replace(parse_function(part), kept=kept[name] if len(group) == 1 else frozenset())
                 for name, part in functions_of(text, group)]
        loops = {part.name: FramedLoop(parts, min(declared, key=lambda each: each.levels), where) for part in parts}
        text = rewrite_functions(text, group, lambda part, loops=loops: loops[symbol_of(part)].text(symbol_of(part)))  # type: ignore
    ending = f"\ndeclare void @{TOO_DEEP}(i64)\n" if groups else ""
    return _mark_always_inline(text) + ending


def with_deepest(text: str) -> str:
    """A module that has the hook alone, in which it is told what went too deep."""
    if f"@{DEEPEST}(" not in text and f"@{TOO_DEEP}(" not in text:
        return text
    text = re.sub(rf"^declare [^\n]*@(?:{TOO_DEEP}|{DEEPEST})\(.*\n", "", text, flags=re.MULTILINE)
    where = f"ptr {PRIVATE} %deepest"
    text = re.sub(rf"(?:tail )?call void @{TOO_DEEP}\(i64 (\d+)\)[^\n]*", rf"store i64 \1, {where}", text)
    text = re.sub(rf"(?:tail )?call i64 @{DEEPEST}\(\)[^\n]*", f"load i64, {where}", text)
    begin = start_of_body(text)
    return f"{text[:begin]}  %deepest = alloca i64, {PRIVATE}\n  store i64 0, ptr {PRIVATE} %deepest\n{text[begin:]}"


def _mark_always_inline(text: str) -> str:
    """All functions but the hook."""
    return re.sub(r"^(define internal [^\n]*\))((?! alwaysinline)[^\n()]*\{)$", r"\1 alwaysinline\2", text,
                  flags=re.MULTILINE)


def _same_at_each_level(text: str) -> frozenset[int]:
    """Parameters that the function gives itself as they are."""
    function = parse_function(text)
    names = [name for _, name in function.parameters]
    calls = [found for lines in function.blocks.values() for line in lines if (found := CALL.match(line))
             and unquote_name(found[2]) == function.name]  # fmt: skip
    return frozenset(at for at, name in enumerate(names) if all(arguments(call)[at] == name for call in calls))


def _prepare_for_frames(text: str, group: frozenset[str], kept: Mapping[str, frozenset[int]], where: str) -> str:
    """Its arguments are values of the entry block, and each call of the group ends a block."""
    function = parse_function(text)
    if any(not type for type, _ in function.parameters):
        raise Unsupported(f"{where} calls {function.name}, which calls itself and takes or gives a structure in "
                          "memory; give it a pointer instead")
    same = kept[function.name] if len(group) == 1 else frozenset[int]()
    given = [(type, name) for at, (type, name) in enumerate(function.parameters) if at not in same]
    own = {name: f"%argument{at}" for at, (_, name) in enumerate(given)}
    body = text.partition("\n")[2]
    body = NAME.sub(lambda found: own.get(found[0], found[0]), body)
    lines, count = [function.header], 0
    for line in body.splitlines():
        lines.append(line)
        if LABEL.match(line) and len(lines) == 2:
            lines += [f"  {own[name]} = freeze {type} {name}" for type, name in given]
        call = CALL.match(line)
        if call is not None and unquote_name(call[2]) in group:
            lines += [f"  br label %after.call{count}", "", f"after.call{count}:"]
            count += 1
    return _with_own_addresses(_phis_renamed("\n".join(lines) + "\n"))


def _with_own_addresses(text: str) -> str:
    """Each block works out the addresses of arrays for itself: as values in memory they would be of unknown memory."""
    function = parse_function(text)
    arrays = {found[1] for lines in function.blocks.values() for line in lines if (found := ALLOCA.match(line))}
    derived: dict[str, str] = {}
    while True:
        more = {found[1]: line for lines in function.blocks.values() for line in lines if (
            found := _ADDRESS.match(line)) and found[3] in arrays | derived.keys() and found[1] not in derived}
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
    used, todo = set[str](), set(names_in(rest)) & derived.keys()
    while todo:
        used |= todo
        todo = {name for each in todo for name in names_in(derived[each])} & derived.keys() - used

    def own(text: str) -> str:
        return NAME.sub(lambda found: f"{found[0]}{suffix}" if found[0] in used else found[0], text)

    return [*phis, *(own(line) for name, line in derived.items() if name in used), *own(rest).splitlines()]


def _phis_renamed(text: str) -> str:
    """What comes from a block comes from the last of those that it has become."""
    last: dict[str, str] = {}
    block = first = ""
    for line in text.splitlines():
        found = LABEL.match(line)
        if found is not None:
            block = found[1]
            first = first if block.startswith("after.call") else block
            last[first] = block
    return re.sub(r"^ *%\S+ = phi .*$", lambda phi: re.sub(
        r"(, )%([-\w$.]+)( \])", lambda end: f"{end[1]}%{last[end[2]]}{end[3]}", phi[0]), text, flags=re.MULTILINE)
