"""``python -m luthier_py``: the command ``luthier``."""

from luthier_py.cli import main

main()
