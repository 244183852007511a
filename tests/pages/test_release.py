"""What installing, releasing and automation rest on: the wheel, published notebooks elsewhere, the lock, the workflows."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command
from typer.testing import CliRunner

from calib.__main__ import app
from calib.pages import record as results
from calib.pages.edition import collect, install_cell, publish, reuse
from calib.pages.execute import THREADS
from calib.pages.origin import seal
from calib.pages.runs import load_runs
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNS = load_runs(ROOT / "notebooks/runs.yaml")
PUBLISHED = ROOT / "book/published"
ADDRESS = "https://example.org/book"


def notebook_of(run):
    return (ROOT / RUNS[run].source).read_text(encoding="utf-8")


# -- the wheel, and published notebooks outside of the repository


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "calib", source / "calib", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "."]
    subprocess.run(command, cwd=source, check=True)
    (path,) = source.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory):
    """An environment that has what the lock has, but not `calib`; returns how to run its Python in some folder."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "lock.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def python(*arguments, cwd, **environment):
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(folder / "bin/python"), *map(str, arguments)]
        env = {**inherited, **dict.fromkeys(THREADS, "1"), "PIP_NO_INDEX": "1", **environment}
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)

    return python


def test_the_wheel_holds_the_package_with_its_data_files_and_nothing_else(wheel):
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "calib").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"calib/data/registry.toml", "calib/claims/printed.csv", "calib/paper.mplstyle"} <= expected
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected


@pytest.mark.parametrize("run", ["six-examples", pytest.param("sst2-isolated-fit", marks=pytest.mark.data)])
@pytest.mark.record
def test_a_published_notebook_runs_elsewhere_after_its_install_cell(run, wheel, elsewhere, tmp_path):
    notebook = nbformat.read(PUBLISHED / f"{run}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id != "install"]
    notebook.cells.insert(1, install_cell(RUNS[run], wheel.as_uri()))
    notebook.cells.append(nbformat.v4.new_code_cell("import calib\nprint(calib.__file__)"))
    nbformat.write(notebook, tmp_path / "in.ipynb")
    assert elsewhere("-c", "import calib", cwd=tmp_path).returncode == 1

    done = elsewhere("-m", "papermill", "in.ipynb", "out.ipynb", "--kernel", "python3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    prefix = elsewhere("-c", "import sys; print(sys.prefix)", cwd=tmp_path).stdout.strip()
    assert executed.cells[-1].outputs[0].text.startswith(prefix)
    ours, published = results.collect(executed)[run], results.load(PUBLISHED / "results.json")[run]
    assert ours.keys() == published.keys()
    for name, value in published.items():
        assert ours[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-6, abs=1e-9)), name
    assert elsewhere("-m", "pip", "uninstall", "--yes", "calib", cwd=tmp_path).returncode == 0


def test_missing_data_outside_of_a_checkout_name_the_folder_and_the_command(wheel, elsewhere, tmp_path):
    code = f"import sys; sys.path.insert(0, {str(wheel)!r}); from calib.data import load_sst2; load_sst2()"
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "CALIB_DATA": ""}
    done = elsewhere("-c", code, cwd=tmp_path, **home)
    assert re.search(r"DataUnavailable: sst2/.*: not found, looked for /\S*calib/sst2/", done.stderr), done.stderr
    assert str(tmp_path) in done.stderr and "python -m calib data" in done.stderr


@pytest.mark.parametrize("run", RUNS)
def test_a_run_stands_alone_where_its_notebook_reads_nothing_of_the_checkout(run):
    reads = re.search(r'^(\w+_)?folder = "', notebook_of(run), flags=re.MULTILINE)
    given = [value for value in RUNS[run].parameters.values() if str(value).startswith("../")]
    assert RUNS[run].stands_alone is not bool(reads or given)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_names_the_extra_that_its_notebook_needs(run):
    needs = re.search(r"^(import|from) (torch|transformers)", notebook_of(run), flags=re.MULTILINE)
    assert RUNS[run].extra == ("models" if needs else None)
    assert (RUNS[run].extra or "models") in PROJECT["optional-dependencies"]


