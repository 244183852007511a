"""The registry of data files, the folder they lie in, and the check that each passes before it is read."""

import hashlib
import os
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from importlib.resources import files
from pathlib import Path


class DataUnavailable(Exception):
    """A data file is missing or is not the registered one: names the file, where it was looked for, and what to do."""


@dataclass(frozen=True)
class Source:
    """Where a group of files comes from, and on what terms.

    Attributes
    ----------
    title : str
    what : str
        What the files hold.
    licence : str
    redistribution : str
        What the licence says about passing the files on, in short.
    citation : str
    references : tuple of str
        Keys of the book's bibliography.
    """

    title: str
    what: str
    licence: str
    redistribution: str
    citation: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class DataFile:
    """One registered file.

    Attributes
    ----------
    name : str
        Path inside the data folder.
    source : Source
    urls : tuple of str
        Pinned addresses, tried in order; none where there is no single address.
    size : int
        Bytes.
    sha256 : str
    content_sha256 : str or None
        Where it is set, the content is checked in place of the bytes of the file.
    cut_by : str or None
        Module of `calib.data` whose `extract` cuts the file out of the larger one that the addresses give, and whose
        `problem` checks its content; it is set together with `content_sha256`.
    size_at_address : int or None
        Most bytes of that larger file.
    optional : bool
        True where no section of the book needs the file.
    how : str or None
        How to get a file that has no address.
    """

    name: str
    source: Source
    urls: tuple[str, ...]
    size: int
    sha256: str
    content_sha256: str | None = None
    cut_by: str | None = None
    size_at_address: int | None = None
    optional: bool = False
    how: str | None = None

    def problem(self, content):
        """Say what is wrong with the bytes of a file, or None if it is the registered one."""
        if self.content_sha256:
            problem = self._cutter().problem(content, self.content_sha256)
            own = "a table of other logits, perhaps your own? `calib fit` reads those"
            cause = own if self._cutter().is_table(content) else likely_cause(content, self.size)
            return problem and f"{problem}, found {len(content):,} bytes ({cause})"
        found = hashlib.sha256(content).hexdigest()
        if found == self.sha256:
            return None
        expected = f"expected {self.size:,} bytes with SHA-256 {self.sha256}"
        return f"{expected}, found {len(content):,} bytes with {found} ({likely_cause(content, self.size)})"

    def extract(self, received):
        """The bytes of the file, from those that an address gave."""
        return self._cutter().extract(received) if self.cut_by else received

    def _cutter(self):
        return import_module(f"calib.data.{self.cut_by}")


def load_registry():
    """Read ``registry.toml``: {name: DataFile}."""
    table = tomllib.loads(files("calib.data").joinpath("registry.toml").read_text(encoding="utf-8"))
    sources = {
        key: Source(**{**fields, "references": tuple(fields["references"])}) for key, fields in table["sources"].items()
    }
    registry = {}
    for name, fields in table["files"].items():
        known = {**fields, "source": sources[fields["source"]], "urls": tuple(fields["urls"])}
        registry[name] = DataFile(name, **known)
    return registry


REGISTRY = load_registry()


def matching(patterns):
    """Registered files with a name like one of these patterns, as ``runs.yaml`` gives the data of a run.

    Examples
    --------
    >>> [file.name for file in matching(["chaosnli/*.jsonl"])]
    ['chaosnli/chaosNLI_mnli_m.jsonl', 'chaosnli/chaosNLI_snli.jsonl']
    """
    return [file for name, file in REGISTRY.items() if any(fnmatch(name, pattern) for pattern in patterns)]


def data_folder():
    """Folder of the data: ``$CALIB_DATA``, else ``data`` in the checkout, else the user's cache."""
    if os.environ.get("CALIB_DATA"):
        return Path(os.environ["CALIB_DATA"]).expanduser().resolve()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").exists():
        return checkout / "data"
    import pooch

    return Path(pooch.os_cache("calib"))


def read(name):
    """Return the bytes of a registered file, checked.

    Raises
    ------
    DataUnavailable
        If the file is missing or is not the registered one.
    """
    entry = REGISTRY[name]
    path = data_folder() / name
    remedy = "get it with `make data` (or `python -m calib data`), or set CALIB_DATA to a folder that has it"
    if not entry.urls:
        remedy = f"it has no address to get it from: {entry.how}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataUnavailable(f"{name}: not found, looked for {path} ({error.strerror}); {remedy}") from None
    problem = entry.problem(content)
    if problem:
        raise DataUnavailable(f"{name}: not the registered file, found {path}: {problem}; {remedy}")
    return content


def status(name):
    """State of a registered file in the data folder: "ok", "missing", or what is wrong with it."""
    try:
        content = (data_folder() / name).read_bytes()
    except OSError:
        return "missing"
    return REGISTRY[name].problem(content) or "ok"


def likely_cause(content, size):
    """Guess why a file is not the registered one, from its first bytes and its length."""
    head = content[:200].lstrip().lower()
    if not content:
        return "an empty file: a download that broke off?"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer: the file itself was not fetched"
    if head.startswith((b"<!doctype", b"<html")):
        return "a web page: an error or log-in page saved as data?"
    if content.replace(b"\r\n", b"\n") != content and len(content) > size:
        return "line ends turned to CRLF?"
    if len(content) < size:
        return "truncated: a download that broke off?"
    return "another version, or a damaged file"
