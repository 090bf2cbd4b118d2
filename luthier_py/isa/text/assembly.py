"""LLVM's assembly to instructions: one line, or a listing with labels.

In: text. Out: Inst, or bytes. How: the rows of a mnemonic are tried, smallest first; a row's template says which
operands it takes, each operand's class how it is spelled. Invariant: what is returned decodes to the row that was
chosen; what no row takes is refused with the column at which the row that came furthest gave up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.base.records import dataclass, field
from luthier_py.isa.encoding.decode import mnemonic_of
from luthier_py.isa.encoding.encode import encode, number_field
from luthier_py.isa.encoding.instruction import Inst, OpFlag, OpInfo
from luthier_py.isa.encoding.legal import why_illegal
from luthier_py.isa.encoding.table import Row
from luthier_py.isa.model.registers import VCC, sgpr
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.assemble import DEFAULTS, ENCODING_SUFFIX, default_modifiers
from luthier_py.isa.text.modifiers import IMPLIED_GLC, SOURCES
from luthier_py.isa.text.parse import BadText, Token, WrittenLine, parse_line, spell
from luthier_py.isa.text.parse_modifiers import (
    SPELLED,
    attribute,
    export_target,
    find_printed_name,
    modifier,
)
from luthier_py.isa.text.parse_operands import Literal, half_in_field, operand_field
from luthier_py.isa.text.register_names import register_text

FieldBits = tuple[tuple[str, int], ...]  # which modifiers operand, and which of its bits, in the order of the text
LISTS = {"op_sel": 4, "op_sel_hi": 8, "neg_lo": 1, "neg_hi": 2}
DESTINATION_HALF = 8


@dataclass(frozen=True, slots=True)
class TextLayout:
    """What a template asks for."""

    slots: tuple[str, ...]       # "$name", or a word that means an operand
    words: frozenset[str]        # modifiers that are part of the opcode
    optional: bool               # s_endpgm's operand
    lists: dict[str, FieldBits]       # op_sel and its like

    @staticmethod
    @cache
    def of(op: OpInfo) -> TextLayout:
        """Read from the row's template, which is LLVM's assembly string of the instruction."""
        template = re.sub(r" :: \w+ ", ", ", op.template)
        rest = re.sub(r"^\w+", "", template).replace("$tgt $src0", "$tgt, $src0")
        slots, words = [], []
        for piece in filter(str.strip, rest.split(",")):
            first, *others = re.findall(r"\$\w+|\w+", piece)
            if _is_modifier(op, first[1:]):
                others.insert(0, first)
            else:
                slots.append(first)
            words += [word for word in others if not word.startswith("$") and f"{word}:$" not in piece]
        return TextLayout(tuple(slots), frozenset(words), rest.startswith("$") and "$tgt" not in rest, _lists(op))


MODIFIER_PRINTERS = ("bit", "int", "printOffset", "printFlatOffset", "printCPol", "printDPPCtrl", "printDPP8")


def _is_modifier(op: OpInfo, name: str) -> bool:
    """Whether the first thing behind a mnemonic is no operand: some have none."""
    return _printer(op, name).partition(":")[0] in MODIFIER_PRINTERS or name == "cpol"


def _lists(op: OpInfo) -> dict[str, FieldBits]:
    names = {info.name for info in op.operands}
    tied = "$op_sel_with_tied" in op.template
    all_three = tied or "src2" in names and ("src1" not in names or OpFlag.MATRIX in op.flags)
    sources = [f"{source}_modifiers" for source in SOURCES if all_three or source in names]
    found = {name: tuple((source, bit) for source in sources) for name, bit in LISTS.items()}
    if "$op_sel_byte" in op.template:
        found["op_sel"] = (("src0_modifiers", 4), ("src0_modifiers", 8))
    elif "$op_sel_permlane" in op.template:
        found["op_sel"] = (("src0_modifiers", 4), ("src1_modifiers", 4))
    elif "_dst" in op.template:
        found["op_sel"] += (("src0_modifiers", DESTINATION_HALF),)
    return found


@dataclass(slots=True)
class Draft:
    """The fields of one row while they are being filled in."""

    op: OpInfo
    fields: dict[str, int] = field(default_factory=dict)
    literal: Literal = field(default_factory=Literal)
    asked: dict[str, int] = field(default_factory=dict)  # registers of which the field has not all bits

    def set_bits(self, name: str, bits: int) -> None:
        """Set bits of a field; those that were set before stay."""
        self.fields[name] = self.fields.get(name, 0) | bits


class Parser:
    """Reads one target's assembly."""

    def __init__(self, target: Target, wave_size: int, rows: Sequence[Row], op_of: Callable[[int], OpInfo],
                 decode: Callable[[bytes], Inst]) -> None:
        self.target, self.op_of, self.decode = target, op_of, decode
        self.vcc = register_text(target, sgpr(VCC, wave_size // 32))
        self.by_name: dict[str, list[int]] = {}
        for number in sorted(range(len(rows)), key=lambda k: (rows[k].size_bytes, "_alt" in rows[k].record, k)):
            mnemonic = mnemonic_of(rows[number].template)
            second = re.search(r":: (\w+)", rows[number].template)
            if second is not None:
                mnemonic = f"{mnemonic} :: {second.group(1)}"
            plain = ENCODING_SUFFIX.sub("", mnemonic) if rows[number].format not in ("SDWA", "DPP") else mnemonic
            for name in {mnemonic, plain}:
                self.by_name.setdefault(name, []).append(number)

    def parse(self, text: str, labels: Mapping[str, int] | None = None) -> Inst:
        """One instruction; ``labels`` are displacements in dwords that branches may name."""
        line = parse_line(text)
        candidates = self.by_name.get(line.mnemonic)
        if candidates is None:
            raise BadText(f"{self.target.name} has no instruction {line.mnemonic}", len(text) - len(text.lstrip()))
        furthest: BadText | None = None
        for number in candidates:
            try:
                return self._try(self.op_of(number), line, labels or {})
            except BadText as error:
                if furthest is None or error.column > furthest.column:
                    furthest = error
        assert furthest is not None
        raise furthest

    def _try(self, op: OpInfo, line: WrittenLine, labels: Mapping[str, int]) -> Inst:
        draft = Draft(op)
        operands, modifiers = line.operands, line.modifiers
        if op.operands and op.operands[0].printer == "printExpTgt" or "$tgt" in op.template:
            operands, modifiers = (operands[0], *modifiers[:1], *operands[1:]), modifiers[1:]
        layout = TextLayout.of(op)
        if not layout.slots:
            operands, modifiers = (), (*operands, *modifiers)
        if len(layout.slots) == 1 and _printer(op, layout.slots[0][1:]) in SPELLED:  # its syntax has blanks
            operands, modifiers = (line.rest,), ()
        missing = len(layout.slots) - len(operands)
        if missing < 0 or missing > layout.optional:
            column = operands[len(layout.slots)].column if missing < 0 else line.rest.column + len(line.rest.text)
            raise BadText(f"{op.mnemonic} takes {len(layout.slots)} operands, not {len(operands)}", column)
        self._modifiers(draft, layout, modifiers, line.rest)
        for slot, token in zip(layout.slots, operands):  # noqa: B905 (the last may be missing)
            self._operand(draft, slot, token, labels)
        return self._finish(draft, line)

    def _modifiers(self, draft: Draft, layout: TextLayout, modifiers: Sequence[Token], rest: Token) -> None:
        """Set the fields that modifiers name; BadText for those of other forms, or missing words."""
        words = set(layout.words)
        op = draft.op
        op = draft.op
        printed = {find_printed_name(self.target, op, place): info.name for place, info in enumerate(op.operands)}
        for token in modifiers:
            if token.text in words:
                words.discard(token.text)
                continue
            name, value = modifier(self.target, token)
            if isinstance(value, list):
                self._list(draft, layout, token, name, value)
            elif name == "cpol":
                draft.set_bits("cpol", value)
            elif name in printed:
                draft.fields[printed[name]] = self._number(draft.op, printed[name], value, token)
            elif name == "fi":
                raise BadText(f"{draft.op.mnemonic} has no fi", token.column)
            else:
                raise BadText(f"{draft.op.mnemonic} of this form has no {name}", token.column)
        if "offset" not in draft.fields and _printer(draft.op, "offset").endswith(":always"):
            words.add("offset")
        if words:
            raise BadText(f"{draft.op.mnemonic} of this form wants {', '.join(sorted(words))}",
                          rest.column + len(rest.text))

    def _number(self, op: OpInfo, name: str, value: int, token: Token) -> int:
        info = next(info for info in op.operands if info.name == name)
        try:
            return number_field(op, info, value)
        except Invalid as error:
            raise BadText(error.message, token.column) from None

    def _list(self, draft: Draft, layout: TextLayout, token: Token, name: str, bits: list[int]) -> None:
        places = layout.lists.get(name)
        if places is None or f"${name}" not in draft.op.template and "$src0_modifiers$src1" not in draft.op.template:
            raise BadText(f"{draft.op.mnemonic} has no {name}", token.column)
        if len(bits) > len(places):
            raise BadText(f"{name} has {len(places)} bits here", token.column)
        named = {info.name for info in draft.op.operands}
        draft.fields[f"{name} given"] = 1
        for (operand, bit), given in zip(places, bits):  # noqa: B905 (missing bits are 0)
            if given and operand in named:
                draft.set_bits(operand, bit)

    def _operand(self, draft: Draft, slot: str, token: Token, labels: Mapping[str, int]) -> None:
        op, name = draft.op, slot[1:].removesuffix("_modifiers")
        if not slot.startswith("$") or slot == "$vcc":
            expected = self.vcc if slot == "$vcc" else slot
            if token.text != expected:
                raise BadText(f"{op.mnemonic}: must be {expected} here", token.column)
        elif name == "vaddr" and all(info.name != "vaddr" for info in op.operands):
            self._addresses(draft, token)
        elif name == "tgt":
            draft.fields["tgt"] = export_target(self.target, token)
        elif name == "attr":
            draft.fields["attr"], draft.fields["attrchan"] = attribute(token)
        elif name == "immX":
            draft.fields["immX"] = draft.literal.only(operand_field(self.target, draft.op, draft.literal, "imm", token),
                                                      token)
        else:
            self._plain(draft, name, token, labels)

    def _plain(self, draft: Draft, name: str, token: Token, labels: Mapping[str, int]) -> None:
        printer = _printer(draft.op, name)
        if printer.startswith("printExpSrc"):
            return self._parse_export_source(draft, int(printer[-1]), token)
        if printer in SPELLED:
            draft.fields[name] = SPELLED[printer](self.target, token)
        elif token.text in labels:
            draft.fields[name] = labels[token.text] & 0xFFFF
        else:
            draft.fields[name] = operand_field(self.target, draft.op, draft.literal, name, token)
            if name == "vdstY" and (reg := spell(self.target, token).reg) is not None:
                draft.asked[name] = reg.index
            self._source_modifiers(draft, name, token)
        return None

    def _source_modifiers(self, draft: Draft, name: str, token: Token) -> None:
        if not re.search(r"[-|(.]", token.text):
            return
        said = spell(self.target, token)
        bits = said.negate | said.absolute << 1 | said.extend << 4
        modifiers = f"{name}_modifiers"
        named = {info.name: info for info in draft.op.operands}
        if bits and modifiers not in named:
            raise BadText(f"{draft.op.mnemonic}: {name} cannot be negated or made absolute", token.column)
        if bits:
            draft.set_bits(modifiers, bits)
        if said.high and not half_in_field(named[name]):
            draft.set_bits(*(("src0_modifiers", DESTINATION_HALF) if name == "vdst" else (modifiers, 4)))

    def _addresses(self, draft: Draft, token: Token) -> None:
        """``[v1, v2, v3]``: an operand for each; those that are left over keep register 0."""
        inner = token.text[1:-1] if token.text.startswith("[") else token.text
        start = token.column + token.text.startswith("[")
        parts = [Token(found.group().strip(), start + found.start()) for found in re.finditer(r"[^,]+", inner)]
        parts = [Token(part.text, part.column) for part in parts]
        names = [info.name for info in draft.op.operands if info.name.startswith("vaddr")]
        names.sort(key=lambda name: int(name.removeprefix("vaddr") or 0))
        if len(parts) > len(names):
            raise BadText(f"{draft.op.mnemonic} of this form takes {len(names)} addresses", token.column)
        for name, part in zip(names, parts):  # noqa: B905
            draft.fields[name] = operand_field(self.target, draft.op, draft.literal, name, part)

    def _parse_export_source(self, draft: Draft, number: int, token: Token) -> None:
        compressed = bool(draft.fields.get("compr"))
        if token.text == "off" or compressed and number % 2:
            return
        draft.set_bits("en", 3 << number if compressed else 1 << number)
        name = f"src{number // 2 if compressed else number}"
        draft.fields[name] = operand_field(self.target, draft.op, draft.literal, name, token)

    def _finish(self, draft: Draft, line: WrittenLine) -> Inst:
        op = draft.op
        if OpFlag.ATOMIC in op.flags and op.format in IMPLIED_GLC:
            returns, asked = OpFlag.ATOMIC_RETURN in op.flags, bool(draft.fields.get("cpol", 0) & 1)
            if returns != asked:
                raise BadText(f"{op.mnemonic} {'wants' if returns else 'of this form cannot have'} the modifier that "
                              "returns the old value", line.rest.column + len(line.rest.text))
            draft.fields["cpol"] = draft.fields.get("cpol", 0) & ~1
        fields = [_complete(draft, place) for place in range(len(op.operands))]
        literal = None if any(info.kind == "kimm" for info in op.operands) else draft.literal.value
        try:
            inst = self.decode(encode(self.target, op, fields, literal))
        except (Invalid, Malformed) as error:
            raise BadText(error.message, line.rest.column) from None
        for name, index in draft.asked.items():
            if (found := inst[name].reg) is None or found.index != index:
                raise BadText(f"{op.mnemonic}: {name} must be odd where the other is even", line.rest.column)
        if (reason := why_illegal(self.target, inst)) is not None:
            raise BadText(f"{op.mnemonic}: {reason}", line.rest.column + len(line.rest.text))
        if inst.op.base != op.base:
            raise BadText(f"{op.mnemonic}: this would be {inst.op.mnemonic}", line.rest.column)
        return inst


def _printer(op: OpInfo, name: str) -> str:
    return next((info.printer for info in op.operands if info.name == name), "")


def _complete(draft: Draft, place: int) -> int:
    """The field's value, or what assembly text without it means."""
    info = draft.op.operands[place]
    value = draft.fields.get(info.name)
    if info.kind == "dpp8fi":
        fixed = sum((draft.op.value >> first & (1 << width) - 1) << at for first, width, at in info.segments)
        if (fixed == 0xEA) != bool(value):
            raise BadText("another form has this fi", 0)
        return fixed
    if info.name.endswith("_modifiers") and "op_sel_hi given" not in draft.fields:
        return (value or 0) | default_modifiers(draft.op, info)
    if value is not None:
        return value
    return DEFAULTS.get(info.name, 1 if info.printer == "printFORMAT" else 0)
