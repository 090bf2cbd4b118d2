"""Pictures for reports, by matplotlib where it is installed (the extra `plot`).

In: labelled numbers. Out: PNG bytes. Invariant: no display is needed, and no global state of matplotlib is touched.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from io import BytesIO


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def stacked_bars(labels: Sequence[str], parts: Mapping[str, Sequence[float]], title: str, unit: str) -> bytes:
    """One horizontal bar for each label, the first on top, made of its number in each of ``parts``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.2 + 0.35 * len(labels)), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(labels)
    for name, values in parts.items():
        axes.barh(range(len(labels)), values, left=left, label=name)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(range(len(labels)), labels, family="monospace")
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    axes.legend()
    png = BytesIO()
    figure.savefig(png, format="png", dpi=120, metadata={"Software": None})
    return png.getvalue()
