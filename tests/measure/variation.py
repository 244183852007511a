"""How far the numbers of the book move with the threads and the instructions of the processor: python variation.py OUT.

Runs every notebook under each setting and compares what it records with the plain run. The settings are the libraries'
own switches: they pretend an older processor to NumPy, to its BLAS and to torch. MKL has other code for processors of
its maker than for those of others, and no switch between the two; a preloaded library of two lines names the maker.
A quarter of an hour on two cores; needs the data, a C compiler and an x86 processor. ARM cannot be pretended here.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from calib.pages import record as results
from calib.pages.runs import load_runs
from calib.pages.verify import compare, kind

ROOT = Path(__file__).parents[2]
RUNS = load_runs(ROOT / "notebooks/runs.yaml")
SINGLE = {run.name for run in RUNS.values() if run.precision == "single"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
NO_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"
SETTINGS = {
    "as it is": {},
    "two threads": dict.fromkeys(THREADS, "2"),
    "AVX-512 off": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": NO_AVX512,
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "AVX2 off": {
        "OPENBLAS_CORETYPE": "Sandybridge",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {NO_AVX512}",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "AVX",
        "ONEDNN_MAX_CPU_ISA": "AVX",
    },
    "baseline": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {NO_AVX512}",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "MKL of another maker": {"LD_PRELOAD": "maker.so"},
}
MAKER = "int mkl_serv_intel_cpu(void) {return 1;} int mkl_serv_intel_cpu_true(void) {return 1;}"
PROGRAM = """
import json, sys
from calib.pages import execute
execute.THREADS = ()
source, output, parameters, numbers = sys.argv[1:]
execute.execute(source, output, json.loads(parameters), numbers, warnings=True)
"""


def numbers(name, setting, folder):
    """What one run records under a setting, a key of `SETTINGS`."""
    run, part = RUNS[name], folder / "numbers.json"
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), **SETTINGS[setting]}
    if "LD_PRELOAD" in environment:
        environment["LD_PRELOAD"] = str(folder / environment["LD_PRELOAD"])
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-o", environment["LD_PRELOAD"], "-"],
            input=MAKER.encode(),
            check=True,
        )
    source, parameters = ROOT / run.source, json.dumps(run.parameters)
    command = [sys.executable, "-c", PROGRAM, source, folder / "page.ipynb", parameters, part]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return results.load(part)


def measure():
    """Largest difference from the plain run by setting and kind."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for setting in SETTINGS:
            parts = []
            for name in RUNS:
                parts.append(numbers(name, setting, Path(scratch)))
                print(setting, name, flush=True)
            found[setting] = results.merge(parts)
    plain = found.pop("as it is")
    largest = {}
    for setting, other in found.items():
        for difference in compare(plain, other, SINGLE):
            sizes = largest.setdefault(setting, {})
            sizes[difference.kind] = max(sizes.get(difference.kind, 0.0), difference.size)
    counts = {}
    for run, values in plain.items():
        for value in values.values():
            counts[kind(value, run in SINGLE)] = counts.get(kind(value, run in SINGLE), 0) + 1
    return {"numbers": counts, "largest": largest}


if __name__ == "__main__":
    results.save(measure(), Path(sys.argv[1]))
