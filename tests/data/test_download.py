"""The registry, its downloads and its loaders: only the registered bytes are ever read, and every class is in its place."""

import contextlib
import functools
import http.server
import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from calib.data import (
    DataUnavailable,
    download,
    load_sst2,
    registry,
)
from calib.data import sst2_table as sst2
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
            if self.path in ("/slow-headers", "/slow-bytes"):
                head, pause = b"HTTP/1.0 200 OK\r\nServer: " + b"x" * 1000, 0.05
                if self.path == "/slow-bytes":
                    head, pause = b"", 0.05
                    self.send_response(200)
                    self.end_headers()
                with contextlib.suppress(OSError):
                    for byte in head + GOOD:
                        self.wfile.write(bytes([byte]))
                        time.sleep(pause)
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


@pytest.mark.parametrize("path", ["slow-headers", "slow-bytes"])
def test_a_download_stops_at_its_deadline_though_no_wait_is_long(folder, server, monkeypatch, path):
    assert download.DEADLINE <= 600
    monkeypatch.setattr(download, "DEADLINE", 1)
    server(path)
    started = time.monotonic()
    with pytest.raises(DataUnavailable, match="not complete after 1 seconds"):
        download.fetch(NAME)
    assert time.monotonic() - started < 5
    assert registry.status(NAME) == "missing"


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
    registry.REGISTRY[NAME] = replace(
        registry.REGISTRY[NAME], content_sha256=expected, cut_by="sst2_table", size_at_address=10**6
    )
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
    registry.REGISTRY[NAME] = replace(
        registry.REGISTRY[NAME], content_sha256="0" * 64, cut_by="sst2_table", size=38_076
    )
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
