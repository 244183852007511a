"""Get the registered files into the data folder: fetched, checked, and only then put in place."""

import queue
import shutil
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import requests
from urllib3.exceptions import MaxRetryError

from calib.data.registry import REGISTRY, DataUnavailable, data_folder, status

TIMEOUT = 30  # seconds without an answer
DEADLINE = 600  # seconds for one file


def fetch(name, unreachable=None):
    """Make sure that a registered file is in the data folder, downloading it if it is missing or wrong.

    A wrong file is replaced only by the right one.

    Parameters
    ----------
    name : str
        Path inside the data folder.
    unreachable : set of str, optional
        Hosts that gave no answer before; they are not asked again, and new ones are added.

    Returns
    -------
    str
        "there" if nothing had to be done, else "downloaded".

    Raises
    ------
    DataUnavailable
        If no address gave the registered file; the message has the reason for each.
    """
    unreachable = set() if unreachable is None else unreachable
    before = status(name)
    if before == "ok":
        return "there"
    entry, target = REGISTRY[name], data_folder() / name
    reasons = [] if before == "missing" else [f"the file there is not the registered one: {before}"]
    if not entry.urls:
        reasons.append(f"there is no address to get it from: {entry.how}")
    for url in entry.urls:
        host = urlsplit(url).netloc
        if host in unreachable:
            reasons.append(f"{host} cannot be reached")
            continue
        try:
            _download(entry, url, target)
            return "downloaded"
        except requests.ConnectionError as error:
            if isinstance(error.args[0], MaxRetryError):  # no connection at all: do not ask this host again
                unreachable.add(host)
            reasons.append(f"{host} cannot be reached")
        except (OSError, ValueError) as error:  # an HTTP error, a folder that is read-only; a wrong hash
            reasons.append(f"{url}: {' '.join(str(error).split())}")
    raise DataUnavailable(f"{name}: {'; '.join(reasons)}")


def _download(entry, url, target):
    """Download into a scratch folder beside the target, check, and move into place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for rest in target.parent.glob(".download-*"):  # of a download that was killed
        if time.time() - rest.stat().st_mtime > DEADLINE:
            shutil.rmtree(rest, ignore_errors=True)

    def downloader(address, file, _):
        _stream(address, file, entry.size_at_address or entry.size)

    pooch.get_logger().setLevel("ERROR")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as scratch:
        known = None if entry.content_sha256 else f"sha256:{entry.sha256}"
        path = Path(pooch.retrieve(url, known, fname=target.name, path=scratch, downloader=downloader))
        content = entry.extract(path.read_bytes())
        problem = entry.problem(content)
        if problem:
            raise ValueError(problem)
        path.write_bytes(content)
        path.replace(target)


def _stream(url, path, limit):
    """Write the answer of an address to a file; stop where it is longer, slower or elsewhere than it may be.

    A server may give byte after byte, of its headers too, and never keep anyone waiting long: so the clock runs here,
    and the answer comes in a thread of its own.
    """
    outcome = queue.Queue()
    threading.Thread(target=_receive, args=(url, path, limit, outcome), daemon=True).start()
    try:
        error = outcome.get(timeout=DEADLINE)
    except queue.Empty:
        raise ValueError(f"not complete after {DEADLINE} seconds") from None
    if error:
        raise error


def _receive(url, path, limit, outcome):
    try:
        _write_answer(url, path, limit)
        outcome.put(None)
    except Exception as error:  # it is raised where the clock runs
        outcome.put(error)


def _write_answer(url, path, limit):
    with requests.get(url, stream=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        if urlsplit(answer.url).netloc != urlsplit(url).netloc:
            raise ValueError(f"it leads to another host, {urlsplit(answer.url).netloc}")
        received = 0
        with open(path, "wb") as file:
            for part in answer.iter_content(1 << 16):
                received += len(part)
                if received > limit:
                    raise ValueError(f"expected {limit:,} bytes at most, got more")
                file.write(part)


def fetch_all(report):
    """Fetch every registered file, one after the other; go on after a failure.

    Parameters
    ----------
    report : callable
        Called as ``report(name, outcome)`` after each file, with "there", "downloaded", or the reason for a failure.

    Returns
    -------
    list of str
        Names of needed files that could not be had.
    """
    missing, unreachable = [], set()
    for name, entry in REGISTRY.items():
        try:
            report(name, fetch(name, unreachable))
        except DataUnavailable as error:
            report(name, str(error))
            if not entry.optional:
                missing.append(name)
    return missing
