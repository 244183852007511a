"""The one data type, splits by hash, overlap; and what `import calib` costs."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from calib import Predictions, count_overlap
from calib.predictions import hash_order


def make(n=6, names=str):
    """Predictions whose every field shows the number of its example."""
    i = np.arange(n)
    return Predictions(
        ids=[names(k) for k in i.tolist()],
        logits=np.column_stack([i, -i, 0 * i]).astype(np.float32),
        labels=i % 3,
        votes=np.column_stack([i + 1, 2 * i, 0 * i + 40]),
        class_names=["entailment", "neutral", "contradiction"],
    )


def numbers_of(predictions):
    """The number of each example, after checking that all fields agree on it."""
    i = predictions.logits[:, 0].astype(int)
    assert predictions.ids.tolist() == [str(k) for k in i]
    np.testing.assert_array_equal(predictions.labels, i % 3)
    np.testing.assert_array_equal(predictions.votes, np.column_stack([i + 1, 2 * i, 0 * i + 40]))
    assert predictions.class_names == ("entailment", "neutral", "contradiction")
    return i.tolist()


@pytest.mark.parametrize(
    "rows, expected",
    [([4, 1], [4, 1]), (slice(1, None, 2), [1, 3, 5]), (np.arange(6) < 2, [0, 1]), ([3, -1], [3, 5])],
    ids=["indices", "slice", "mask", "negative"],
)
def test_select_keeps_all_fields_aligned(rows, expected):
    assert numbers_of(make().select(rows)) == expected


def test_split_cuts_consecutive_parts():
    assert [numbers_of(part) for part in make().split(1, 3, 2)] == [[0], [1, 2, 3], [4, 5]]


def test_split_by_key_follows_the_hashes_whatever_the_row_order():
    def digest(k):
        return hashlib.sha256(f"some-key:{k}".encode()).hexdigest()

    expected = sorted(range(50), key=digest)
    shuffled = make(50).select(np.random.default_rng(0).permutation(50))
    for predictions in (make(50), shuffled):
        first, second = predictions.split(20, 30, key="some-key")
        assert numbers_of(first) + numbers_of(second) == expected
    assert hash_order(np.arange(50), "some-key").tolist() == expected, "numbers and their digits hash alike"
    assert hash_order(np.arange(50), "another-key").tolist() != expected


def test_without_drops_the_named_ids_and_ignores_strangers():
    assert numbers_of(make().without(["4", "1", "nobody"])) == [0, 2, 3, 5]
    assert numbers_of(make().without([])) == list(range(6))
    assert make(4, names=int).without([0, 2]).ids.tolist() == [1, 3]


def test_fields_that_are_none_stay_none():
    bare = Predictions(ids=[7, 8, 9], logits=np.zeros((3, 2)))
    for part in (bare.select([0, 2]), bare.without([8]), *bare.split(2, 1, key="k")):
        assert (part.labels, part.votes, part.class_names) == (None, None, None)
    with pytest.raises(ValueError, match=r"^distributions: these predictions have no votes"):
        _ = bare.distributions


def test_votes_are_divided_by_the_sum_of_their_own_row():
    votes = [[47, 0, 0], [20, 30, 1], [60, 0, 3]]
    distributions = Predictions(range(3), np.zeros((3, 3)), votes=votes).distributions
    np.testing.assert_array_equal(distributions, [[1, 0, 0], [20 / 51, 30 / 51, 1 / 51], [60 / 63, 0, 3 / 63]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_keep_their_type_and_masks(dtype):
    logits = np.array([[1, -np.inf], [0, 2]], dtype=dtype)
    predictions = Predictions(["a", "b"], logits)
    assert predictions.logits.dtype == dtype
    np.testing.assert_array_equal(predictions.logits, logits)
    assert (len(predictions), predictions.n_classes) == (2, 2)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("ids", ["a", "b"], r"expected 3 integers or strings, got shape \(2,\) of type <U1"),
        ("ids", [[1], [2], [3]], r"expected 3 integers or strings, got shape \(3, 1\)"),
        ("ids", [1.0, 2.0, 3.0], r"expected 3 integers or strings, got shape \(3,\) of type float64"),
        ("ids", ["a", "b", "a"], r"expected unique names, got .*'a'.* 2 times"),
        ("ids", [5, 5, 5], r"expected unique names, got .*5.* 3 times"),
        ("labels", [0, 1], r"expected shape \(3,\), got shape \(2,\)"),
        ("labels", [[0], [1], [0]], r"expected shape \(3,\), got shape \(3, 1\) .* pass labels\[:, 0\]"),
        ("labels", [0, 1, 2], r"expected values from 0 to 1, got 2 in row 2"),
        ("labels", [0.0, 1.0, 1.0], r"expected integers, got shape \(3,\) of type float64"),
        ("votes", [[1, 0], [0, 0], [0, 0]], r"expected .* at least one vote.*, got \[0 0\] in row 1"),
        ("votes", [[1, 0], [0, 1], [-1, 5]], r"expected counts of 0 or more.*, got \[-1 +5\] in row 2"),
        ("votes", [[0.5, 0.5]] * 3, r"expected integers \(3, 2\), got shape \(3, 2\) of type float64"),
        ("votes", [[1, 0, 0]] * 3, r"expected integers \(3, 2\), got shape \(3, 3\)"),
        ("class_names", ["a", "b", "c"], r"expected 2 names, got 3"),
        ("class_names", {"a", "b"}, r"expected a list of names, .*, got a set"),
        ("votes", np.ma.masked_equal([[9, 1], [2, 3], [1, 1]], 9), r"expected an array without masked entries"),
    ],
)
def test_bad_fields_are_refused_by_name_and_row(field, value, message):
    good = {"ids": ["a", "b", "c"], "logits": np.zeros((3, 2))}
    with pytest.raises(ValueError, match=f"^{field}: {message}"):
        Predictions(**{**good, field: value})


@pytest.mark.parametrize("sizes", [(), (2,), (2, 3), (4, 3), (0, 6), (7, -1)])
def test_split_sizes_must_add_up(sizes):
    with pytest.raises(ValueError, match=r"^sizes: expected numbers above 0 that add up to 6, got \("):
        make().split(*sizes)


def test_overlap_raises_unless_it_is_declared_and_is_counted():
    fitted, evaluated = make().select([0, 1, 2]), make().select([5, 2, 1])
    with pytest.raises(ValueError, match=r"expected no example in both, got 2, the first .*'1'.*; remove them"):
        count_overlap(fitted, evaluated)
    assert count_overlap(fitted, evaluated, declared=True) == 2
    assert count_overlap(fitted, evaluated.without(fitted.ids)) == 0


HEAVY = ("torch", "sklearn", "scipy", "matplotlib", "pooch", "pandas", "IPython")
MEASURE = f"""
import sys, time
start = time.perf_counter()
import calib
print(time.perf_counter() - start, *(name for name in {HEAVY} if name in sys.modules))
"""


def test_import_is_quick_and_pulls_in_nothing_heavy():
    seconds = []
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
        elapsed, *loaded = run.stdout.split()
        assert loaded == []
        seconds.append(float(elapsed))
    assert min(seconds) <= 0.5


def test_ids_to_leave_out_may_be_any_collection_of_their_type():
    predictions = Predictions(ids=["a", "b", "c"], logits=np.zeros((3, 2)))
    for ids in ({"a"}, ["a"], ("a",), np.array(["a"])):
        assert predictions.without(ids).ids.tolist() == ["b", "c"]
    assert len(predictions.without([])) == 3
    with pytest.raises(ValueError, match="^ids: expected ids of type"):
        predictions.without([1])


@pytest.mark.parametrize("rows", [[], [False] * 3, 0])
def test_a_selection_holds_at_least_one_example(rows):
    with pytest.raises(ValueError, match="^rows: expected at least one example"):
        Predictions(ids=[1, 2, 3], logits=np.zeros((3, 2))).select(rows)


def test_labels_and_votes_given_as_lists_become_arrays_of_whole_numbers():
    predictions = Predictions(ids=["a", "b"], logits=np.zeros((2, 2)), labels=[0, 1], votes=[[1, 2], [3, 0]])
    assert predictions.labels.dtype == predictions.votes.dtype == np.int64


def test_the_first_of_several_repeated_ids_is_named():
    with pytest.raises(ValueError, match="expected unique names, got 'b' 2 times"):
        Predictions(ids=["a", "b", "b"], logits=np.zeros((3, 2)))
