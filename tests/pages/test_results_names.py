"""The built book has every number that is promised, and the published record is that of the same code."""

from itertools import product

import pytest

from calib.claims import printed
from calib.pages import record as results
from calib.pages.runs import load_runs
from calib.pages.verify import compare
from conftest import ROOT

SCORES = "confidence nll brier ece10 at90 wrong90".split()
GAP = """n_val n n_missing accuracy T_hard T_oracle ece_uncal ece_hard ece_oracle brier_uncal brier_hard brier_oracle gap
iso_brier_hard iso_brier_oracle iso_gap T_population T_soft_nll brier_population brier_soft_nll iso_brier_population""".split()
GAP += [
    f"{part}{end}"
    for part in "gap_population gap_label gap_objective iso_gap_population iso_gap_label".split()
    for end in ("", "_low", "_high")
]
BUDGET = [f"{name}_{kind}_{m}" for name in ("brier", "T") for kind in ("distribution", "majority")
          for m in (1, 2, 3, 5, 10, 20, 50, 100)]  # fmt: skip
MODELS = {
    "chaosnli-s": {"bert-base-uncased": [0, 1], "roberta-base": [0, 1, 2]},
    "chaosnli-m": {"roberta-base": [0, 1, 2]},
}
TRAINED = ("resnet8", "resnet20", "resnet32")


def promised():
    names = {
        "six-examples": "temperature temperature_grid nll_t1 nll_fitted ece4_t1 ece4_fitted accuracy".split(),
        "what-temperature-does": "temperature accuracy mean_confidence_t1 mean_confidence_fitted".split(),
        "sst2-isolated-fit": ["temperature"],
        "binning-sensitivity": [],
        "gap/cifar10h/resnet110/0/paper": GAP,
        "budget/cifar10h/resnet110/0": BUDGET,
        "claims": [row["ours"].removeprefix("claims/") for row in printed.rows() if row["kind"] == "claim"],
    }
    for pool in ("exploration", "calibration", "audit"):
        names["sst2-isolated-fit"] += [
            f"{pool}_correct",
            *(f"{pool}_{s}_{T}" for s in SCORES for T in ("t1", "fitted")),
        ]
    for bins in (5, 10, 15, 20):
        names["binning-sensitivity"] += [
            f"ece_{bins}",
            f"ece_{bins}_low",
            f"ece_{bins}_high",
            f"nonempty_{bins}",
            f"rightmost_{bins}",
        ]
    for dataset in MODELS:
        for model, seeds in MODELS[dataset].items():
            for seed in seeds:
                names |= {f"gap/{dataset}/{model}/{seed}/{protocol}": GAP for protocol in ("paper", "clean")}
                names[f"budget/{dataset}/{model}/{seed}"] = BUDGET
                names[f"own-votes/{dataset}/{model}/{seed}"] = "closed_one closed_five closed_majority T_one".split()
        for protocol in ("paper", "clean"):
            names[f"three-parts/{dataset}/{protocol}"] = [
                f"share_label_{name}" for name in "swapped crossfit crossfit_low crossfit_high shapley nll".split()
            ]
    for model, seed in product(TRAINED, (42, 123, 456)):
        names[f"gap/cifar10h/{model}/{seed}/paper"] = [*GAP, "images"]
    return names


@pytest.mark.parametrize(
    "path", ["_build/results.json", pytest.param("book/published/results.json", marks=pytest.mark.record)]
)
@pytest.mark.parametrize("run", promised())
@pytest.mark.site
def test_every_promised_number_is_there(path, run):
    found = results.load(ROOT / path)
    assert set(promised()[run]) <= set(found[run])


@pytest.mark.site
def test_the_build_has_the_26_gap_runs_and_no_other():
    found = {run for run in results.load(ROOT / "_build/results.json") if run.startswith("gap/")}
    assert len(found) == 17 + 9 and found == {run for run in promised() if run.startswith("gap/")}


@pytest.mark.site
@pytest.mark.record
def test_the_published_record_is_that_of_the_same_code():
    single = {run.name for run in load_runs(ROOT / "notebooks/runs.yaml").values() if run.precision == "single"}
    fresh, record = (results.load(ROOT / path) for path in ("_build/results.json", "book/published/results.json"))
    assert [f"{d.run}/{d.name}" for d in compare(record, fresh, single) if not d.within] == []


@pytest.mark.site
@pytest.mark.parametrize("dataset", ["chaosnli-s", "chaosnli-m"])
def test_the_population_is_the_largest_part_in_every_order_and_by_both_scores(dataset):
    """What the chapter and the first finding say in words."""
    found = results.load(ROOT / "_build/results.json")[f"three-parts/{dataset}/paper"]
    for way in (
        "",
        "_swapped",
        "_crossfit",
        "_objective_second_crossfit",
        "_objective_first_crossfit",
        "_shapley_crossfit",
    ):
        assert found[f"share_population{way}"] > 0.5, way
    for name in found:
        if name.startswith("share_label") and name.count("_") == 2 and not name.endswith(("_low", "_high")):
            assert found[name] < 0.4, name
    assert found["share_label_nll_crossfit_high"] < 0.5


@pytest.mark.site
def test_a_swapped_share_lies_outside_the_interval_of_fixed_halves_as_the_chapter_says():
    found = results.load(ROOT / "_build/results.json")["three-parts/chaosnli-s/paper"]
    assert found["share_label_swapped"] > found["share_label_refit_high"] > found["share_label_high"]


@pytest.mark.site
def test_the_numbers_of_the_lesson_in_the_book_are_those_in_print():
    lesson = results.load(ROOT / "_build/results.json")["six-examples"]
    shown = [f"{lesson['temperature_grid']:.5f}", f"{lesson['nll_t1']:.5f}", f"{lesson['nll_fitted']:.5f}"]
    assert shown == ["1.22975", "0.82278", "0.81243"]
    assert [f"{lesson['ece4_t1']:.3f}", f"{lesson['ece4_fitted']:.3f}"] == ["0.129", "0.380"]


@pytest.mark.site
def test_the_listing_of_the_lesson_prints_what_the_source_prints():
    page = (ROOT / "_build/html/notebooks/six-examples.html").read_text(encoding="utf-8")
    assert "T=1.22975\nNLL: 0.82278 -&gt; 0.81243\nECE: 0.129 -&gt; 0.380\n" in page
