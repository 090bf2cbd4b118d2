"""What a checked launch found, as data and in words.

In: the rows that native code fills (watching.h). Out: Findings. Invariant: each kind of mistake is reported once for
each pair of instructions, with the first occurrence and how many there were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from luthier_py.base.errors import describe_inlining, how_many
from luthier_py.base.records import dataclass
from luthier_py.emulator.options.checks import (
    BLOCK_FREE,
    BLOCK_LEFT,
    READ_ONLY,
    AccessUse,
    Divergence,
    FindingKind,
    Race,
    UndefinedUse,
)

if TYPE_CHECKING:
    from luthier_py.emulator.waves.cycle_account import LaunchCycles


@dataclass(frozen=True, slots=True)
class CodePlace:
    """An instruction. ``pc`` as the code object has it; ``lines``: of the source, where they are known, that of the
    innermost function first and then where it was inlined. ``inserted``: an instruction of a tool, in front of that
    at ``pc``."""

    pc: int
    text: str | None
    lines: tuple[str, ...] = ()
    inserted: bool = False

    def __str__(self) -> str:
        text = f"`{self.text}`" if self.text is not None else ""
        lines = f" ({describe_inlining(self.lines)})" if self.lines else ""
        if self.inserted:
            return f"{text or 'code'} that the tool inserted before pc 0x{self.pc:x}{lines}"
        return f"pc 0x{self.pc:x}{f' {text}' if text else ''}{lines}"

    def facts(self) -> dict[str, object]:
        """JSON-ready."""
        return {"pc": self.pc, "instruction": self.text, "line": next(iter(self.lines), None),
                "inlined_at": list(self.lines[1:]), "inserted": self.inserted}


@dataclass(frozen=True, slots=True)
class Actor:
    """The wave and lane that did it."""

    group: int
    wave: int
    lane: int

    def __str__(self) -> str:
        return f"lane {self.lane} of wave {self.wave} of work-group {self.group}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of mistake at an instruction, or between two."""

    kind: FindingKind
    kernel: str
    what: str               # in words
    where: CodePlace
    who: Actor              # the first time
    count: int              # how often
    other: CodePlace | None = None
    other_who: Actor | None = None
    address: int | None = None

    def text(self, name_of: Callable[[str], str] = str) -> str:
        """In lines: what it is, where, and the other place. ``name_of``: a kernel's name for people."""
        often = f" ({how_many(self.count, 'time')})" if self.count > 1 else ""
        lines = [f"check {self.kind.check}: kernel {name_of(self.kernel)}: {self.what}{often}",
                 f"  at {self.where}, {self.who}"]
        if self.other is not None:
            before = f", {self.other_who}, before" if self.other_who else ""
            lines.append(f"  {'and' if self.other_who else 'see'} {self.other}{before}")
        return "\n".join(lines)

    def facts(self) -> dict[str, object]:
        """JSON-ready."""
        def actor(who: Actor | None) -> dict[str, object] | None:
            return None if who is None else {"work_group": who.group, "wave": who.wave, "lane": who.lane}

        return {"kind": self.kind.name.lower(), "kernel": self.kernel, "what": self.what, "count": self.count,
                "address": self.address, "at": self.where.facts(), "by": actor(self.who),
                "other_at": None if self.other is None else self.other.facts(), "other_by": actor(self.other_who)}


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What checks and the cycle model say of a launch. ``left_out``: where checks stopped looking, in words;
    ``cycles``: None without the model, and of a launch that failed. ``device``: its number in the program. ``notes``:
    what it did that GPUs do without a word. ``looked_at``: by checks, or by the model."""

    kernel: str
    findings: list[Finding]
    left_out: tuple[str, ...] = ()
    cycles: LaunchCycles | None = None
    device: int = 0
    notes: tuple[str, ...] = ()
    looked_at: bool = True


Reporter = Callable[[LaunchReport], None]
"""Gets what is known of a launch, from the thread that launched."""
FindingRow = Mapping[str, int]
_SPACES = ("LDS", "memory", "scratch")
_ACCESSES = {AccessUse.READS: "a read", AccessUse.WRITES: "a write", AccessUse.MODIFIES: "an atomic"}


def describe_finding(row: FindingRow, register: Callable[[int], str], nearest: Callable[[int], str],
              limits: tuple[int, int]) -> str:
    """What a row says. ``register`` names one; ``limits``: bytes of LDS, and of each lane's scratch."""
    kind, detail = FindingKind(row["kind"]), row["detail"]
    if kind is FindingKind.BOUNDS:
        return _out_of_bounds(row, nearest, limits)
    if kind is FindingKind.ALIGNMENT:
        return f"address 0x{row['address']:x} in {_space(row)} is no multiple of {detail}"
    if kind is FindingKind.HARDWARE and detail:
        from luthier_py.isa.properties.float_results import FloatFormat  # a warm start rarely needs it

        denormal = f"0x{row['address']:x}, a denormal of {list(FloatFormat)[detail - 1].name.lower()}"
        return f"{denormal}, counts as zero in this instruction on this GPU, and not on others"
    if kind is FindingKind.HARDWARE:
        return (f"a float atomic at 0x{row['address']:x} in fine-grained memory, which does nothing on this GPU; use "
                "hipMalloc'ed memory, or compile without unsafe float atomics")
    if kind is FindingKind.WAIT:
        return f"{register(detail)} is used before the load into it was waited for"
    if kind is FindingKind.RACE:
        return _describe_race(row)
    if kind is FindingKind.MEMORY:
        what = how_many(row["size"], "byte")
        return f"{what} at 0x{row['address']:x} in {_space(row)}, read and never written"
    if kind is FindingKind.REGISTER:
        when = "was never written, or read far outside of LDS" if detail >> 24 else "was never written"
        return f"{register(detail & 0xFFFF)} {when}, and {_DECIDES[UndefinedUse(detail >> 16 & 0xFF)]}"
    return _describe_divergence(row)


