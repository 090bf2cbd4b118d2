"""The results that pages show, made again: `make studies`.

In: the studies of this folder, and pages with marked blocks. Out: what studies write, in build/studies; their pictures
that pages show, in docs, called STUDY-FIGURE.png; and in the pages, between `<!-- shown: COMMAND -->` and
`<!-- end -->`, what the command prints. Invariant: only pictures and blocks change, and running again changes nothing.
A page of which a command fails stays as it is, and is named at the end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
BUILT = ROOT / "build" / "studies"
BLOCK = re.compile(r"^<!-- shown: ([^\n]+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def pages() -> list[Path]:
    """Those with marked blocks."""
    found = (*sorted(DOCS.glob("*.md")), *sorted((ROOT / "tools").glob("*/README.md")))
    return [page for page in found if BLOCK.search(page.read_text("utf-8"))]


def printed(command: str) -> str:
    """By a shell in the repository; CalledProcessError where any part of it fails."""
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, env=ENVIRONMENT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def block(command: str) -> str:
    """With what the command prints now: a table as it is, anything else as code."""
    lines = [line.rstrip() for line in printed(command).strip("\n").splitlines()]
    shown = [line if line.startswith("|") else f"    {line}".rstrip() for line in lines]
    return "\n".join([f"<!-- shown: {command} -->", "", *shown, "", "<!-- end -->"])


def pictures(study: str) -> list[tuple[Path, Path]]:
    """Of a study: as it drew them, and where pages show them."""
    drawn = ((path, DOCS / f"{study}-{path.name}") for path in sorted((BUILT / study).glob("*.png")))
    return [(path, shown) for path, shown in drawn if shown.exists()]


def main() -> int:
    for study in sorted(HERE.glob("*.toml")):
        printed(f"luthier study {study.relative_to(ROOT)} -o {BUILT / study.stem}")
        for drawn, shown in pictures(study.stem):
            written(shown, drawn.read_bytes())
    failed = []
    for page in pages():
        try:
            text = BLOCK.sub(lambda found: block(found[1]), page.read_text("utf-8"))
        except subprocess.CalledProcessError as error:
            failed.append(f"{page.relative_to(ROOT)}: {error}")
            continue
        written(page, text.encode())
    print("\n".join(failed), file=sys.stderr)
    return int(bool(failed))


def written(path: Path, content: bytes) -> None:
    changed = path.read_bytes() != content
    print(f"{path.relative_to(ROOT)}: {'changed' if changed else 'the same'}", flush=True)
    if changed:
        path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
