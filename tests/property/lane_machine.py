"""A tiny wave machine that runs random programs: the oracle for liveness. It knows nothing of luthier_py.

In: a program as a list of operations (tuples; strings are labels), starting values, and a function that destroys
registers before each step. Out: everything that can be seen from outside. Four lanes, a few registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

LANES = 4
ALL = (1 << LANES) - 1
WORD = 0xFFFFFFFF
FUNCTION = 0x5000  # where calls go, as a number
PC = 0x1000        # what s_getpc reads, as a number
STEPS = 120

Operation = tuple[object, ...]


@dataclass
class Wave:
    """State of one wave. Masks (exec, vcc, m0..m4) are ints over lanes; ``s`` are scalars, ``v`` rows of lanes."""

    masks: dict[str, int]
    s: dict[str, int]
    v: list[list[int]]
    scc: int = 0
    seen: list[object] = field(default_factory=list)

    def lanes(self) -> list[int]:
        return [lane for lane in range(LANES) if self.masks["exec"] >> lane & 1]


LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b, "nor": lambda a, b: ~(a | b),
}
SAVE: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, e: a & e, "or": lambda a, e: a | e, "xor": lambda a, e: a ^ e, "andn2": lambda a, e: a & ~e,
    "andn1": lambda a, e: ~a & e, "orn2": lambda a, e: a | ~e,
}


def run(program: Sequence[Operation | str], wave: Wave, destroy: Callable[[int, Wave], None]) -> list[object]:
    """What a wave does. ``destroy`` is called before each operation with its number (labels not counted)."""
    labels, operations = {}, []
    for row in program:
        if isinstance(row, str):
            labels[row] = len(operations)
        else:
            operations.append(row)
    at = 0
    for _ in range(STEPS):
        destroy(at, wave)
        operation = operations[at]
        wave.seen.append(at)
        if operation[0] == "end":
            return wave.seen
        where = step(wave, operation, at)
        if where is None:
            at += 1
        elif isinstance(where, str):
            at = labels[where]
        else:
            at = where
        if not 0 <= at < len(operations):
            wave.seen.append("wild")
            return wave.seen
    return wave.seen


def step(wave: Wave, operation: Operation, at: int) -> int | str | None:
    """Do one operation; the label or number of the next one, None for the one that follows."""
    name, *args = operation
    if name in BRANCHES:
        return str(args[0]) if BRANCHES[str(name)](wave) else None
    if name == "swappc":
        there = wave.s["p6"] | wave.s["p7"] << 32
        wave.s["p30"], wave.s["p31"] = at + 1, 0
        return "function" if there == FUNCTION else -1
    if name == "setpc":
        return wave.s["p30"] | wave.s["p31"] << 32
    OPERATIONS[str(name)](wave, *args)
    return None


BRANCHES: dict[str, Callable[[Wave], bool]] = {
    "branch": lambda w: True, "scc0": lambda w: not w.scc, "scc1": lambda w: bool(w.scc),
    "vccz": lambda w: not w.masks["vcc"], "vccnz": lambda w: bool(w.masks["vcc"]),
    "execz": lambda w: not w.masks["exec"], "execnz": lambda w: bool(w.masks["exec"]),
}


def _mask(wave: Wave, source: str | int) -> int:
    return (ALL if source else 0) if isinstance(source, int) else wave.masks[source]


def _set(wave: Wave, mask: str, value: int) -> None:
    wave.masks[mask] = value & ALL


def _vmov(wave: Wave, d: int, a: int) -> None:
    for lane in wave.lanes():
        wave.v[d][lane] = wave.v[a][lane]


def _vadd(wave: Wave, d: int, a: int, b: int) -> None:
    for lane in wave.lanes():
        wave.v[d][lane] = wave.v[a][lane] + wave.v[b][lane] & WORD


def _vset(wave: Wave, d: int, s: str) -> None:
    for lane in wave.lanes():
        wave.v[d][lane] = wave.s[s]


def _vsel(wave: Wave, d: int, a: int, b: int) -> None:
    for lane in wave.lanes():
        wave.v[d][lane] = wave.v[b if wave.masks["vcc"] >> lane & 1 else a][lane]


def _compare(wave: Wave, a: int, b: int) -> int:
    return sum(1 << lane for lane in wave.lanes() if wave.v[a][lane] < wave.v[b][lane])


def _cmp(wave: Wave, mask: str, a: int, b: int) -> None:
    _set(wave, mask, _compare(wave, a, b))


def _cmpx(wave: Wave, a: int, b: int) -> None:
    result = _compare(wave, a, b)
    _set(wave, "vcc", result)
    _set(wave, "exec", result)


def _first(wave: Wave, s: str, a: int) -> None:
    wave.s[s] = wave.v[a][min(wave.lanes(), default=0)]


def _readlane(wave: Wave, s: str, a: int, lane: int) -> None:
    wave.s[s] = wave.v[a][lane]


def _writelane(wave: Wave, d: int, s: str, lane: int) -> None:
    wave.v[d][lane] = wave.s[s]


def _logic(wave: Wave, name: str, d: str, a: str | int, b: str | int) -> None:
    _set(wave, d, LOGIC[name](_mask(wave, a), _mask(wave, b)))
    wave.scc = int(wave.masks[d] != 0)


def _save(wave: Wave, name: str, d: str, a: str | int) -> None:
    old, source = wave.masks["exec"], _mask(wave, a)
    _set(wave, d, old)
    _set(wave, "exec", SAVE[name](source, old))
    wave.scc = int(wave.masks["exec"] != 0)


def _sadd(wave: Wave, d: str, a: str, constant: int) -> None:
    total = wave.s[a] + constant
    wave.s[d], wave.scc = total & WORD, total >> 32


def _sselect(wave: Wave, d: str, a: str) -> None:
    wave.s[d] = wave.s[a] if wave.scc else 1


def _scmp(wave: Wave, a: str, constant: int) -> None:
    wave.scc = int(wave.s[a] != constant)


def _store(wave: Wave, a: int, b: int) -> None:
    wave.seen.append([(lane, wave.v[a][lane], wave.v[b][lane]) for lane in wave.lanes()])


def _getpc(wave: Wave) -> None:
    wave.s["p6"], wave.s["p7"] = PC, 0


def _addhi(wave: Wave) -> None:
    wave.s["p7"] = wave.s["p7"] + wave.scc & WORD
    wave.scc = 0


OPERATIONS: dict[str, Callable[..., None]] = {
    "vmov": _vmov, "vadd": _vadd, "vset": _vset, "vsel": _vsel, "cmp": _cmp, "cmpx": _cmpx, "first": _first,
    "readlane": _readlane, "writelane": _writelane, "logic": _logic, "save": _save, "sadd": _sadd,
    "sselect": _sselect, "scmp": _scmp, "store": _store, "getpc": _getpc, "addhi": _addhi,
    "addlo": lambda wave: _sadd(wave, "p6", "p6", FUNCTION - PC),
    "mov": lambda wave, d, a: _set(wave, d, _mask(wave, a)),
    "smov": lambda wave, d, constant: wave.s.__setitem__(d, constant),
    "half": lambda wave, d, constant: _set(wave, d, constant),
}
