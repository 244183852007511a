"""The ladder: every model with every seed, on one machine, and as jobs that a scheduler runs."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import yaml

from calib.data.examples import load_examples
from calib.data.registry import data_folder, status
from calib.models.images import ARCHIVE
from conftest import ROOT

SBATCH = """#!/bin/sh
# A scheduler that kills its first job at once, as at a time limit, and runs the others: prints the number of the job.
for script; do :; done
echo "$*" >> jobs/submitted
id=$(wc -l < jobs/submitted)
if [ "$id" = 1 ]; then
    setsid sh "$script" > jobs/1.out 2>&1 &
    kill -KILL -- -$!
    echo TIMEOUT > jobs/1
else
    echo RUNNING > "jobs/$id"
    (setsid sh "$script" > "jobs/$id.out" 2>&1 && echo COMPLETED > "jobs/$id" || echo FAILED > "jobs/$id") > jobs/log 2>&1 &
fi
echo "$id"
"""
SACCT = """#!/bin/sh
cat "jobs/$2"
"""


def snakemake(*arguments, cwd=ROOT):
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-s",
        str(ROOT / "notebooks/ladder/Snakefile"),
        "--nolock",
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment["CALIB_DATA"] = str(data_folder())
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(("ladder", "runs"), [("ladder", 9), ("paper", 27)])
def test_a_ladder_is_every_model_with_every_seed(ladder, runs):
    done = snakemake(
        "--configfile",
        f"notebooks/ladder/{ladder}.yaml",
        "--config",
        "epochs=7",
        "out=nowhere",
        "--cores",
        "2",
        "-n",
        "-p",
    )
    again = [line for line in done.stdout.splitlines() if "-m calib predict" in line and "--augment-validation" in line]
    assert len(again) == (9 if ladder == "ladder" else 0)
    commands = [line for line in done.stdout.splitlines() if "-m calib train" in line]
    assert done.returncode == 0 and len(commands) == len(set(commands)) == runs
    assert {seed for seed in (42, 123, 456) if sum(f"--seed {seed} " in line for line in commands) == runs / 3} == {
        42,
        123,
        456,
    }
    assert all("--epochs 7 " in line for line in commands if " vision " in line)


@pytest.mark.skipif(status(ARCHIVE) != "ok", reason="the JPEG copies of CIFAR-10 are not there")
@pytest.mark.skipif(
    importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None,
    reason="the executor is not installed",
)
def test_jobs_through_a_scheduler_that_kills_one(tmp_path, monkeypatch):
    for name, text in (("sbatch", SBATCH), ("sacct", SACCT)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/ladder").symlink_to(ROOT / "notebooks/ladder")
    runs = {"command": "vision --images jpeg --epochs 1 --limit 40", "models": {"resnet8": "--model resnet8"}}
    (tmp_path / "two.yaml").write_text(
        yaml.safe_dump({"seeds": [1, 2], "augmented": True, "train": {"cifar10h": runs}})
    )
    quick = ("--latency-wait", "10", "--seconds-between-status-checks", "1")
    done = snakemake("--profile", "notebooks/ladder/cluster", "--configfile", "two.yaml", *quick, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    submitted = (tmp_path / "jobs/submitted").read_text().splitlines()
    assert len(submitted) == 2 * 2 + 1 and all("--output=predictions/checkpoints/slurm" in line for line in submitted)
    assert (tmp_path / "predictions/checkpoints").is_dir()
    for seed in (1, 2):
        plain, augmented = (
            load_examples(tmp_path / f"predictions/{folder}cifar10h/resnet8-{seed}.npz")
            for folder in ("", "augmented/")
        )
        assert len(plain["test"]) == 40
        np.testing.assert_array_equal(augmented["test"].logits, plain["test"].logits)
        assert (augmented["validation"].logits != plain["validation"].logits).any()
