"""One launch: memory for its waves, workers that run them, counters, faults.

In: a checked launch. Out: the kernel's effects on memory; counts. Work-groups start in order; one that has used up
its turns, or stands still, is put aside for others, as many as the device holds, so that they may wait for each other.
Invariant: everything a launch takes is given back when it ends, however it ends; one that cannot continue ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import NamedTuple

from luthier_py.base.errors import DeviceError, Location, Malformed, TimeLimit
from luthier_py.base.names import is_region
from luthier_py.base.records import replace
from luthier_py.emulator.code.code import HostedCode, Tally
from luthier_py.emulator.launches.blocked_waves import describe_wait_states, waits_for_itself
from luthier_py.emulator.launches.counted import launch_profile
from luthier_py.emulator.launches.faults import FaultyWave, device_error, illegal_instruction
from luthier_py.emulator.launches.launch_timer import LaunchTimer
from luthier_py.emulator.launches.outside_lds import outside_lds
from luthier_py.emulator.launches.random_schedule import Scheduler, scheduler_call, work_at_random
from luthier_py.emulator.launches.ready import ROUNDS, ReadyLaunch, enter_code, worker_record
from luthier_py.emulator.launches.watch import LaunchWatch
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.limits import ExternalWriter, LaunchLimits
from luthier_py.emulator.options.schedule import RandomTurns
from luthier_py.emulator.records.layout import GROUP, LAUNCH, MEETINGS_BYTES, WORKER, Fault, Outcome, Status
from luthier_py.emulator.records.words import address_of, zero_words
from luthier_py.emulator.watching.findings import LaunchReport
from luthier_py.emulator.waves.cycle_account import CycleAccount, LaunchCycles
from luthier_py.emulator.waves.launch import launch_record
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.emulator.waves.residency import of_device
from luthier_py.emulator.waves.slot import ResidentGroup, Standing

_OWN_FAULT = ": lanes of a wave wait for lanes of the same wave, which do not go on before them"
POLL_SECONDS = 0.0002  # between looks at work-groups that all wait for another's memory


class Worker:
    """Mutable: one thread's share of a launch; ``outcome``: what native code came back with, which has begun it."""

    def __init__(self, run: RunningLaunch, outcome: Outcome | None = None) -> None:
        self.run, self._begun, self.code = run, outcome, run.codes[0]
        if outcome is None:
            self.tallies: dict[HostedCode, Tally] = {}
            self.record = worker_record(run.memory, run.meetings, run.shape.target, run.watch_address)
            self.slots: list[ResidentGroup] = []
            self._enter(self.code)
        else:
            self.tallies = {self.code: run.ready.tally}
            self.record, self.slots = run.ready.worker, [run.ready.slot]
            self.slots[0].renew()
        self.record[WORKER["alone"] // 8] = run.alone

    def _enter(self, code: HostedCode) -> None:
        """Waves run this code from now on."""
        self.code = code
        if code not in self.tallies:
            self.tallies[code] = code.take_tally()
        enter_code(self.record, code, self.tallies[code])

    @property
    def address(self) -> int:
        """Host address of the worker's record (layout's WORKER), for native code."""
        return address_of(self.record)

    @property
    def changes(self) -> int:
        """How often waves of this worker have changed memory."""
        return int(self.record[WORKER["changes"] // 8])

    def work(self) -> None:
        """Run work-groups until none is left; any failure stops the other workers too."""
        ended = False
        try:
            self._work()
            ended = True
        finally:
            if not ended:
                self.run.halt()

    def _work(self) -> None:
        if self.run.random_turns is not None:
            found = work_at_random(self, self.run.random_turns)
        else:
            found = deque([self.new_slot()] if self._begun is None else self.slots)
        if found:
            self._work_in_order(found)

    def turn(self, native: Scheduler, slot: ResidentGroup) -> Outcome:
        """Run a work-group for up to ROUNDS rounds, and handle the outcome."""
        outcome = Outcome(native(self.address, address_of(self.run.record), slot.address, ROUNDS))
        if self.run.watch is not None:
            self.run.watch.require_memory()
        return self._handle_outcome(slot, outcome)

    def _handle_outcome(self, slot: ResidentGroup, outcome: Outcome) -> Outcome:
        """What native code came back for is done."""
        run = self.run
        if outcome is Outcome.NEEDS_CODE:
            run.compile(slot, self.code)
        elif outcome is Outcome.FAULT and not self._follows(slot):
            raise device_error(run.faulty(slot), self.code, run.shape, run.memory, run.places.kernarg)
        elif outcome is Outcome.MESSAGE:
            run.interrupt()
        return outcome

    def _work_in_order(self, waiting: deque[ResidentGroup]) -> None:
        run = self.run
        slot, left = waiting.popleft(), ROUNDS
        came_back = self._begun
        while not run.stop.is_set():
            outcome = self.turn(run.native, slot) if came_back is None else self._handle_outcome(slot, came_back)
            came_back = None
            if outcome is Outcome.FINISHED:
                slot.over = True
                if not waiting:
                    return
                slot = waiting.popleft()
            elif outcome is not Outcome.NEEDS_CODE:
                left -= 1
                if outcome is not Outcome.TIRED and left:
                    continue
                left = ROUNDS
                if not self._goes_on(slot):
                    waiting.append(slot)
                    slot.set_effort(0)
                    slot = self.new_slot() if run.take_place() else waiting.popleft()

    def _follows(self, slot: ResidentGroup) -> bool:
        """Whether a wave's fault was a jump to code elsewhere in memory, which it continues with."""
        pc = self.run.field(slot, "pc")
        if self.run.field(slot, "fault_kind") != Fault.JUMP or self.code.holds(pc):
            return False
        code = self.run.code_at(pc)
        if code is not None:
            self._enter(code)
        return code is not None

    def _goes_on(self, slot: ResidentGroup) -> bool:
        """Whether a work-group that has used up its rounds is to get more at once."""
        if slot.has_moved_on():
            return True
        if slot.look(self.run.changes):
            if not self.run.has_place and all(s.over or s.still_at == slot.still_at for s in self.slots):
                self.run.consider_standstill()
            return False
        self.run.standing_since = None
        return slot.lengthen_turns()

    def new_slot(self) -> ResidentGroup:
        """Memory for one more resident work-group; the scheduler gives it the next one of the launch."""
        run = self.run
        entry = run.codes[0].base + run.shape.start
        self.slots.append(ResidentGroup(run.pool, run.shape, run.places, entry, self.address))
        if run.cycles is not None:
            run.cycles.add(self.slots[-1].record)
        return self.slots[-1]

    def leave(self) -> None:
        """Give back what was taken; what was ready stays so."""
        ready = self.run.ready
        for slot in self.slots:
            if slot is not ready.slot:
                self.run.pool.give(slot.block)
        for code, tally in self.tallies.items():
            if tally is not ready.tally:
                code.give_tally(tally)


class RunOptions(NamedTuple):
    """How a launch is run. ``random_turns``: waves take turns at random, otherwise in order."""

    threads: int
    limits: LaunchLimits
    cycles: CycleAccount | None = None
    random_turns: RandomTurns | None = None


class RunningLaunch:
    """Mutable: a launch in progress. ``begun``: what native code came back with, if it has run a part of it.
    ``interrupt`` is called when a wave has a message for the host; ``find`` gives the code that lies at an address, for
    jumps out of the kernel's."""

    def __init__(self, ready: ReadyLaunch, begun: Outcome | None, how: RunOptions, interrupt: Callable[[], None],
                 find: Callable[[int], HostedCode | None], external_writers: Sequence[ExternalWriter]) -> None:
        threads, limits, cycles, random_turns = how
        self.ready, self.memory, self.pool = ready, ready.memory, ready.pool
        self.codes, self._find = [ready.code], find
        self._external_writers, self.random_turns = external_writers, random_turns
        self.shape, self.places, self.limits, self.interrupt = ready.shape, ready.places, limits, interrupt
        shape, checks = ready.shape, ready.code.settings.checks
        self.stop = threading.Event()
        self.standing_since: float | None = None
        self._hopeless: DeviceError | None = None
        self._cancelled = ""  # why
        self._timer = LaunchTimer(limits, self._count_executed, self.halt)
        self.residency = of_device(shape)
        self.record = launch_record(shape)[:] if begun is None else ready.launch
        self.cycles = cycles
        if cycles is not None:
            cycles.watch(self.record)
        self.meetings = zero_words(MEETINGS_BYTES // 8) if begun is None else ready.meetings
        self.native = scheduler_call(shape.wave_size, watched=cycles is not None)
        looked_for = checks & ~Checks.BARRIERS if is_region(self.shape.kernel) else checks  # OpenMP's waves may part
        self.watch = LaunchWatch(looked_for, shape, self.record) if checks else None
        threads = 1 if random_turns is not None or checks or cycles is not None else threads
        count = min(threads, shape.groups, self.residency.groups)
        self.alone = count == 1 and not limits.others_write and not external_writers
        """Whether only one worker writes memory."""
        self.workers = [Worker(self, None if number else begun) for number in range(count)]
        self._lock = threading.Lock()
        self._places_left = self.residency.groups - len(self.workers)

    def __enter__(self) -> RunningLaunch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for worker in self.workers:
            worker.leave()
        if self.watch is not None:
            self.watch.close()

    def execute(self) -> None:
        """Run all work-groups; raises what the first worker that failed raised, or why no wave could continue."""
        with self._timer:
            self._execute()
        if self._hopeless is not None:
            raise self._hopeless
        if self._cancelled:
            raise DeviceError(f"{self._cancelled}{self._own_fault()}: {self.describe_waves()}",
                              Location(self.shape.kernel))
        if (limit := self._timer.passed) and (self.stop.is_set() or self.limits.instruction_limit is not None):
            raise TimeLimit(f"{limit}{self._own_fault()}: {self.describe_waves()}", Location(self.shape.kernel))
        if self.cycles is not None:
            self.cycles.finish()

    def _execute(self) -> None:
        if len(self.workers) == 1:
            self.workers[0].work()
            return
        with ThreadPoolExecutor(len(self.workers)) as pool:
            for future in [pool.submit(worker.work) for worker in self.workers]:
                future.result()

    def cancel(self, why: str) -> None:
        """End the launch, from another thread: it raises a DeviceError that says why, and where its waves stand."""
        self._cancelled = why
        self.halt()

    def halt(self) -> None:
        """Stop all workers."""
        self.stop.set()
        self.record[LAUNCH["stop"] // 8] = 1

    @property
    def watch_address(self) -> int:
        """Address of what watches the launch under checks; 0 without checks."""
        return 0 if self.watch is None else self.watch.address

    def report(self, looked_at: bool) -> LaunchReport:
        """As long as the launch has not been left."""
        found = [outside_lds(worker.record, worker.tallies, self.shape) for worker in self.workers]
        report = (LaunchReport(self.shape.kernel, [], cycles=self._cycles_taken) if self.watch is None
                  else self.watch.report(self.codes, self.memory, self._cycles_taken))
        return replace(report, notes=next(filter(None, found), ()), looked_at=looked_at)

    @property
    def _cycles_taken(self) -> LaunchCycles | None:
        return None if self.cycles is None else self.cycles.taken

    def code_at(self, pc: int) -> HostedCode | None:
        """Of this launch: the same for all its workers, whatever happens to memory meanwhile."""
        with self._lock:
            found = next((code for code in self.codes if code.holds(pc)), None)
            if found is None and (found := self._find(pc)) is not None:
                self.codes.append(found)
        return found

    def compile(self, slot: ResidentGroup, code: HostedCode) -> None:
        """For a wave that came to code which no wave has run yet."""
        pc = self.field(slot, "pc")
        with self._timer.exclude_compilation():
            try:
                code.require(pc - code.base, self.shape.record.name)
            except Malformed as error:
                raise illegal_instruction(error, pc, self.shape.record.name, self.faulty(slot)) from error

    # Work-groups that wait

    @property
    def changes(self) -> int:
        """How often memory has changed."""
        return sum(worker.changes for worker in self.workers) + sum(each.changes for each in self._external_writers)

    @property
    def progress(self) -> tuple[int, int]:
        """Another one when memory has changed, or a work-group has begun."""
        return self.changes, int(self.record[LAUNCH["next"] // 8])

    @property
    def waiting_to_start(self) -> int:
        """Number of work-groups that no worker has begun yet."""
        return max(self.shape.groups - int(self.record[LAUNCH["next"] // 8]), 0)

    @property
    def has_place(self) -> bool:
        """Whether one more work-group may be resident, and there is one."""
        return bool(self._places_left and self.waiting_to_start)

    def take_place(self) -> bool:
        """Reserve residency for one more work-group; False where the device holds no more, or none is left to start."""
        with self._lock:
            if not self.has_place:
                return False
            self._places_left -= 1
            return True

    def consider_standstill(self) -> None:
        """End the launch if no wave can continue: every work-group that may run stands still, in the same memory."""
        changes = self.changes
        awaited = any(
            external_writer.will_write() for external_writer in self._external_writers
        )  # before changes are looked at again
        slots = [slot for worker in self.workers for slot in worker.slots]
        coming = len(slots) < self.residency.groups - self._places_left  # a place is taken, and not yet a slot
        slots = [slot for slot in slots if not slot.over]
        moving = coming or any(slot.still_at != changes for slot in slots)
        if moving or awaited or changes != self.changes or self.stop.is_set():
            time.sleep(POLL_SECONDS)
            return
        if self.limits.others_write and self._polls(slots):
            time.sleep(POLL_SECONDS)
            self.standing_since = self.standing_since or time.monotonic()
            if not self.waiting_to_start or time.monotonic() < self.standing_since + self.limits.standstill:
                return
        self._hopeless = self._deadlock(slots)
        self.halt()

    def _polls(self, slots: list[ResidentGroup]) -> bool:
        """Whether a wave looks at memory; what waits at barriers does not."""
        return any(s.status in (Status.YIELD, Status.JUMP) for s in self._standings(slots))

    def _deadlock(self, slots: list[ResidentGroup]) -> DeviceError:
        if self.waiting_to_start:
            why = (f"deadlock: the {len(slots)} work-groups that the device can hold ({self.residency.limit}) get no "
                   "further, and others have not started")
        elif any(s.status in (Status.BARRIER, Status.MEETING) for s in self._standings(slots)):
            why = "deadlock at a barrier: the waves that it waits for never come"
        elif waits_for_itself(self._standings(slots), self.codes):
            why = f"deadlock{_OWN_FAULT}"
        else:
            why = "deadlock: every wave goes round in a circle, and nobody writes what it may wait for"
        return DeviceError(f"{why}: {self.describe_waves()}", Location(self.shape.kernel))

    def describe_waves(self) -> str:
        """Where each wave stands, in words."""
        text = describe_wait_states(self._standings(slot for worker in self.workers for slot in worker.slots),
                                    self.codes)
        if not self.waiting_to_start:
            return text
        return f"{text}; {self.waiting_to_start} of {self.shape.groups} work-groups have not started"

    def _standings(self, slots: Iterable[ResidentGroup]) -> list[Standing]:
        changes = self.changes
        return [standing for slot in slots for standing in slot.standings(changes)]

    def _own_fault(self) -> str:
        """Of a launch that an external writer could end, and none did."""
        waves = self._standings(slot for worker in self.workers for slot in worker.slots)
        return _OWN_FAULT if waits_for_itself(waves, self.codes) else ""

    def field(self, slot: ResidentGroup, name: str) -> int:
        """A field of the wave that needs attention."""
        return slot.wave_field(int(slot.record[GROUP["wave"] // 8]), name)

    def faulty(self, slot: ResidentGroup) -> FaultyWave:
        """The wave that the scheduler came back for; read it before the work-group continues."""
        group, wave = (int(slot.record[GROUP[name] // 8]) for name in ("index", "wave"))
        return FaultyWave(group, wave, partial(self.field, slot))

    def _count_executed(self) -> int:
        """Instructions until now, by all waves."""
        tallies = [item for worker in self.workers for item in tuple(worker.tallies.items())]
        return sum(code.clock.count_executed(tally.counters) for code, tally in tallies)

    def profile(self, seconds: float) -> LaunchProfile:
        """What the workers have counted so far; ``seconds``: how long the launch took. Before workers give back their
        tallies."""
        counters = [{code: tally.counters for code, tally in worker.tallies.items()} for worker in self.workers]
        return launch_profile(self.shape, self.codes, counters, seconds, self._cycles_taken)
