"""What conformance tests share: programs, run once for all their cases that are asked for."""

from __future__ import annotations

from collections.abc import Callable

import case_programs
import pytest
from compiled_programs import HEADERS, NO_HEADERS, begin, compiled
from rocm_stack import lacking

from luthier_py.host.hip import runtime_folder


class Outcomes:
    """Mutable: what each case gave, as soon as anybody asks."""

    def __init__(self, wanted: dict[str, list[case_programs.Case]]) -> None:
        self.wanted = wanted
        self.results: dict[str, dict[str, str]] = {name: {} for name in wanted}
        self.environment = {"LD_LIBRARY_PATH": str(runtime_folder())}

    def of(self, case: case_programs.Case) -> str:
        results = self.results[case.program]
        if case.name not in results:
            together = [other.name for other in self.wanted[case.program] if not other.alone]
            names = [case.name] if case.alone else together
            environment = {**self.environment, "LUTHIER_DEVICE": case_programs.device_of(case.program)}
            try:
                program = compiled(recipe_of(case.program))
            except RuntimeError as error:  # with the compiler's words
                return str(error)
            results.update(case_programs.run(program, names, environment))
        return results[case.name]


def recipe_of(program: str) -> case_programs.Recipe:
    return case_programs.recipe(case_programs.HERE / f"{program}.hip", HEADERS[max(HEADERS)])


def cases_in(items: list[pytest.Item]) -> dict[str, list[case_programs.Case]]:
    """Those that these tests are of, by program."""
    found: dict[str, list[case_programs.Case]] = {}
    for item in items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        if isinstance(case, case_programs.Case):
            found.setdefault(case.program, []).append(case)
    return found


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs are compiled while the first tests run."""
    if HEADERS and not session.config.option.collectonly:
        begin(map(recipe_of, cases_in(session.items)))


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, require_tool: Callable[[str], str]) -> Outcomes:
    require_tool("clang++-22")
    require_tool("ld.lld-22")
    require_tool("cc")
    if not HEADERS:
        lacking(NO_HEADERS)
    return Outcomes(cases_in(request.session.items))
