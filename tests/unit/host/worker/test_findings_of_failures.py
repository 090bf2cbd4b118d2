"""Which process has failed is read while others write."""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.errors import DeviceError
from luthier_py.host.worker.device.findings import FAILURES, has_failed, tell_failure


def test_who_has_failed(tmp_path: Path) -> None:
    file = tmp_path / "failures"
    environment = {FAILURES: str(file)}
    assert not has_failed({}, 1) and not has_failed(environment, 1)
    tell_failure(environment, DeviceError("it hangs"), 1)
    assert has_failed(environment, 1) and not has_failed(environment, 2)
    whole = file.read_text()
    file.write_text('{"error": "of an earlier version"}\n' + whole + whole[: len(whole) // 2])
    assert has_failed(environment, 1) and not has_failed(environment, 2)
    assert not has_failed({FAILURES: str(tmp_path)}, 1)
