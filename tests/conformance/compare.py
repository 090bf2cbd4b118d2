"""The same programs of cases on our HIP runtime and on ROCm's: which cases differ, and whether somebody has said why.

    LUTHIER_ROCM_STACK=FOLDER python tests/conformance/compare.py [FILE...]

In: the cases beside this file, with HIP's headers of that ROCm (Debian's 5.2.3); differences.toml. Out: a table of what
differs. Exit code 1 where a difference is not in differences.toml, or one that is there has gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import case_programs  # noqa: E402  (these lie where the path leads only now)
from compiled_programs import compiled  # noqa: E402
from program_builder import builder  # noqa: E402
from rocm_stack import ABI, CODE_OBJECT, RocmStack, find_stack  # noqa: E402

from luthier_py.host.hip import runtime_folder  # noqa: E402

KNOWN = HERE / "differences.toml"
SIDES = {"ours", "rocm", "neither", "either"}
"""Who does what HIP promises: either, where HIP leaves it open or has changed since."""


class Result(NamedTuple):
    case: str
    ours: str
    rocm: str


def known() -> dict[str, dict[str, Any]]:
    rows = tomllib.loads(KNOWN.read_text())["difference"]
    wrong = [row for row in rows if row.keys() != {"case", "ours", "rocm", "right", "why"} or row["right"] not in SIDES]
    assert not wrong, wrong
    return {row["case"]: row for row in rows}


def built(stack: RocmStack, names: list[str]) -> Iterator[tuple[str, Future[Path]]]:
    library = next(filter(None, map(builder.device_library, builder.header_folders())), None)
    how = {"abi": ABI, "code_object": CODE_OBJECT, "library": library}
    pool = ThreadPoolExecutor(os.cpu_count())
    for source in case_programs.sources():
        if not names or source.stem in names:
            recipe = case_programs.recipe(source, stack.headers, stack.libraries, **how)
            yield source.stem, pool.submit(compiled, recipe)


def compared(program: Path, name: str, stack: RocmStack) -> Iterator[Result]:
    """Each case on both; the program lists those that it was compiled with."""
    device = case_programs.device_of(name)
    on_ours = {"LUTHIER_DEVICE": device, "LD_LIBRARY_PATH": str(runtime_folder())}
    listed = subprocess.run([program], env={**os.environ, **on_ours}, capture_output=True, text=True, check=True)
    cases = [(line.split()[0], line.endswith(" alone")) for line in listed.stdout.splitlines()]
    together = [case for case, alone in cases if not alone]
    groups = [together] * bool(together) + [[case] for case, alone in cases if alone]
    for group in groups:
        ours = case_programs.run(program, group, on_ours)
        rocm = case_programs.run(program, group, stack.environment(device))
        yield from (Result(f"{name}-{case}", ours[case], rocm[case]) for case in group)


def main(names: list[str]) -> int:
    stack = find_stack()
    if stack is None:
        sys.exit("no ROCm: unpack Debian's packages as .ci/run does, and set LUTHIER_ROCM_STACK")
    explained, results = known(), []
    for name, program in list(built(stack, names)):
        print(f"{name}...", file=sys.stderr, flush=True)
        try:
            results += list(compared(program.result(), name, stack))
        except RuntimeError as error:
            words = [line for line in str(error).splitlines() if "error:" in line] or [str(error)]
            print(f"{name}: not with these headers: {words[0][-160:]}")
    absent = [row for row in results if "undefined symbol" in row.rocm]
    results = [row for row in results if row not in absent]
    different = {row.case: row for row in results if bool(row.ours) != bool(row.rocm)}
    for row in different.values():
        why = explained.get(row.case)
        print(f"{row.case}\n    ours: {row.ours or 'ok'}\n    rocm: {row.rocm or 'ok'}")
        print(f"    right: {why['right']}: {why['why']}" if why else "    NOT EXPLAINED")
    ran = {row.case for row in results}
    stale = sorted(case for case in explained if case in ran and case not in different)
    print(*(f"{case}: no difference any more" for case in stale), sep="\n")
    open_ones = different.keys() - explained.keys()
    print(f"{len(absent)} cases need functions that this ROCm has not")
    ours, rocm = (sum(not side for side in sides) for sides in zip(*((r.ours, r.rocm) for r in results), strict=True))
    print(f"{len(results)} cases on both: {ours} right on ours, {rocm} on ROCm's; {len(different)} differ, ", end="")
    print(f"{len(open_ones)} unexplained")
    return int(bool(open_ones or stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
