"""Parameters of a notebook: what its ``parameters`` cell sets, and values of the same types from the command line."""

import ast
import re

WHOLE, NUMBER = r"[+-]?\d+", r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


def defaults_of(notebook):
    """Names that the cell tagged ``parameters`` sets, with their values; None where no cell has that tag.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_code_cell("bins = 15  # of the ECE", metadata={"tags": ["parameters"]})
    >>> defaults_of(nbformat.v4.new_notebook(cells=[cell]))
    {'bins': 15}
    """
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            assignments = [line for line in ast.parse(cell.source).body if isinstance(line, ast.Assign)]
            return {line.targets[0].id: ast.literal_eval(line.value) for line in assignments}
    return None


def read(assignments, defaults):
    """Values of assignments such as ``bins=20``, each of the type of the default of its name.

    Parameters
    ----------
    assignments : sequence of str
        ``name=value``, the value as in YAML.
    defaults : dict
        From `defaults_of`.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        Naming the parameter, what was expected and what came.

    Examples
    --------
    >>> read(["bins=20", "edges=[0, .5, 1]"], {"bins": 15, "edges": [0.0, 1.0]})
    {'bins': 20, 'edges': [0.0, 0.5, 1.0]}
    """
    import yaml

    values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not text:
            raise ValueError(
                f"parameters: expected name=value, got {assignment!r}; put quotes around a value with spaces"
            )
        if name in values:
            raise ValueError(f"parameter {name}: expected it once, got it twice")
        if name not in defaults:
            raise ValueError(f"unknown parameter {name}; the parameters are {', '.join(sorted(defaults))}")
        try:
            value = yaml.load(text, yaml.BaseLoader)  # noqa: S506 (text, lists and mappings only)
        except yaml.YAMLError as error:
            raise ValueError(
                f"parameter {name}: expected a value such as 0.5 or [1,2], got {text!r} ({error.problem}); "
                "put quotes around a value with spaces"
            ) from error
        except RecursionError:
            raise ValueError(
                f"parameter {name}: expected a value such as 0.5 or [1,2], got lists without end"
            ) from None
        default = defaults[name]
        values[name] = _typed(name, text if isinstance(default, str) and not isinstance(value, str) else value, default)
    return values


def _typed(name, value, default):
    """A value in the type of the default; YAML gave text, or lists of it."""
    if isinstance(default, list):
        if not isinstance(value, list):
            raise ValueError(f"parameter {name}: expected a list such as [1,2], got {value!r}")
        return [_typed(name, item, element) for item, element in zip(value, _elements(default, len(value)))]
    if not isinstance(value, str):
        raise ValueError(f"parameter {name}: expected one value such as {default!r}, got {value!r}")
    if default is None:
        return None if value in ("null", "None") else value
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise ValueError(f"parameter {name}: expected true or false, got {value!r}")
        return value.lower() == "true"
    if isinstance(default, str):
        return value
    whole = isinstance(default, int)
    if not re.fullmatch(WHOLE if whole else NUMBER, value, re.ASCII):
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"parameter {name}: expected {kind} such as {default}, got {value!r}")
    return int(value) if whole else float(value)


def _elements(default, length):
    """A default for each element of a list of this length: its own, or the last; one fraction makes all fractions."""
    if any(isinstance(element, float) for element in default):
        default = [float(element) for element in default]
    return [default[min(k, len(default) - 1)] for k in range(length)]
