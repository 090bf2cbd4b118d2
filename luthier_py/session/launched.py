"""A kernel of a file, launched on a device in one call.

In: a file, a launch, perhaps a tool. Out: what the kernel wrote, what the tool counted, and a verdict.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.checks import Checks, Finding
from luthier_py.emulator.schedule import Schedule
from luthier_py.emulator.scrutiny import NO_SCRUTINY, Scrutiny
from luthier_py.errors import DeviceError, Invalid
from luthier_py.isa import MAX_WORKITEMS, Target, target
from luthier_py.loader import load, read_code
from luthier_py.pipeline import instrument
from luthier_py.report.output import Output, write_report
from luthier_py.report.remedies import advising
from luthier_py.report.verdict import Verdict
from luthier_py.runtime import Device, clock_kind
from luthier_py.runtime.hip_device import HipDevice
from luthier_py.runtime.time_limit import VARIABLE, parse_time_limit
from luthier_py.session.files import write_array
from luthier_py.session.run import Dim, Done, Launch, check_arguments, doubts, run_instrumented, run_original
from luthier_py.session.shuffle import Shuffled, shuffled, told_apart
from luthier_py.tool import Tool
from luthier_py.worker.edge import say
from luthier_py.worker.properties import architecture


class Onlooker(Protocol):
    """Who shows how far it is."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Of the pipeline."""

    def launching(self, device: Device) -> None:
        """From here on the device is at work."""


def launch_file(
    file: Path, launch: Launch, tool: Tool | None, device_name: str, *,
    time_limit: float | None = None, scrutiny: Scrutiny = NO_SCRUTINY, onlooker: Onlooker | None = None,
    clock: str | None = None,
) -> Done:
    """Launch a kernel of ``file``, instrumented when there is a tool."""
    chosen = emulated(device_name)
    code = read_code(file, architecture(chosen) if chosen is not None else None, launch.kernel)
    obj = load(code, str(file))
    record = obj.kernel(launch.kernel)
    check_arguments(record, launch.arguments)
    for doubt in doubts(record, launch.arguments):
        say(f"warning: {doubt}")
    if tool is not None:
        tool.selection = tool.selection.of_process(os.getpid())
    device = open_device(device_name, chosen or obj.target, time_limit, scrutiny, clock)
    if onlooker is not None:
        onlooker.launching(device)
    if tool is None:
        return Done(file, run_original(device, code, launch, str(file)), device, None, None)
    verdict = Verdict(tool, launches=1)
    selection = tool.selection
    if not (selection.launch(0) and selection.active_from_start and selection.kernel(launch.kernel)):
        verdict.not_chosen.update(() if selection.kernel(launch.kernel) else (launch.kernel,))
        return Done(file, run_original(device, code, launch, str(file)), device, tool, verdict)
    with advising(code, tool):
        watch = None if onlooker is None else onlooker.stage
        made = instrument(code, tool, str(file), [launch.kernel], watch=watch)
    ran = run_instrumented(device, made, tool, launch)
    verdict.made(made)
    verdict.records = dict(ran.records)
    verdict.selected, verdict.instrumented = 1, int(ran.cloned is not None)
    verdict.untouched.update((launch.kernel,) if ran.cloned is None else ())
    return Done(file, ran, device, tool, verdict)


def findings_of(done: Done) -> list[Finding]:
    """What checks of the launch found."""
    return done.device.findings if isinstance(done.device, EmulatorDevice) else []


