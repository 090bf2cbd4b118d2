"""Inserted code from where the application stops to where it continues, executed on terms.

In: an address of the clone at which one of the application's instructions has just ended (or control has come in), and
the loads that are on their way then. Out: Outcome. Invariant: when it gets to the application, registers that are not
among the changed ones hold what they held before, or what the tool declares; and nothing else has happened but the
calls of hooks that the claim names, each with the arguments that it names.

Values are terms (`meanings`). Lanes are followed as masks (`masks`), one lane that was active at the start and one that
was not. A vector register's term is the truth for lanes that were active at the start. Where ways meet, values that
differ become one new value, which is the same for all registers that held the same on either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, MODE, SCC, Inst, InstructionSet, LaneOf, OpFlag, Reg, RegSet, Space
from luthier_py.isa.model.registers import SCALARS, SCRATCH_BASE, VGPR_SHIFT
from luthier_py.isa.properties.private_buffers import private_resource
from luthier_py.isa.properties.side_effects import computes
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Branch, CrossLane
from luthier_py.isa.semantics.memory import Load, Store
from luthier_py.proof.claim import Address, Call, ClonedFunction, InCell, Kept, Payload, Value
from luthier_py.proof.code import CELLS, LANES, bits_of, lane_number, number, ones, whole_number
from luthier_py.proof.float_modes import UNKNOWN_MODE, FloatMode, computes_in, evaluate_mode_access, leaves_mode
from luthier_py.proof.initial_state import RESOURCE, evaluate_base_write
from luthier_py.proof.lanes import ON, State, next_states
from luthier_py.proof.masks import MASKS, Change, change
from luthier_py.proof.meanings import UNKNOWN, Term, read_source, results, spread
from luthier_py.proof.now import ANYWHERE, Begin, Now, Outcome, Reach, join_states
from luthier_py.proof.payload_lanes import START
from luthier_py.proof.payloads import Summary, match_payload
from luthier_py.proof.pending import Pending, collect_pending_registers, step_pending
from luthier_py.proof.vectors import in_lanes, unless_mixed

MOST_STATES = 64
LONGEST = 1 << 16  # instructions of one run
_OF_MOVES = ("vdata", "vdst", "saddr", "soffset", "srsrc", "offset")


@dataclass(frozen=True, slots=True)
class Tool:
    """What all runs know: payloads with summaries, calls by where their payloads start, addresses of variables."""

    payloads: Sequence[Payload]
    summaries: Mapping[int, Summary]
    calls: Mapping[int, tuple[int, Call]]  # clone's address -> its number, the call
    variables: Mapping[str, int]


class Runner:
    """Executes runs of one clone. ``decode`` gives its instructions; ``application`` says whether an address is that of
    an application's instruction; ``function`` is the claim's of it; ``floats`` what is known of the float bits of MODE
    that the application has everywhere."""

    def __init__(
        self, isa: InstructionSet, tool: Tool, decode: Callable[[int], Inst], application: Callable[[int], bool],
        function: ClonedFunction, floats: FloatMode = UNKNOWN_MODE,
    ) -> None:
        self.isa, self.tool, self.decode, self.application, self.floats = isa, tool, decode, application, floats
        self.name = function.name
        self.locations, self.private = function.locations, function.private
        self.own = reduce(or_, map(bits_of, self.locations.values()), 0)
        self.places = ones(self.own)
        self.cells = {whole_number(location): ("reg", whole_number(location)) for location in self.locations.values()
                      if isinstance(location, InCell)}
        self.insts, self.begin = dict[int, Inst](), ANYWHERE  # what ran last, and where what runs begins

    def fail(self, what: str, pc: int) -> CheckFailed:
        """What it raises where a run could change the application."""
        return CheckFailed(f"the patch could change the application: {what}",
                           Location(self.name, pc, self.isa.text(self.decode(pc))))

    def run(self, start: int, pending: Pending, begin: Begin = ANYWHERE) -> Outcome:
        """``begin``: what is so where a wave begins."""
        now = Now(pending, dict(begin.terms) | self.cells, dict(begin.wanted), dict(self.cells))
        self.insts, self.begin = {}, begin
        waiting: dict[int, Now] = {start: now}
        arrived: dict[int, Now] = {}
        gone: set[int] = set()  # where each way that leads there has been, so that none comes when all is said
        while waiting:
            pc = min(waiting)
            now = waiting.pop(pc)
            gone.add(pc)
            if self.application(pc):
                arrived[pc] = now
                continue
            if len(gone) > LONGEST:
                raise self.fail("inserted code does not end", pc)
            for to, after in self.onward(pc, now):
                if to in gone or to <= pc and not self.is_island(pc):
                    raise self.fail("inserted code goes in a circle", pc)
                waiting[to] = join_states(waiting[to], after, to) if to in waiting else after
        if len(arrived) != 1:
            raise self.fail("inserted code goes to several places of the application", min(arrived, default=start))
        (to, now), = arrived.items()
        changed = now.find_changed(self.places, begin.free | 3 << EXEC)
        ran = tuple((pc - start, inst) for pc, inst in self.insts.items())
        far, same = 0 if begin.initial else now.changed_in_inactive_lanes, now.as_at_start
        left = collect_pending_registers(now.pending) & ~collect_pending_registers(pending)
        return Outcome(to - start, now.calls, changed, far, now.vectors, now.touched, left, same, now.timed, ran)

    def is_island(self, pc: int) -> bool:
        """Whether the branch at ``pc`` is always taken: by such ones alone inserted code may go back."""
        flags = self.decode(pc).op.flags
        return OpFlag.BRANCH in flags and OpFlag.CONDITIONAL not in flags

    # -- one instruction -------------------------------------------------------------------------
    def onward(self, pc: int, now: Now) -> list[tuple[int, Now]]:
        """The successors of an inserted instruction, and what is known there (``now`` is used up)."""
        known = self.tool.calls.get(pc)
        if known is not None:
            return [self.call(pc, *known, now)]
        self.insts[pc] = inst = self.decode(pc)
        if inst.op.spaces is Space.SCRATCH or RESOURCE in self.locations and private_resource(inst) is not None:
            self.scratch(inst, pc, now)
            return [(pc + inst.size_bytes, now)]
        loaded = self.begin.arguments.evaluate_load(inst, now.get) if self.begin.arguments is not None else {}
        if not loaded and not computes(inst.op):
            raise self.fail("an inserted instruction is not part of the hook, and does more than compute", pc)
        target = inst.branch_target(pc)
        if target is None:
            self.step(inst, pc, now)
            now.terms.update(loaded)
            return [(pc + inst.size_bytes, now)]
        if OpFlag.CONDITIONAL not in inst.op.flags:
            return [(target, now)]
        row = find_meaning(inst.op)
        other = now.copy()
        if isinstance(row, Branch) and row.register == "exec" and now.as_at_start:
            (now if row.if_zero else other).some_lane = True
            other.idle_to = max(other.idle_to, target) if row.if_zero else other.idle_to
        if isinstance(row, Branch) and row.register == "scc" and (flag := now.get(SCC)) != UNKNOWN:
            now.flags[flag], other.flags[flag] = int(row.if_zero), int(not row.if_zero)
        return [(pc + inst.size_bytes, now), (target, other)]

    def step(self, inst: Inst, pc: int, now: Now) -> None:
        """Change ``now`` by an instruction that is no branch; CheckFailed if a load may still write what it touches."""
        writes = inst.writes.bits
        self.note_touched(inst, writes, now, pc)
        if (pending := step_pending(self.isa, inst, now.pending)) is not now.pending:
            now.pending, now.timed = pending, True
        if not writes:
            return
        now.vectors |= bool(writes >> MODE & 1)  # where some targets have which registers vector operands mean
        if find_meaning(inst.op) is CrossLane.WRITE and (lane := self.lane(inst, "vdst")) is not None:
            return now.put_into_lane(lane, read_source(inst["src0"], 32, now.get))
        made = self.evaluate_results(inst, pc, now, now.get)
        inactive = self.evaluate_results(inst, pc, now, now.other) if writes & ~SCALARS else {}
        for register in ones(writes):
            if register < VGPR_SHIFT:
                now.terms[register] = made.get(register, UNKNOWN)
            elif OpFlag.IGNORES_EXEC in inst.op.flags:
                now.lose(register)
            else:
                now.put(register, made.get(register, UNKNOWN), inactive.get(register, UNKNOWN))
        each = change(self.isa, inst)
        if each is not None:
            now.lanes = _after(each, now.lanes)

    def lane(self, inst: Inst, name: str) -> int | None:
        """The number of the lane of a vector operand that v_readlane and v_writelane mean."""
        which, reg = read_source(inst["src1"], 32, lambda register: UNKNOWN), inst[name].reg
        if reg is None or not isinstance(which, int):
            return None
        return lane_number(number(reg), which % self.isa.wave_size)

    def note_touched(self, inst: Inst, writes: int, now: Now, pc: int) -> None:
        """Nothing may be touched that a load still owes."""
        touched = writes | inst.reads.bits
        if lost := collect_pending_registers(now.pending) & touched:
            raise self.fail(f"a load may still write {RegSet(lost)}, which is still needed", pc)
        now.touched |= touched

    def evaluate_results(self, inst: Inst, pc: int, now: Now, get: Callable[[int], Term]) -> dict[int, Term]:
        """Terms of the registers that an instruction writes, where they are known, in lanes of which ``get`` says what
        registers hold."""
        row = find_meaning(inst.op)
        if row is Action.GETPC:
            reg, end = inst["sdst"].reg, pc + inst.size_bytes
            return {} if reg is None else {reg.index: ("lo", end & 0xFFFFFFFF), reg.index + 1: ("hi", end)}
        if inst.writes.sgpr >> SCRATCH_BASE:
            return evaluate_base_write(inst, row, now.get)
        if row in (Action.GETREG, Action.SETREG, Action.SETREG_IMM):
            return evaluate_mode_access(self.isa.target, inst, row, now)
        target = next((o.reg for o in inst.operands if o.name in ("sdst", "vdst")), None)
        found: dict[int, Term] = {}
        if target is None and not inst.writes.sgpr >> SCC & 1:
            return found
        if row is CrossLane.READ_FIRST and target is not None and now.as_at_start:
            source = read_source(inst["src0"], 32, get)
            return {number(target): ("first", source)} if source != UNKNOWN and not in_lanes(source) else {}
        if row is CrossLane.READ and (lane := self.lane(inst, "src0")) is not None and target is not None:
            return {number(target): now.get(lane)}
        vector = target is not None and number(target) >= VGPR_SHIFT
        if vector and (inst.partial_writes or inst.op.may_mask_lanes):
            return found
        for name, _, term in results(inst, lambda source, bits: read_source(source, bits, get), self.isa.wave_size):
            if name == "scc":
                found[SCC] = term
            elif name == "dst" and target is not None:
                found.update(spread(number(target), target.dwords, unless_mixed(term)))
        return found

    # -- private memory --------------------------------------------------------------------------
    def scratch(self, inst: Inst, pc: int, now: Now) -> None:
        """Store one dword of each active lane to the tool's private memory, or load it from there."""
        at, reg = self.cell(inst, now), next((o.reg for o in inst.operands if o.name in ("vdata", "vdst")), None)
        start = self.private.start
        if at is None or reg is None or reg.dwords != 1 or not start <= at <= self.private.stop - 4 or (
                at % 4 or (at - start) % 4 or not _moves_dword(inst)):
            raise self.fail("an inserted instruction touches private memory that is not the tool's", pc)
        self.note_touched(inst, inst.writes.bits, now, pc)
        now.pending, now.timed = step_pending(self.isa, inst, now.pending), True
        cell = CELLS + (at - start) // 4
        if inst.writes:
            now.put(number(reg), *((now.get(cell), now.other(cell)) if cell < LANES else (UNKNOWN, UNKNOWN)))
        elif cell < LANES:
            now.put(cell, now.get(number(reg)), now.other(number(reg)))

    def cell(self, inst: Inst, now: Now) -> int | None:
        """The offset that an instruction addresses in a lane's private memory, if it is known and all lanes' own."""
        if inst.find("vaddr") is not None or inst.op.flags & OpFlag.ATOMIC or inst["cpol"].value:
            return None
        base, resource = inst.find("saddr") or inst.find("soffset"), private_resource(inst)
        if resource is not None and not self.is_resource([number(resource) + k for k in range(resource.dwords)], now):
            return None
        first = self.of_lane(read_source(base, 32, now.get) if base is not None else 0)
        return None if first is None else first + inst["offset"].value

    def of_lane(self, offset: Term) -> int | None:
        """In each lane's memory, of one that a scalar has: where that is in buffers it counts bytes of all lanes."""
        if not isinstance(offset, int) or RESOURCE not in self.locations:
            return offset if isinstance(offset, int) else None
        return None if offset % self.isa.wave_size else offset // self.isa.wave_size

    def is_resource(self, registers: Sequence[int | None], now: Now) -> bool:
        """Whether they hold that of the wave's private memory."""
        location = self.locations.get(RESOURCE)
        return location is not None and len(registers) == location.dwords and all(
            each is not None and now.get(each) == now.due(number(location) + k) for k, each in enumerate(registers))

    # -- calls -----------------------------------------------------------------------------------
    def call(self, pc: int, index: int, call: Call, now: Now) -> tuple[int, Now]:
        """A whole payload at once."""
        payload, known = self.tool.payloads[call.payload], self.tool.summaries[call.payload]
        end, renaming = self.locate_payload(pc, call)
        at = pc
        while at < end:
            self.insts[at] = inst = self.decode(at)
            at += inst.size_bytes
        self.check_entry(pc, payload, known, now)
        if known.private and not self.private:
            raise self.fail(f"hook {payload.name} touches private memory, and the kernel is not started with any", pc)
        self.check_stack(pc, payload, renaming, now)
        given: dict[int, Term] = {}
        for reg, value in zip(payload.params, call.arguments, strict=True):
            for k in range(reg.dwords):
                given[number(reg) + k] = self.argument(value, k, now)
                place = renaming.get(number(reg) + k)
                if place is not None and now.get(place) != given[number(reg) + k] and not self.unborn(value, k, now):
                    raise self.fail(f"hook {payload.name} does not get {value} as an argument", pc)
        outstanding = collect_pending_registers(now.pending)
        touched = _rename_registers(known.reads | known.writes, renaming)
        if outstanding & touched:
            raise self.fail(f"a load may still write {RegSet(outstanding & touched)}, which hook {payload.name} "
                            "uses", pc)
        now.touched |= touched
        self.pass_over(payload, known, renaming, now)
        values = {}
        for number_of, (reg, into) in enumerate(zip(payload.results, call.into, strict=True)):
            for k in range(reg.dwords):
                term: Term = ("result", index, number_of, k)
                place = renaming.get(number(reg) + k)
                if not known.writes >> number(reg) + k & 1:
                    term = given.get(number(reg) + k, UNKNOWN)  # an argument that is given back
                elif place is not None:
                    now.terms[place] = term
                to = number(self.place(into)) + k
                values[to] = ("some", term) if to == SCC and term != UNKNOWN else term
        now.wanted.update(values)
        now.calls = (*now.calls, index)
        if not known.idles:
            now.always = (*now.always, index)
        return end, now

    def locate_payload(self, pc: int, call: Call) -> tuple[int, Mapping[int, int]]:
        """Where a payload ends, and what its registers have become."""
        payload, known = self.tool.payloads[call.payload], self.tool.summaries[call.payload]
        try:
            places, renaming = match_payload(self.isa, payload, known, pc, self.decode, call.constants)
        except CheckFailed as error:
            where = error.where or Location()
            raise CheckFailed(error.message, Location(self.name, where.pc or pc, where.text)) from None
        return places[-1], renaming

    def check_entry(self, pc: int, payload: Payload, known: Summary, now: Now) -> None:
        """CheckFailed unless a payload finds EXEC, lanes and MODE as it needs, gives EXEC back and ends its loads."""
        if payload.exec is None:
            right = now.as_at_start
        else:
            width = (1 << self.isa.wave_size) - 1
            low, high = now.get(EXEC), now.get(EXEC + 1)
            whole = low | (high << 32 if self.isa.wave_size == 64 else 0) if isinstance(low, int) and (
                isinstance(high, int) or self.isa.wave_size == 32) else None
            right = whole == payload.exec & width
        if not right:
            raise self.fail("a hook runs in other lanes than the claim says", pc)
        if payload.exec is None and not known.gives_exec_back:
            raise self.fail("a hook may leave EXEC changed", pc)
        if known.pending:
            raise self.fail("a hook ends before its loads do", pc)
        if known.needs_lane and not now.some_lane:
            raise self.fail(f"hook {payload.name} runs where no lane may be active, and makes scalars of lanes", pc)
        if known.floats and not computes_in(self.isa.target, self.floats, payload.mode, now):
            raise self.fail(f"floats of hook {payload.name} compute under another MODE than they are to", pc)

    def check_stack(self, pc: int, payload: Payload, renaming: Mapping[int, int], now: Now) -> None:
        """It is the tool's, and what was put there before is lost."""
        if payload.stack is None:
            return
        where = renaming.get(number(payload.stack))
        if payload.resource is not None and not self.is_resource(
                [renaming.get(number(payload.resource) + k) for k in range(payload.resource.dwords)], now):
            raise self.fail(f"hook {payload.name} does not get the resource of private memory", pc)
        if where is None:  # it touches none
            return
        start = self.of_lane(now.get(where))
        if start is None or start not in self.private or start + payload.frame_bytes > self.private.stop:
            raise self.fail(f"hook {payload.name} has its stack in private memory that is not the tool's", pc)
        first, end = ((at - self.private.start) // 4 for at in (start, start + payload.frame_bytes + 3))
        for cell in [each for each in now.terms if CELLS + first <= each < min(CELLS + end, LANES)]:
            now.terms[cell] = now.others[cell] = UNKNOWN

    def place(self, value: Reg | Kept) -> Reg | LaneOf | InCell:
        """Where a value is: for what the tool keeps for the wave, its assigned location in this function."""
        return self.locations[value.number] if isinstance(value, Kept) else value

    def unborn(self, value: Value, half: int, now: Now) -> bool:
        """Whether it is a register in which the application's waves find nothing yet, so that it may hold anything.
        """
        register = None if isinstance(value, Address) else number(self.place(value)) + half
        return register is not None and bool(self.begin.free >> register & 1) and now.due(register) == ("reg", register)

    def argument(self, value: Value, half: int, now: Now) -> Term:
        """The term that dword ``half`` of an argument is to have; UNKNOWN for the address of no known variable."""
        if isinstance(value, Address):
            at = self.tool.variables.get(value.variable)
            if at is None:
                return UNKNOWN
            return (("lo", at + value.offset & 0xFFFFFFFF), ("hi", at + value.offset))[half]
        first = number(self.place(value))
        term = now.due(first + half)
        return ("flag", term) if first == SCC and not isinstance(term, int) else term

    def pass_over(self, payload: Payload, known: Summary, renaming: Mapping[int, int], now: Now) -> None:
        """Forget what a payload may write, in all lanes in which it may run."""
        writes = _rename_registers(known.writes, renaming)
        if writes >> MODE & 1:
            now.vectors = True  # where some targets have which registers vector operands mean
            writes &= ~(leaves_mode(self.isa.target, self.floats, known.insts, now) << MODE)
        far = _rename_registers(known.far_writes, renaming) & ~SCALARS
        only_near = payload.exec is None and now.far is Reach.NONE
        for register in ones(writes & ~SCALARS):
            now.put(register, UNKNOWN, UNKNOWN)
            if far >> register & 1 or not only_near:
                now.others[register] = UNKNOWN
        for register in ones(writes):
            if not (register in (EXEC, EXEC + 1) and payload.exec is None):
                now.terms[register] = UNKNOWN
        written = writes & MASKS & ~(3 << EXEC if payload.exec is None else 0)
        written |= written >> 1 if self.isa.wave_size == 64 else 0
        on = written & ON  # it may be either then
        now.lanes = frozenset((known_ & ~written | on, has & ~written | each)
                              for known_, has in now.lanes for each in {0, on})


def _rename_registers(bits: int, renaming: Mapping[int, int]) -> int:
    found = 0
    for register in ones(bits):
        found |= 1 << renaming.get(register, register)
    return found


def _after(each: Change, lanes: frozenset[State]) -> frozenset[State]:
    found = frozenset(after for state in lanes for after in next_states(each, state, MASKS | START))
    if len(found) > MOST_STATES:
        found = frozenset((known & (ON | START), has & (ON | START)) for known, has in found)
    return found


def _moves_dword(inst: Inst) -> bool:
    """Between all of a register and a dword of each lane, and nothing else: by its meaning, and no modifier's."""
    others = (each for each in inst.operands if each.name not in _OF_MOVES)
    return find_meaning(inst.op) in (Load(), Store()) and not any(each.value or each.reg is not None for each in others)
