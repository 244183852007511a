"""The rooms of the package: the numeric core is readable alone, and no two modules import each other in a circle."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

from conftest import ROOT

PACKAGE = ROOT / "calib"
CORE = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__", "names"}
ROOMS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}


def modules():
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }


def imported(path):
    """Modules of the package that a module imports, also inside of its functions."""
    known, found = modules(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inner}
    return found & set(known)


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: imported(path) - {name} for name, path in modules().items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError with the circle


def test_the_core_imports_nothing_of_the_other_rooms():
    assert len(CORE) > 12
    for name in sorted(CORE):
        rooms = {module.split(".")[1] for module in imported(PACKAGE / f"{name}.py") if "." in module} & ROOMS
        assert rooms == set(), name


def test_importing_the_package_is_quick_and_brings_no_room():
    code = (
        "import sys, time; begun = time.perf_counter(); import calib; print(time.perf_counter() - begun, *sys.modules)"
    )
    seconds, *loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {f"calib.{room}" for room in ROOMS} & set(loaded)
    assert float(seconds) < 2  # 0.2 on a quiet machine; NumPy is most of it
