"""What stands before and behind clones, as text: functions, what calls and kernels got, bytes, and linked objects.

In: instructions' listings of functions, each behind its name in the first column; kernels' names begin with "kernel".
Out: lines for goldens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from synthetic import build

from luthier_py import Mutator, Tool, WaveVariable, hook, u32
from luthier_py.binary.link.fixups import resolve
from luthier_py.binary.loader import CodeObject
from luthier_py.binary.loader.origins import BACK
from luthier_py.binary.patch import Chunk
from luthier_py.isa import InstructionSet
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import Program, lift
from luthier_py.rewrite.inject.apply import inject
from luthier_py.rewrite.inject.clone import clone_function
from luthier_py.rewrite.inject.items import Allotted, Clone
from luthier_py.rewrite.inject.layout import lay_out
from luthier_py.rewrite.inject.model import Patched
from luthier_py.rewrite.inject.resources import components, wave_locations
from luthier_py.rewrite.inject.text import KINDS, format_clone, parse_clone
from luthier_py.rewrite.jit import compile_hooks
from luthier_py.rewrite.tool import Place, visit

MARK = ">>"


@hook
def add(count: u32, n: u32) -> u32:
    return count + n


class Inserting(Tool):
    """Inserts texts, by function and by number of the instruction behind them; "count" is a call."""

    count = WaveVariable(u32)

    def __init__(self, texts: dict[str, dict[int, str]]) -> None:
        super().__init__()
        self.texts = texts

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for number, instr in enumerate(function.instrs):
                text = self.texts[function.name].get(number)
                if text == "count":
                    m.before(instr, add, self.count, 1, into=self.count)
                elif text is not None:
                    m.insert(text, before=instr)


def read_program(isa: InstructionSet, text: str) -> tuple[Program, Inserting]:
    code, marks = defaultdict[str, list[str]](list), defaultdict[str, dict[int, str]](dict)
    name = ""
    for line in filter(str.strip, text.splitlines()):
        if not line[0].isspace():
            name = line.removesuffix(":")
        elif line.strip().startswith(MARK):
            marks[name][sum(not each.endswith(":") for each in code[name])] = line.strip().removeprefix(MARK).strip()
        else:
            code[name].append(line)
    obj = build({name: [isa.assemble("\n".join(lines))] for name, lines in code.items()}, gpu=isa.target.name,
                kernels=[name for name in code if name.startswith("kernel")])
    return lift(obj), Inserting(marks)


def cloned(isa: InstructionSet, text: str) -> str:
    program, _ = read_program(isa, text)
    names = {function.address: f"{function.name}.luthier" for function in program.functions}
    return "\n".join(format_clone(isa, clone_function(program, each, names[each.address], each.entries, names, {}))
                     for each in program.functions)


def injected(program: Program, tool: Inserting) -> tuple[Patched, list[Clone]]:
    """And the clones behind `inline_calls`."""
    facts, clones = analyse(program), list[Clone]()
    edits = visit(tool, program, facts)

    def seen(name: str, clone: Clone) -> Clone:
        clones.extend([clone] if name == "inline_calls" else [])
        return clone

    payloads = compile_hooks(edits, program.isa)
    return inject(program, facts.with_reads(*map(edits.reads, Place)), edits, payloads, seen=seen), clones


def placed(isa: InstructionSet, text: str) -> str:
    """What each call got, and the clones with it."""
    patched, clones = injected(*read_program(isa, text))
    calls = {number: call for told in patched.calls.values() for number, (_, call) in enumerate(told)}
    lines = [f"call {number}: {_describe_call(call)}\n" for number, call in calls.items()]
    return "".join([*lines, *(format_clone(isa, clone) for clone in clones)])


def _describe_call(call: Allotted) -> str:
    parts = {"arguments": call.arguments, "results": call.results,
             "saved": [f"{what} in {where}" for what, where in call.saved],
             "spilled": [f"{what} to {where}" for what, where in call.spilled]}
    return ", ".join([call.policy, *(f"{name} {' '.join(map(str, each))}" for name, each in parts.items() if each)])


def resourced(isa: InstructionSet, text: str) -> str:
    """Which kernels share functions, and where the count is in these; what each kernel asks for, before and behind."""
    program, tool = read_program(isa, text)
    lines, facts = list[str](), analyse(program)
    for each in components(program, program.kernels):
        [location] = wave_locations(program, facts, each, tool.wave_variables).values()
        lines.append(f"component {' '.join(kernel.name for kernel in each.kernels)} with "
                     f"{' '.join(function.name for function in each.functions)} counts in {location}")
    for row in injected(program, tool)[0].report:
        was, now = row.before, row.after
        lines.append(f"{row.name}: sgprs {was.sgprs} -> {now.sgprs}, vgprs {was.vgprs} -> {now.vgprs}, "
                     f"waves {was.waves} -> {now.waves}, private bytes {was.private_bytes} -> {now.private_bytes}")
    return "\n".join(lines) + "\n"


def laid_out(isa: InstructionSet, text: str) -> str:
    return "\n".join(_describe_chunk(isa, lay_out(isa, parse_clone(isa, text), {0x4000: "f.luthier"}).chunk)) + "\n"


def _describe_chunk(isa: InstructionSet, chunk: Chunk) -> Iterator[str]:
    yield f"chunk {chunk.name}, {len(chunk.code)} bytes, aligned to {chunk.align}"
    yield from disassembled(isa, chunk.code)
    for fixup in chunk.fixups:
        target = fixup.target if isinstance(fixup.target, str) else f"0x{fixup.target:x}"
        yield f"fixup at 0x{fixup.offset:x}: {KINDS[fixup.kind]} {target}+{fixup.addend} from 0x{fixup.base_offset:x}"
    for start, pc, size in chunk.origins:
        yield f"origin of 0x{start:x}: 0x{pc:x}, {size & ~BACK} bytes{', leads back' if size & BACK else ''}"


def disassembled(isa: InstructionSet, code: bytes, address: int = 0) -> Iterator[str]:
    at = 0
    while at < len(code):
        inst = isa.decode(code, at)
        yield f"  0x{address + at:x} {isa.text(inst)}"
        at += inst.size_bytes


def resolved(isa: InstructionSet, text: str, places: Iterable[str]) -> str:
    """A clone's code at its place; ``places``: names with addresses, NAME=ADDRESS."""
    chunk = lay_out(isa, parse_clone(isa, text), {}).chunk
    addresses = {name: int(address, 16) for name, _, address in (place.partition("=") for place in places)}
    return "\n".join(disassembled(isa, resolve(chunk, addresses), addresses[chunk.name])) + "\n"


def linked(obj: CodeObject, was: CodeObject) -> str:
    """What is in a linked object; a plus sign is before what was not in the original."""
    lines = list[str]()

    def line(new: bool, text: str) -> None:
        lines.append(f"{'+' if new else ' '} {text}")

    for segment in obj.segments:
        if segment.load:
            line(segment not in was.segments, f"segment at 0x{segment.address:x}: {segment.flags.name}, "
                 f"{segment.file_size} of {segment.memory_size} bytes in the file")
    known = {section.name for section in was.elf.sections}
    for section in obj.elf.sections:
        if section.name.endswith(".luthier"):
            line(section.name not in known, f"section {section.name} at 0x{section.address:x}, {section.size} bytes")
    for symbol in (symbol for symbol in obj.symbols if symbol.size):
        line(was.symbol(symbol.name) is None, f"symbol {symbol.name} at 0x{symbol.address:x}, {symbol.size} bytes")
    for kernel in obj.kernels:
        new = all(kernel.name != each.name for each in was.kernels)
        line(new, f"kernel {kernel.name} begins at 0x{kernel.entry:x}, "
             f"{kernel.metadata.get('.vgpr_count')} vgprs, symbol {kernel.metadata.get('.symbol')}")
    return "\n".join(lines) + "\n"


