"""One vote per item gives an unbiased objective, and a majority does not; votes are read whole or refused by name."""

from itertools import product

import numpy as np
import pytest

from calib import brier, fit_temperature, nll, softmax
from calib.curves import TEMPERATURES
from calib.softlabels.annotation import draw_votes, fit_temperature_to_votes, simulate_annotation, vote_variance
from calib.softlabels.votes import count_votes

DRAWS = 400


@pytest.fixture(scope="module")
def items():
    """Logits, and the distributions from which votes are drawn: the softmax at T = 2."""
    logits = 3 * np.random.default_rng(7).normal(size=(300, 3))
    return logits, softmax(logits, 2.0)


def one_hot(labels, n_classes=3):
    return np.eye(n_classes)[labels]


def objectives(logits, targets, temperature):
    """NLL, its derivative by 1/T, Brier score and its derivative by T, each less its part without T."""
    step = 1e-4
    p = softmax(logits, temperature)
    free = (targets**2).sum(axis=1).mean()  # the Brier score's part that no temperature changes
    ahead, behind = (brier(softmax(logits, t), targets) for t in (temperature + step, temperature - step))
    return np.array([
        nll(logits, targets, temperature),
        ((p - targets) * logits).sum(axis=1).mean(),
        brier(p, targets) - free,
        (ahead - behind) / (2 * step),
    ])  # fmt: skip


def in_errors(found, expected):
    """Distance of the mean over draws from what is expected, in standard errors."""
    return (found.mean(axis=0) - expected) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))


# --- the objective ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.7, 2.0, 5.0])
def test_the_objective_of_drawn_votes_is_unbiased_and_that_of_their_majority_is_not(items, temperature):
    logits, q = items
    numbers = [1, 2, 3, 5]
    exact = objectives(logits, q, temperature)
    for m, (counts, majority) in zip(numbers, draw_votes(q, numbers, DRAWS)):
        of_votes = np.array([objectives(logits, c / m, temperature) for c in counts])
        assert (np.abs(in_errors(of_votes, exact)) < 4).all()
        of_majority = in_errors(np.array([objectives(logits, one_hot(w), temperature) for w in majority]), exact)
        if m <= 2:  # of two votes that differ, either wins: as one vote drawn at random
            assert (np.abs(of_majority) < 4).all()
        else:  # the majority is more often at large logits: less loss, and it falls faster as 1/T grows
            assert (of_majority[[0, 1, 2]] < -15).all() and of_majority[3] > 15


def test_the_majority_of_three_has_the_law_that_counting_gives():
    """Wins of class k: three votes, or two, or one of three that all differ and then one time in three."""
    q = np.array([0.5, 0.3, 0.2])
    exact = [sum(q[list(v)].prod() * wins(v, k) for v in product(range(3), repeat=3)) for k in range(3)]
    _, majority = list(draw_votes(q[None], [1, 3], draws=40_000))[1]
    share = np.bincount(majority.ravel(), minlength=3) / majority.size
    assert share == pytest.approx(exact, abs=4 * 0.5 / np.sqrt(40_000))
    assert exact[0] > 0.55, "sharper than the votes"


def wins(votes, k):
    counts = np.bincount(votes, minlength=3)
    return (counts[k] == counts.max()) / (counts == counts.max()).sum()


@pytest.mark.parametrize("q", [[0.5, 0.5, 0, 0], [0.25] * 4, [0, 0, 0.5, 0.5]])
def test_ties_are_decided_at_random(q):
    for m, (_, majority) in zip([2, 4], draw_votes([q], [2, 4], draws=20_000)):
        share = np.bincount(majority.ravel(), minlength=4) / majority.size
        assert share == pytest.approx(q, abs=4 * 0.5 / np.sqrt(20_000)), m


def test_draws_are_votes_of_the_item_nested_and_the_same_again(items):
    _, q = items
    q = np.where(q < 0.2, 0, q)
    q /= q.sum(axis=1, keepdims=True)
    last = 0
    for m, (counts, majority), (again, _) in zip([1, 4, 100], *(draw_votes(q, [1, 4, 100], 20) for _ in range(2))):
        assert (counts.sum(axis=2) == m).all() and (counts[:, q == 0] == 0).all()
        assert (counts >= last).all() and np.array_equal(counts, again)
        assert (np.take_along_axis(counts, majority[..., None], 2)[..., 0] == counts.max(axis=2)).all()
        last = counts
    assert counts.mean(axis=0) / 100 == pytest.approx(q, abs=5 * 0.5 / np.sqrt(2000))
    assert not np.array_equal(counts, list(draw_votes(q, [1, 4, 100], 20, seed=1))[2][0])


