"""Mutations of our own source: lines of the rooms that make a copy or prove it, each changed so that it is wrong.

In: nothing. Out: MUTATIONS. Invariant: ``before`` is once in its file, and the changed file is still Python. What each
would break is what the line is there for, so that a test that knows why it is there fails.
"""

from __future__ import annotations

from dataclasses import dataclass

ROOMS = ("analysis", "inject", "jit", "link", "proof", "wanted")


@dataclass(frozen=True, slots=True)
class Mutation:
    """``file``: below luthier_py."""

    file: str
    before: str
    after: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")


def _of(file: str, *pairs: tuple[str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(file, before, after) for before, after in pairs)


MUTATIONS: tuple[Mutation, ...] = (
    *_of(
        "analysis/liveness.py",
        ("if active else live | wave_reads", "if True else live | wave_reads"),
        ("| each.reads | EXEC_BITS, live.inactive", "| each.reads, live.inactive"),
        ("live = effects.owned[node.function] if node.index in self.graph.leaves else EXEC_BITS", "live = EXEC_BITS"),
        ("return Flowing(a.scalars | b.scalars,", "return Flowing(a.scalars & b.scalars,"),
        ("found[place]._replace(reads=found[place].reads | regs)", "found[place]._replace(reads=regs)"),
    ),
    *_of(
        "analysis/effects.py",
        ("reads |= (read | kills) ^ kills", "reads |= read & ~kills & ~kill"),
        ("pack(inst.writes - inst.partial_writes)", "pack(inst.writes)"),
        ("wave_reads = reads & ~SCALARS\n    elif OpFlag.READS_OTHER", "wave_reads = 0\n    elif OpFlag.READS_OTHER"),
        ("not state.some_lane", "state.some_lane"),
        ("reads |= vectors\n", "reads |= 0\n"),
        ("OpFlag.MATRIX not in flags", "OpFlag.MATRIX in flags"),
        ("    if skipped or", "    if"),
        ("reads |= pack(_TRAP_READS)", "reads |= 0"),
        ('wave_reads |= vectors if wave_reads else 0', 'pass'),
    ),
    *_of(
        "analysis/waits.py",
        ("return Queue(queue.ages[:count], queue.unordered) if count else EMPTY",
         "return Queue(queue.ages[:count], 0) if count else EMPTY"),
        ("queue.ages[:count], queue", "queue.ages[:count + 1], queue"),
        ("return Counter.LGKM not in op.counters", "return True"),
        ("counter is Counter.LGKM and OpFlag.LDS in op.flags", "counter is Counter.LGKM"),
        ("written | pack(inst.reads) if counter is Counter.EXP else written", "written"),
        ("ages = [regs, *(", "ages = [*("),
        ("x.unordered | y.unordered", "x.unordered & y.unordered"),
        ("if queue.unordered & wanted:", "if queue.unordered and not wanted:"),
        ('regs |= ages[age] if age < len(ages) else 0', 'regs = ages[age] if age < len(ages) else 0'),
    ),
    *_of(
        "analysis/execution.py",
        ("a.nonzero & b.nonzero, a.indexed or b.indexed", "a.nonzero | b.nonzero, a.indexed or b.indexed"),
        ("a.nonzero & b.nonzero, a.indexed or b.indexed", "a.nonzero & b.nonzero, a.indexed and b.indexed"),
        ("max(a.skipping, b.skipping)", "min(a.skipping, b.skipping)"),
        ("a.value if a.value == b.value else None", "a.value"),
        ('following if row.if_zero else taken', 'taken if row.if_zero else following'),
        ('overwritten = written | written >> 1', 'overwritten = written'),
        ('(simm >> 11 & 31) >= _GPR_IDX_BIT', '(simm >> 11 & 31) > _GPR_IDX_BIT'),
        ('unknown if node.index in graph.arrives else start if', 'start if node.index in graph.arrives else start if'),
    ),
    *_of(
        "analysis/lanes.py",
        ("_relevant_before(each, relevant) & ~foreign", "_relevant_before(each, relevant)"),
        ("return LaneState(known, value), LaneState(known, value | EXEC_BIT)", "return (LaneState(known, value),)"),
        ("known & ~mask if bit is None else known | mask", "known | mask"),
        ("if source >= 0 and state.known >> source & 1 else None", "if source >= 0 else None"),
        ('if a.few or b.few or len(states) > MOST_STATES:', 'if len(states) > MOST_STATES:'),
        ('return before | EXEC_BIT', 'return before'),
    ),
    *_of(
        "analysis/cfg.py",
        ("unknown = node.call.unknown or len(known) < len(node.call.targets)", "unknown = node.call.unknown"),
        ("found[callee] |= found[function]", "pass"),
        ("joined = new if old is None else join(old, new)", "joined = new"),
        ('unknown |= not callers[node.function]', 'pass'),
        ('if node.is_head and _unknown_entry(program, node, callers):', 'if False:'),
    ),
    *_of(
        "analysis/registers.py",
        ("found.get(function, SCALARS) | regs", "regs"),
        ("distinct.masks.reads[kind] | distinct.masks.writes[kind]", "distinct.masks.writes[kind]"),
    ),
    *_of(
        "analysis/float_mode.py",
        ("return rounding | denormals << 4 == PLAIN_MODE", "return denormals == PLAIN_MODE >> 4"),
        ("and not any(\n", "or not any(\n"),
        ('field >> 6 & 31 < FLOAT_BITS', 'field >> 6 & 31 == 0'),
    ),
    *_of(
        "analysis/regions.py",
        ("around[near] ^= around[far]", "around[near] |= around[far]"),
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
        ("elif isinstance(item, Run) or (isinstance(item, Single) and (item.inserted or item.instead)):",
         "elif False:"),
        ("(item.inserted or item.instead)", "item.inserted"),
    ),
    *_of(
        "inject/relax.py",
        ("REACH_BYTES = range(-4 * 32768, 4 * 32768)", "REACH_BYTES = range(-4 * 65536, 4 * 65536)"),
        ('if start >= last + GROUP_BYTES and items[number] not in bases:', 'if start >= last + GROUP_BYTES:'),
        ('if unsafe_displacement(isa.target, distance // 4)}', 'if False}'),
        ("return OpFlag.TERMINATOR not in flags or OpFlag.CONDITIONAL in flags", "return True"),
    ),
    *_of(
        "inject/resources.py",
        ("untouched -= facts.live_before(kernel.function.block(entry).instrs[0])", "pass"),
        ("if used.agpr:\n", "if False:\n"),
        ('max(vgprs, agprs)}', 'vgprs}'),
        (".bit_length() + target.extra_sgprs", ".bit_length()"),
        ('descriptor.accum_offset + max(had, used.agpr.bit_length())',
         'descriptor.accum_offset + used.agpr.bit_length()'),
        ('    if ordered:\n        _check_calls', '    if False:\n        _check_calls'),
        ('named |= inst.reads.bits | inst.writes.bits', 'named |= inst.writes.bits'),
        ('kernels, reached = other[0] + kernels, other[1] | reached', 'kernels, reached = other[0] + kernels, reached'),
    ),
    *_of(
        "inject/call.py",
        ("for reg in (_SCC, _VCC, _M0):", "for reg in (_VCC, _M0):"),
        ("for reg in (_SCC, _VCC, _M0):", "for reg in (_SCC, _VCC):"),
        ("self.copy(_EXEC, self.saved.pop(_EXEC))", "self.saved.pop(_EXEC)"),
        ("        if mode is not None:\n            self.emit(glue.set_mode(self.isa, mode))\n", ""),
        ("self.move(reg, self.saved.get(home, home) if isinstance(home, Reg) else home)", "self.move(home, reg)"),
        ("aside = self.pool.take(source.file, source.dwords)", "aside = to"),
        ("| (RegSet.of(_SCC) if makes_addresses else RegSet()))", ")"),
        ("else RegSet())) - given)", "else RegSet())))"),
    ),
    *_of(
        "jit/called.py",
        ("(starts[-1] - starts[k + 1]) // 4", "0"),
        ("index=seat.index + _FIRST_SGPR", "index=seat.index"),
    ),
    *_of(
        "inject/spills.py",
        ("self.before, self.behind = [*before, *self.before], [*self.behind, *behind]",
         "self.before, self.behind = [*self.before, *before], [*behind, *self.behind]"),
        ("if own_exec:", "if False:"),
        ("twice = [*save, flip, *save, flip], [*load, flip, *load, flip]", "twice = save, load"),
        ("if not self.flag:", "if True:"),
        ("self.singles([glue.flag(self.isa, False)])", "self.singles([glue.flag(self.isa, True)])"),
    ),
    *_of(
        "inject/slots.py",
        ("return bool(cells) and (isa.target.scratch_needs_base", "return bool(cells) and (False"),
        ("*(isa.waits({Counter.VM: 0}) if in_memory else ())", ""),
        ("pool.free & (site.resting() or RegSet())", "pool.free"),
        ("pool.borrowed |= RegSet.of(reg)", "pass"),
    ),
    *_of(
        "inject/policies.py",
        ("for number in range(self.kept, MOST_CELLS)", "for number in range(MOST_CELLS)"),
        ("if any(record.descriptor.uses_dynamic_stack or", "if any(False or"),
        ("untouched = registers - facts.touched(component.functions)", "untouched = registers"),
    ),
    *_of(
        "inject/weave.py",
        ("yield Slice(code, start, at + 1)", "yield Slice(code, start, at)"),
        ("            items += before.get(pc, ())\n", ""),
        ("item = replace(item, jump=way)", "pass"),
    ),
    *_of(
        "inject/sites.py",
        ("needs.general - (live | loading),\n", "needs.general - live,\n"),
        ("self.facts.pending_before(instr) if place is Place.BEFORE else self.facts.pending_after(instr)",
         "self.facts.pending_before(instr)"),
    ),
    *_of(
        "analysis/facts.py",
        ("reads[self._target(instr), 0] |= regs", "pass"),
        ("return Facts(self.program, instead, written) if instead or written.sgpr else self", "return self"),
    ),
    *_of(
        "inject/lookup.py",
        ("subtract_with_borrow(isa, high, part(pointer, 1)", "subtract_with_borrow(isa, high, part(pointer, 0)"),
        ("*self.address(Referent(function=address)), self.single(glue.jump(isa), end),",
         "*self.address(Referent(function=address)),"),
    ),
    *_of(
        "inject/prologue.py",
        ("entries[1] - entries[0] - sum(single.size_bytes for single in stub)", "entries[1] - entries[0]"),
    ),
    *_of(
        "inject/clone.py",
        ("if builder.value in self.labels and builder.branch is not None:", "if builder.value in self.labels:"),
        ("if builder.call is not None and builder.value in self.beside:", "if builder.value in self.beside:"),
        ("found[pc] = (Single(inst, instr, Edit(Cause.INSTEAD, point=pc)),)", "pass"),
    ),
    *_of(
        "inject/seams.py",
        ("(debts.inserted, *[debts.application] * inserted)", "(debts.inserted,)"),
        ("self.whole = clone.rewritten", "self.whole = False"),
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
    *_of(
        "proof/runs.py",
        ("if len(arrived) != 1:", "if not arrived:"),
        ("if to in gone or to <= pc", "if to <= pc"),
        ("if not computes(inst.op):", "if False:"),
        ("not start <= at <= self.private.stop - 4", "False"),
        ("at % 4 or (at - start) % 4", "False"),
        ("now.terms[cell] = now.others[cell] = UNKNOWN", "pass"),
        ("if inst.find(\"vaddr\") is not None or", "if"),
        ("now.pending, now.timed = issued(self.isa, inst, now.pending), True", "pass"),
        ("if not isinstance(start, int) or start not in self.private or", "if not isinstance(start, int) or"),
        ("if not right:\n", "if False:\n"),
    ),
    *_of(
        "proof/now.py",
        ("a.others.keys() | b.others.keys()", "a.others.keys() & b.others.keys()"),
        ("return near if near == far else UNKNOWN", "return near"),
        ("if CELLS <= register < LANES else", "if False else"),
        ("return new if reach is Reach.ALL or old == new else UNKNOWN", "return new"),
        ("self.others[register] = _after(self.far, self.other(register), far)", "self.others[register] = far"),
        ("if (a.get(SCC), b.get(SCC)) == (is_set, b.flags.get(term))", "if b.get(SCC) == b.flags.get(term)"),
        ("flags = dict(a.flags.items() & b.flags.items())", "flags = a.flags | b.flags"),
        ("if a.always == b.always and (", "if ("),
    ),
    *_of(
        "proof/vectors.py",
        ("if value == lane_of(whole, lane) != UNKNOWN:", "if False:"),
        ("join(lane_of(x, lane), lane_of(y, lane))", "lane_of(x, lane)"),
        ("found = join(below(x), below(y))", "found = below(x)"),
        ("return UNKNOWN if not in_lanes(term) and _has_lanes(term) else term", "return term"),
    ),
    *_of(
        "proof/masks.py",
        (" | (1 << HALF + index if step == 2 else 0)", ""),
        ("bit if bits[0] == bit else None", "bit if bits[0] is not None else None"),
        ("(HALF + (index ^ 1),), compute", "(HALF + index,), compute"),
    ),
    *_of(
        "proof/birth.py",
        ("taken - had", "taken"),
        ("enumerate(held[field]) if term", "enumerate(held[field]) if own is None and term"),
    ),
    *_of(
        "inject/birth.py",
        ("if new[value] != place else 0", "if False else 0"),
        ("return [*found, *_moved_back(isa, old, new)]", "return [*_moved_back(isa, old, new), *found]"),
        ("ids = (1 << _ID_BITS * (before.enable_vgpr_workitem_id + 1)) - 1", "ids = -1"),
    ),
    *_of(
        "proof/chained.py",
        ("for step in filter(None, steps):", "for step in filter(None, steps if settled else ()):"),
    ),
    *_of(
        "proof/dispatch.py",
        ("FAR_OFF = (4, -4, 1 << 32, 1 << 40)", "FAR_OFF = (4, 1 << 32, 1 << 40)"),
    ),
    *_of(
        "proof/graph.py",
        ("(taken, _at(name, code, code.end(at), at))", "(taken, at + 1)"),
        (" or code.end(last) < end:", ":"),
        ("if built is None or built not in function and code.find(built) is None:",
         "if built is None or code.find(built) is None:"),
    ),
    *_of(
        "proof/insertions.py",
        ("return into | into >> 1", "return 0"),
        ("if outcome.changed >> MODE & 1:", "if False:"),
        ("if lost := outcome.far & (active | inactive):", "if lost := outcome.far & active:"),
        ("outcome.changed & (active | runner.own | guarded):", "outcome.changed & (active | guarded):"),
        ("outcome.changed & (active | runner.own | guarded):", "outcome.changed & (active | runner.own):"),
        ("if lost := kept & (active | inactive):", "if False:"),
        ("inst.writes.bits & (kept & owned | self.guarded[k])", "inst.writes.bits & self.guarded[k]"),
        ("inst.writes.bits & (kept & owned | self.guarded[k])", "inst.writes.bits & kept & owned"),
        ("if not duty.ends and not outcome.exec_back:", "if False:"),
        ("or begin != ANYWHERE or self.calls", "or self.calls"),
        ("if outcome.vectors and not duty.plain:", "if False:"),
        ("if any(ran != sorted(self.calls[k].wanted(each)) for each in some):", "if False:"),
        ("following = following[:1] if side is Side.TAKEN else following[-1:]", "following = ()"),
    ),
    *_of(
        "proof/given.py",
        ("if owned & bits:", "if False:"),
        ("if isinstance(value, Kept) and value.number not in homes:", "if False:"),
        ("if not 0 <= value.offset <= claim.variables[value.variable] - size:", "if False:"),
        ("if (variables[value.variable] + value.offset) % size:", "if False:"),
    ),
    *_of(
        "proof/objects.py",
        ("if old[at:start] != new[at:start]:", "if False:"),
        ("if not counts or new[key] < old[key]:", "if not counts:"),
        ("if tag not in named or named[tag] != _named(new.elf, tag):", "if False:"),
    ),
    *_of(
        "proof/additions.py",
        ("if name not in wanted or name in before:", "if name in before:"),
        ("if name not in here and (what.dynamic or kind is tables[0]):", "if name not in here and kind is tables[0]:"),
        ("if (symbol.type, symbol.binding) != (kind.type, SymbolBinding.GLOBAL) or", "if"),
        ("section.address <= symbol.address <= symbol.address + symbol.size <=", "0 <= section.address +"),
        ("if segment.flags != kind.flags:", "if False:"),
        ("address + size + _FETCHED_AHEAD > segment.end:", "False:"),
        (" for each in added if each.kind is not _VARIABLE]", " for each in added]"),
    ),
    *_of(
        "proof/descriptors.py",
        ("if clone.entry != entry or before.replace(**grown).raw != after.raw:", "if clone.entry != entry:"),
        ("if entry % _ENTRY_ALIGN or symbol.address % DESCRIPTOR_BYTES:", "if symbol.address % DESCRIPTOR_BYTES:"),
        ("if any(getattr(after, field) > max(", "if False and any(getattr(after, field) > max("),
        ("if has < min(had,", "if has < 0 * min(had,"),
    ),
    *_of(
        "proof/payloads.py",
        ("raise _refused(isa, payload, inst, \"leaves its own code\")", "target = 0"),
        ("idles = payload.exec is None and not (wide", "idles = payload.exec is None and not (False"),
        ("idles = payload.exec is None and", "idles ="),
    ),
    *_of(
        "proof/payload_lanes.py",
        ("unknown = each.written & wanted & ~known", "unknown = 0"),
        ("back = back and bool(state[1] & ON) is bool(state[1] & START)", "back = back"),
    ),
    *_of(
        "proof/payload_memory.py",
        ("writes &= SCALARS", "pass"),
        ("found = self._made(inst, self.whole.get(Point(point.at, None), {}))", "found = self._made(inst, depths)"),
        ("return max(depths.get(first + k, 0) & ~OF_STACK for k in range(data.reg.dwords))", "return 1"),
        ("return memory and (point.on or not inst.op.flags & OpFlag.VMEM)", "return memory and point.at < 5"),
    ),
    *_of(
        "proof/pending.py",
        ("else (young, mixed | regs)", "else (young, mixed)"),
    ),
    *_of(
        "proof/instead.py",
        ("if (old.op.flags | new.op.flags) & _CONTROL:", "if False:"),
        ("if (old.writes.sgpr | new.writes.sgpr) >> MODE & 1:", "if False:"),
        ("if OpFlag.WAIT in old.op.flags:", "if False:"),
        ("any(waited.get(counter) != 0 for counter in gone)", "any(counter not in waited for counter in gone)"),
        ("if new.op.counters & ~old.op.counters or", "if"),
        ("if found.size_bytes != len(raw):", "if False:"),
    ),
    *_of(
        "proof/application.py",
        ("right = new.raw == old.raw", "right = True"),
    ),
    *_of(
        "proof/linked.py",
        ("(order >= len(own)) | bool(clone.function.instead)", "order >= len(own)"),
    ),
    *_of(
        "wanted.py",
        ("if function.instead != instead:", "if False:"),
        ("or clones != claim.kernels:", "or False:"),
        ("if self.claim.payloads[call.payload] != _claimed(key, compiled):", "if False:"),
        ("if not _stands(insertion.places, call):", "if False:"),
        ("if [*call.arguments] != given:", "if False:"),
        ("if [*call.constants] != [_literal(hole, insertion) for hole in compiled.holes]:", "if False:"),
        ("if before is not None and before > insertion.rank:", "if False:"),
    ),
)
