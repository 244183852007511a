"""What an output of the build was made from: kept beside it, and checked before it is used.

A date does not tell an output of this build from one that something else wrote later: a run that outlived its build, an
editor, a disk that lost its end. Its content does.
"""

import hashlib
import json
import sys
from pathlib import Path

from calib.data.whole import write_whole


def digest(*paths):
    """SHA-256 of the contents of files, in this order."""
    return hashlib.sha256(b"".join(hashlib.sha256(Path(path).read_bytes()).digest() for path in paths)).hexdigest()


def seal(made_from, page, numbers=None):
    """What the status of a run keeps: digests of what it was made from, and of what it wrote."""
    return {"made_from": made_from, "wrote": {"page": digest(page), "numbers": numbers and digest(numbers)}}


def problem(run, made_from):
    """Say what is wrong with the output of a run.

    Parameters
    ----------
    run : calib.pages.runs.Run
    made_from : str
        Digest of what a run would read now.

    Returns
    -------
    str or None
        None where the output is what the run wrote, from what it would read now. Empty where only that has changed, or
        the run never ended, which is nothing to speak of.
    """
    try:
        status = json.loads(Path(run.status).read_text(encoding="utf-8"))
        found = {"page": digest(run.page), "numbers": digest(run.numbers)}
    except FileNotFoundError:
        return ""
    except ValueError:
        return f"{run.status} is damaged"
    if status.get("made_from") != made_from:
        return ""
    changed = [getattr(run, name) for name in found if found[name] != status["wrote"][name]]
    return f"{changed[0]} is not what the run wrote" if changed else None


def seal_site(html, seals):
    """Keep the digest of every file of the built site."""
    found = json.dumps(_digests(html), indent=0)
    write_whole({Path(seals): lambda file: file.write(found.encode())})


def site_problem(html, seals):
    """Say which file of the built site is not what the build wrote, or None. A site without seals is not whole."""
    try:
        expected = json.loads(Path(seals).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return f"{html} is not whole"
    found = _digests(html)
    changed = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return f"{html}/{changed[0]} is not what the build wrote" if changed else None


def _digests(folder):
    folder = Path(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest(path) for path in files}


def held(lock):
    """Beginning of the shell command of each job of a build: it holds a lock until all that it started has ended.

    The next build waits for it (``book/_tools/alone.py``), so that a job which outlives its scheduler overwrites
    nothing that was made after it.
    """
    hold = f"{sys.executable!r} -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_SH)'"
    return f"set -euo pipefail; mkdir -p _build; exec 9> {lock}.jobs; {hold}; "
