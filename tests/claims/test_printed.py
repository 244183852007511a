"""Every printed value that is fully determined comes out to every printed digit."""

from fractions import Fraction

import numpy as np
import pytest

from calib import accuracy, ece, fit_temperature, nll, reliability_table, softmax, top_label
from calib.claims.printed import KINDS, half_up, printed, rows
from calib.data import DATASETS, load_dogah2026
from calib.data.titles import model_title

LESSON = "six-examples lesson"
LOGITS = np.array([[3, 1, 0], [2.5, 1, 0], [3, 0.5, 0], [1.5, 2, 0], [0.5, 0, 1.5], [2, 2.2, 0]])
LABELS = np.array([0, 0, 1, 1, 2, 0])
FIT = fit_temperature(LOGITS, LABELS)
TABLES = {
    name: reliability_table(*top_label(softmax(LOGITS, T), LABELS), bins=4)
    for name, T in (("T=1", 1), ("T=1.23", FIT.temperature))
}


def lesson_values():
    """Our value for every exact row of the lesson, as text."""
    values = {
        ("fit", "temperature"): f"{FIT.temperature:.5f}",
        ("fit", "nll_t1"): f"{nll(LOGITS, LABELS):.5f}",
        ("fit", "nll_fitted"): f"{FIT.objective:.5f}",
        ("fit", "accuracy"): f"{Fraction(accuracy(LOGITS, LABELS)).limit_denominator(6) * 6}/6",
        ("fit", "ece4_t1"): f"{TABLES['T=1'].ece:.3f}",
        ("fit", "ece4_fitted"): f"{TABLES['T=1.23'].ece:.3f}",
        ("softmax [3,1,0]", "t1"): " ".join(f"{p:.3f}" for p in softmax([[3.0, 1.0, 0.0]])[0]),
        ("softmax [3,1,0]", "t1.23"): " ".join(f"{p:.3f}" for p in softmax([[3.0, 1.0, 0.0]], 1.23)[0]),
    }
    for name, table in TABLES.items():
        T = 1.0 if name == "T=1" else FIT.temperature
        for i, confidence in enumerate(softmax(LOGITS, T).max(axis=1), start=1):
            values[f"confidence per example ({name})", str(i)] = f"{confidence:.3f}"
        values["bin contributions to ECE", name] = " ".join(f"{c:.3f}" for c in table.contributions[table.filled])
        for b in np.flatnonzero(table.filled):
            interval = f"[{table.edges[b]:.2f},{table.edges[b + 1]:.2f}{']' if b == 3 else ')'}"
            cells = f"{table.counts[b]} {table.confidence[b]:.3f} {table.accuracy[b]:.3f}"
            values[f"bins ({name}): interval,count,mean confidence,accuracy", interval] = cells
    return values


def test_every_row_has_a_known_kind_and_no_row_is_there_twice():
    assert len(rows()) == 182
    assert {row["kind"] for row in rows()} == set(KINDS)
    keys = [(row["source"], row["where"], row["quantity"]) for row in rows()]
    assert len(keys) == len(set(keys))


def test_an_unknown_row_is_an_error():
    with pytest.raises(KeyError, match="found 0"):
        printed("nobody", "nowhere", "nothing")


def test_the_six_examples_come_out_to_every_printed_digit():
    published = {(row["where"], row["quantity"]): row["printed"] for row in rows() if row["source"] == LESSON}
    assert lesson_values() == published


def test_the_overconfident_logits_come_out_to_every_printed_digit():
    import torch

    generator = torch.manual_seed(0)
    logits = 9 * torch.randn(5000, 10, generator=generator)
    labels = torch.multinomial(torch.softmax(logits / 3, dim=1), 1, generator=generator)[:, 0].numpy()
    logits = logits.numpy()
    grid = np.linspace(0.5, 6.0, 551)
    temperature = grid[np.argmin([nll(logits, labels, T) for T in grid])]
    ours = {
        "temperature": f"{temperature:.2f}",
        "accuracy": f"{accuracy(logits, labels):.3f}",
        "mean_confidence_t1": f"{softmax(logits).max(axis=1).mean():.3f}",
        "mean_confidence_fitted": f"{softmax(logits, temperature).max(axis=1).mean():.3f}",
    }
    assert ours == {
        row["quantity"]: row["printed"] for row in rows() if row["source"] == "temperature-scaling glossary"
    }


@pytest.mark.data
def test_the_papers_tables_follow_from_its_files_to_every_printed_digit():
    seeds = {}
    for row in load_dogah2026():
        seeds.setdefault(f"{model_title(row['model'])} {DATASETS[row['dataset']]}", []).append(row)
    checked = 0
    for row in (row for row in rows() if row["kind"] == "reaggregate"):
        table, configuration = row["where"].split(" ", 2)[1], row["where"].split(" ", 2)[2]
        values = np.array([seed[row["quantity"]] for seed in seeds[configuration]])
        assert len(values) == 3
        ours = half_up(values.mean(), 3) + ("" if table == "3" else f" ({half_up(values.std(), 3)})")
        assert ours == row["printed"], row
        checked += 1
    assert checked == 75


def test_ece_of_the_lesson_by_hand():
    by_hand = 3 / 6 * abs(2 / 3 - 0.5740) + 3 / 6 * abs(2 / 3 - 0.8310)
    assert ece(*top_label(softmax(LOGITS), LABELS), bins=4) == pytest.approx(by_hand, abs=1e-3)
