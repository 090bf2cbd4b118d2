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
    """Whether matplotlib is installed, which is not imported to know it."""
    return importlib.util.find_spec("matplotlib") is not None


def plot_stacked_bars(labels: Sequence[str], parts: Mapping[str, Sequence[float]], title: str, unit: str) -> bytes:
    """One horizontal bar for each label, the first on top, made of its number in each of ``parts``."""
    figure, axes = _rows(labels, title, unit)
    left = [0.0] * len(labels)
    for name, values in parts.items():
        axes.barh(range(len(labels)), values, left=left, label=name)
        left = [a + b for a, b in zip(left, values, strict=True)]
    _legend(axes, parts)
    return _png(figure)


def plot_grouped_bars(labels: Sequence[str], parts: Mapping[str, Sequence[float]], title: str, unit: str) -> bytes:
    """For each label a bar for each of ``parts``, one below the other."""
    figure, axes = _rows(labels, title, unit)
    height = 0.8 / max(len(parts), 1)
    for at, (name, values) in enumerate(parts.items()):
        middle = height * (at - (len(parts) - 1) / 2)
        axes.barh([row + middle for row in range(len(labels))], values, height, label=name)
    _legend(axes, parts)
    return _png(figure)


def ranges(labels: Sequence[str], numbers: Sequence[tuple[float, float, float]], title: str, unit: str) -> bytes:
    """One bar for each label, as long as the middle of its three numbers, with a line from the least to the most."""
    figure, axes = _rows(labels, title, unit)
    axes.barh(range(len(labels)), [middle for _, middle, _ in numbers])
    for row, (least, _, most) in enumerate(numbers):
        axes.plot([least, most], [row, row], color="black", marker="|")
    return _png(figure)


def curves(lines: Mapping[str, Sequence[tuple[float, float]]], title: str, across: str, up: str) -> bytes:
    """One curve through the points of each label."""
    figure, axes = _plane(title, across, up)
    for label, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    _legend_beside(axes)
    return _png(figure)


def roofline(
    slope: tuple[str, float], roofs: Mapping[str, float], points: Mapping[str, float], title: str
) -> bytes:
    """Flops a cycle over flops per byte: at most ``slope`` bytes a cycle, and of ``roofs`` flops a cycle. ``points``
    are flops per byte; each is drawn as high as bytes and the highest roof let it, since its speed is not known."""
    figure, axes = _plane(title, "flops per byte of global memory", "flops a cycle, at most")
    highest = max(roofs.values(), default=0.0)
    ends = [highest / slope[1], *points.values()]
    across = min(min(ends) / 4, 1 / 16), max(max(ends) * 4, 16)
    top = highest or slope[1] * across[1]
    axes.loglog([across[0], top / slope[1]], [across[0] * slope[1], top], color="black", label=slope[0])
    for label, roof in roofs.items():
        axes.loglog([roof / slope[1], across[1]], [roof, roof], label=label)
    for label, intensity in points.items():
        height = min(intensity * slope[1], top)
        axes.loglog([intensity], [height], marker="o", linestyle="none", label=label)
        axes.axvline(intensity, ymax=0.98, color="grey", linewidth=0.5, linestyle=":")
    _legend_beside(axes)
    return _png(figure)


def _plane(title: str, across: str, up: str) -> tuple[Figure, Axes]:
    """Axes for two numbers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(title)
    return figure, axes


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


def _legend(axes: Axes, parts: Mapping[str, Sequence[float]]) -> None:
    """Beside the bars; one part alone needs none."""
    if len(parts) > 1:
        _legend_beside(axes)


def _legend_beside(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _png(figure: Figure) -> bytes:
    png = BytesIO()
    figure.savefig(png, format="png", dpi=120, metadata={"Software": None})
    return png.getvalue()
