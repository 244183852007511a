"""Pinned files of the Hugging Face hub: from its cache, from a folder, or downloaded; each checked by SHA-256."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from calib.data.registry import DataUnavailable

TIMEOUT = 5  # seconds for the first answer of the hub


@dataclass(frozen=True)
class HubRepository:
    """Files of one repository on the hub, pinned.

    Attributes
    ----------
    name : str
    revision : str
        Hash of a commit.
    kind : {"model", "dataset"}
    files : dict
        SHA-256 of each file that is used.
    """

    name: str
    revision: str
    kind: str
    files: dict[str, str]


def fetch(repository, name, folder=None):
    """Path of one pinned file, checked: as it lies there, or else from the hub."""
    path = _find(repository, name, folder) or _download(repository, name, folder)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    expected = repository.files[name]
    if found != expected:
        raise DataUnavailable(
            f"{name}: not the pinned file of {repository.name}: expected SHA-256 {expected}, found {found} in {path}; "
            "delete it and run again"
        )
    return path


def _find(repository, name, folder):
    """Path of a file that is there already, or None."""
    from huggingface_hub import try_to_load_from_cache

    if folder is not None:
        path = Path(folder) / name
        return path if path.is_file() else None
    path = try_to_load_from_cache(repository.name, name, revision=repository.revision, repo_type=repository.kind)
    return Path(path) if isinstance(path, str) else None


def _download(repository, name, folder):
    """Download one file; one short request comes first, because `hf_hub_download` would retry for minutes."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HTTPError  # of httpx or httpx2, whichever the library uses

    pin = {"revision": repository.revision, "repo_type": repository.kind}
    url = hf_hub_url(repository.name, name, **pin)
    try:
        get_hf_file_metadata(url, token=False, timeout=TIMEOUT)
        return Path(hf_hub_download(repository.name, name, **pin, token=False, local_dir=folder))
    except (OSError, HTTPError, RuntimeError) as error:  # RuntimeError: from the transfer of large files
        raise DataUnavailable(
            f"{name}: not found, looked for {repository.name} at revision {repository.revision} "
            f"in {folder or constants.HF_HUB_CACHE} and at {url} ({' '.join(str(error).split())}); "
            "run it where the hub can be reached, or copy the hub's cache (HF_HOME) from such a machine"
        ) from error


def fetch_model(name, revision=None):
    """Folder of a model that is given as a folder, or by its name on the hub; see `calib.models.text.FILES`.

    Parameters
    ----------
    name : str
        A folder, or a name such as "google-bert/bert-base-uncased".
    revision : str, optional
        Hash of a commit on the hub; by default its newest.

    Returns
    -------
    Path

    Raises
    ------
    DataUnavailable
        If it is neither in the hub's cache nor to be had from the hub.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError

    from calib.models.text import FILES

    if Path(name).is_dir():
        return Path(name)
    wanted = {"revision": revision, "allow_patterns": list(FILES), "token": False}
    try:
        try:
            folder = Path(snapshot_download(name, **wanted, local_files_only=True))
            if (folder / "model.safetensors").exists():
                return folder
        except LocalEntryNotFoundError:
            pass
        HfApi().model_info(name, revision=revision, timeout=TIMEOUT, token=False)  # fails soon, where the next retries
        return Path(snapshot_download(name, **wanted))
    except (OSError, HTTPError, RuntimeError, HFValidationError) as error:
        raise DataUnavailable(
            f"{name}: not found, looked for a folder of that name, in {constants.HF_HUB_CACHE} and at "
            f"{constants.ENDPOINT} ({' '.join(str(error).split())[:200]}); run it where the hub can be reached, copy "
            "the hub's cache (HF_HOME) from such a machine, or name a folder that holds the checkpoint"
        ) from error
