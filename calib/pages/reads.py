"""Which files of the checkout and of the data folder a notebook opens to read, so that its run can be held to them.

A hook in the kernel notes them. Processes that the notebook itself starts are not seen.
"""

from pathlib import Path

from calib.data.registry import data_folder
from calib.pages.provenance import CHECKOUT

FREE = ("calib/", ".venv", "_build/cache/")  # the package, which every run is made from, and what programs keep
STARTUP = """
import os, sys


def _watch(roots, note=open({log!r}, "a", buffering=1, encoding="utf-8"), abspath=os.path.abspath):
    def hook(event, arguments):
        if event == "open" and isinstance(arguments[0], str):
            path, mode, flags = arguments
            if not (mode and set(mode) & set("wax+")) and not flags & (os.O_WRONLY | os.O_RDWR):
                path = abspath(path)
                if path.startswith(roots):
                    note.write(path + "\\n")

    sys.addaudithook(hook)


_watch({roots!r})
del _watch
"""


def watch(ipython_folder):
    """Let kernels with this folder of settings note what they open; returns the file in which they do."""
    startup, log = Path(ipython_folder) / "profile_default/startup/00-reads.py", Path(ipython_folder) / "reads.txt"
    startup.parent.mkdir(parents=True)
    roots = tuple(f"{folder}/" for folder in (CHECKOUT, data_folder()))
    startup.write_text(STARTUP.format(log=str(log), roots=roots), encoding="utf-8")
    log.touch()
    return log


def undeclared(opened, declared):
    """Files among those that were opened which a run does not declare, relative to the checkout or the data folder.

    Parameters
    ----------
    opened : iterable of str
    declared : iterable of str
        Relative in the same way.
    """
    found = set()
    for path in map(Path, opened):
        if path.is_relative_to(data_folder()):
            found.add(path.relative_to(data_folder()).as_posix())
        elif not path.relative_to(CHECKOUT).as_posix().startswith(FREE) and not path.is_dir():
            found.add(path.relative_to(CHECKOUT).as_posix())
    return sorted(found - set(declared))
