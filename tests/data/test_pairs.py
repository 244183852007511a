"""Files of sentence pairs are read by id, or refused with their line."""

import json

import pytest

from calib.data import DataUnavailable, load_soft_labels, pairs, set_of

OFFICIAL = [
    {"pairID": "1n", "gold_label": "neutral", "sentence1": "a", "sentence2": "b"},
    {"pairID": "2c", "gold_label": "-", "sentence1": "c", "sentence2": "d"},
    {"pairID": "3e", "gold_label": "entailment", "sentence1": "e", "sentence2": "f"},
]


def third(**fields):
    """A file whose third line is another one."""
    return "".join(json.dumps(row) + "\n" for row in [*OFFICIAL[:2], {**OFFICIAL[2], **fields}])


def test_files_of_snli_and_mnli_are_read_by_pair_id(tmp_path):
    path = tmp_path / "snli_1.0_dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in OFFICIAL))
    found = pairs.read_pairs(path)
    assert found.ids == ["1n", "3e"] and found.labels.tolist() == [1, 0] and found.n_unlabelled == 1
    assert found.select([1]) == (["e"], ["f"])


@pytest.mark.data
def test_chaosnli_is_read_whole_and_in_order():
    found = set_of("chaosnli-s").pairs()
    published = load_soft_labels("chaosnli-s", "roberta-base", 0).soft
    assert found.ids == published.ids.tolist() and len(found.premises[0]) > 10 and found.n_unlabelled == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "not found"),
        ("", "expected pairs with labels, found none in 0 lines"),
        (json.dumps(OFFICIAL[1]), "expected pairs with labels, found none in 1 lines"),
        ('{"text": "a"}\n', "expected JSON lines with pairID, .*, found {'text': 'a'} in line 1"),
        ("<html>", "expected JSON in line 1"),
        ("[1]", r"found \[1\] in line 1"),
        ("1", "found 1 in line 1"),
        (third(gold_label="Entailment"), "label among entailment, .*, -, found 'Entailment' in line 3"),
        (third(gold_label=None), "each of them text, found .* in line 3"),
        (third(pairID=7), "each of them text, found .* in line 3"),
        (third(sentence2=None), "each of them text, found .* in line 3"),
        (third(sentence2="")[:-2], "expected JSON in line 3"),
        ('{"uid": "a", "old_label": "e", "example": {}}', "found .* in line 1"),
    ],
)
def test_another_file_is_refused(tmp_path, content, message):
    path = tmp_path / "pairs.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataUnavailable, match=f"pairs.jsonl: .*{message}"):
        pairs.read_pairs(path)