# --- the experiment --------------------------------------------------------------------------------------------------


def test_fits_to_all_draws_at_once_are_the_fits_to_each(items):
    logits, q = items
    designs = [(5, 300), (1, 300), (3, 300)]  # in any order
    found = simulate_annotation(logits, q, designs, draws=3, seed=5)
    order = np.argsort(-q, axis=1)  # the draws are made with the most likely class of each item first
    logits, q = (np.take_along_axis(a, order, axis=1) for a in (logits, q))
    votes = draw_votes(q, [1, 3, 5], 3, np.random.default_rng(5).spawn(2)[1])
    for m, (counts, majority) in zip([1, 3, 5], votes):
        row = [number for number, _ in designs].index(m)
        for kind, targets in zip(found, (counts / m, majority)):
            assert kind[row] == pytest.approx([fit_temperature(logits, t).temperature for t in targets], rel=2e-4)


def test_the_items_of_a_design_are_drawn_without_replacement(items):
    """With votes that do not vary, what varies is which items were drawn; with all of them, nothing does."""
    logits, _ = items
    sure = one_hot((logits / 2 + np.random.default_rng(0).gumbel(size=logits.shape)).argmax(axis=1))
    distribution, majority = simulate_annotation(logits, sure, [(1, 300), (1, 150)], draws=300)
    assert np.array_equal(distribution, majority)
    assert distribution[0] == pytest.approx(fit_temperature(logits, sure).temperature, rel=2e-4)
    rows = np.array([np.random.default_rng(s).permutation(300)[:150] for s in range(300)])
    fits = np.array([fit_temperature(logits[r], sure[r]).temperature for r in rows])
    assert np.log(distribution[1]).std() == pytest.approx(np.log(fits).std(), rel=0.2)
    assert np.median(distribution[1]) == pytest.approx(np.median(fits), rel=0.1)


