"""A program that launches every sample kernel through hip-python, and prints as JSON what it got."""

from __future__ import annotations

import hashlib
import json

from luthier_py.features.demo.samples import is_right, launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.host.hip.device import HipDevice
from luthier_py.samples import SAMPLES


def main() -> None:
    device = HipDevice()
    found = {}
    for sample in SAMPLES:
        launch = launch_of(sample)
        ran = run_original(device, sample.path.read_bytes(), launch)
        outputs = hashlib.sha256(b"".join(array.tobytes() for array in ran.outputs.values())).hexdigest()
        found[sample.kernel] = {"right": is_right(sample, launch, ran), "outputs": outputs}
    print(json.dumps(found))


main()
