"""A kernel of a file, launched on a device in one call.

In: a file, a launch, perhaps a tool. Out: what the kernel wrote, what the tool counted, and a verdict.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.base.records import replace
from luthier_py.binary.link import apply_bindings
from luthier_py.binary.loader import load, read_code
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import (
    Dim,
    Done,
    Launch,
    Launchable,
    Ran,
    check_arguments,
    doubts,
    run_instrumented,
    run_loaded,
    run_original,
)
from luthier_py.features.run.recording_device import RecordingDevice, reserve_recording_memory
from luthier_py.features.run.shuffle import Shuffled, compare_schedules, encode_findings
from luthier_py.features.settings.files import write_array
from luthier_py.features.settings.run_settings import EMULATOR, RunSettings
from luthier_py.features.trace.page import save_trace
from luthier_py.host.hip.device import HipDevice
from luthier_py.host.worker.device.findings import reporter
from luthier_py.host.worker.device.properties import architecture
from luthier_py.host.worker.device.targets import device_target
from luthier_py.host.worker.error_boundary import say
from luthier_py.isa import MAX_WORKITEMS, Target
from luthier_py.report.output import Output, write_report
from luthier_py.report.verdict import Verdict

if TYPE_CHECKING:
    from luthier_py.emulator.devices.module import EmulatorModule
    from luthier_py.emulator.interface import Device
    from luthier_py.emulator.options.schedule import Schedule
    from luthier_py.emulator.watching.findings import Finding
    from luthier_py.rewrite.tool import Tool

SIDES = r"(?<!\b0)x"  # between the numbers of 4x2, and not in 0x10


class Onlooker(Protocol):
    """Who shows how far it is."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Of the pipeline."""

    def launch(self, device: Device) -> None:
        """From here on the device is at work."""


def launch_file(
    file: Path, launch: Launch, tool: Tool | None, settings: RunSettings, onlooker: Onlooker | None = None
) -> Done:
    """Launch a kernel of ``file``, instrumented when there is a tool."""
    if settings.times and not settings.launch.models_cycles:
        raise Invalid("--trace of one launch has the cycle model's times: leave out --clock")
    chosen = parse_emulator_target(settings.device)
    code = read_code(file, architecture(chosen) if chosen is not None else None, launch.kernel)
    obj = load(code, str(file))
    record = obj.kernel(launch.kernel)
    check_arguments(record, launch.arguments)
    for doubt in doubts(record, launch.arguments):
        say(f"warning: {doubt}")
    if tool is not None:
        tool.selection = tool.selection.of_process(os.getpid())
    device = open_device(settings, chosen or obj.target)
    if onlooker is not None:
        onlooker.launch(device)
    return launch_on(device, file, code, launch, tool, onlooker)


def launch_on(device: Device, file: Path, code: bytes, launch: Launchable, tool: Tool | None,
              onlooker: Onlooker | None = None, loaded: EmulatorModule | None = None) -> Done:
    """``loaded``: where the device has the code object already, which is then not put there once more."""
    def original() -> Ran:
        if loaded is not None:
            return run_loaded(device, loaded, launch)
        return run_original(device, code, launch, str(file))

    if tool is None:
        return Done(file, original(), device, None, None)
    verdict = Verdict(tool, launches=1)
    selection = tool.selection
    outside = bool(selection.within)  # a launch from the command line is in no range
    if outside or not (selection.launch(0) and selection.active_from_start and selection.kernel(launch.kernel)):
        verdict.not_chosen.update(() if selection.kernel(launch.kernel) else (launch.kernel,))
        return Done(file, original(), device, tool, verdict)
    from luthier_py.report.remedies import suggest_remedies  # long to import, and for what is instrumented alone
    from luthier_py.rewrite.pipeline import instrument

    with suggest_remedies(code, tool):
        watch = None if onlooker is None else onlooker.stage
        made = instrument(code, tool, str(file), [launch.kernel], watch=watch, apart=loaded is not None)
    if loaded is not None:
        made = replace(made, data=apply_bindings(made.data, made.bindings, loaded.base))
    ran = run_instrumented(device, made, tool, launch, original=loaded)
    verdict.add_instrumented(made)
    verdict.records = dict(ran.records)
    verdict.selected, verdict.instrumented = 1, int(ran.cloned is not None)
    verdict.without_code = int(ran.cloned is None and ran.result is not None)
    if ran.result is not None:
        verdict.add_report(ran.result, ran.report)
    if ran.cloned is None and ran.result is None:
        verdict.add_untouched(launch.kernel, made.obj, made.edits.notes)
    return Done(file, ran, device, tool, verdict)


def findings_of(done: Done) -> list[Finding]:
    """What checks of the launch found."""
    return done.device.findings if isinstance(done.device, EmulatorDevice) else []


def shuffle_file(file: Path, launch: Launch, settings: RunSettings, done: Done) -> Shuffled | None:
    """The same launch by other schedules: what it writes, and what checks find there; None for no schedules."""
    if not settings.shuffle:
        return None

    def once(schedule: Schedule | None) -> dict[str, bytes]:
        try:
            ran = done if schedule is None else launch_file(file, launch, None, settings.by(schedule))
        except DeviceError as error:
            return {f"{type(error).__name__}": b"raised"}
        outputs = {f"argument {number}": data.tobytes() for number, data in ran.ran.outputs.items()}
        return {**outputs, "what checks find": encode_findings(one.facts() for one in findings_of(ran))}

    return compare_schedules(settings.shuffle, once)


def parse_emulator_target(device: str | None) -> Target | None:
    """The target of emulator:TARGET; None for other devices."""
    kind, colon, chosen = (device or "").partition(":")
    return device_target(chosen) if kind == EMULATOR and colon else None


def open_device(settings: RunSettings, target: Target) -> Device:
    """``emulator``, with a target or without: one that is ``target``. ``hip``: the first AMD GPU."""
    name = settings.device or ""
    if name.partition(":")[0] == EMULATOR and settings.record is not None:
        return RecordingDevice(target, options=settings.launch, memory=reserve_recording_memory(),
                               report=reporter(os.environ))
    if name.partition(":")[0] == EMULATOR:
        return EmulatorDevice(target, options=settings.launch, report=reporter(os.environ))
    if name == "hip":
        return HipDevice()
    raise Invalid(f"device {name} is not available; there are emulator, emulator:TARGET and hip")


def parse_dim(text: str, option: str) -> Dim:
    """``X[,Y[,Z]]``, or with x between them; each at least 1."""
    try:
        numbers = [int(part, 0) for part in re.split("," if "," in text else SIDES, text)]
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
        output.launch(done.ran.result, done.ran.report, done.text)
    return output.counts(done.verdict)


def save_record(done: Done, path: Path | None) -> list[Path]:
    """The launch that was recorded."""
    if path is None or not isinstance(done.device, RecordingDevice):
        return []
    done.device.save(path)
    return [path]


def save_all(
    done: Done, kernel: str, folder: Path | None = None, record: Path | None = None, trace: Path | None = None
) -> tuple[dict[int, str], list[str]]:
    """Buffers in ``folder``, if there is one, by the argument's number; and files with counts, reports, the launch, a
    trace."""
    saved = save_outputs(done, folder) if folder else {}
    files = [*save_counts(done), *save_report(done), *save_record(done, record)]
    if trace is not None and done.ran.cycles is not None:
        row = {"kernel": kernel, "device": 0, "times": done.ran.cycles.times()}
        save_trace(trace, [row], [] if done.verdict is None else [done.verdict.facts()])
        files.append(trace)
    return {number: str(path) for number, path in saved.items()}, list(map(str, files))