def test_a_design_of_one_item_is_a_fit_to_one_item():
    """One item is voted to its largest logit and one against it: alone they ask for the ends of the grid."""
    fits, _ = simulate_annotation([[2.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [(1, 1), (1, 2)], draws=100)
    assert sorted(set(fits[0].round(6))) == pytest.approx(TEMPERATURES[[0, -1]])
    assert 30 <= (fits[0] < 1).sum() <= 70
    assert len(set(fits[1].round(6))) == 1


def test_one_vote_recovers_the_temperature_and_a_majority_is_too_sharp(items):
    logits, q = items
    numbers = [1, 2, 3, 5, 20, 100]
    distribution, majority = simulate_annotation(logits, q, [(m, 300) for m in numbers], draws=DRAWS)
    errors = (1 / distribution - 1 / 2).mean(axis=1) / (1 / distribution).std(axis=1)
    assert (np.abs(errors) < 0.25).all(), "the bias in 1/T is small beside the spread of one fit"
    assert np.array_equal(distribution[0], majority[0]), "one vote is its own majority"
    assert majority[1].mean() == pytest.approx(distribution[0].mean(), abs=5 * distribution[0].std() / np.sqrt(DRAWS))
    assert (np.diff(majority[1:].mean(axis=1)) < 0).all() and majority[2].mean() < 1.8
    limit = fit_temperature(logits, q.argmax(axis=1)).temperature
    assert limit < majority[5].mean() < majority[4].mean(), "towards the fit to the most likely class, from above"


def test_many_votes_leave_nothing_to_chance(items):
    logits, q = items
    exact = fit_temperature(logits, q).temperature
    fits, _ = simulate_annotation(logits, q, [(m, 300) for m in (1, 10_000)], draws=50)
    assert fits[1] == pytest.approx(exact, rel=0.01)
    assert fits[1].std() < fits[0].std() / 50


def test_draws_that_ask_for_no_temperature_end_at_the_grid():
    logits = [[3.0, 0.0]] * 10
    for kind in simulate_annotation(logits, [[1.0, 0.0]] * 10, [(1, 10)], draws=4):
        assert kind[0] == pytest.approx(TEMPERATURES[0])


@pytest.mark.parametrize("m, size", [(1, 100), (1, 300), (5, 100), (5, 300)])
def test_the_spread_of_the_fits_is_what_the_two_variances_say(items, m, size):
    """Items are drawn without replacement here: only their unseen share adds to the variance."""
    logits = items[0]
    each = softmax(logits / (2.0 + logits[:, :1] ** 2 / 10))  # no temperature fits all items
    votes = np.random.default_rng(3).multinomial(2000, each)
    q = votes / 2000
    exact = fit_temperature(logits, q).temperature
    between, within = vote_variance(logits, votes, exact)
    p = softmax(logits, exact)
    curvature = ((p * logits**2).sum(axis=1) - (p * logits).sum(axis=1) ** 2).mean()
    expected = np.sqrt((between * (1 - size / 300) + within / m) / size) / curvature
    fits, _ = simulate_annotation(logits, q, [(m, size)], draws=2000)
    assert (1 / fits).std() == pytest.approx(expected, rel=0.1)


def test_variance_between_items_is_not_that_of_few_votes():
    """All items have one distribution of votes: they differ by chance alone."""
    logits = np.tile([[1.0, 0.0, -1.0]], (4000, 1))
    votes = np.random.default_rng(0).multinomial(2, [0.5, 0.3, 0.2], size=4000)
    between, within = vote_variance(logits, votes, 1.0)
    assert within == pytest.approx(0.5 + 0.2 - 0.3**2, rel=0.05)
    assert between == pytest.approx(0, abs=0.03)


def test_a_variance_between_items_is_never_below_zero():
    """The means of the two items are equal: they differ less than their votes alone would make them."""
    between, within = vote_variance([[1.0, 0.0]] * 2, [[1, 1]] * 2, 1.0)
    assert between == 0 and within > 0


def test_designs_are_read_once():
    designs = [(1, 3), (5, 2)]
    found = [simulate_annotation(LOGITS, [[0.5, 0.5]] * 3, d, draws=4) for d in (designs, iter(designs))]
    assert np.array_equal(*found)


# --- raw votes -------------------------------------------------------------------------------------------------------

TABLE = {"item": ["b", "a", "b", "c"], "label": ["no", "yes", "yes", "no"], "annotator": ["x", "x", "y", "y"]}
LOGITS = [[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]]
VOTES = [[2, 1], [1, 2], [1, 1]]


def test_a_table_and_its_counts_give_the_same_fit(simulate):
    logits, labels = simulate(200, 3, 2.0)
    again = simulate(200, 3, 2.0, seed=3)[1][:80]
    names = np.array(["entailment", "neutral", "contradiction"])
    items = [f"item-{i}" for i in range(200)]
    order = np.random.default_rng(0).permutation(280)
    table = {"item": np.array(items + items[:80])[order], "label": names[np.concatenate([labels, again])][order]}
    counts = one_hot(labels).astype(int)
    counts[:80] += one_hot(again[:80]).astype(int)
    assert np.array_equal(count_votes(table, items, names), counts)
    fits = [fit_temperature_to_votes(logits, votes, items, names) for votes in (table, counts)]
    assert fits[0] == fits[1]
    assert (fits[0].n_items, fits[0].n_votes, fits[0].votes_per_item) == (200, 280, 1.4)
    assert fits[0].temperature == fit_temperature(logits, counts / counts.sum(axis=1, keepdims=True)).temperature
    numbered = fit_temperature_to_votes(logits, {"item": range(200), "label": labels})
    assert numbered == fit_temperature_to_votes(logits, one_hot(labels).astype(int))


def test_a_data_frame_is_a_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**TABLE, "annotator": [1, None, None, 2]}, index=[3, 1, 2, 0])
    for table in (frame, frame.astype({"annotator": "Int64"})):
        assert count_votes(table, ["a", "b", "c"], ["yes", "no"]).tolist() == [[1, 0], [1, 1], [0, 1]]
    with pytest.raises(ValueError, match="got 'maybe'"):
        count_votes(frame.replace("no", "maybe"), ["a", "b", "c"], ["yes", "no"])


def test_an_item_with_many_votes_weighs_as_much_as_another(simulate):
    logits, labels = simulate(100, 3, 2.0)
    counts = one_hot(labels).astype(int)
    more = counts * np.where(np.arange(100) < 30, 50, 1)[:, None]
    one, many = fit_temperature_to_votes(logits, counts), fit_temperature_to_votes(logits, more)
    assert (one.temperature, one.low, one.high) == (many.temperature, many.low, many.high)


class LikeNA:
    """As NA of pandas: it is not said whether it equals anything."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("law", ["by item", "first two", "until two agree"])
def test_the_number_of_votes_may_depend_on_the_item_but_not_on_the_votes(law):
    """Five votes where logits are near each other are as good as two; three more where two votes differ are not."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(20_000, 3))
    q = softmax(logits, 2.0)
    two, three = rng.multinomial(2, q), rng.multinomial(3, q)
    more = {"by item": q.max(axis=1) < 0.7, "first two": False, "until two agree": two.max(axis=1) < 2}[law]
    fit = fit_temperature_to_votes(logits, two + three * np.broadcast_to(more, 20_000)[:, None])
    assert fit.temperature == pytest.approx(1.64 if law == "until two agree" else 2.0, abs=0.06)


