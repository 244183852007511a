"""How a run came about: parameters, time, memory, versions, data, commit. Shown on the status page."""

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "torch",
    "torchvision",
    "transformers",
    "papermill",
    "jupytext",
    "jupyter-book",
)


def provenance(source, parameters, data, seconds, peak_mb):
    """Describe a run that has just ended, by names that the status page shows.

    Parameters
    ----------
    source : path
        The notebook.
    parameters : dict
    data : dict of str to path
        The data files that the run may read, by their names in the data folder.
    seconds, peak_mb : float
        Wall time, and largest resident memory of the kernel in megabytes.

    Returns
    -------
    dict
        Of values that JSON can hold; ``commit`` is None outside of a git checkout.
    """
    return {
        "notebook": str(source),
        "parameters": parameters,
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_mb),
        **circumstances(),
        "data": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in data.items()},
        "fresh": True,
    }


def circumstances():
    """Day, commit, machine and versions, of the notebook runs and of the training runs."""
    commit = git("rev-parse", "HEAD") if _in_own_repository() else None
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "changed": commit is not None
        and bool(git("status", "--porcelain", "--", "calib", "notebooks", "requirements.txt")),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(name):
    """Version of a package, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _in_own_repository():
    """Whether the package lies in the checkout of this project, and not in an environment inside of another one."""
    top = git("rev-parse", "--show-toplevel")
    return top is not None and Path(top).resolve() == CHECKOUT


def git(*arguments, folder=None):
    """What git says in a folder, by default that of the package; None where there is no git or no repository."""
    command, folder = ["git", *arguments], folder or CHECKOUT
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
