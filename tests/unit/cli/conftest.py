"""The command, run in this process."""

from __future__ import annotations

import sys

import pytest

from luthier_py import cli


@pytest.fixture
def luthier(monkeypatch, capsys):
    """Run the command; gives (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["luthier", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        out, err = capsys.readouterr()
        return code, out, err

    return run
