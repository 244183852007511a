"""Files written whole or not at all."""

import os


def write_whole(files):
    """Write files of one folder, all whole or none: each is filled beside its path, then all are put in place.

    Killed between two of them, the last is missing: where it is, the others are of the same run.

    Parameters
    ----------
    files : dict of Path to callable
        Each is called with an open binary file.
    """
    *_, last = files
    scratch = {path: path.with_name(f"{path.name}.{os.getpid()}.part") for path in files}
    last.parent.mkdir(parents=True, exist_ok=True)
    try:
        for path, write in files.items():
            _fill(path, scratch[path], write)
        if len(files) > 1:
            last.unlink(missing_ok=True)
        for path, whole in scratch.items():
            whole.replace(path)
    finally:
        for rest in scratch.values():
            rest.unlink(missing_ok=True)
    folder = os.open(last.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(path, scratch, write):
    try:
        with open(scratch, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say for which file
        raise
