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
from beside import beside  # noqa: E402

random = np.random.default_rng(0)
matrix, other = random.standard_normal((60, 40)), random.standard_normal((40, 50))
vector = random.standard_normal(1000)
positive = matrix[:40] @ matrix[:40].T + 60 * np.eye(40)
sparse = np.where(random.random((50, 50)) < 0.1, random.standard_normal((50, 50)), 0)

TOLERANCES = {np.float64: 1e-12, np.float32: 1e-4, np.float16: 2e-2, np.complex64: 1e-4, np.complex128: 1e-12}


def steps(xp):
    """By CuPy or by NumPy, as arrays of NumPy."""
    given, many, square = (xp.asarray(each) for each in (vector, matrix, positive))
    rows = cupyx.scipy.sparse.csr_matrix(xp.asarray(sparse)) if xp is cupy else sparse
    found = {
        "elementwise": given * 2 + 1, "sum of rows": many.sum(axis=0), "sort": xp.sort(given),
        "running sum": xp.cumsum(given), "fft": xp.fft.fft(given), "fft2": xp.fft.fft2(many),
        "solve": xp.linalg.solve(square, given[:40]), "sparse": rows @ given[:50],
    }
    for kind in TOLERANCES:
        left, right = (xp.asarray(each.astype(kind)) for each in (matrix, other))
        if xp is np:  # in a wider type, which the device's products are compared with
            left, right = (each.astype(np.complex128 if np.iscomplexobj(each) else float) for each in (left, right))
        found[f"matrix product, {kind.__name__}"] = left @ right
    return {name: cupy.asnumpy(each) for name, each in found.items()}


ours, theirs = beside(lambda: steps(cupy), lambda: steps(np))
for name, here in ours.items():
    there = theirs[name]
    error = np.abs(here - there).max() / np.abs(there).max()
    print(f"{name}: {error:.1e}")
    assert error < TOLERANCES.get(here.dtype.type, 1e-12)
drawn = cupy.asnumpy(cupy.random.default_rng(3).standard_normal(4000))
assert abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.1
print("PASSED")
