"""One run, in a separate process: ``python -c COMMAND FOLDER``.

In: FOLDER/run.json; a pipe as stdin. Out: FOLDER/result.json; the program writes to this process's output. Invariant:
when the pipe closes, the study has ended, and the program ends too. Nothing is imported from the folder in which it
runs, which is the study's; nor what this run does not need, since each run waits for it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError
from luthier_py.base.storage import write_file
from luthier_py.features.exec.execute import execute
from luthier_py.features.settings.run_settings import RunSettings, run_settings

COMMAND = f"import sys; sys.path[:] = filter(None, sys.path); from {__name__} import main; main()"
RUN, STARTED, RESULT = "run.json", "started", "result.json"


def run(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """``seconds`` are those of the program, with its tool's start and end; FOLDER/started says that they begin."""
    os.environ.update(facts["environment"])
    if facts["tool"] is not None:  # imports are not the program's time
        import luthier_py.features.exec.observation  # noqa: F401
        from luthier_py.rewrite.tool import load_tool

        load_tool(facts["tool"], facts["options"])
    (folder / STARTED).touch()
    started = time.perf_counter()
    try:
        settings = run_settings(facts["device"], stack=facts["stack"])
        told = run_program(facts, settings, folder)
    except (LuthierError, OSError) as error:
        return {"error": str(error)}
    return {**told, "seconds": time.perf_counter() - started}


def run_program(facts: dict[str, Any], settings: RunSettings, folder: Path) -> dict[str, Any]:
    """Run the command of ``facts`` under its tool, or with a part of a campaign's faults, and give what decides the
    run's status. LuthierError where nothing was started."""
    if facts["faults"]:
        from luthier_py.features.study.campaigns import run_part

        return run_part(facts, settings, folder)
    done = execute(facts["command"], settings, facts["tool"], facts["options"], facts["level"], reports=True)
    return {"exit_code": done.exit_code, "verdicts": done.verdicts, "observed": done.observed,
            "undelivered": done.undelivered}


def end_with(pipe: int) -> None:
    """Wait for the pipe's end; then this process and its program are killed. Signals are for the other thread."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while os.read(pipe, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Entry of the child process: run what run.json in argv[1], a folder, says, and write result.json there."""
    folder = Path(sys.argv[1])
    pipe, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # a program that reads finds nothing
    sys.stdout = sys.stderr  # the program's output is its own
    threading.Thread(target=end_with, args=(pipe,), daemon=True).start()
    result = run(json.loads((folder / RUN).read_text()), folder)
    write_file(folder / RESULT, json.dumps(result).encode())
