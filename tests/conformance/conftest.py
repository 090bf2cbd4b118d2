"""What conformance tests share: programs, built together, and run once for all their cases that are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import case_programs
import pytest
from program_builder import builder
from rocm_stack import lacking

from luthier_py.runtime.hip import runtime_folder

PACKAGE = Path(__file__).parents[2] / "luthier_py"


class Outcomes:
    """Mutable: what each case gave, as soon as anybody asks. Programs are compiled in the background, two at a time."""

    def __init__(self, wanted: dict[str, list[case_programs.Case]], folder: Path, headers: Path) -> None:
        self.wanted = wanted
        self.results: dict[str, dict[str, str]] = {name: {} for name in wanted}
        self.environment = {"LD_LIBRARY_PATH": str(runtime_folder())}
        symbols = (PACKAGE / "runtime" / "hip" / "functions.txt").read_text()  # programs are bound to their versions
        pool = ThreadPoolExecutor(os.cpu_count())
        self.programs: dict[str, Future[Path]] = {
            source.stem: pool.submit(case_programs.build, source, folder, headers, runtime_folder(), symbols)
            for source in case_programs.sources()
            if source.stem in wanted
        }

    def of(self, case: case_programs.Case) -> str:
        results = self.results[case.program]
        if case.name not in results:
            together = [other.name for other in self.wanted[case.program] if not other.alone]
            names = [case.name] if case.alone else together
            environment = {**self.environment, "LUTHIER_DEVICE": case_programs.device_of(case.program)}
            try:
                program = self.programs[case.program].result()
            except RuntimeError as error:  # with the compiler's words
                return str(error)
            results.update(case_programs.run(program, names, environment))
        return results[case.name]


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, require_tool: Callable[[str], str]) -> Outcomes:
    require_tool("clang++-22")
    require_tool("ld.lld-22")
    require_tool("cc")
    found = builder.header_folders()
    if not found:
        lacking("no HIP headers: install ROCm, or triton from PyPI, which has them, or set LUTHIER_HIP_INCLUDE")
    wanted: dict[str, list[case_programs.Case]] = {}
    for item in request.session.items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        if isinstance(case, case_programs.Case):
            wanted.setdefault(case.program, []).append(case)
    folder = Path(request.config.cache.mkdir("conformance"))
    return Outcomes(wanted, folder, max(found, key=builder.hip_major))