def test_an_annotator_that_is_not_known_is_not_the_same_one():
    for unknown in (None, float("nan"), LikeNA()):
        table = {**TABLE, "annotator": [unknown] * 4}
        assert count_votes(table, ["a", "b", "c"], ["yes", "no"]).tolist() == [[1, 0], [1, 1], [0, 1]]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"item": ["b", "a", "d", "z"]}, r"votes: expected in column item one of items, 'a', 'b', 'c'; got 'd', 'z'$"),
        ({"item": ["b", 1, "b", "c"]}, r"got 1$"),
        ({"label": ["no", "yes", "maybe", "no"]}, r"column label one of class_names, 'yes', 'no'; got 'maybe'$"),
        ({"annotator": ["x", "x", "x", "y"]}, r"one vote of an annotator on an item, .* annotator \('b', 'x'\)$"),
        ({"item": ["b", "b", "b", "b"], "annotator": [1, 2, 3, 4]}, r"at least one vote .* none on 'a', 'c'; leave"),
        ({"label": ["no"]}, r"columns of one length, got {'item': 4, 'label': 1, 'annotator': 4}"),
    ],
)
def test_votes_that_do_not_fit_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature_to_votes(LOGITS, {**TABLE, **change}, ["a", "b", "c"], ["yes", "no"])


