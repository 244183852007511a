"""How far the numbers of the book move with the threads and the instructions of the processor: python variation.py OUT.

Runs every notebook under each setting and compares what it records with the plain run. The settings pretend an older
processor to NumPy, to its BLAS and to torch. Ten minutes on two cores; needs the data and an x86 processor.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from calib import results
from calib.verify import compare, kind

ROOT = Path(__file__).parents[2]
RUNS = yaml.safe_load((ROOT / "notebooks/runs.yaml").read_text(encoding="utf-8"))
SETTINGS = {
    "as it is": {},
    "two threads": dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"),
    "a processor with AVX2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "a processor with SSE4.2": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
}
PROGRAM = """
import json, sys
from calib import execute
execute.THREADS = ()
source, output, parameters, numbers = sys.argv[1:]
execute.execute(source, output, json.loads(parameters), numbers, warnings=True)
"""


def numbers(setting, folder):
    """What all runs record under a setting."""
    found = {}
    environment = {**os.environ, **dict.fromkeys(SETTINGS["two threads"], "1"), **SETTINGS[setting]}
    for name, run in RUNS.items():
        source, output, part = ROOT / f"notebooks/{run['notebook']}.py", folder / "page.ipynb", folder / "numbers.json"
        command = [sys.executable, "-c", PROGRAM, source, output, json.dumps(run.get("parameters", {})), part]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        found.update(results.load(part))
        print(setting, name, flush=True)
    return found


def measure():
    """Largest difference from the plain run by setting and kind."""
    with tempfile.TemporaryDirectory() as scratch:
        found = {setting: numbers(setting, Path(scratch)) for setting in SETTINGS}
    plain = found.pop("as it is")
    largest = {}
    for setting, other in found.items():
        for difference in compare(plain, other):
            sizes = largest.setdefault(setting, {})
            sizes[difference.kind] = max(sizes.get(difference.kind, 0.0), difference.size)
    counts = {}
    for run, values in plain.items():
        for name, value in values.items():
            counts[kind(run, name, value)] = counts.get(kind(run, name, value), 0) + 1
    return {"numbers": counts, "largest": largest}


if __name__ == "__main__":
    results.save(measure(), Path(sys.argv[1]))