def shuffle_file(file: Path, launch: Launch, device_name: str, count: int, done: Done, time_limit: float | None,
                 checks: Checks = Checks.NONE, clock: str | None = None) -> Shuffled | None:
    """The same launch without a tool by ``count`` schedules: what it writes, and what checks find there; None for no
    schedules. Invalid where there is a tool.
    """
    if not count:
        return None
    if done.tool is not None:
        raise Invalid("--shuffle compares what the kernel itself writes; leave out -t")

    def once(schedule: Schedule | None) -> dict[str, bytes]:
        try:
            ran = done if schedule is None else launch_file(
                file, launch, None, device_name, time_limit=time_limit, scrutiny=Scrutiny(schedule, checks),
                clock=clock)
        except DeviceError as error:
            return {f"{type(error).__name__}": b"raised"}
        outputs = {f"argument {number}": data.tobytes() for number, data in ran.ran.outputs.items()}
        return {**outputs, "what checks find": told_apart(one.facts() for one in findings_of(ran))}

    return shuffled(count, once)


def emulated(device_name: str) -> Target | None:
    """The target of emulator:TARGET; None for other devices."""
    kind, colon, chosen = device_name.partition(":")
    return target(chosen) if kind == "emulator" and colon else None


def open_device(name: str, target: Target, time_limit: float | None, scrutiny: Scrutiny = NO_SCRUTINY,
                clock: str | None = None) -> Device:
    """``emulator``, with a target or without: one that is ``target``. ``hip``: the first AMD GPU.

    Without a ``time_limit``, or a ``clock``, that of the environment holds.
    """
    if name.partition(":")[0] == "emulator":
        if time_limit is None:
            time_limit = parse_time_limit(os.environ.get(VARIABLE, ""))
        kind = clock_kind.chosen_clock(os.environ.get(clock_kind.VARIABLE, "") if clock is None else clock)
        return EmulatorDevice(target, time_limit=time_limit, clock=kind, scrutiny=scrutiny)
    if name == "hip":
        if time_limit is not None:
            raise Invalid("a time limit is for kernels on the emulator, not for device hip")
        if clock is not None:
            raise Invalid("a clock is chosen for kernels on the emulator, not for device hip")
        if scrutiny.schedule is not None or scrutiny.checks:
            raise Invalid("schedules and checks are for kernels on the emulator, not for device hip")
        return HipDevice()
    raise Invalid(f"device {name} is not available; there are emulator, emulator:TARGET and hip")


def parse_dim(text: str, option: str) -> Dim:
    """``X[,Y[,Z]]``, each at least 1."""
    try:
        numbers = [int(part, 0) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1 or max(numbers) >= 1 << 32:
        raise Invalid(f"{option} {text}: give one to three positive numbers, X[,Y[,Z]]")
    x, y, z = (*numbers, 1, 1)[:3]
    if option == "--block" and x * y * z > MAX_WORKITEMS:
        raise Invalid(f"{option} {text}: a work-group has at most {MAX_WORKITEMS} work-items, not {x * y * z}")
    return x, y, z


def save_outputs(done: Done, folder: Path) -> dict[int, Path]:
    """One .npy file for each out and inout buffer, named for the argument's number."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[int, Path] = {}
    for number, data in done.ran.outputs.items():
        paths[number] = folder / f"arg{number}.npy"
        write_array(paths[number], data)
    return paths


def save_report(done: Done) -> list[Path]:
    """The files that LUTHIER_REPORT asks for; none where the tool observed nothing."""
    if done.tool is None or done.ran.result is None or done.tool.selection.report is None:
        return []
    return write_report(done.tool, done.tool.selection.report, done.ran.result, done.ran.report)


def save_counts(done: Done) -> list[Path]:
    """The file that LUTHIER_OUTPUT asks for."""
    if done.tool is None or done.verdict is None or done.tool.selection.output is None:
        return []
    output = Output(done.tool)
    if done.ran.result is not None:
        output.launch(done.ran.result, done.ran.report, done.ran.text)
    return output.counts(done.verdict)


def save_all(done: Done, folder: Path | None) -> tuple[dict[int, str], list[str]]:
    """Buffers in ``folder``, if there is one, by the argument's number; and files with counts and reports."""
    saved = save_outputs(done, folder) if folder else {}
    files = [*save_counts(done), *save_report(done)]
    return {number: str(path) for number, path in saved.items()}, list(map(str, files))
