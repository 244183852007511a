"""Figures and tables as the outputs of a notebook that the book renders."""

import base64
import io
import re


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


def code(text):
    r"""A text as code of a Markdown table, whatever it holds.

    Examples
    --------
    >>> code("a|b"), code("`")
    ('`a\\|b`', '`` ` ``')
    """
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " * ("`" in text)
    return f"{fence}{room}{text.replace('|', chr(92) + '|')}{room}{fence}"


def table(align, heads, rows):
    """A Markdown table for the output of a cell; negative numbers get a minus sign in place of a hyphen.

    Parameters
    ----------
    align : str
        "l" or "r" for each column; numbers belong to the right.
    heads : list of str
        Head of each column, none of them empty, with its unit.
    rows : list of list

    Returns
    -------
    IPython.display.Markdown
    """
    from IPython.display import Markdown
    from tabulate import tabulate

    if not all(heads) or any(len(row) != len(align) for row in [heads, *rows]):
        raise ValueError(f"rows: expected {len(align)} cells in each row and no empty head, got {[heads, *rows]}")
    cells = [[re.sub(r"(?<![\w.])-(?=\d)", "\N{MINUS SIGN}", str(cell)) for cell in row] for row in rows]
    sides = [{"l": "left", "r": "right"}[side] for side in align]
    return Markdown(tabulate(cells, heads, tablefmt="pipe", colalign=sides, disable_numparse=True))
