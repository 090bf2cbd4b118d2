"""Pictures for reports, by matplotlib where it is installed (the extra `plot`).

In: labelled numbers. Out: PNG bytes. Invariant: no display is needed, and no global state of matplotlib is touched.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def stacked_bars(labels: Sequence[str], parts: Mapping[str, Sequence[float]], title: str, unit: str) -> bytes:
    """One horizontal bar for each label, the first on top, made of its number in each of ``parts``."""
    figure, axes = _rows(labels, title, unit)
    left = [0.0] * len(labels)
    for name, values in parts.items():
        axes.barh(range(len(labels)), values, left=left, label=name)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.legend()
    return _png(figure)


def ranges(labels: Sequence[str], numbers: Sequence[tuple[float, float, float]], title: str, unit: str) -> bytes:
    """One bar for each label, as long as the middle of its three numbers, with a line from the least to the most."""
    figure, axes = _rows(labels, title, unit)
    axes.barh(range(len(labels)), [middle for _, middle, _ in numbers])
    for row, (least, _, most) in enumerate(numbers):
        axes.plot([least, most], [row, row], color="black", marker="|")
    return _png(figure)


def _rows(labels: Sequence[str], title: str, unit: str) -> tuple[Figure, Axes]:
    """Axes with a row for each label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.2 + 0.35 * len(labels)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(labels)), labels, family="monospace")
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(unit)
    axes.set_title(title)
    return figure, axes


def _png(figure: Figure) -> bytes:
    png = BytesIO()
    figure.savefig(png, format="png", dpi=120, metadata={"Software": None})
    return png.getvalue()
