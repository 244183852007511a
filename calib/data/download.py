"""Get the registered files into the data folder: fetched, checked, and only then put in place."""

import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import requests

from calib.data import sst2
from calib.data.registry import REGISTRY, DataUnavailable, data_folder, status

TIMEOUT = 30  # seconds without an answer


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
        reasons.append("there is no address to get it from")
    for url in entry.urls:
        host = urlsplit(url).netloc
        if host in unreachable:
            reasons.append(f"{host} cannot be reached")
            continue
        try:
            _download(entry, url, target)
            return "downloaded"
        except (requests.ConnectionError, requests.Timeout):
            unreachable.add(host)
            reasons.append(f"{host} cannot be reached")
        except (OSError, ValueError) as error:  # an HTTP error, a folder that is read-only; a wrong hash
            reasons.append(f"{url}: {' '.join(str(error).split())}")
    raise DataUnavailable(f"{name}: {'; '.join(reasons)}")


def _download(entry, url, target):
    """Download into a scratch folder beside the target, check, and move into place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as scratch:
        known = None if entry.content_sha256 else f"sha256:{entry.sha256}"
        path = Path(pooch.retrieve(url, known, fname=target.name, path=scratch, downloader=downloader))
        if entry.content_sha256:
            path.write_bytes(sst2.extract(path.read_bytes()))
            problem = entry.problem(path.read_bytes())
            if problem:
                raise ValueError(problem)
        path.replace(target)


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
    pooch.get_logger().setLevel("ERROR")
    missing, unreachable = [], set()
    for name, entry in REGISTRY.items():
        try:
            report(name, fetch(name, unreachable))
        except DataUnavailable as error:
            report(name, str(error))
            if not entry.optional:
                missing.append(name)
    return missing
