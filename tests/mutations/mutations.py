"""Mutations of our own source: lines of the rooms that make a copy or prove it, each changed so that it is wrong.

In: nothing. Out: MUTATIONS. Invariant: ``before`` is once in its file, and the changed file is still Python. What each
would break is what the line is there for, so that a test that knows why it is there fails.
"""

from __future__ import annotations

from dataclasses import dataclass

ROOMS = ("analysis", "inject", "link", "proof")


@dataclass(frozen=True, slots=True)
class Mutation:
    """``file``: below luthier_py."""

    file: str
    before: str
    after: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]


def _of(file: str, *pairs: tuple[str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(file, before, after) for before, after in pairs)


MUTATIONS: tuple[Mutation, ...] = (
    *_of(
        "analysis/liveness.py",
        ("state: live & summary.keeps | vector_reads if state.active else live | summary.wave_reads",
         "state: live & summary.keeps | vector_reads"),
        ("end.scalars & summary.keeps | reads | EXEC_BITS, vectors)", "end.scalars & summary.keeps | reads, vectors)"),
        ("reads = reads & ~each.kills | each.reads", "reads = (reads | each.reads) & ~each.kills"),
        ("live = everything(isa) & owned[node.function] if node.index in graph.leaves else EXEC_BITS",
         "live = EXEC_BITS"),
        ("return Flowing(a.scalars | b.scalars,", "return Flowing(a.scalars & b.scalars,"),
        ("each._replace(reads=each.reads | pack(reads[instr]))", "each._replace(reads=pack(reads[instr]))"),
    ),
    *_of(
        "analysis/effects.py",
        ("pack(inst.writes - inst.partial_writes)", "pack(inst.writes)"),
        ("wave_reads = reads & ~SCALARS\n    elif OpFlag.READS_OTHER", "wave_reads = 0\n    elif OpFlag.READS_OTHER"),
        ("not state.some_lane", "state.some_lane"),
        ("reads |= vectors\n", "reads |= 0\n"),
        ("OpFlag.MATRIX not in flags", "OpFlag.MATRIX in flags"),
        ("    if skipped or", "    if"),
        ("reads |= pack(_TRAP_READS)", "reads |= 0"),
    ),
    *_of(
        "analysis/waits.py",
        ("return Queue(queue.ages[:count], queue.unordered) if count else EMPTY",
         "return Queue(queue.ages[:count], 0) if count else EMPTY"),
        ("queue.ages[:count], queue", "queue.ages[:count + 1], queue"),
        ("return Counter.LGKM not in op.counters", "return True"),
        ("counter is Counter.LGKM and OpFlag.LDS in op.flags", "counter is Counter.LGKM"),
        ("written | pack(inst.reads) if counter is Counter.EXP else written", "written"),
        ("(0, *queue.ages)", "queue.ages"),
        ("x.unordered | y.unordered", "x.unordered & y.unordered"),
        ("if queue.unordered & wanted:", "if queue.unordered and not wanted:"),
    ),
    *_of(
        "analysis/execution.py",
        ("a.nonzero & b.nonzero, a.indexed or b.indexed", "a.nonzero | b.nonzero, a.indexed or b.indexed"),
        ("a.nonzero & b.nonzero, a.indexed or b.indexed", "a.nonzero & b.nonzero, a.indexed and b.indexed"),
        ("max(a.skipping, b.skipping)", "min(a.skipping, b.skipping)"),
        ("a.value if a.value == b.value else None", "a.value"),
    ),
    *_of(
        "analysis/lanes.py",
        ("return LaneState(known, value), LaneState(known, value | EXEC_BIT)", "return (LaneState(known, value),)"),
        ("known & ~mask if bit is None else known | mask", "known | mask"),
        ("return None if source == UNKNOWN else int(source != ZERO)", "return int(source != ZERO)"),
    ),
    *_of(
        "analysis/cfg.py",
        ("unknown = node.call.unknown or len(known) < len(node.call.targets)", "unknown = node.call.unknown"),
        ("found[callee] |= found[function]", "pass"),
        ("joined = new if old is None else join(old, new)", "joined = new"),
    ),
    *_of(
        "analysis/registers.py",
        ("found.get(function, SCALARS) | regs", "regs"),
        ("masks[0] |= reads.sgpr | writes.sgpr", "masks[0] |= writes.sgpr"),
    ),
    *_of(
        "analysis/float_mode.py",
        ("return rounding | denormals << 4 == PLAIN_MODE", "return denormals == PLAIN_MODE >> 4"),
        ("and not any(\n", "or not any(\n"),
    ),
    *_of(
        "analysis/regions.py",
        ("labels[parent[node]] ^= labels[edge]", "labels[parent[node]] |= labels[edge]"),
    ),
    *_of(
        "inject/allocate.py",
        ("reg in self.free and not self.taken.overlaps", "not self.taken.overlaps"),
        ("runs &= mask >> offset", "runs &= mask"),
        ("(not pin.writable and written.overlaps(RegSet.of(pin.slot)))", "False"),
        ("return 2 if dwords == 2 or file is not RegFile.SGPR else 4", "return 2"),
        ("clash = (homes | pool.taken).overlaps(RegSet.of(pin.home))", "clash = False"),
    ),
    *_of(
        "inject/clauses.py",
        ("size -= item.stop - item.start", "size -= 0"),
        ("            if item.inserted:\n                return False",
         "            if False:\n                return False"),
    ),
    *_of(
        "inject/relax.py",
        ("REACH_BYTES = range(-4 * 32768, 4 * 32768)", "REACH_BYTES = range(-4 * 65536, 4 * 65536)"),
    ),
    *_of(
        "inject/resources.py",
        ("untouched -= facts.live_before(kernel.function.block(entry).instrs[0])", "pass"),
        ("if used.agpr:\n", "if False:\n"),
        ('max(vgprs, agprs)}', 'vgprs}'),
        (".bit_length() + target.extra_sgprs", ".bit_length()"),
    ),
    *_of(
        "inject/call.py",
        ("for reg in (_SCC, _VCC, _M0):", "for reg in (_VCC, _M0):"),
        ("for reg in (_SCC, _VCC, _M0):", "for reg in (_SCC, _VCC):"),
        ("caller.pool.free -= named", "pass"),
        ("self.copy(_EXEC, self.saved.pop(_EXEC))", "self.saved.pop(_EXEC)"),
        ("        if mode is not None:\n            self.emit(glue.set_mode(self.isa, mode))\n", ""),
        ("self.move(reg, self.saved.get(home, home))", "self.move(reg, home)"),
        ("aside = self.pool.take(source.file, source.dwords)", "aside = to"),
        ("(RegSet.of(_SCC) if makes_addresses else RegSet())", "RegSet()"),
    ),
    *_of(
        "inject/weave.py",
        ("yield Slice(code, start, at + 1)", "yield Slice(code, start, at)"),
    ),
    *_of(
        "inject/seams.py",
        ("(debts.inserted, *[debts.application] * inserted)", "(debts.inserted,)"),
    ),
    *_of(
        "link/fixups.py",
        ("- addresses[chunk.name] - fixup.base_offset", "- addresses[chunk.name]"),
        ("not -(1 << 31) <= distance < 1 << 31", "False"),
        ("+ fixup.addend", ""),
    ),
    *_of(
        "link/layout.py",
        ("+ offset % PAGE_BYTES", ""),
        ("return -(-value // align) * align", "return value // align * align"),
        ("file_end if section.type == SectionType.NOBITS else memory_end", "memory_end"),
        ("_PREFETCH_BYTES = 1024", "_PREFETCH_BYTES = 0"),
    ),
    *_of(
        "link/tables.py",
        ("chain = [value & ~1 for value in hashes]", "chain = list(hashes)"),
        ("value % 64 | 1 <<", "value % 64 | 0 <<"),
        ("chains[index], buckets[bucket] = buckets[bucket], index", "buckets[bucket] = index"),
    ),
    *_of(
        "link/writer.py",
        ('struct.pack_into("<H", out, 56, len(segments))', 'struct.pack_into("<H", out, 56, len(elf.segments))'),
        ("entry = addresses[kernel.entry] + kernel.entry_offset", "entry = addresses[kernel.entry]"),
        ("Visibility.PROTECTED", "Visibility.HIDDEN"),
        ("_DT_STRSZ: strings.size", "_DT_STRSZ: 0"),
        ("last.offset + last.size - first.offset", "last.size"),
    ),
    *_of(
        "link/validate.py",
        ("if name in seen or obj.symbol(name) is not None:", "if name in seen:"),
        ("if kernel.entry_offset % ENTRY_ALIGN_BYTES or chunk.align % ENTRY_ALIGN_BYTES:", "if False:"),
    ),
    *_of(
        "link/grow.py",
        ('".kernarg_segment_size": "kernarg_size",', ""),
        ("names += [symbol.name.encode() for _, symbol in symbols[index]]", "pass"),
    ),
)
