"""A run reads what it declares: the build refuses a page that reads anything else."""

import pytest

from calib.data.registry import data_folder
from calib.pages import reads
from calib.pages.execute import NotebookError, execute
from conftest import ALONE, ROOT, build, start

READS = """# %% [markdown]
# # Reads

# %% tags=["parameters"]
path = ""

# %%
from pathlib import Path

Path(path).read_bytes()
Path("written.txt").write_text("")
"""


def test_a_file_of_the_checkout_is_read_only_where_it_is_declared(small_book):
    """Declared, its content is part of what the page is made from; else a change of it would go unnoticed."""
    other = small_book / "notebooks/other.json"
    other.write_text("{}", encoding="utf-8")
    notebook = small_book / "notebooks/two.py"
    notebook.write_text(notebook.read_text(encoding="utf-8") + "\nopen('other.json').close()\n", encoding="utf-8")
    output = start(small_book, *ALONE).communicate(timeout=120)[0]
    said = "error: notebooks/two.py: reads notebooks/other.json, which its run does not declare; add them to `data`, `reads`"
    assert said in output
    runs = "one: {notebook: one}\ntwo: {notebook: two, reads: [notebooks/other.json]}\n"
    (small_book / "notebooks/runs.yaml").write_text(runs, encoding="utf-8")
    assert "run two: done" in build(small_book)
    other.write_text("[]", encoding="utf-8")
    assert "run two: done" in build(small_book)


@pytest.mark.data
def test_a_data_file_is_read_only_where_it_is_declared(tmp_path):
    (tmp_path / "one.py").write_text(READS, encoding="utf-8")
    name = "sst2/distilbert-sst2-validation-logits.csv"
    path = {"path": str(data_folder() / name)}
    execute(tmp_path / "one.py", tmp_path / "page.ipynb", path, data={name: data_folder() / name}, reads=[])
    with pytest.raises(NotebookError, match=f"reads {name}, which its run does not declare"):
        execute(tmp_path / "one.py", tmp_path / "page.ipynb", path, reads=[])
    execute(tmp_path / "one.py", tmp_path / "page.ipynb", path)


def test_the_package_and_caches_are_free_and_what_is_declared_is_too():
    opened = [str(ROOT / path) for path in ("calib/scores.py", "_build/cache/x", "README.md", "notebooks/runs.yaml")]
    opened.append(str(data_folder() / "sst2/x.csv"))
    assert reads.undeclared(opened, ["README.md"]) == ["notebooks/runs.yaml", "sst2/x.csv"]
