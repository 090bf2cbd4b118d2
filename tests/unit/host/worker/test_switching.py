"""`luthier attach` and `luthier detach`: a tool under a program that somebody else turns on and off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from loaded_command import run_luthier

from luthier_py.base.errors import Invalid
from luthier_py.features.exec.attach_command import switch

CODE = Path(__file__).parents[3] / "data" / "saxpy.co"
LUTHIER = [sys.executable, "-c", "from luthier_py.cli import main; main()"]


def luthier(*words: object) -> str:
    done = run_luthier(*map(str, words), environment=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_launches_in_between_are_the_programs_own(host_program: Callable[..., Path], tmp_path: Path) -> None:
    """Saying it twice is saying it once; a signal alone turns it round, whatever was said before."""
    counts, ticking = tmp_path / "counts.json", host_program("ticking_program")
    started = subprocess.Popen(
        [*LUTHIER, "exec", "-t", "instr_count", "--device", "emulator:gfx90a", "--output", counts, "--", ticking, CODE],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "LUTHIER_SIGNAL": "usr1"})

    def launch() -> None:
        assert started.stdin is not None and started.stdout is not None
        started.stdin.write("\n")
        started.stdin.flush()
        assert started.stdout.readline() == "launched\n"

    launch()
    told = luthier("detach", started.pid)
    program = int(told.split()[2].rstrip(":"))
    assert program != started.pid and told.endswith("the tool is detached\n")
    launch()
    assert switch(program, False) == [program]
    launch()
    os.kill(program, signal.SIGUSR1)
    launch()
    luthier("attach", program)
    launch()
    switch(started.pid, False)
    launch()
    started.communicate()
    found = json.loads(counts.read_text())
    assert [row["launch"] for row in found["launches"]] == [0, 3, 4]
    verdict = found["verdict"]
    assert (verdict["launches"], verdict["selected"], verdict["detached_launches"]) == (6, 3, 3)
    assert verdict["reasons"] == [
        "the tool was detached in 3 of 6 launches: by hipProfilerStop, roctxProfilerPause, or from outside"]


def test_who_does_not_listen_is_left_alone() -> None:
    """It would end by the signal."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "LUTHIER_SIGNAL": "USR1"}) as sleeping:
        with pytest.raises(Invalid, match=f"process {sleeping.pid} has no tool that listens: start"):
            switch(sleeping.pid, True)
        assert sleeping.poll() is None
        sleeping.kill()
    with pytest.raises(Invalid, match="there is no process"):
        switch(sleeping.pid, False)


def test_what_another_thread_has_started_is_told() -> None:
    waiting = ("import os, signal, time; signal.signal(10, lambda *_: (os.write(1, b'told\\n'), os._exit(0))); "
               "print('ready', flush=True); time.sleep(600)")
    starting = ("import subprocess, sys, threading; "
                f"threading.Thread(target=subprocess.run, args=([sys.executable, '-c', {waiting!r}],)).start()")
    with subprocess.Popen([sys.executable, "-c", starting], text=True, stdout=subprocess.PIPE,
                          env={**os.environ, "LUTHIER_SIGNAL": "10"}) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        [told] = switch(parent.pid, True)
        assert told != parent.pid and parent.stdout.readline() == "told\n"