@pytest.fixture
def republish(tmp_path):
    """Publish the published pages again as if freshly built, with the address of a repository; returns the folder."""

    def run(address):
        pages, statuses, record = tmp_path / "pages", tmp_path / "status", tmp_path / "record"
        pages.mkdir()
        statuses.mkdir()
        for name in RUNS:
            notebook = nbformat.read(PUBLISHED / f"{name}.ipynb", as_version=4)
            notebook.cells = [cell for cell in notebook.cells if cell.id != "install"]
            nbformat.write(notebook, pages / f"{name}.ipynb")
            status = {"fresh": True, "changed": False, "commit": f"commit-of-{name}"}
            results.save(status | seal(None, pages / f"{name}.ipynb"), statuses / f"{name}.json")
        results.save(collect(RUNS, pages), tmp_path / "results.json")
        publish(RUNS, pages, tmp_path / "results.json", statuses, record, address)
        return record

    return run


@pytest.mark.record
def test_notebooks_that_stand_alone_install_the_commit_they_ran_at(republish):
    record = republish(ADDRESS)
    for run in RUNS:
        title, cell, *_ = nbformat.read(record / f"{run}.ipynb", as_version=4).cells
        assert title.source.startswith("# ")
        assert (cell.id == "install") is RUNS[run].stands_alone
        if RUNS[run].stands_alone:
            extra = f"[{RUNS[run].extra}]" if RUNS[run].extra else ""
            assert f'%pip install -q "calib{extra} @ git+{ADDRESS}@commit-of-{run}"' in cell.source
            assert ("-m calib data" in cell.source) is (bool(RUNS[run].data))
            assert cell.metadata.tags == ["remove-cell"]


@pytest.mark.record
def test_an_install_cell_changes_no_number(republish, tmp_path):
    record = republish(ADDRESS)
    assert collect(RUNS, record) == results.load(record / "results.json") == results.load(tmp_path / "results.json")
    paths = [tmp_path / name for name in ("page.ipynb", "numbers.json", "shown.json")]
    reuse(record / "six-examples.ipynb", *paths, "no data.")
    assert results.load(paths[1])["six-examples"] == results.load(record / "results.json")["six-examples"]


@pytest.mark.record
def test_without_an_address_there_is_nothing_to_install_from(republish):
    assert not any("pip install" in path.read_text(encoding="utf-8") for path in republish("").glob("*.ipynb"))


@pytest.mark.record
def test_no_published_notebook_installs_from_anywhere_but_the_repository():
    address = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    for path in PUBLISHED.glob("*.ipynb"):
        installs = re.findall(r"pip install .*", path.read_text(encoding="utf-8"))
        assert all(address and f"@ git+{address}@" in line for line in installs), path


# -- the lock, and what the project declares

LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
ENTRIES = LOCK.replace("\\\n", "").splitlines()
PINS = [Requirement(entry.partition(" --hash=")[0].strip()) for entry in ENTRIES]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [
    requirement
    for requirement in map(Requirement, [*PROJECT["dependencies"], *EXTRAS["book"], *EXTRAS["models"], *EXTRAS["test"]])
    if requirement.name != PROJECT["name"]
]
PYTHONS = [
    f"3.{minor}" for minor in range(8, 20) if f"3.{minor}" in Requirement(f"p{PROJECT['requires-python']}").specifier
]
SYSTEMS = {"linux": ("Linux", "x86_64"), "darwin": ("Darwin", "arm64")}


def pinned(python, system):
    """Versions that the lock installs on a Python and a system: {name: [version, ...]}."""
    platform, machine = SYSTEMS[system]
    environment = {
        "implementation_name": "cpython",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": platform,
        "python_full_version": f"{python}.9",
        "python_version": python,
        "sys_platform": system,
    }
    found = {}
    for pin in PINS:
        if pin.marker is None or pin.marker.evaluate(environment):
            (clause,) = pin.specifier
            assert clause.operator == "==", pin
            found.setdefault(canonicalize_name(pin.name), []).append(clause.version)
    return found


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_version_of_each_package_within_the_bounds_of_the_project(python, system):
    versions = pinned(python, system)
    assert [name for name, found in versions.items() if len(found) > 1] == []
    for requirement in DIRECT:
        (version,) = versions.get(canonicalize_name(requirement.name), ["missing"])
        assert version != "missing" and requirement.specifier.contains(version), f"{requirement}: {version} in the lock"


def test_the_lock_holds_no_address_and_no_option_but_the_hashes_of_each_package():
    assert "://" not in LOCK and " @ " not in LOCK and not re.search(r"^-", LOCK, flags=re.MULTILINE)
    for entry in ENTRIES:
        name, *hashes = re.split(r"\s+--hash=", entry)
        assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in hashes), name


