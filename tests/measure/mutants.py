"""Break the numeric modules on purpose and count what the tests notice: `python tests/measure/mutants.py OUT.json`.

Runs mutmut in a copy of the checkout, so that nothing here changes; see [tool.mutmut] in pyproject.toml.
"""

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
SURVIVED, NOTICED = {0}, {1, 36}  # exit codes of the tests; 36 is a test that never ended


def changed_lines(mutant, folder):
    """What a mutant changed, as lines that begin with - or +."""
    diff = subprocess.run(["mutmut", "show", mutant], cwd=folder, capture_output=True, text=True).stdout
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def main(out):
    """Run all mutants and write the counts by module, and what was not noticed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "checkout"
        for part in ("calib", "tests", "book/_ext", "pyproject.toml", "README.md"):
            source = ROOT / part
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, folder / part) if source.is_dir() else shutil.copy(source, folder / part)
        for part in ("tests", "book"):
            (folder / "mutants" / part).mkdir(parents=True)
        subprocess.run(["mutmut", "run"], cwd=folder, check=True)
        modules, survivors = {}, {}
        for path in sorted((folder / "mutants/calib").rglob("*.meta")):
            codes = json.loads(path.read_text())["exit_code_by_key"]
            if codes:
                noticed = [code in NOTICED for code in codes.values()]
                modules[path.name.removesuffix(".py.meta")] = {"mutants": len(codes), "killed": sum(noticed)}
                survivors |= {m: changed_lines(m, folder) for m, code in codes.items() if code not in NOTICED}
    record = {
        "python": platform.python_version(),
        "mutmut": version("mutmut"),
        "modules": modules,
        "survivors": survivors,
    }
    Path(out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/measure/mutants.py OUT.json")
    main(sys.argv[1])
