"""Name a number once: it is glued into the prose of the book and saved to ``results.json``.

`record` shows each value as a MyST-NB glue output, so the executed notebook is the only place where the number is
kept; `collect` reads the numbers back from there.
"""

import ast
import json
import math
import re
import sys
from pathlib import Path

import numpy as np

from calib.data.whole import write_whole

GLUE = "application/papermill.record/text/plain"


def record(run, **values):
    """Record numbers under a run name; in a notebook they become glue keys ``<run>/<name>``.

    Parameters
    ----------
    run : str
        For example "six-examples", or "gap/cifar10h/resnet110/0/paper".
    **values : int, float, bool, str or NumPy scalar

    Returns
    -------
    dict
        The values as plain Python numbers.

    Raises
    ------
    ValueError
        If a value is not one number or string, or not finite.
    """
    plain = {name: _plain(f"{run}/{name}", value) for name, value in values.items()}
    _show({f"{run}/{name}": value for name, value in plain.items()})
    return plain


def glue(**values):
    """Glue values for the prose of one page only: their keys are the bare names, and they are not saved.

    For what is no result, such as the name of a data set, and for pages made by several runs of one notebook.
    """
    _show({name: _plain(name, value) for name, value in values.items()})


def collect(notebook):
    """Read back what an executed notebook recorded: {run: {name: value}}.

    Raises
    ------
    ValueError
        If one name was recorded twice with different values.
    """
    results = {}
    for key, value in glued(notebook).items():
        if "/" in key:
            run, name = key.rsplit("/", 1)
            results.setdefault(run, {})[name] = value
    return results


def glued(notebook):
    """All values that an executed notebook glued, by key; a key glued twice with different values is an error."""
    values = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if GLUE not in output.get("data", {}):
                continue
            key, value = output["metadata"]["scrapbook"]["name"], ast.literal_eval(output["data"][GLUE])
            if repr(values.setdefault(key, value)) != repr(value):
                raise ValueError(f"{key}: recorded twice, as {values[key]!r} and as {value!r}")
    return values


def resolve(text, values):
    """Put glued values in the place of the roles ``{glue:text}`key:format``` of a Markdown text.

    Then the executed notebook reads as it should outside of the book too. Roles that name another page stay.

    Raises
    ------
    KeyError
        If a key was not glued.

    Examples
    --------
    >>> resolve("ECE {glue:text}`run/ece:.1%`", {"run/ece": 0.129})
    'ECE 12.9%'
    """

    def value(role):
        key, _, form = role[1].partition(":")
        return role[0] if "::" in role[1] else format(values[key], form)

    return re.sub(r"\{glue:text\}`([^`]+)`", value, text)


def merge(parts):
    """Join results of several pages: {run: {name: value}}. Pages may share a run, but no name with two values.

    Raises
    ------
    ValueError
        If two pages recorded different values under one name of one run.

    Examples
    --------
    >>> merge([{"run": {"n": 1}}, {"run": {"ece": 0.25}, "other": {"n": 2}}])
    {'run': {'n': 1, 'ece': 0.25}, 'other': {'n': 2}}
    """
    merged = {}
    for part in parts:
        for run, values in part.items():
            known = merged.setdefault(run, {})
            for name, value in values.items():
                if repr(known.setdefault(name, value)) != repr(value):
                    raise ValueError(f"{run}/{name}: recorded by two pages, as {known[name]!r} and as {value!r}")
    return merged


def load(path):
    """Read results that a build saved: {run: {name: value}}."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: expected what a build saved, found no file; run `make book`") from error
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON that a build saved, found something else ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected names and values, found {type(found).__name__}")
    return found


def _once(pairs):
    """The object of these names and values; a name that stands twice would hide one of them."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _refuse_constant(text):
    raise ValueError(f"{text} is no number")


def load_numbers(path):
    """Read results as `load` does, and refuse what is no result: nothing at all, or a value that `record` refuses.

    Raises
    ------
    ValueError
    """
    found = load(path)
    for run, values in found.items():
        if not isinstance(values, dict):
            raise ValueError(f"{path}: {run}: expected names and values, found {type(values).__name__}")
        for name, value in values.items():
            _plain(f"{path}: {run}/{name}", value)
    if not any(found.values()):
        raise ValueError(f"{path}: expected numbers, found none")
    return found


def load_runs(folder, runs):
    """Read what some runs of a build recorded, each in a file of its name in the folder: {run: {name: value}}."""
    return merge(load(Path(folder) / f"{run}.json") for run in runs)


def save(results, path):
    """Write results with sorted keys, whole or not at all."""
    path = Path(path)
    text = json.dumps(results, indent=1, sort_keys=True, allow_nan=False) + "\n"
    write_whole({path: lambda file: file.write(text.encode())})


def _plain(key, value):
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"{key}: expected one number or string, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{key}: expected a finite number, got {value}")
    return value


def _show(values):
    if "IPython" not in sys.modules or sys.modules["IPython"].get_ipython() is None:
        return
    from IPython.display import display

    for key, value in values.items():
        metadata = {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}}
        display({GLUE: repr(value)}, metadata=metadata, raw=True)
