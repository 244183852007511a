"""The registry, its downloads and its loaders: only the registered bytes are ever read, and every class is in its place."""

import contextlib
import functools
import http.server
import io
import json
import os
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

from calib import Predictions, nll
from calib.data import (
    SETS,
    DataUnavailable,
    download,
    load_cross_validated,
    load_dogah2026,
    load_soft_labels,
    load_sst2,
    registry,
)
from calib.data import sst2_table as sst2
from calib.data.cifar10 import CIFAR10_CLASSES
from calib.data.pairs import NLI_CLASSES
from calib.data.readers import class_permutation, load_arrays, load_json_lines, load_npy
from calib.data.registry import REGISTRY, DataFile, Source
from conftest import fill, killed_at

NAME = "folder/file.bin"
GOOD = bytes(range(256)) * 40
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 10240\n"
WEB_PAGE = b"<!DOCTYPE html><html><body>404</body></html>"


# -- the registry and the check before reading


def test_registry_names_source_licence_size_and_hash_of_every_file():
    assert len(REGISTRY) == 51
    for name, entry in REGISTRY.items():
        assert entry.source.title and entry.source.licence and entry.source.citation
        assert entry.size > 0 and len(entry.sha256) == 64, name
        assert entry.urls or entry.optional, name
        assert all(url.startswith("https://") for url in entry.urls)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder with one registered file, which has no address yet."""
    import hashlib

    source = Source("A title", "A few numbers", "A licence", "with credit", "A citation", ())
    entry = DataFile(NAME, source, (), len(GOOD), hashlib.sha256(GOOD).hexdigest())
    monkeypatch.setattr(registry, "REGISTRY", {NAME: entry})
    monkeypatch.setattr(download, "REGISTRY", registry.REGISTRY)
    monkeypatch.setenv("CALIB_DATA", str(tmp_path))
    (tmp_path / "folder").mkdir()
    return tmp_path


def test_missing_file_is_named_with_the_place_and_the_command(folder):
    with pytest.raises(DataUnavailable, match=r"folder/file.bin: not found, looked for .*file.bin"):
        registry.read(NAME)
    registry.REGISTRY[NAME] = replace(registry.REGISTRY[NAME], urls=("https://localhost/x",))
    with pytest.raises(DataUnavailable, match="make data"):
        registry.read(NAME)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "empty file"),
        (WEB_PAGE, "web page"),
        (LFS_POINTER, "Git LFS pointer"),
        (GOOD[:-1], "truncated"),
        (GOOD.replace(b"\n", b"\r\n"), "CRLF"),
        (GOOD[:-1] + b"!", "damaged"),
        (GOOD + b"!", "another version"),
    ],
)
def test_foreign_bytes_are_never_read_and_the_likely_cause_is_said(folder, content, cause):
    (folder / NAME).write_bytes(content)
    with pytest.raises(DataUnavailable, match=f"expected 10,240 bytes with SHA-256 .*found {len(content):,} .*{cause}"):
        registry.read(NAME)


def test_the_registered_bytes_are_read(folder):
    (folder / NAME).write_bytes(GOOD)
    assert registry.read(NAME) == GOOD


# -- downloads, from a server on this machine


@pytest.fixture
def server(tmp_path_factory, folder):
    """Serve a folder on the loopback interface and give its address to the registered file."""
    served = tmp_path_factory.mktemp("served")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/elsewhere":
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{self.server.server_port}/good")
                return self.end_headers()
            if self.path == "/endless":
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(4000):
                        self.wfile.write(bytes(1 << 16))
                return None
            if "/broken/" not in self.path:
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", str(len(GOOD)))
            self.end_headers()
            self.wfile.write(GOOD[:100])

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=served))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def addresses(*paths):
        registry.REGISTRY[NAME] = replace(registry.REGISTRY[NAME], urls=tuple(f"{address}/{path}" for path in paths))

    (served / "good").write_bytes(GOOD)
    (served / "page").write_bytes(WEB_PAGE)
    (served / "short").write_bytes(GOOD[:500])
    addresses("good")
    addresses.folder = served
    yield addresses
    server.shutdown()


def test_a_missing_file_is_downloaded_and_a_second_time_left_alone(folder, server):
    assert download.fetch(NAME) == "downloaded"
    assert registry.read(NAME) == GOOD
    assert download.fetch(NAME) == "there"
    assert [path.name for path in (folder / "folder").iterdir()] == ["file.bin"]


@pytest.mark.parametrize("address", ["page", "short", "broken/good", "absent", "elsewhere", "endless"])
def test_a_bad_download_leaves_nothing_and_says_where_it_came_from(folder, server, address):
    server(address)
    with pytest.raises(DataUnavailable, match=address.split("/")[0]):
        download.fetch(NAME)
    assert not (folder / NAME).exists()
    assert list((folder / "folder").iterdir()) == []


def test_a_bad_download_does_not_replace_what_was_there(folder, server):
    (folder / NAME).write_bytes(b"mine")
    server("page")
    with pytest.raises(DataUnavailable, match="the file there is not the registered one"):
        download.fetch(NAME)
    assert (folder / NAME).read_bytes() == b"mine"


def test_a_wrong_file_is_replaced_by_the_right_one(folder, server):
    (folder / NAME).write_bytes(LFS_POINTER)
    assert download.fetch(NAME) == "downloaded"
    assert registry.read(NAME) == GOOD


def test_the_next_address_is_tried(folder, server):
    server("absent", "page", "good")
    assert download.fetch(NAME) == "downloaded"


def test_a_host_that_cannot_be_reached_is_asked_once(folder, monkeypatch):
    closed = "http://127.0.0.1:9/file"
    registry.REGISTRY[NAME] = replace(registry.REGISTRY[NAME], urls=(closed,))
    unreachable = set()
    with pytest.raises(DataUnavailable, match="127.0.0.1:9 cannot be reached"):
        download.fetch(NAME, unreachable)
    assert unreachable == {"127.0.0.1:9"}
    monkeypatch.setattr(download, "_download", lambda *args: pytest.fail("asked again"))
    with pytest.raises(DataUnavailable, match="cannot be reached"):
        download.fetch(NAME, unreachable)


def test_a_host_that_is_slow_once_is_asked_again(folder, server, monkeypatch):
    import requests

    slow = iter([requests.ReadTimeout("slow")])
    stream = download._stream

    def sometimes(*arguments):
        for error in slow:
            raise error
        return stream(*arguments)

    monkeypatch.setattr(download, "_stream", sometimes)
    unreachable = set()
    with pytest.raises(DataUnavailable, match="slow"):
        download.fetch(NAME, unreachable)
    assert unreachable == set()
    assert download.fetch(NAME, unreachable) == "downloaded"


def test_a_download_stops_at_its_deadline(folder, server, monkeypatch):
    monkeypatch.setattr(download, "DEADLINE", -1)
    with pytest.raises(DataUnavailable, match="not complete after"):
        download.fetch(NAME)


def test_a_download_killed_at_any_step_leaves_no_wrong_file_and_its_rest_is_cleared(folder, server):
    for step in range(1, 500):
        ended = killed_at(step, download.fetch, NAME)
        assert registry.status(NAME) in (["ok"] if ended else ["missing", "ok"])
        if ended:
            break
        (folder / NAME).unlink(missing_ok=True)
    assert ended and step > 5
    rests = list((folder / "folder").glob(".download-*"))
    assert rests
    for rest in rests:
        os.utime(rest, (0, 0))
    (folder / NAME).unlink()
    assert download.fetch(NAME) == "downloaded"
    assert [path.name for path in (folder / "folder").iterdir()] == ["file.bin"]


def test_a_download_onto_a_full_disk_says_so(server, small_disk, monkeypatch):
    monkeypatch.setenv("CALIB_DATA", str(small_disk))
    (small_disk / "folder").mkdir()
    fill(small_disk)
    with pytest.raises(DataUnavailable, match="No space left on device"):
        download.fetch(NAME)


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(folder, server, monkeypatch):
    (folder / "file").write_text("in the way")
    monkeypatch.setenv("CALIB_DATA", str(folder / "file"))
    with pytest.raises(DataUnavailable, match="Not a directory"):
        download.fetch(NAME)


def test_all_are_tried_and_the_missing_are_returned(folder, server):
    registry.REGISTRY["other/absent.bin"] = replace(registry.REGISTRY[NAME], name="other/absent.bin", urls=())
    outcomes = {}
    assert download.fetch_all(outcomes.__setitem__) == ["other/absent.bin"]
    assert outcomes[NAME] == "downloaded"
    assert "no address" in outcomes["other/absent.bin"]


# -- SST-2: cut from the published log, checked by content


def published_log(rows):
    lines = ["idx,batch,variant,label,prediction,logit_0,logit_1"]
    for batch, variant in ((8, "cpu_fp32"), (1, "cpu_int8_dynamic"), (1, "cpu_fp32")):
        lines += [f"{i},{batch},{variant},{label},1,{a!r},{b!r}" for i, label, a, b in reversed(rows)]
    return "\r\n".join(lines).encode() + b"\r\n"


ROWS = [(0, 1, -4.3610053062438965, 4.7004594802856445), (1, 0, 3.7257399559020996, -3.1509437561035156)]


def test_the_sst2_file_is_extracted_from_the_published_log():
    extracted = sst2.extract(published_log(ROWS))
    ids, labels, logits = sst2.parse(extracted)
    assert ids.tolist() == [0, 1] and labels.tolist() == [1, 0]
    assert logits.astype(float).tolist() == [list(row[2:]) for row in ROWS]
    assert sst2.dump(ids, labels, logits) == extracted


@pytest.mark.parametrize(("rows", "outcome"), [(ROWS, "downloaded"), (ROWS[::-1], "ascending"), (ROWS[:1], "content")])
def test_the_sst2_file_is_downloaded_by_way_of_the_published_log(folder, server, rows, outcome):
    """The address gives the larger log; what is kept is the extract, if its content is the registered one."""
    expected = sst2.content_sha256(*sst2.parse(sst2.extract(published_log(ROWS)))[1:])
    registry.REGISTRY[NAME] = replace(registry.REGISTRY[NAME], content_sha256=expected)
    served = published_log(rows) if outcome != "ascending" else published_log([(7, *row[1:]) for row in rows])
    server.folder.joinpath("good").write_bytes(served)
    if outcome == "downloaded":
        assert download.fetch(NAME) == outcome
        assert registry.read(NAME) == sst2.extract(published_log(ROWS))
    else:
        with pytest.raises(DataUnavailable, match=outcome):
            download.fetch(NAME)
        assert not (folder / NAME).exists()


def test_the_content_of_the_sst2_file_is_checked_whatever_its_line_ends(folder):
    rows = [(0, 1, -1.5, 2.5), (1, 0, 3.5, -0.25)]
    content = sst2.extract(published_log(rows))
    expected = sst2.content_sha256(*sst2.parse(content)[1:])
    assert sst2.problem(content, expected) is None
    assert sst2.problem(content.replace(b"\n", b"\r\n"), expected) is None
    assert "expected content with SHA-256" in sst2.problem(content.replace(b"2.5", b"2.75"), expected)
    assert "ascending order" in sst2.problem(sst2.dump([1, 0], [1, 0], [[-1.5, 2.5], [3.5, -0.25]]), expected)
    huge = b"idx,label,logit_0,logit_1\n" + b"9" * 30 + b",1,0,0\n"
    long = b"<html>" + b"a" * 200_000
    for foreign in (b"", WEB_PAGE, long, huge, b"idx,label\n0,1\n", content.splitlines()[0], b"\xff\xfe"):
        assert "not a per-example file" in sst2.problem(foreign, expected)


def test_a_table_of_ones_own_is_not_called_a_broken_download(folder):
    content = sst2.extract(published_log([(0, 1, -1.5, 2.5), (1, 0, 3.5, -0.25)]))
    registry.REGISTRY[NAME] = replace(registry.REGISTRY[NAME], content_sha256="0" * 64, size=38_076)
    (folder / NAME).write_bytes(content)
    with pytest.raises(DataUnavailable, match="a table of other logits, perhaps your own.*calib fit") as caught:
        registry.read(NAME)
    assert "truncated" not in str(caught.value)
    (folder / NAME).write_bytes(content[:40])
    with pytest.raises(DataUnavailable, match="truncated"):
        registry.read(NAME)


def test_a_log_without_the_wanted_rows_is_an_error():
    with pytest.raises(ValueError, match="found none"):
        sst2.extract(published_log(ROWS).replace(b"1,cpu_fp32", b"1,cuda_fp32"))
    for foreign in (b"", WEB_PAGE, b"idx,batch,variant\n0,1,cpu_fp32\n"):
        with pytest.raises(ValueError, match="expected the columns"):
            sst2.extract(foreign)


@pytest.mark.data
def test_the_real_sst2_file_has_the_published_counts():
    predictions = load_sst2()
    assert predictions.logits.shape == (872, 2) and predictions.logits.dtype == np.float32
    assert np.bincount(predictions.labels).tolist() == [428, 444]
    assert (predictions.logits.argmax(axis=1) == predictions.labels).sum() == 794
    assert sst2.dump(predictions.ids, predictions.labels, predictions.logits) == registry.read(
        "sst2/distilbert-sst2-validation-logits.csv"
    )


# -- hostile or foreign pickles


class Hostile:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Hostile()), pickle.dumps(np.array([Hostile()])), pickle.dumps({1: len}), b"", b"\x80", WEB_PAGE],
)
def test_a_pickle_of_anything_but_arrays_is_refused_and_not_run(content, capsys):
    with pytest.raises(DataUnavailable, match="expected a pickle of NumPy arrays only"):
        load_arrays(content)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("protocol", [3, 4])
def test_a_pickle_of_arrays_is_read(protocol):
    arrays = ((np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1], [0]])),)
    ((logits, labels),) = load_arrays(pickle.dumps(arrays, protocol=protocol))
    np.testing.assert_array_equal(logits, arrays[0][0])
    np.testing.assert_array_equal(labels, arrays[0][1])


def npy(header, data=b""):
    """An npy file with this header, version 1.0."""
    text = header.encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WEB_PAGE,
        LFS_POINTER,
        npy("{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }", b"short"),
        npy("{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", b"short"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", pickle.dumps([Hostile()])),
        npy("{'descr': '<i8', 'shape': print('run'), }"),
        npy("(" * 60_000),
    ],
    ids=["empty", "page", "pointer", "huge", "short", "objects", "code", "parentheses"],
)
def test_an_npy_file_of_anything_but_numbers_is_refused_and_not_run(content, capsys):
    with pytest.raises(DataUnavailable, match="expected an array of numbers in npy format"):
        load_npy(content)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("line", [b"{", b"[" * 1_000_000, b"9" * 1_000_000, b"\xff", WEB_PAGE])
def test_a_line_that_is_no_json_or_expands_without_end_is_refused_with_its_number(line):
    with pytest.raises(DataUnavailable, match="expected JSON in line 2"):
        load_json_lines(b"{}\n" + line + b"\n{}")


# -- class order


def test_logits_in_another_class_order_are_permuted_by_name():
    order = class_permutation(["contradiction", "entailment", "neutral"], NLI_CLASSES)
    assert np.array([0.0, 5.0, 0.0])[order].tolist() == [5.0, 0.0, 0.0]
    assert class_permutation(["CONTRADICTION", "Entailment", "neutral"], NLI_CLASSES) == order


def test_a_class_order_is_never_guessed():
    with pytest.raises(ValueError, match="state the order"):
        class_permutation(["LABEL_0", "LABEL_1", "LABEL_2"], NLI_CLASSES)


@pytest.mark.data
@pytest.mark.parametrize("model", ["bert-base-uncased", "roberta-base"])
def test_chaosnli_columns_and_labels_are_in_the_order_of_the_votes(model):
    validation, soft, n_missing = load_soft_labels("chaosnli-s", model, 0)
    rows = {
        row["uid"]: row
        for row in map(json.loads, registry.read(f"chaosnli/predictions/SNLI_dev_{model}_0.json").splitlines())
    }
    uid = validation.ids[5]
    entailment, contradiction, neutral = rows[uid]["logits"]
    assert validation.logits[5].tolist() == [entailment, neutral, contradiction]
    assert NLI_CLASSES[validation.labels[5]] == ("entailment", "contradiction", "neutral")[rows[uid]["true"]]
    assert np.mean(validation.logits.argmax(axis=1) == validation.labels) == np.mean(
        [r["true"] == r["pred"] for r in rows.values()]
    )
    assert validation.class_names == soft.class_names == NLI_CLASSES
    assert n_missing == 0


# -- ChaosNLI, CIFAR-10H, the paper's files


@pytest.mark.data
@pytest.mark.parametrize(
    ("subset", "model", "n", "n_missing"),
    [("chaosnli-s", "bert-base-uncased", 1514, 0), ("chaosnli-m", "roberta-base", 1569, 30)],
)
def test_chaosnli_counts_what_has_no_prediction(subset, model, n, n_missing):
    validation, soft, missing = load_soft_labels(subset, model, 1)
    assert (len(soft), missing) == (n, n_missing)
    assert (soft.votes.sum(axis=1) == 100).all()
    np.testing.assert_array_equal(soft.labels, soft.votes.argmax(axis=1))
    assert 0 < np.isin(soft.ids, validation.ids).sum() < len(soft)


@pytest.mark.data
def test_chaosnli_keeps_the_order_of_the_file_of_votes():
    lines = map(json.loads, registry.read("chaosnli/chaosNLI_snli.jsonl").splitlines())
    assert load_soft_labels("chaosnli-s", "roberta-base", 2).soft.ids.tolist() == [line["uid"] for line in lines]


@pytest.mark.data
def test_cifar10h_rows_are_aligned_with_the_original_labels():
    validation, soft, n_missing = load_soft_labels("cifar10h", "resnet110", 0)
    assert (len(validation), len(soft), n_missing) == (5000, 10000, 0)
    assert soft.class_names == CIFAR10_CLASSES
    votes = soft.votes.sum(axis=1)
    assert (votes.min(), votes.max()) == (47, 63)
    assert np.mean(soft.votes.argmax(axis=1) == soft.labels) > 0.99
    assert nll(soft.logits, soft.distributions) < nll(np.roll(soft.logits, 1, axis=0), soft.distributions) / 5


@pytest.mark.data
def test_a_changed_label_order_of_cifar10_is_refused(monkeypatch):
    from calib.data.sets import cifar10h

    def shuffled(name):
        content = registry.read(name)
        if not name.endswith("original_labels.npy"):
            return content
        buffer = io.BytesIO()
        np.save(buffer, np.load(io.BytesIO(content))[::-1])
        return buffer.getvalue()

    monkeypatch.setattr(cifar10h, "read", shuffled)
    with pytest.raises(DataUnavailable, match="original order"):
        load_soft_labels("cifar10h", "resnet110", 0)


@pytest.mark.data
def test_the_cross_validated_predictor_is_that_of_the_same_images():
    second, first = load_cross_validated(), load_soft_labels("cifar10h", "resnet110", 0).soft
    assert second.ids.tolist() == first.ids.tolist()
    assert np.array_equal(second.votes, first.votes) and np.array_equal(second.labels, first.labels)
    assert np.mean(second.logits.argmax(axis=1) == second.labels) == pytest.approx(0.9294)
    assert np.exp(second.logits).sum(axis=1) == pytest.approx(np.ones(10_000), abs=1e-6)


@pytest.mark.data
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:-1], "expected shape"),
        (lambda p: p[::-1], "original order, but 1"),
        (lambda p: p * 2, "sum to 1"),
        (lambda p: np.where(p < 1e-6, 0, p), "above 0"),
    ],
    ids=["rows", "order", "sums", "zeros"],
)
def test_cross_validated_probabilities_that_cannot_be_right_are_refused(monkeypatch, change, message):
    from calib.data.sets import cifar10h

    def changed(name):
        content = registry.read(name)
        if not name.endswith("pyx.npy"):
            return content
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(content))))
        return buffer.getvalue()

    monkeypatch.setattr(cifar10h, "read", changed)
    with pytest.raises(DataUnavailable, match=message):
        load_cross_validated()


def test_only_strings_name_clusters():
    with pytest.raises(ValueError, match="ids: expected strings, .*, got 2"):
        SETS["chaosnli-s"].clusters(["1", 2])


@pytest.mark.data
@pytest.mark.parametrize("subset", ["chaosnli-s", "chaosnli-m"])
def test_original_labels_are_those_of_the_validation_file(subset):
    labels = SETS[subset].original_labels()
    validation, soft, _ = load_soft_labels(subset, "roberta-base", 0)
    given = dict(zip(validation.ids.tolist(), validation.labels.tolist()))
    shared = given.keys() & labels.keys()
    assert len(shared) > 700 and all(given[uid] == labels[uid] for uid in shared)
    assert set(soft.ids.tolist()) <= labels.keys()


@pytest.mark.data
@pytest.mark.parametrize(("name", "clusters"), [("snli", 1235), ("mnli_m", 1359)])
def test_items_of_one_premise_are_in_one_cluster(name, clusters):
    items = [json.loads(line) for line in registry.read(f"chaosnli/chaosNLI_{name}.jsonl").splitlines()]
    dataset = {"snli": "chaosnli-s", "mnli_m": "chaosnli-m"}[name]
    names = SETS[dataset].clusters([item["uid"] for item in items])
    assert len(set(names)) == clusters
    by_premise = {}
    for cluster, item in zip(names, items):
        by_premise.setdefault(item["example"]["premise"], set()).add(cluster)
    assert all(len(found) == 1 for found in by_premise.values())
    assert len(by_premise) == (1268 if name == "snli" else clusters), "an image of SNLI can have several premises"


@pytest.mark.data
def test_the_papers_27_files_are_read_under_our_names():
    rows = load_dogah2026()
    assert len(rows) == 27
    assert {row["seed"] for row in rows} == {42, 123, 456}
    for row in rows:
        assert row["gap"] == pytest.approx(row["brier_hard"] - row["brier_oracle"], abs=1e-12)
        assert row["iso_gap"] == pytest.approx(row["iso_brier_hard"] - row["iso_brier_oracle"], abs=1e-12)


def test_unknown_names_are_errors_that_list_the_known_ones():
    with pytest.raises(ValueError, match="expected cifar10h, chaosnli-s, chaosnli-m, got"):
        load_soft_labels("imagenet", "resnet110", 0)
    with pytest.raises(ValueError, match="expected resnet110 and 0"):
        load_soft_labels("cifar10h", "resnet110", 1)
    with pytest.raises(ValueError, match="registered are .*SNLI_dev_roberta-base_2"):
        load_soft_labels("chaosnli-s", "roberta-base", 9)


@pytest.mark.data
def test_loaders_return_predictions():
    assert isinstance(load_sst2(), Predictions)
    assert all(isinstance(part, Predictions) for part in load_soft_labels("cifar10h", "resnet110", 0)[:2])


def test_a_file_without_an_address_says_how_to_get_it():
    assert all(entry.urls or entry.how for entry in registry.REGISTRY.values())