_DECIDES = {
    UndefinedUse.ADDRESS: "is an address", UndefinedUse.BRANCH: "decides a branch",
    UndefinedUse.MASK: "decides which lanes are active", UndefinedUse.STORED: "is stored to memory",
}


def _space(row: FindingRow) -> str:
    return _SPACES[row["other_lane"]]


def _out_of_bounds(row: FindingRow, nearest: Callable[[int], str], limits: tuple[int, int]) -> str:
    address, detail = row["address"], row["detail"]
    use, block, size = AccessUse(detail & 3), row["other_group"], how_many(row["other_wave"], "byte")
    what = f"{_ACCESSES[use]} of {how_many(row['size'], 'byte')} at 0x{address:x}"
    if detail & BLOCK_LEFT:
        return f"{what}, past the end of its block on the heap of kernels (0x{block:x}, {size})"
    if detail & BLOCK_FREE and address < block:
        return f"{what}, {block - address} bytes before the first block of {size} on the heap of kernels"
    if detail & BLOCK_FREE:
        return (f"{what}, {address - block} bytes into a block on the heap of kernels that is not in use (0x{block:x}, "
                f"{size}): it was freed, or the access is out of bounds of another one")
    if _space(row) == "memory":
        return f"{what}, {'in read-only memory' if detail & READ_ONLY else 'out of bounds'}; {nearest(address)}"
    whose = f"the work-group's {limits[0]}" if _space(row) == "LDS" else f"the lane's {limits[1]}"
    return f"{what} in {_space(row)}, out of bounds of {whose} bytes"


def _describe_race(row: FindingRow) -> str:
    detail = row["detail"]
    words = {Race.READ_AFTER_WRITE: "a read and a write", Race.WRITE_AFTER_READ: "a write and a read",
             Race.WRITE_AFTER_WRITE: "two writes"}[Race(detail & 3)]
    where = "LDS" if detail & Race.IN_LDS else "memory"
    why = "; the write was not waited for before the barrier" if detail & Race.NOT_WAITED else ""
    if (row["group"], row["wave"]) == (row["other_group"], row["other_wave"]):
        why = " but that in which the lanes of a wave go here"
    if detail & Race.NOT_ACQUIRED:
        why = ("; the reader knows of it by a relaxed or volatile access, and loads it without an acquire of the "
               "device in between")
    return f"{words} of 0x{row['address']:x} in {where} in no order{why}"


def _describe_divergence(row: FindingRow) -> str:
    kind = Divergence(row["detail"])
    if kind is Divergence.OF_SOME_LANES:
        return f"{how_many(row['lanes'].bit_count(), 'lane')} of the wave did not come to this barrier"
    if kind is Divergence.WITHOUT_WAVE:
        return f"wave {row['other_wave']} of the work-group ended and did not come to this barrier"
    return f"wave {row['other_wave']} of the work-group came to another barrier"


def no_report(report: LaunchReport) -> None:
    """Drop the report."""
