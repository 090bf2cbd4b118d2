"""What a run keeps of each test: how it ended, how long it took, whether it started a process or ran a kernel.

In: a pytest run with ``--results FILE``. Out: a line of JSON for each test, which the process that reports adds to
the file: ``id``, ``outcome``, ``seconds`` without fixtures that other tests use, too, ``shared`` seconds of these,
``marks``. Where LUTHIER_REACH names a folder, what tests execute in this process and in those that they start is kept
apart by their files: coverage.py does so by contexts, gcov by folders (reach.py reads both).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from suite.kept import COMPILING, KERNEL, PROCESS, split
from suite.reach import CONTEXT, folder_of

PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
"""Events of Python's that say that a process is started (sys.addaudithook)."""
RUNS = (("luthier_py.emulator.devices.emulator_device", "EmulatorDevice", "run"),
        ("luthier_py.emulator.devices.packet_device", "PacketDevice", "dispatch"))  # fmt: skip
"""Methods that run a kernel."""
PROPERTY = "suite"


class Measuring:
    """Mutable: one process of a run."""

    def __init__(self, config: pytest.Config) -> None:
        self.results: Path = config.option.results
        self.reports = not hasattr(config, "workerinput")
        self.marks: set[str] = set()
        self.fixtures: dict[tuple[str, str], float] = {}
        self.setting_up = 0.0
        self.rows: dict[str, dict[str, Any]] = {}
        self.watched: set[str] = set()
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: Any) -> None:
        if event in PROCESSES and threading.current_thread().name != COMPILING:
            self.marks.add(PROCESS)

    def watch_devices(self) -> None:
        """As soon as their modules are there."""
        for module, name, method in RUNS:
            if module in sys.modules and module not in self.watched:
                self.watched.add(module)
                device = getattr(sys.modules[module], name)
                setattr(device, method, self.told(getattr(device, method)))

    def told(self, method: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            self.marks.add(KERNEL)
            return method(*arguments, **options)

        return run

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        begin = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                took = time.perf_counter() - begin
                key = (fixturedef.baseid, fixturedef.argname)
                self.fixtures[key] = max(took, self.fixtures.get(key, 0.0))
                self.setting_up += took

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        file, _ = split(item.nodeid)
        self.marks.clear()
        self.setting_up = 0.0
        self.watch_devices()
        if folder := folder_of(file):
            import coverage

            os.environ[CONTEXT], os.environ["GCOV_PREFIX"] = file, folder
            if (running := coverage.Coverage.current()) is not None:
                running.switch_context(file)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            self.watch_devices()
            definitions = getattr(item, "_fixtureinfo", None)
            names = definitions.name2fixturedefs.values() if definitions else ()
            keys = {(one.baseid, one.argname) for found in names for one in found[-1:] if one.scope != "function"}
            shared = sum(self.fixtures.get(key, 0.0) for key in keys)
            item.user_properties.append((PROPERTY, ("".join(sorted(self.marks)), shared, self.setting_up)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the process that reports: phases of one test, as they come. The last one of a test that ended its process
        is xdist's, without a name."""
        if not self.reports:
            return
        setting_up = 0.0
        row = self.rows.setdefault(report.nodeid, {"id": report.nodeid, "outcome": "passed", "seconds": 0.0})
        row["seconds"] += report.duration
        if report.outcome != "passed" and row["outcome"] != "failed":
            row["outcome"] = report.outcome
        for name, value in report.user_properties:
            if name == PROPERTY:
                row["marks"], row["shared"] = value[0], round(value[1], 3)
                setting_up = value[2]
        if report.when not in ("setup", "call"):
            row["seconds"] = round(max(0.0, row["seconds"] - setting_up), 3)
            with self.results.open("a") as file:
                file.write(json.dumps(self.rows.pop(report.nodeid)) + "\n")
