"""Run a command while no other one runs in this folder; a killed command leaves no lock behind.

Needs only the standard library: it runs before the environment is there.
"""

import fcntl
import os
import sys
from pathlib import Path

lock, *command = sys.argv[1:]
try:
    Path(lock).parent.mkdir(exist_ok=True)
    handle = os.open(lock, os.O_CREAT | os.O_RDWR)
except OSError as error:
    sys.exit(
        f"error: a build writes into {Path(lock).parent.resolve()}, which failed ({error.strerror}); use a copy of "
        "this folder where you may write"
    )
try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("another build is at work in this folder; waiting for it to end", file=sys.stderr, flush=True)
    fcntl.flock(handle, fcntl.LOCK_EX)
with open(f"{lock}.jobs", "w") as jobs:  # held by each job of a build, also by one that outlived its scheduler
    try:
        fcntl.flock(jobs, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("a job of a build that was killed is still at work; waiting for it to end", file=sys.stderr, flush=True)
        fcntl.flock(jobs, fcntl.LOCK_EX)
os.set_inheritable(handle, True)  # held until the command and all that it started have ended
os.execvp(command[0], command)  # noqa: S606
