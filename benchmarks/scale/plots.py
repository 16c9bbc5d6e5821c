"""Draw a study's curves as one SVG, readable on light and dark pages."""

from pathlib import Path

import matplotlib as mpl
from benchmarks.scale.studies import Study

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "toolgate"  # the same points give the same file
GREY = "#6b7280"
COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2")
WIDE = 12
"""Numbers that span more than this factor stand on a logarithmic axis."""


def draw(study: Study, folder: Path) -> str | None:
    """Write the picture and return its file name; None where no curve has two points."""
    from matplotlib.figure import Figure

    curves = {
        key: {name: curve for name in study.series() if len(curve := study.curve(name, key)) > 1} for key in study.drawn
    }
    if not any(curves.values()):
        return None
    figure = Figure(figsize=(4.4 * len(study.drawn), 3.2), layout="constrained")
    for axes, key in zip(figure.subplots(1, len(study.drawn), squeeze=False)[0], study.drawn, strict=True):
        for (name, curve), colour in zip(curves[key].items(), COLOURS * 2, strict=False):
            axes.plot(*zip(*curve, strict=True), marker="o", markersize=4, color=colour, label=name)
        numbers = [x for curve in curves[key].values() for x, _ in curve]
        values = [y for curve in curves[key].values() for _, y in curve]
        if max(numbers) > min(numbers) * WIDE:
            axes.set_xscale("log")
        else:
            axes.set_xticks(sorted(set(numbers)))
        if max(values) > min(values) * WIDE:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(study.x_label)
        axes.set_title(study.columns[key].heading, fontsize=10)
        axes.tick_params(colors=GREY)
        axes.grid(visible=True, color=GREY, alpha=0.25)
        for text in (axes.title, axes.xaxis.label):
            text.set_color(GREY)
        for spine in axes.spines.values():
            spine.set_color(GREY)
        axes.patch.set_alpha(0)
        legend = axes.legend(fontsize=8, framealpha=0)
        for text in legend.get_texts():
            text.set_color(GREY)
    figure.patch.set_alpha(0)
    name = f"scaling-{study.name}.svg"
    figure.savefig(folder / name, metadata={"Date": None, "Creator": None})
    return name
