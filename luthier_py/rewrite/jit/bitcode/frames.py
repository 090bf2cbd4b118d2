"""Functions that call themselves or each other, as a loop over frames: what each level keeps is in an array.

In: functions in LLVM's text, in which no value lives on from one block to another, and their greatest depth. Out: the
text of one that calls none of them. Invariant: at each point the frame of its level has what it keeps; a call stores
arguments and the place behind it in the next frame, a return jumps to the place that its frame has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass, field, replace
from luthier_py.rewrite.jit.python.builder import PRIVATE
from luthier_py.rewrite.llvm_text.functions import (
    TextCall,
    TextFunction,
    read_alloca,
    read_call,
    read_freeze,
    read_return,
)
from luthier_py.rewrite.llvm_text.names import plain_name, rename_values, split_at_commas, values_in
from luthier_py.rewrite.tool.cpp.device_ir import Depth

TOO_DEEP = "luthier.too_deep"  # called where a frame more would be needed


@dataclass(slots=True)
class _Frame:
    """What one level keeps (mutable: grows): types by name, the number of the place to return to first."""

    types: dict[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return "{ i32" + "".join(f", {type}" for type in self.types.values()) + " }"

    def address(self, into: str, frame: str, name: str) -> str:
        at = list(self.types).index(name) + 1
        held = ", i32 1" if self.types[name].startswith("{ [0 x ") else ""
        return f"  {into} = getelementptr {self.type}, ptr {PRIVATE} {frame}, i32 0, i32 {at}{held}"


class FramedLoop:
    """Functions that call each other, as one that begins with any of them (mutable: makes names). ``kept``: numbers of
    parameters that are the same at each level."""

    def __init__(self, functions: Sequence[TextFunction], kept: frozenset[int], depth: Depth, where: str) -> None:
        self.kept = kept
        self.functions = {each.name: _prefix_names(each, f"f{number}.") for number, each in enumerate(functions)}
        self.depth, self.where = depth, where
        self.frame = _Frame()
        self.slots: dict[str, str] = {}  # where arguments are, by the value that they become
        for each in self.functions.values():
            self._seat(each)
        self.returns: dict[str, list[str]] = {name: [] for name in self.functions}

    def _seat(self, function: TextFunction) -> None:
        for at, (type, name) in enumerate(function.parameters):
            if at not in self.kept:
                self.frame.types[name] = type
        for line in function.lines:
            found = read_alloca(line)
            if " = alloca " in line and (found is None or len(split_at_commas(found.type)) > 1):
                raise Unsupported(f"{self.where} calls {function.name}, which calls itself and has an array of a "
                                  "length that is not known")
            if found is not None:
                self.frame.types[found.name] = f"{{ [0 x i{8 * found.align}], {found.type} }}"

    def text(self, entry: str) -> str:
        """The function ``entry``."""
        function = self.functions[entry]
        blocks = [line for name, each in self.functions.items() for line in self._blocks(name, each)]
        given = [(f"  store {type} {name}, ptr {PRIVATE} %first.{at}",
                  self.frame.address(f"%first.{at}", "%first", name))
                 for at, (type, name) in enumerate(function.parameters) if at not in self.kept]
        frames = f"[{self.depth.levels} x {self.frame.type}]"
        start = [
            "start:", f"  %frames = alloca {frames}, align 16, addrspace(5)", "  %level = alloca i32, addrspace(5)",
            *(f"  %result.{at} = alloca {each.gives}, addrspace(5)" for at, each in enumerate(self.functions.values())
              if each.gives != "void"),
            f"  %first = getelementptr {frames}, ptr {PRIVATE} %frames, i32 0, i32 0",
            *(line for store, address in given for line in (address, store)),
            f"  store i32 0, ptr {PRIVATE} %first", f"  store i32 0, ptr {PRIVATE} %level",
            f"  br label %{next(iter(function.blocks))}",
        ]  # fmt: skip
        ends = [line for name in self.functions for line in self._emit_return_dispatch(name, name == entry)]
        return "\n".join([function.header, *start, *blocks, *ends, "}", ""])

    def _result(self, name: str) -> str:
        return f"%result.{list(self.functions).index(name)}"

    def _blocks(self, name: str, function: TextFunction) -> Iterator[str]:
        for label, lines in function.blocks.items():
            yield from self._block(name, label, lines)

    def _block(self, name: str, label: str, lines: list[str]) -> Iterator[str]:
        """A block, and others for what follows a call in it."""
        made: list[str] = []
        for at, line in enumerate(lines):
            call, copied, end = read_call(line), read_freeze(line), read_return(line)
            if read_alloca(line) or "@llvm.lifetime." in line:
                continue
            if copied is not None and copied.value in self.frame.types:
                made.append(f"  {copied.name} = load {copied.type}, ptr {PRIVATE} {copied.value}")
            elif call is not None and call.callee in self.functions:
                yield from self._emit_framed_block(label, [*made, *self._emit_call(label, call)])
                yield from self._block(name, f"{label}.on", [*self._came_back(call), *lines[at + 1 :]])
                return
            elif end:
                made += [] if end == "void" else [f"  store {end}, ptr {PRIVATE} {self._result(name)}"]
                made.append(f"  br label %return.{list(self.functions).index(name)}")
            else:
                made.append(line)
        yield from self._emit_framed_block(label, made)

    def _emit_framed_block(self, label: str, lines: list[str]) -> Iterator[str]:
        """With addresses in the frame of the level that the block runs at."""
        own: dict[str, str] = {}
        for line in lines:
            own |= {name: f"%{label}.{name[1:]}" for name in values_in(line) if name in self.frame.types}
        yield f"{label}:"
        yield from self._here(label)
        yield from (self.frame.address(mine, f"%{label}.frame", name) for name, mine in own.items())
        yield from (rename_values(line, lambda name: own.get(name, name)) for line in lines)

    def _here(self, label: str) -> Iterator[str]:
        yield f"  %{label}.level = load i32, ptr {PRIVATE} %level"
        yield (f"  %{label}.frame = getelementptr [{self.depth.levels} x {self.frame.type}], ptr {PRIVATE} %frames, "
               f"i32 0, i32 %{label}.level")

    def _emit_call(self, label: str, call: TextCall) -> Iterator[str]:
        """The end of a block that calls."""
        callee = self.functions[call.callee]
        self.returns[callee.name].append(f"{label}.on")
        number = len(self.returns[callee.name])
        frames = f"[{self.depth.levels} x {self.frame.type}]"
        yield f"  %{label}.next = add i32 %{label}.level, 1"
        yield f"  %{label}.fits = icmp ult i32 %{label}.next, {self.depth.levels}"
        yield f"  br i1 %{label}.fits, label %{label}.call, label %{label}.deep"
        yield f"{label}.call:"
        yield f"  %{label}.new = getelementptr {frames}, ptr {PRIVATE} %frames, i32 0, i32 %{label}.next"
        for at, ((type, name), given) in enumerate(zip(callee.parameters, call.arguments, strict=True)):
            if at not in self.kept:
                yield self.frame.address(f"%{label}.given{at}", f"%{label}.new", name)
                yield f"  store {type} {given.value}, ptr {PRIVATE} %{label}.given{at}"
        yield f"  store i32 {number}, ptr {PRIVATE} %{label}.new"
        yield f"  store i32 %{label}.next, ptr {PRIVATE} %level"
        yield f"  br label %{next(iter(callee.blocks))}"
        yield f"{label}.deep:"
        yield f"  call void @{TOO_DEEP}(i64 {self.depth.line << 32 | self.depth.levels})"
        if callee.gives != "void":
            yield f"  store {callee.gives} zeroinitializer, ptr {PRIVATE} {self._result(callee.name)}"
        yield f"  br label %{label}.on"

    def _came_back(self, call: TextCall) -> Iterator[str]:
        callee = self.functions[call.callee]
        if call.result:
            yield f"  {call.result} = load {callee.gives}, ptr {PRIVATE} {self._result(callee.name)}"

    def _emit_return_dispatch(self, name: str, entry: bool) -> Iterator[str]:
        """Where calls of a function end: at the place that its frame names."""
        at, gives = list(self.functions).index(name), self.functions[name].gives
        label = f"return.{at}"
        yield f"{label}:"
        yield from self._here(label)
        yield f"  %{label}.to = load i32, ptr {PRIVATE} %{label}.frame"
        yield f"  %{label}.before = sub i32 %{label}.level, 1"
        yield f"  store i32 %{label}.before, ptr {PRIVATE} %level"
        places = self.returns[name]
        for number, place in enumerate(places, 1):
            if number == len(places) and not entry:
                yield f"  br label %{place}"
                return
            yield f"  %{label}.is{number} = icmp eq i32 %{label}.to, {number}"
            yield f"  br i1 %{label}.is{number}, label %{place}, label %{label}.not{number}"
            yield f"{label}.not{number}:"
        if gives == "void":
            yield "  ret void"
        else:
            yield f"  %result = load {gives}, ptr {PRIVATE} {self._result(name)}"
            yield f"  ret {gives} %result"


def _prefix_names(function: TextFunction, prefix: str) -> TextFunction:
    def own(text: str) -> str:
        return rename_values(text, lambda name: f"%{prefix}{plain_name(name[1:])}")

    blocks = {prefix + plain_name(label): [own(line) for line in lines] for label, lines in function.blocks.items()}
    parameters = [(type, own(name)) for type, name in function.parameters]
    return replace(function, header=own(function.header), parameters=parameters, blocks=blocks)
