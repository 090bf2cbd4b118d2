"""``python -m luthier_py.isa.generate``: write the tables; with ``--check``, fail where they would change."""

from __future__ import annotations

import argparse
import sys

from luthier_py.isa.encoding.table import TABLES, decompress
from luthier_py.isa.generate.tablegen import load
from luthier_py.isa.generate.write import render


def main(arguments: list[str] | None = None) -> int:
    """Write the tables that changed. The exit code: 1 where ``--check`` has found one that would change."""
    parser = argparse.ArgumentParser(prog="luthier_py.isa.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed tables, write nothing")
    options = parser.parse_args(arguments)
    stale = []
    for name, data in render(load()).items():
        path = TABLES / name
        current = decompress(path) if path.exists() else None
        if current != decompress(data):
            stale.append(name)
            if not options.check:
                path.write_bytes(data)
    print(f"{'stale' if options.check else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
