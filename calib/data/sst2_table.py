"""The per-example file of SST-2: ``idx,label,logit_0,logit_1``, and its extraction from the published log."""

import hashlib

import numpy as np

CLASSES = ("negative", "positive")
HEADER = ["idx", "label", "logit_0", "logit_1"]


def parse(content):
    """Read the bytes of a per-example file.

    Returns
    -------
    ids : ndarray int64 (n,)
    labels : ndarray int64 (n,)
    logits : ndarray float32 (n, 2)
    """
    lines = content.decode("utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    if len(rows) < 2 or rows[0] != HEADER or any(len(row) != 4 for row in rows):
        raise ValueError(f"expected a table with the columns {','.join(HEADER)} and at least one row")
    ids, labels, *logits = zip(*rows[1:])
    try:
        return np.array(ids, dtype=np.int64), np.array(labels, dtype=np.int64), np.array(logits, dtype=np.float32).T
    except OverflowError as error:
        raise ValueError("expected whole numbers for idx and label") from error


def dump(ids, labels, logits):
    """Write a per-example file: the shortest decimals that read back as the same float32 number."""
    lines = [f"{i},{label},{float(a)!r},{float(b)!r}" for i, label, (a, b) in zip(ids, labels, logits)]
    return ("\n".join([",".join(HEADER), *lines]) + "\n").encode()


def extract(content):
    """Cut the per-example file out of the published log: its rows with batch 1 and variant cpu_fp32."""
    header, *rows = [line.split(",") for line in content.decode("utf-8").splitlines()] or [[]]
    if not {"batch", "variant", *HEADER} <= set(header):
        raise ValueError(f"expected the columns batch, variant, {', '.join(HEADER)}, found {','.join(header)[:80]}")
    rows = [dict(zip(header, row)) for row in rows if len(row) == len(header)]
    chosen = [row for row in rows if (row["batch"], row["variant"]) == ("1", "cpu_fp32")]
    if not chosen:
        raise ValueError("expected rows with batch 1 and variant cpu_fp32, found none")
    chosen.sort(key=lambda row: int(row["idx"]))
    return ("\n".join([",".join(HEADER), *(",".join(row[name] for name in HEADER) for row in chosen)]) + "\n").encode()


def content_sha256(labels, logits):
    """SHA-256 of the labels as little-endian int64, then the logits as little-endian float32, in C order."""
    digest = hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8"))
    digest.update(np.ascontiguousarray(logits, dtype="<f4"))
    return digest.hexdigest()


def is_table(content):
    """Whether the bytes are a per-example file, of whatever logits."""
    try:
        parse(content)
    except ValueError:
        return False
    return True


def problem(content, expected):
    """Say what is wrong with the bytes of a per-example file, or None if its content is the registered one."""
    try:
        ids, labels, logits = parse(content)
    except ValueError as error:
        return f"not a per-example file ({error})"
    if not np.array_equal(ids, np.arange(len(ids))):
        return "expected the examples in ascending order of idx, from 0"
    found = content_sha256(labels, logits)
    return None if found == expected else f"expected content with SHA-256 {expected}, found {found}"