@pytest.mark.parametrize(
    "votes, options, message",
    [
        ({"item": [0], "vote": [0]}, {}, r"^votes: expected columns item and label, found \['item', 'vote'\]"),
        ({"item": [0, 1, 2], "label": [0, 1, 2]}, {}, r"column label one of class_names, 0, 1; got 2$"),
        ({"item": [0, 1, 2], "label": [0, 1, -1]}, {}, r"got -1$"),
        ({"item": range(3), "label": [0, 1, 0.5]}, {}, r"got 0.5$"),
        ({"item": range(3), "label": [0, 1, 0]}, {"items": ["a", "b"]}, r"^items: expected 3 names, .*\(3, 2\), got 2"),
        ({"item": range(3), "label": [0, 1, 0]}, {"items": [0, 1, 1]}, r"^items: expected each name once, got 1 sev"),
        ({"item": range(3), "label": [0, 1, 0]}, {"class_names": list("abc")}, r"^class_names: expected 2 names"),
        ([[1, 0], [0, 1]], {}, r"^votes: expected counts, integers of shape \(3, 2\) .*; got shape \(2, 2\)"),
        ([[1.0, 0.0]] * 3, {}, r"^votes: .* got shape \(3, 2\) of type float64"),
        ([[1, 0], [2, -1], [0, 1]], {}, r"^votes: expected counts of 0 or more, got \[ 2 -1\] in row 1"),
        ([[1, 0], [0, 0], [0, 0]], {}, r"^votes: expected at least one vote on every item, got none on 1, 2; leave"),
        ([[1, 0], [1, 0], [0, 1]], {}, r"^targets: expected a fit inside its bounds, got T at the lower one"),
        ([[1, 0], [1, 0], [1, 0]], {"clusters": [0, 1]}, r"^clusters: expected 3 values"),
        ([[1, 0], [1], [1, 0]], {}, r"^votes: .* rows that do not fit together"),
        (VOTES, {"items": {"a", "b", "c"}}, r"^items: expected a list of names, .*, got a set"),
        (VOTES, {"class_names": {"yes", "no"}}, r"^class_names: expected a list of names, .*, got a set"),
        (VOTES, {"class_names": "ab"}, r"^class_names: expected a list of names, .*, got a str"),
        (VOTES, {"items": (i for i in range(3))}, r"^items: expected a list of names, .*, got a generator"),
        (VOTES, {"items": [("a", 1), ("a", 2), ("b", 1)]}, r"^items: expected a list of names, .* shape \(3, 2\)"),
        (np.ma.masked_equal(VOTES, 2), {}, r"^votes: expected an array without masked entries"),
        ({"item": range(3), "label": np.ma.masked_equal([0, 1, 0], 1)}, {}, r"^votes, column label: .* masked"),
        ({"item": range(3), "label": [[0], [1], [0]]}, {}, r"^votes, column label: .* got shape \(3, 1\)"),
        ({"item": range(3), "label": [[0], [1, 1], [0]]}, {}, r"^votes, column label: .*, got \[0\] in row 0"),
        ({"item": range(3), "label": [0, 1, 0], "annotator": [[1], [], []]}, {}, r"^votes, column annotator: expected"),
        (VOTES, {"clusters": np.ma.masked_equal([0, 1, 2], 1)}, r"^clusters: expected an array without masked"),
        (VOTES, {"clusters": [0, 1, None]}, r"^clusters: expected a name for each row, got none in row 2"),
        (VOTES, {"level": "0.95"}, r"^level: expected a number between 0 and 1, got '0.95'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(votes, options, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature_to_votes(LOGITS, votes, **options)


def test_of_many_names_the_first_are_shown():
    with pytest.raises(ValueError, match=r"got none on 1, 2, 3, 4, 5 and 14 more; leave"):
        fit_temperature_to_votes([[1.0, 0.0]] * 20, [[1, 0]] + [[0, 0]] * 19)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: simulate_annotation(LOGITS, [[0.5, 0.5]] * 3, [(1, 4)]), r"^designs: expected at most 3 items"),
        (lambda: simulate_annotation(LOGITS, [[0.5, 0.5]] * 3, [(0, 3)]), r"^designs: expected a whole number"),
        (lambda: simulate_annotation(LOGITS, [[0.5, 0.4]] * 3, [(1, 3)]), r"^distributions: expected rows that sum"),
        (lambda: simulate_annotation([[0.0, -np.inf]] * 3, [[1, 0.0]] * 3, [(1, 3)]), r"^logits: expected finite"),
        (lambda: simulate_annotation(LOGITS, [[0.5, 0.5]] * 3, []), r"^designs: expected pairs, .*, got \[\]"),
        (lambda: simulate_annotation(LOGITS, [[0.5, 0.5]] * 3, [1, 3]), r"^designs: expected pairs, .*, got \[1, 3\]"),
        (lambda: simulate_annotation([[1, 1]] * 3, [[0.5, 0.5]] * 3, [(1, 3)]), r"expected .* identify a temperature"),
        (lambda: vote_variance(LOGITS, [[2, 0], [1, 0], [1, 1]], 1.0), r"^votes: expected at least two .* 1 in row 1"),
        (lambda: vote_variance(LOGITS[:1], [[2, 1]], 1.0), r"^votes: expected at least two items, got 1"),
        (lambda: next(draw_votes([[0.5, 0.4]], [1])), r"^distributions: expected rows that sum to 1"),
        (lambda: next(draw_votes([[0.5, 0.5]], [1.5])), r"^votes_per_item: expected a whole number"),
        (lambda: next(draw_votes([[0.5, 0.5]], [3, 1])), r"^votes_per_item: expected ascending numbers, got \[3, 1\]"),
        (lambda: next(draw_votes([[0.5, 0.5]], [1], draws=0)), r"^draws: expected a whole number"),
    ],
)
def test_impossible_designs_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the interval ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("votes_per_item, size", [(1, 1), (3, 1), (1, 4)], ids=["one vote", "three", "clusters of 4"])
def test_the_interval_contains_the_truth(votes_per_item, size):
    """Clusters: items of one premise share their logits and, with it, a tilt of the votes that no temperature explains."""
    rng, hits, alone = np.random.default_rng(11), 0, 0
    n, simulations = 240, 300
    for _ in range(simulations):
        logits = np.repeat(3 * rng.normal(size=(n // size, 3)), size, axis=0)
        tilt = np.repeat(rng.normal(size=(n // size, 1)), size, axis=0)
        q = softmax(logits * (0.5 + (size > 1) * 0.3 * tilt))
        counts = rng.multinomial(votes_per_item, q)
        groups = np.repeat(np.arange(n // size), size)
        fit = fit_temperature_to_votes(logits, counts, clusters=groups if size > 1 else None)
        blind = fit_temperature_to_votes(logits, counts)
        truth = 2.0 if size == 1 else tilted_truth()
        hits += fit.low <= truth <= fit.high
        alone += blind.low <= truth <= blind.high
    assert 0.91 <= hits / simulations <= 0.985
    assert alone == hits if size == 1 else alone < hits - 15


def tilted_truth(cache=[]):  # noqa: B006
    """Best temperature on a large population of the tilted law."""
    if not cache:
        rng = np.random.default_rng(0)
        logits, tilt = 3 * rng.normal(size=(200_000, 3)), rng.normal(size=(200_000, 1))
        cache.append(fit_temperature(logits, softmax(logits * (0.5 + 0.3 * tilt))).temperature)
    return cache[0]
