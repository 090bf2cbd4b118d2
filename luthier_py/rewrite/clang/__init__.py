"""Clang, as far as it is there: where it is found, how it is run, and AMD's device library for what it compiles.

In: an environment, a processor, sources. Out: what a child process made of them. Nothing here is needed to work with
code objects that are there.
"""

from luthier_py.rewrite.clang.running import create_working_folder, inputs_key, run_clang
from luthier_py.rewrite.clang.search import Search, Toolchain

__all__ = ["Search", "Toolchain", "inputs_key", "run_clang", "create_working_folder"]
