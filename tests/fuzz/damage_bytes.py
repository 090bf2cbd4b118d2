"""Single damages of a copy's bytes: bits, instructions, operands, fields of tables.

In: a Copy, a random.Random. Out: Damaged, or None where the copy has no such thing. Invariant: DAMAGES are all of
them by name, and each changes one thing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from damage_copy import Copy, Damaged, Line
from isa_words import is_instruction, random_word

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.binary.loader import DESCRIPTOR_BYTES, KernelDescriptor
from luthier_py.isa import Inst, OpFlag
from luthier_py.isa.encoding.table import load_table

Damage = Callable[[Copy, random.Random], "Damaged | None"]
TRIES = 20
SYMBOL_BYTES, VALUE_AT, SIZE_AT = 24, 8, 16  # of an entry of .symtab
DESCRIPTOR_FIELDS = tuple(name for name, field in vars(KernelDescriptor).items() if hasattr(field, "put"))
NUMBERS = (".kernarg_segment_size", ".group_segment_fixed_size", ".private_segment_fixed_size", ".sgpr_count",
           ".vgpr_count", ".agpr_count", ".wavefront_size", ".max_flat_workgroup_size", ".kernarg_segment_align")


def _bit_in(ranges: Sequence[range], copy: Copy, rng: random.Random) -> Damaged | None:
    if not ranges:
        return None
    (where,) = rng.choices(ranges, [len(each) for each in ranges])
    return copy.with_bit(rng.choice(where), rng.randrange(8))


def _bit_of_section(names: tuple[str, ...], copy: Copy, rng: random.Random) -> Damaged | None:
    return _bit_in(copy.sections(*names), copy, rng)


def _bit_of_line(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    lines = copy.own if own else copy.inserted
    return _bit_in([range(line.at, line.at + line.inst.size_bytes) for line in lines], copy, rng)


def _bit_of_original_code(copy: Copy, rng: random.Random) -> Damaged | None:
    return _bit_in([where for where in _sections_called(copy, ".text")], copy, rng)


def _sections_called(copy: Copy, name: str) -> list[range]:
    return [range(s.offset, s.offset + s.size) for s in copy.linked.sections if s.name == name and s.size]


def _descriptors(copy: Copy, clones: bool) -> list[int]:
    return [copy.at(k.descriptor_address) for k in copy.linked.kernels if k.name.endswith(".luthier") == clones]


def _bit_of_descriptor(clones: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    return _bit_in([range(at, at + DESCRIPTOR_BYTES) for at in _descriptors(copy, clones)], copy, rng)


def _descriptor_field(clones: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    at = rng.choice(_descriptors(copy, clones))
    return with_descriptor_field(copy, at, rng.choice(DESCRIPTOR_FIELDS), rng)


def with_descriptor_field(copy: Copy, at: int, name: str, rng: random.Random) -> Damaged | None:
    """Another value in a field of the descriptor at a place in the file."""
    old = KernelDescriptor(copy.data[at : at + DESCRIPTOR_BYTES])
    value = getattr(old, name)
    for new in (not value,) if isinstance(value, bool) else (value + rng.choice((-4, -1, 1, 4, 64, 256)), value ^ 1, 0):
        try:
            return copy.with_bytes(at, old.replace(**{name: int(new)}).raw)
        except Invalid:
            continue
    return None


def _headers(copy: Copy, rng: random.Random) -> Damaged | None:
    elf = copy.linked.elf
    tables = range(elf.program_header_offset, elf.program_header_offset + 56 * len(elf.segments))
    return _bit_in([range(16, 64), tables], copy, rng)


def _section_headers(copy: Copy, rng: random.Random) -> Damaged | None:
    elf = copy.linked.elf
    return _bit_in([range(elf.section_header_offset, elf.section_header_offset + 64 * len(elf.sections))], copy, rng)


def _any_bit(copy: Copy, rng: random.Random) -> Damaged | None:
    return _bit_in([range(len(copy.data))], copy, rng)


def _lines(own: bool, copy: Copy) -> tuple[Line, ...]:
    return copy.own if own else copy.inserted


def _dropped(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    line = rng.choice(_lines(own, copy))
    return copy.with_bytes(line.at, nops(copy, line.inst.size_bytes))


def nops(copy: Copy, size: int) -> bytes:
    return copy.isa.make("s_nop", 0).raw * (size // 4)


def _swapped(first: bool, second: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    pairs = [(a, b) for a, b in zip(copy.lines, copy.lines[1:], strict=False)
             if (a.own, b.own) in ((first, second), (second, first)) and a.clone == b.clone]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return copy.with_bytes(a.at, b.inst.raw + a.inst.raw)


def _repeated(copy: Copy, rng: random.Random) -> Damaged | None:
    """An inserted instruction stands where another one was."""
    line, other = rng.sample(copy.inserted, 2) if len(copy.inserted) > 1 else (None, None)
    if line is None or other is None or line.inst.size_bytes != other.inst.size_bytes:
        return None
    return copy.with_bytes(line.at, other.inst.raw)


def _replaced(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    """Any instruction of the same size instead."""
    line = rng.choice(_lines(own, copy))
    rows = len(load_table(copy.isa.target.name, copy.isa.wave_size).rows)
    for op in map(copy.isa.op, rng.sample(range(rows), TRIES)):
        if op.size_bytes != line.inst.size_bytes:
            continue
        word = random_word(rng, op)
        if is_instruction(copy.isa, word) and copy.isa.decode(word).size_bytes == line.inst.size_bytes:
            return copy.with_bytes(line.at, copy.isa.decode(word).raw)
    return None


def _operand(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    line = rng.choice(_lines(own, copy))
    registers = [o for o in line.inst.operands if o.reg is not None and line.inst.find(o.name)]
    return _other_register(copy, line, rng.choice(registers).name, rng) if registers else None


def _other_register(copy: Copy, line: Line, name: str, rng: random.Random) -> Damaged | None:
    by = rng.choice((-4, -2, -1, 1, 2, 4, 8))
    try:
        new = copy.isa.with_registers(
            line.inst, lambda o: 0 if o.reg is None else max(o.reg.index + (by if o.name == name else 0), 0))
    except (Invalid, Malformed):
        return None
    return copy.with_bytes(line.at, new.raw)


def _literal(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    lines = [line for line in _lines(own, copy) if line.inst.literal is not None]
    if not lines:
        return None
    line = rng.choice(lines)
    at = line.at + line.inst.size_bytes - 4
    value = int.from_bytes(copy.data[at : at + 4], "little") + rng.choice((-256, -4, -1, 1, 4, 8, 256))
    return copy.with_bytes(at, (value % (1 << 32)).to_bytes(4, "little"))


def aims(inst: Inst) -> str | None:
    """The name of the operand that says where a branch goes."""
    return next((operand.name for operand in inst.operands if operand.kind.name == "TARGET"), None)


def _branch(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    lines = [line for line in _lines(own, copy) if aims(line.inst)]
    if not lines:
        return None
    line = rng.choice(lines)
    return copy.with_bytes(line.at, _aimed_by(copy, line, rng.choice((-8, -2, -1, 1, 2, 8))))


def _aimed_by(copy: Copy, line: Line, by: int) -> bytes:
    name = aims(line.inst)
    assert name is not None
    try:
        return copy.isa.with_field(line.inst, name, line.inst[name].value + by).raw
    except (Invalid, Malformed):
        return line.inst.raw


def wait(own: bool, copy: Copy, rng: random.Random) -> Damaged | None:
    """Another number to wait for, or none."""
    lines = [line for line in _lines(own, copy) if line.inst.op.flags & OpFlag.WAIT]
    if not lines:
        return None
    line = rng.choice(lines)
    if rng.random() < 0.5:
        return copy.with_bytes(line.at, nops(copy, line.inst.size_bytes))
    return copy.with_bit(line.at + rng.randrange(2), rng.randrange(8))


def number_in_metadata(names: Sequence[str], copy: Copy, rng: random.Random) -> Damaged | None:
    """Another number for a key in some kernel's metadata: the same number of bytes."""
    (note,) = copy.sections(".note")[-1:] or [range(0)]
    places = []
    for name in names:
        key = bytes([0xA0 + len(name)]) + name.encode()
        at = copy.data.find(key, note.start, note.stop)
        while at >= 0:
            places.append(at + len(key))
            at = copy.data.find(key, at + 1, note.stop)
    if not places:
        return None
    at = rng.choice(places)
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4}.get(copy.data[at], 0)  # of msgpack's unsigned numbers
    if not width:
        return copy.with_bytes(at, bytes([(copy.data[at] + rng.choice((1, 4, 8))) % 128]))
    value = int.from_bytes(copy.data[at + 1 : at + 1 + width], "big") + rng.choice((-8, -1, 1, 8, 16))
    return copy.with_bytes(at + 1, (value % (1 << 8 * width)).to_bytes(width, "big"))


