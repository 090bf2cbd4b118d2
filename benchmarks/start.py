"""How long is a small program's whole run on the emulator, bare and with a tool, when all it needs is cached?

In: `--before FOLDER`, a checkout to compare with; `--repeats N`. Out: a table on stdout, and in start.md. The program
is launches.c with 15 launches of vector_add, for whose own work milliseconds are enough; runs of checkouts and ways to
start take turns, each after one that fills the cache. Needs a C compiler and, for orphans' times, Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launches import TARGET, folders

from luthier_py.samples import sample

HERE = Path(__file__).resolve().parent
PAGE = HERE / "start.md"
LAUNCHES = "15"
LAUNCH = ("--kernel", "vector_add", "--grid", "1", "--block", "64", "in:f32[64]=random:1", "in:f32[64]=random:2",
          "out:f32[64]")
SUBREAPER = 36  # prctl(2): workers, whose parents have ended, become children of this process
TEXT = """# A program's start

`python benchmarks/start.py` wrote this page: {machine}, the emulator as {target}. `benchmarks/launches.c` launches
`vector_add` {launches} times, with a warm cache; `run` launches it once, `disasm` shows it. Milliseconds from exec to
the program's end, and in brackets of the processors, its worker's with them; the best of {repeats} runs in turn with
each other{before}. Load when the page was written: {load} on {cores} cores, so the clock says little beside the other
checkout's.

{table}
"""


def run(command: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Milliseconds: by the clock until the program ends, and of the processors until its worker has, too."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    seconds, processor = 0.0, 0.0
    while True:
        try:
            number, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            return 1e3 * seconds, 1e3 * processor
        processor += used.ru_utime + used.ru_stime
        if number == process.pid:
            seconds, process.returncode = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
            if process.returncode:
                sys.exit(f"{' '.join(command)}: exit code {process.returncode}")


def ways(program: Path, checkout: Path, library: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Commands, and their environments. Modules are compiled when they are first imported, as for every user."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(program.parent / "compiled")
    command = [str(program), str(sample("vector_add").path), LAUNCHES]
    own = {**os.environ, "LUTHIER_DEVICE": f"emulator:{TARGET}", "LD_LIBRARY_PATH": library}
    luthier = [sys.executable, "-m", "luthier_py"]
    device, code = ["--device", f"emulator:{TARGET}"], command[1]
    launch = ["run", code, *LAUNCH]
    commands = {"`luthier exec`": ["exec", *device, "--", *command],
                "`luthier exec -t instr_count`": ["exec", "-t", "instr_count", *device, "--", *command],
                "`luthier run`": launch, "`luthier run -t instr_count`": [*launch, "-t", "instr_count"],
                "`luthier disasm`": ["disasm", code], "`luthier --version`": ["--version"]}
    theirs = {**os.environ, "PYTHONPATH": str(checkout)}
    return {"by itself": (command, own)} | {name: ([*luthier, *words], theirs) for name, words in commands.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    checkouts = [*([options.before.resolve()] if options.before else []), HERE.parent]
    found: dict[str, list[list[tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "launches"
        libraries = [folders(checkout)[0] for checkout in checkouts]
        subprocess.run(["cc", "-O2", HERE / "launches.c", "-o", program, f"-L{libraries[-1]}",
                        "-l:libamdhip64.so.7"], check=True)
        for turn in range(options.repeats + 1):
            for number, (checkout, library) in enumerate(zip(checkouts, libraries, strict=True)):
                for name, (command, environment) in ways(program, checkout, library).items():
                    measured = run(command, environment, checkout)
                    if turn:
                        found.setdefault(name, [[] for _ in checkouts])[number].append(measured)
    rows = ["| started | ms |", "| --- | ---: |"]
    for name, each in found.items():
        best = [tuple(min(column) for column in zip(*runs, strict=True)) for runs in each]
        rows.append(f"| {name} | {' -> '.join(f'{clock:,.0f} ({used:,.0f})' for clock, used in best)} |")
    before = "; *before -> now* where another checkout was measured as well" if options.before else ""
    text = TEXT.format(machine=f"{platform.machine()}, Python {platform.python_version()}", target=TARGET,
                       launches=LAUNCHES, repeats=options.repeats, before=before, load=f"{os.getloadavg()[0]:.1f}",
                       cores=os.cpu_count(), table="\n".join(rows))
    print(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
