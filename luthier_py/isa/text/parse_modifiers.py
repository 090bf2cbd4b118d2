"""Text of modifiers and of immediates with a syntax of their own to field values: the inverse of text_modifiers.

In: a token. Out: what it sets, by field name or by the word that the printer writes. Invariant: what the printer
writes is read back as the same number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container

from luthier_py.isa.encoding.images import DIMENSIONS
from luthier_py.isa.encoding.instruction import Counter, OpInfo
from luthier_py.isa.encoding.waitcnt import encode_immediate
from luthier_py.isa.model.names import (
    DATA_FORMATS,
    DEPENDENCIES,
    EXPORT_TARGETS,
    GS_OPERATIONS,
    HARDWARE_REGISTERS,
    MESSAGES,
    NUMBER_FORMATS,
    SYSTEM_OPERATIONS,
    VERSION_FLAGS,
    VERSIONS,
    list_unified_formats,
    names_of,
)
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.messages import DELAYS, SKIPS
from luthier_py.isa.text.modifiers import (
    DPP_NAMES,
    DPP_SHIFTS,
    LOAD_HINTS,
    MATRIX_FORMATS,
    SCALE_FORMATS,
    SCALE_ROWS,
    SCOPES,
    SDWA_SELECTS,
    SDWA_UNUSED,
    STORE_HINTS,
)
from luthier_py.isa.text.parse import INTEGER, BadText, Token, integer, integers, split

CACHE_WORDS = {"glc": 1, "sc0": 1, "slc": 2, "nt": 2, "dlc": 4, "scc": 16, "sc1": 16, "nv": 32, "scale_offset": 1 << 11}
ATOMIC_HINTS = {"RETURN": 1, "NT": 2, "NT_RETURN": 3, "CASCADE_RT": 4, "CASCADE_NT": 6}
OUTPUT = {"mul:2": 1, "mul:4": 2, "div:2": 3}


def modifier(target: Target, token: Token) -> tuple[str, int | list[int]]:
    """(name, value): bits of op_sel and its like as a list, all else as a number."""
    name, colon, text = token.text.partition(":")
    value = Token(text, token.column + len(name) + 1)
    if token.text in CACHE_WORDS:
        return "cpol", CACHE_WORDS[token.text]
    if token.text in OUTPUT:
        return "omod", OUTPUT[token.text]
    if not colon and token.text.startswith("row_") and token.text != "row_en":
        return "dpp_ctrl", _mirror(token)
    if not colon:
        return token.text, 1
    if name in READERS:
        field, read = READERS[name]
        return field, read(target, value)
    if text.startswith("["):
        return name, integers(value)
    return name, integer(value)


def _mirror(token: Token) -> int:
    found = {name: code for code, name in DPP_NAMES.items()}.get(token.text)
    if found is None:
        raise BadText(f"unknown modifier {token.text!r}", token.column)
    return found


def _one_of(prefix: str, *names: str) -> Callable[[Target, Token], int]:
    def read(_: Target, token: Token) -> int:
        text = token.text.removeprefix(prefix)
        if text not in names:
            return integer(token)
        return names.index(text)
    return read


def _dpp(first: int, last: int = 15) -> Callable[[Target, Token], int]:
    def read(_: Target, token: Token) -> int:
        value = integer(token)
        if not 0 <= value <= last:
            raise BadText(f"must be between 0 and {last}", token.column)
        return first + value
    return read


def _whole(**codes: int) -> Callable[[Target, Token], int]:
    def read(_: Target, token: Token) -> int:
        if f"n{token.text}" not in codes:
            raise BadText(f"cannot be {token.text}", token.column)
        return codes[f"n{token.text}"]
    return read


def _quad(_: Target, token: Token) -> int:
    return sum((lane & 3) << 2 * place for place, lane in enumerate(integers(token)))


def _lanes(_: Target, token: Token) -> int:
    return sum((lane & 7) << 3 * place for place, lane in enumerate(integers(token)))


def _negation(_: Target, token: Token) -> int:
    return sum(bit << place for place, bit in enumerate(integers(token)))


def _hint(_: Target, token: Token) -> int:
    """th:TH_LOAD_NT, or a number."""
    if not token.text.startswith("TH_"):
        return integer(token)
    kind, name = (*token.text.removeprefix("TH_").split("_", 1), "")[:2]
    if kind == "ATOMIC":
        return ATOMIC_HINTS[name] if name in ATOMIC_HINTS else integer(Token(name, token.column + 10))
    names = STORE_HINTS if kind == "STORE" else LOAD_HINTS
    return 3 if name == "BYPASS" else names.index(name) if name in names else integer(token)


def _scope(_: Target, token: Token) -> int:
    if token.text not in SCOPES:
        raise BadText(f"unknown scope {token.text!r}", token.column)
    return SCOPES.index(token.text) << 3


def _format(target: Target, token: Token) -> int:
    """MTBUF: a number, [BUF_FMT_x], or [BUF_DATA_FORMAT_x,BUF_NUM_FORMAT_y]."""
    if not token.text.startswith("["):
        return integer(token)
    names = [part.text for part in split(token.text[1:-1], token.column + 1, ",")]
    if target.generation >= 10:
        known = list_unified_formats(target)
        name = names[0].removeprefix("BUF_FMT_")
        if len(names) == 1 and name in known:
            return known.index(name)
    else:
        data = [name.removeprefix("BUF_DATA_FORMAT_") for name in names if "_DATA_" in name]
        number = [name.removeprefix("BUF_NUM_FORMAT_") for name in names if "_NUM_" in name]
        if set(data) <= set(DATA_FORMATS) and set(number) <= set(NUMBER_FORMATS) and len(names) == len(data + number):
            return (DATA_FORMATS.index(data[0]) if data else 1) | \
                (NUMBER_FORMATS.index(number[0]) if number else 0) << 4
    raise BadText(f"unknown buffer format {token.text}", token.column)


def _offset(_: Target, token: Token) -> int:
    return swizzle(token) if token.text.startswith("swizzle(") else integer(token)


READERS: dict[str, tuple[str, Callable[[Target, Token], int]]] = {
    "dim": ("dim", _one_of("SQ_RSRC_IMG_", *(row.name for row in DIMENSIONS))),
    "format": ("format", _format), "offset": ("offset", _offset), "th": ("cpol", _hint), "scope": ("cpol", _scope),
    "quad_perm": ("dpp_ctrl", _quad), "dpp8": ("dpp8", _lanes), "neg": ("blgp", _negation),
    **{name: ("dpp_ctrl", _dpp(first)) for first, name in DPP_SHIFTS},
    "row_newbcast": ("dpp_ctrl", _dpp(0x150)), "row_share": ("dpp_ctrl", _dpp(0x150)),
    "row_xmask": ("dpp_ctrl", _dpp(0x160)), "wave_shl": ("dpp_ctrl", _whole(n1=0x130)),
    "wave_rol": ("dpp_ctrl", _whole(n1=0x134)), "wave_shr": ("dpp_ctrl", _whole(n1=0x138)),
    "wave_ror": ("dpp_ctrl", _whole(n1=0x13C)), "row_bcast": ("dpp_ctrl", _whole(n15=0x142, n31=0x143)),
    "bound_ctrl": ("bound_ctrl", lambda target, token: 1),
    **{f"{name}_sel": (f"{name}_sel", _one_of("", *SDWA_SELECTS)) for name in ("dst", "src0", "src1")},
    "dst_unused": ("dst_unused", _one_of("", *SDWA_UNUSED)),
    "index_key": ("index_key", lambda target, token: integer(token)),
    **{f"matrix_{side}_fmt": (f"matrix_{side}_fmt", _one_of("MATRIX_", *MATRIX_FORMATS)) for side in "ab"},
    **{f"matrix_{side}_scale": (f"matrix_{side}_scale", _one_of("MATRIX_", *SCALE_ROWS)) for side in "ab"},
    **{f"matrix_{side}_scale_fmt": (f"matrix_{side}_scale_fmt", _one_of("MATRIX_", *SCALE_FORMATS)) for side in "ab"},
}


def calls(token: Token) -> list[tuple[str, list[Token]]]:
    """``name(a, b) name(c)``, also with | or & between."""
    found = []
    for part in re.finditer(r"([\w.]+)\(([^()]*)\)", token.text):
        found.append((part.group(1), split(part.group(2), token.column + part.start(2), ",")))
    if not found or re.sub(r"[\w.]+\([^()]*\)|[\s|&,]", "", token.text):
        raise BadText(f"cannot read {token.text!r}", token.column)
    return found


def one_call(token: Token, *counts: int) -> list[Token]:
    """The arguments of ``name(...)``, as many as one of ``counts`` says."""
    found = calls(token)
    if len(found) != 1 or len(found[0][1]) not in counts:
        raise BadText(f"cannot read {token.text!r}", token.column)
    return found[0][1]


def _number_or(read: Callable[[Target, Token], int]) -> Callable[[Target, Token], int]:
    return lambda target, token: integer(token) if INTEGER.match(token.text) else read(target, token)


def _wait(target: Target, token: Token) -> int:
    counters = {"vmcnt": Counter.VM, "expcnt": Counter.EXP, "lgkmcnt": Counter.LGKM}
    counts = {}
    for name, (count, *_more) in calls(token):
        if name not in counters:
            raise BadText(f"unknown counter {name!r}", token.column)
        counts[counters[name]] = integer(count)
    return encode_immediate(target, counts)


def _dependencies(target: Target, token: Token) -> int:
    rows = {f"depctr_{row.text}": row for row in DEPENDENCIES if row.where(target)}
    value = sum((1 << row.width) - 1 << row.first for row in rows.values())
    for name, (count, *_more) in calls(token):
        if name not in rows:
            raise BadText(f"unknown counter {name!r}", token.column)
        row = rows[name]
        value = value & ~((1 << row.width) - 1 << row.first) | integer(count) << row.first
    return value


def _delay(_: Target, token: Token) -> int:
    places = {"instid0": (DELAYS, 0), "instskip": (SKIPS, 4), "instid1": (DELAYS, 7)}
    value = 0
    for name, (what, *_more) in calls(token):
        names, first = places.get(name, ((), 0))
        if what.text not in names:
            raise BadText(f"cannot read {name}({what.text})", what.column)
        value |= names.index(what.text) << first
    return value


def _hardware_register(target: Target, token: Token) -> int:
    name, *sizes = one_call(token, 1, 3)
    known = {f"HW_REG_{text}": number for number, text in names_of(HARDWARE_REGISTERS, target).items()}
    number = known[name.text] if name.text in known else integer(name)
    first, size = (integer(part) for part in sizes) if sizes else (0, 32)
    return number | first << 6 | size - 1 << 11


def _message(target: Target, token: Token) -> int:
    name, *details = one_call(token, 1, 2, 3)
    known = {f"MSG_{text}": number for number, text in names_of(MESSAGES, target).items()}
    number = known[name.text] if name.text in known else integer(name)
    system = {f"SYSMSG_OP_{text}": code for code, text in names_of(SYSTEM_OPERATIONS, target).items()}
    operations = {**system, **{text: code for code, text in enumerate(GS_OPERATIONS)}}
    operation, stream = ([operations[part.text] if part.text in operations else integer(part) for part in details]
                         + [0, 0])[:2]
    return number | operation << 4 | stream << 8


def _index_mode(target: Target, token: Token) -> int:
    names = token.text.removeprefix("gpr_idx(").removesuffix(")")
    order = ("SRC0", "SRC1", "SRC2", "DST")
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not token.text.startswith("gpr_idx(") or not set(chosen) <= set(order):
        raise BadText(f"cannot read {token.text!r}", token.column)
    return sum(1 << order.index(name) for name in chosen)


def _version(_: Target, token: Token) -> int:
    words = {**{name: number for number, name in VERSIONS.items()}, **{name: 1 << bit for bit, name in VERSION_FLAGS}}
    value = 0
    for part in re.findall(r"\w+", token.text):
        value |= words[part] if part in words else integer(Token(part, token.column))
    return value


_GROUPS = {1, 2, 4, 8, 16, 32}  # lanes
_LANES = range(32)
# By mode of ds_swizzle_b32: what each of its numbers may be, and the offset (AMD ISA manuals, DS_SWIZZLE_B32).
_SWIZZLES: dict[str, tuple[tuple[Container[int], ...], Callable[..., int]]] = {
    "QUAD_PERM": ((range(4),) * 4, lambda *lanes: 0x8000 | sum(lane << 2 * at for at, lane in enumerate(lanes))),
    "SWAP": ((_GROUPS - {32},), lambda size: 0x1F | size << 10),
    "REVERSE": ((_GROUPS - {1},), lambda size: 0x1F | size - 1 << 10),
    "BROADCAST": ((_GROUPS - {1}, _LANES), lambda size, lane: 32 - size | lane << 5),
    "FFT": ((_LANES,), lambda mask: 0xE000 | mask),
    "ROTATE": ((range(2), _LANES), lambda direction, lanes: 0xC000 | direction << 10 | lanes << 5),
}


def swizzle(token: Token) -> int:
    """``swizzle(MODE,...)`` to the offset of ds_swizzle_b32. BadText for a mode that there is not, with another number
    of arguments, or with arguments that it cannot have."""
    mode, *rest = one_call(token, 2, 3, 5)
    if mode.text == "BITMASK_PERM" and len(rest) == 1:
        return _bitmask(rest[0])
    allowed, encode = _SWIZZLES.get(mode.text, ((), int))
    if len(rest) != len(allowed) or not allowed:
        raise BadText(f"cannot read {token.text!r}", token.column)
    numbers = [integer(part) for part in rest]
    for part, number, some in zip(rest, numbers, allowed, strict=True):
        if number not in some:
            raise BadText(f"{mode.text} does not take {part.text}", part.column)
    if mode.text == "BROADCAST" and numbers[1] >= numbers[0]:
        raise BadText(f"there is no lane {numbers[1]} in a group of {numbers[0]}", rest[1].column)
    return encode(*numbers)


def _bitmask(token: Token) -> int:
    """Five of 0, 1, p (preserved) and i (inverted), the highest bit of the lane number first."""
    letters = token.text.strip('"')
    if not re.fullmatch("[01pi]{5}", letters):
        raise BadText(f"five of 0, 1, p and i are expected, not {token.text}", token.column)
    keep = put = flip = 0
    for letter in letters:
        keep, put, flip = keep << 1 | (letter in "pi"), put << 1 | (letter == "1"), flip << 1 | (letter == "i")
    return keep | put << 5 | flip << 10


# By printer: operands that take everything behind the mnemonic, or one operand with a name.
SPELLED: dict[str, Callable[[Target, Token], int]] = {
    "printSWaitCnt": _number_or(_wait), "printDepCtr": _number_or(_dependencies), "printSDelayALU": _number_or(_delay),
    "printHwreg": _number_or(_hardware_register), "printSendMsg": _number_or(_message),
    "printGPRIdxMode": _number_or(_index_mode), "printVersion": _number_or(_version),
    "printInterpSlot": lambda target, token: _slot(token),
}


def _slot(token: Token) -> int:
    slots = ("p10", "p20", "p0")
    found = re.fullmatch(r"invalid_param_(\d+)", token.text)
    if token.text not in slots and found is None:
        raise BadText(f"p10, p20 or p0 is expected, not {token.text!r}", token.column)
    return int(found.group(1)) if found else slots.index(token.text)


def attribute(token: Token) -> tuple[int, int]:
    """``attr3.x``: attribute and channel."""
    found = re.fullmatch(r"attr(\d+)\.([xyzw])", token.text)
    if found is None:
        raise BadText(f"an attribute like attr0.x is expected, not {token.text!r}", token.column)
    return int(found.group(1)), "xyzw".index(found.group(2))


def export_target(target: Target, token: Token) -> int:
    """A target of an export: a name that ``target`` has, or invalid_target_N for number N, as the printer writes it."""
    known = {name: number for number, name in names_of(EXPORT_TARGETS, target).items()}
    found = re.fullmatch(r"invalid_target_(\d+)", token.text)
    if token.text not in known and found is None:
        raise BadText(f"unknown export target {token.text!r}", token.column)
    return int(found.group(1)) if found else known[token.text]


def find_printed_name(target: Target, op: OpInfo, place: int) -> str:
    """The word that the printer writes for an operand, where that is not the operand's name."""
    printer = op.operands[place].printer
    kind, _, rest = printer.partition(":")
    if kind in ("bit", "int"):
        return rest.split(":")[0]
    if kind.startswith("printIndexKey"):
        return "index_key"
    if kind == "printR128A16":
        return "a16" if target.generation == 9 else "r128"
    return op.operands[place].name