def _symbol(field: int, by: tuple[int, ...], copy: Copy, rng: random.Random) -> Damaged | None:
    tables = _sections_called(copy, ".symtab")
    if not tables:
        return None
    entry = rng.randrange(1, len(tables[0]) // SYMBOL_BYTES)
    at = tables[0].start + SYMBOL_BYTES * entry + field
    value = int.from_bytes(copy.data[at : at + 8], "little") + rng.choice(by)
    return copy.with_bytes(at, (value % (1 << 64)).to_bytes(8, "little"))


DAMAGES: dict[str, Damage] = {
    "a bit of inserted code": partial(_bit_of_line, False),
    "a bit of cloned code": partial(_bit_of_line, True),
    "a bit of the original's code": _bit_of_original_code,
    "a bit of a clone's descriptor": partial(_bit_of_descriptor, True),
    "a bit of an original's descriptor": partial(_bit_of_descriptor, False),
    "a bit of the metadata": partial(_bit_of_section, (".note",)),
    "a bit of a symbol table": partial(_bit_of_section, (".symtab", ".dynsym")),
    "a bit of names": partial(_bit_of_section, (".strtab", ".dynstr", ".shstrtab")),
    "a bit of a hash table": partial(_bit_of_section, (".hash", ".gnu.hash")),
    "a bit of dynamic entries and relocations": partial(_bit_of_section, (".dynamic", ".rela")),
    "a bit of data": partial(_bit_of_section, (".rodata", ".data")),
    "a bit of the file's headers": _headers,
    "a bit of the section headers": _section_headers,
    "a bit anywhere": _any_bit,
    "an inserted instruction dropped": partial(_dropped, False),
    "a cloned instruction dropped": partial(_dropped, True),
    "two inserted instructions swapped": partial(_swapped, False, False),
    "two cloned instructions swapped": partial(_swapped, True, True),
    "an inserted and a cloned instruction swapped": partial(_swapped, False, True),
    "an inserted instruction in place of another": _repeated,
    "any instruction in place of an inserted one": partial(_replaced, False),
    "any instruction in place of a cloned one": partial(_replaced, True),
    "a register of an inserted instruction": partial(_operand, False),
    "a register of a cloned instruction": partial(_operand, True),
    "a literal of an inserted instruction": partial(_literal, False),
    "a literal of a cloned instruction": partial(_literal, True),
    "where an inserted branch goes": partial(_branch, False),
    "where a cloned branch goes": partial(_branch, True),
    "an inserted wait": partial(wait, False),
    "a cloned wait": partial(wait, True),
    "a field of a clone's descriptor": partial(_descriptor_field, True),
    "a field of an original's descriptor": partial(_descriptor_field, False),
    "a number in the metadata": partial(number_in_metadata, NUMBERS),
    "a symbol's address": partial(_symbol, VALUE_AT, (-256, -4, 4, 64, 256)),
    "a symbol's size": partial(_symbol, SIZE_AT, (-8, -4, 4, 8)),
}
