"""CuPy beside NumPy: elementwise, reductions, matrix products, FFT, sorting, random numbers, linear algebra."""

import os
import tempfile
from pathlib import Path

# All that CuPy asks hipcc for is where it includes from.
folder = Path(tempfile.mkdtemp())
(folder / "hipcc").write_text(r"""#!/bin/sh
printf '#include <...> search starts here:\n /usr/include\nEnd of search list.\n' >&2
""")
(folder / "hipcc").chmod(0o755)
os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

import cupy  # noqa: E402
import cupyx.scipy.sparse  # noqa: E402
import numpy as np  # noqa: E402

random = np.random.default_rng(0)
matrix, other = random.standard_normal((60, 40)), random.standard_normal((40, 50))
vector = random.standard_normal(1000)
positive = matrix[:40] @ matrix[:40].T + 60 * np.eye(40)
sparse = np.where(random.random((50, 50)) < 0.1, random.standard_normal((50, 50)), 0)

TOLERANCES = {np.float64: 1e-12, np.float32: 1e-4, np.float16: 2e-2, np.complex64: 1e-4, np.complex128: 1e-12}
STEPS = {
    "elementwise": (cupy.asarray(vector) * 2 + 1, vector * 2 + 1),
    "sum of rows": (cupy.asarray(matrix).sum(axis=0), matrix.sum(axis=0)),
    "sort": (cupy.sort(cupy.asarray(vector)), np.sort(vector)),
    "running sum": (cupy.cumsum(cupy.asarray(vector)), np.cumsum(vector)),
    "fft": (cupy.fft.fft(cupy.asarray(vector)), np.fft.fft(vector)),
    "fft2": (cupy.fft.fft2(cupy.asarray(matrix)), np.fft.fft2(matrix)),
    "solve": (cupy.linalg.solve(cupy.asarray(positive), cupy.asarray(vector[:40])),
              np.linalg.solve(positive, vector[:40])),
    "sparse": (cupyx.scipy.sparse.csr_matrix(cupy.asarray(sparse)) @ cupy.asarray(vector[:50]), sparse @ vector[:50]),
}
for kind in TOLERANCES:
    left, right = matrix.astype(kind), other.astype(kind)
    wide = np.complex128 if np.iscomplexobj(left) else np.float64
    product = left.astype(wide) @ right.astype(wide)
    STEPS[f"matrix product, {kind.__name__}"] = cupy.asarray(left) @ cupy.asarray(right), product

for name, (here, there) in STEPS.items():
    here = cupy.asnumpy(here)
    error = np.abs(here - there).max() / np.abs(there).max()
    print(f"{name}: {error:.1e}")
    assert error < TOLERANCES.get(here.dtype.type, 1e-12)
drawn = cupy.asnumpy(cupy.random.default_rng(3).standard_normal(4000))
assert abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.1
print("PASSED")
