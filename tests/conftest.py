"""What several tests share: the real data, the built site, and reasons to skip."""

import contextlib
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from calib.data.registry import REGISTRY, data_folder, status

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build/html"

settings.register_profile("calib", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("calib")


def halves(soft):
    """Both halves of soft-labelled examples, in the order of the file."""
    middle = len(soft) // 2
    return soft.select(slice(0, middle)), soft.select(slice(middle, None))


@pytest.fixture(scope="session")
def simulate():
    """Draw logits, and labels from their softmax at a known temperature."""

    def draw(n, n_classes, temperature=1.0, seed=0):
        rng = np.random.default_rng(seed)
        logits = 3 * rng.normal(size=(n, n_classes))
        return logits, (logits / temperature + rng.gumbel(size=logits.shape)).argmax(axis=1)

    return draw


@cache
def data_missing():
    return [name for name, entry in REGISTRY.items() if not entry.optional and status(name) != "ok"]


def pytest_runtest_setup(item):
    if item.get_closest_marker("data") and data_missing():
        pytest.skip(f"data are missing in {data_folder()}: make data")
    if item.get_closest_marker("site") and not (HTML / "index.html").exists():
        pytest.skip("the site is not built: make book")


@contextlib.contextmanager
def skipping_without_chromium():
    """Skip the test where a tool of the site ends because it finds no browser."""
    try:
        yield
    except SystemExit:
        pytest.skip("no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    """Chromium."""
    from site_tools import browser

    with skipping_without_chromium(), browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def address():
    """Address of the built site on a server, which shows the page for lost readers as a public one does."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def send_error(self, code, *args):
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((HTML / "404.html").read_bytes())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=HTML))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def small_disk(tmp_path):
    """A disk with a hundred kilobytes of room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(folder):
    """Leave no room on a small disk."""
    with contextlib.suppress(OSError):
        (folder / "filler").write_bytes(b"0" * 200_000)


def killed_at(step, function, *arguments):
    """Call a function in a child that kills itself at its step-th access to files; whether it ended before."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(event, _):
            nonlocal seen
            if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "shutil.copyfile"):
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        function(*arguments)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture(scope="module")
def one_thread():
    """One thread for torch: small batches on a busy machine are slow with more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# -- a small book of two notebooks and a page of prose, built by the project's Snakefile and extension

NOTEBOOK = """\
# %% [markdown]
# # Page {name}
#
# Its value is {{glue:text}}`{name}/value:.2f`.

# %% tags=["parameters"]
scale = {scale}

# %%
import time

from calib.pages.record import record

time.sleep(0.2)
record("{name}", value=scale * 1.5)
"""
INDEX = "# A book\n\nA number: {glue:text}`notebooks/one.ipynb::one/value:.1f`.\n"


@pytest.fixture
def small_book(tmp_path):
    """A small checkout, in a path with a space and a letter beyond ASCII."""
    root = tmp_path / "book ö"
    for part in ("calib", "book/_ext", "book/_static", "book/_tools", "book/_templates"):
        if (ROOT / part).exists():
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("Snakefile", "_config.yml", "requirements.txt", "book/references.bib"):
        shutil.copy(ROOT / part, root / part)
    (root / "notebooks").mkdir()
    for name, scale in (("one", 2), ("two", 3)):
        (root / f"notebooks/{name}.py").write_text(NOTEBOOK.format(name=name, scale=scale), encoding="utf-8")
    (root / "notebooks/runs.yaml").write_text("one: {notebook: one}\ntwo: {notebook: two}\n", encoding="utf-8")
    (root / "book/index.md").write_text(INDEX, encoding="utf-8")
    pages = "format: jb-book\nroot: index\nchapters:\n  - file: notebooks/one\n  - file: notebooks/two\n"
    (root / "_toc.yml").write_text(pages, encoding="utf-8")
    return root


def start(book, *command, **environment):
    env = {**os.environ, "PYTHONPATH": str(book), "LC_ALL": "C", **environment}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, *command], cwd=book, env=env, start_new_session=True, **streams)


SNAKEMAKE = ("-m", "snakemake", "--cores", "2", "--nolock", "--rerun-incomplete", "--quiet", "rules", "host", "reason")
ALONE = ("book/_tools/alone.py", "_build/.lock", sys.executable, *SNAKEMAKE)


def build(book, **environment):
    process = start(book, *ALONE, **environment)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    return output