def test_every_command_that_installs_the_lock_asks_for_its_hashes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in makefile.splitlines() if "pip install" in line and " -r " in line]
    assert len(installs) == 3 and all("--require-hashes" in line for line in installs)
    assert "--generate-hashes" in makefile


def test_the_lock_without_torch_is_the_lock_without_torch(tmp_path):
    """The program in the Makefile that takes torch and CUDA out leaves whole entries."""
    program = re.search(r"awk '(.+?)' requirements", (ROOT / "Makefile").read_text(encoding="utf-8"))[1]
    left = subprocess.run(
        ["awk", program, ROOT / "requirements.txt"], capture_output=True, text=True, check=True
    ).stdout
    kept = {Requirement(e.partition(" --hash=")[0].strip()).name for e in left.replace("\\\n", "").splitlines()}
    gone = {pin.name for pin in PINS} - kept
    assert {"torch", "torchvision", "triton"} <= gone and "numpy" in kept
    assert all(re.match("torch|triton|nvidia-|cuda-", name) for name in gone), gone


def test_the_same_versions_of_python_are_named_everywhere():
    first, last = PYTHONS[0], PYTHONS[-1]
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.fullmatch(r".* Python :: 3\.\d+", c)]
    assert named == PYTHONS
    for page in ("README.md", "CONTRIBUTING.md", "book/re-execute.md"):
        assert f"Python {first} to {last}" in (ROOT / page).read_text(encoding="utf-8"), page
    assert f"--python-version {first} " in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert (ROOT / ".binder/runtime.txt").read_text().strip() == f"python-{first}"
    jobs = WORKFLOWS["tests"]["jobs"]
    assert jobs["book"]["strategy"]["matrix"]["python"] == PYTHONS
    edges = {entry["target"]: entry["python"] for entry in jobs["versions"]["strategy"]["matrix"]["include"]}
    assert edges == {"oldest": first, "newest": last}


def test_the_citation_file_is_complete_and_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    for work in (citation, *citation["references"]):
        assert work["title"] and work["type"]
        assert all({"name"} <= a.keys() or {"family-names", "given-names"} <= a.keys() for a in work["authors"])


@pytest.mark.parametrize("command", get_command(app).commands)
def test_every_command_explains_itself(command):
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0 and "Usage" in shown.output


# -- automation

WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")
}
ACTION = yaml.safe_load((ROOT / ".github/actions/book/action.yml").read_text(encoding="utf-8"))
JOBS = {f"{name}/{job}": content for name, workflow in WORKFLOWS.items() for job, content in workflow["jobs"].items()}
STEPS = [*ACTION["runs"]["steps"], *(step for job in JOBS.values() for step in job.get("steps", []))]


def test_automation_calls_only_what_the_makefile_has():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    matrix = [entry["target"] for entry in JOBS["tests/versions"]["strategy"]["matrix"]["include"]]
    scripts = [step["run"] for step in STEPS if "run" in step] + [(ROOT / ".binder/postBuild").read_text()]
    called = {target for script in scripts for target in re.findall(r"\bmake ([a-z]+)", script)} | set(matrix)
    assert {"book", "lint", "verify", "test", "oldest", "newest"} <= called <= targets


def test_actions_are_pinned_by_commit():
    used = [step["uses"] for step in STEPS if "uses" in step and not step["uses"].startswith("./")]
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_a_limit_and_no_right_that_it_does_not_need(job):
    content = JOBS[job]
    assert "timeout-minutes" in content or content["uses"] == "./.github/workflows/tests.yml"
    rights = {"site/deploy": {"pages": "write", "id-token": "write"}, "weekly/report": {"issues": "write"}}
    assert content.get("permissions") == rights.get(job)
    assert WORKFLOWS[job.split("/")[0]]["permissions"] == {"contents": "read"}
    assert "concurrency" in WORKFLOWS[job.split("/")[0]]
    for step in content.get("steps", []):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_binder_is_built_from_the_lock_without_cuda():
    script = (ROOT / ".binder/postBuild").read_text(encoding="utf-8")
    assert os.access(ROOT / ".binder/postBuild", os.X_OK)
    assert "make data TORCH_INDEX=" in script and "pip install" not in script
