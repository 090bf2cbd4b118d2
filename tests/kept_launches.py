"""A launch of a kernel, kept in a file for replays in this process.

In: a code object's file, a launch. Out: the record's file. Invariant: what made it is gone, since its memory is where
that of replays is to be.
"""

from __future__ import annotations

import gc
from pathlib import Path

from luthier_py.features.run.launch import Launch
from luthier_py.features.run.launched import launch_file
from luthier_py.features.run.recording_device import RecordingDevice
from luthier_py.features.settings.run_settings import run_settings


def kept(code: Path, launch: Launch, path: Path) -> Path:
    done = launch_file(code, launch, None, run_settings("emulator", record=path))
    assert isinstance(done.device, RecordingDevice)
    done.device.save(path)
    del done
    gc.collect()
    return path
