"""The runs of the book, from ``notebooks/runs.yaml``: the one reader of that file, and all that follows from a run."""

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from calib.data import registry

KEYS = ("notebook", "parameters", "data", "writes", "after", "reads", "extra", "precision")


@dataclass(frozen=True)
class Run:
    """One execution of a notebook: a page of the book.

    Attributes
    ----------
    name : str
        Its page is ``book/notebooks/<name>.ipynb``.
    notebook : str
        ``notebooks/<notebook>.py``.
    parameters : dict
        In place of the defaults of the notebook.
    data : tuple of str
        Patterns of registered data files.
    writes : dict
        Parameters that name files which the book's own run keeps.
    after : tuple of str
        Runs whose numbers it reads.
    reads : tuple of str
        Patterns of other files of the repository.
    extra : str or None
        The extra of the package that it needs.
    precision : {"double", "single"}
        In which the numbers of the run of results of its name are computed; see `calib.pages.verify`.
    """

    name: str
    notebook: str
    parameters: dict = field(default_factory=dict)
    data: tuple = ()
    writes: dict = field(default_factory=dict)
    after: tuple = ()
    reads: tuple = ()
    extra: str | None = None
    precision: str = "double"

    @property
    def source(self):
        """The notebook, relative to the checkout."""
        return f"notebooks/{self.notebook}.py"

    @property
    def page(self):
        """The executed notebook."""
        return f"book/notebooks/{self.name}.ipynb"

    @property
    def numbers(self):
        """What it recorded."""
        return f"_build/results/{self.name}.json"

    @property
    def status(self):
        """How it came about."""
        return f"_build/status/{self.name}.json"

    @property
    def needs(self):
        """Numbers of other runs that it reads."""
        return [f"_build/results/{name}.json" for name in self.after]

    @property
    def files(self):
        """Registered data files that it reads."""
        return registry.matching(self.data)

    @property
    def missing(self):
        """Names of these that are not in the data folder, or are not the registered ones."""
        return [file.name for file in self.files if registry.status(file.name) != "ok"]

    @property
    def stands_alone(self):
        """Whether it needs nothing but the package and its data, so that its published notebook runs anywhere."""
        return not self.after and not self.reads

    @property
    def options(self):
        """Its parameters for the command line."""
        given = (self.parameters | self.writes).items()
        return " ".join(f"-p {shlex.quote(f'{name}={json.dumps(value)}')}" for name, value in given)

    def may_read(self):
        """Files of the checkout that it may read: those, numbers of other runs, and what it writes itself."""
        written = [str(PurePosixPath(self.source).parent / path) for path in self.writes.values()]
        return [*self.repository_files(), *self.needs, *map(os.path.normpath, written)]

    def repository_files(self, root="."):
        """Other files of the repository that it reads."""
        return [str(path.relative_to(root)) for pattern in self.reads for path in sorted(Path(root).glob(pattern))]


def load_runs(path="notebooks/runs.yaml"):
    """All runs by name, in the order of the file.

    Raises
    ------
    ValueError
        If the file is none, or a run has an unknown key or no notebook, or comes after one that is not there.
    """
    import yaml

    entries = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: expected runs by name, found {type(entries).__name__}")
    runs = {}
    for name, entry in entries.items():
        unknown = sorted(set(entry) - set(KEYS))
        if unknown or "notebook" not in entry:
            raise ValueError(f"{path}: run {name}: expected a notebook and keys of {KEYS}, found {sorted(entry)}")
        runs[name] = Run(
            name, **{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        )
    for run in runs.values():
        lost = [name for name in run.after if name not in runs]
        if lost:
            raise ValueError(f"{path}: run {run.name} comes after {', '.join(lost)}, which is not there")
    return runs
