"""Figures: reliability diagram and confidence histogram. Each function draws on the `ax` it is given."""

import base64
import io

import numpy as np

COLOURS = {"t1": "#d55e00", "fitted": "#0072b2", "oracle": "#009e73", "neutral": "#666666"}
"""One colour per meaning in reliability diagrams and figures of the gap, from the palette of Okabe and Ito (2008)."""


def reliability_diagram(ax, table, colour=COLOURS["fitted"], counts=True):
    """Draw accuracy against mean confidence, bin by bin, with counts and 95% Wilson intervals.

    A bar spans each bin's distance between mean confidence and accuracy: below the diagonal the classifier is
    overconfident. Empty bins are not drawn. The number beside a point is its count.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    table : calib.reliability.ReliabilityTable
    colour : str, optional
    counts : bool
        Write the count of each bin beside its point.

    Returns
    -------
    matplotlib.axes.Axes
    """
    filled = table.filled
    confidence, accuracy = table.confidence[filled], table.accuracy[filled]
    errors = np.clip([accuracy - table.low[filled], table.high[filled] - accuracy], 0, None)
    ax.plot([0, 1], [0, 1], color=COLOURS["neutral"], linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    ax.vlines(confidence, confidence, accuracy, color=colour, alpha=0.25, linewidth=7, zorder=2)
    marks = {"fmt": "o", "markersize": 5, "elinewidth": 1, "capsize": 2}
    ax.errorbar(confidence, accuracy, yerr=errors, color=colour, zorder=3, **marks)
    for x, y, count in zip(confidence, accuracy, table.counts[filled] if counts else []):
        ax.annotate(f"{count:,}", (x, y), xytext=(6, 3), textcoords="offset points", fontsize=9, color=colour)
    ax.set(xlim=(0, 1.04), ylim=(-0.03, 1.04), aspect="equal")
    ax.set(xlabel="mean confidence in bin", ylabel="accuracy in bin")
    return ax


def confidence_histogram(ax, table, colour=COLOURS["fitted"]):
    """Draw the count of each bin of a reliability table, with mean confidence and accuracy as lines.

    Parameters and result as in `reliability_diagram`.
    """
    filled = table.filled
    widths = np.diff(table.edges.astype(float))
    bars = {"align": "edge", "alpha": 0.35, "edgecolor": colour}
    ax.bar(table.edges[:-1], table.counts, widths, color=colour, **bars)
    text = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top", "fontsize": 9}
    lines = [(table.confidence, "-", "mean confidence", 0.97), (table.accuracy, ":", "accuracy", 0.87)]
    for values, style, name, height in lines:
        mean = np.average(values[filled], weights=table.counts[filled])
        side = {"xytext": (-5, 0), "ha": "right"} if mean > 0.5 else {"xytext": (5, 0), "ha": "left"}
        ax.axvline(mean, color=colour, linestyle=style, linewidth=1.5)
        ax.annotate(f"{name} {mean:.3f}", (mean, height), color=colour, **text, **side)
    ax.set(xlim=(0, 1), xlabel="confidence", ylabel="examples")
    return ax


def show(fig, name, caption, alt):
    """Show a figure in a notebook, with what the book needs around it.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
    name : str
        Anchor of the figure, to refer to it with ``{numref}``.
    caption : str
        Caption, MyST Markdown; say population, sample size and bins.
    alt : str
        What the picture shows, with its numbers, for a reader who does not see it.
    """
    from IPython.display import display
    from matplotlib import pyplot

    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=160, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(fig)
    data = {"image/png": base64.b64encode(buffer.getvalue()).decode()}
    display(data, metadata={"image/png": {"alt": alt, "caption": caption, "name": name}}, raw=True)
