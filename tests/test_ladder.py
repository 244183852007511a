"""The sweep: every model with every seed, on one machine, and as jobs that a scheduler runs."""

import importlib.util
import os
import subprocess
import sys

import pytest
import yaml

from calib.data.examples import load_examples
from calib.data.registry import data_folder, status
from calib.models.images import ARCHIVE
from conftest import ROOT

SUBMIT = """#!/bin/sh
# What a scheduler does: take a job script, run it some time, print its number.
echo "$1" >> "{log}"
setsid sh "$1" > "$1.out" 2>&1 &
echo $!
"""


def snakemake(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "sweep/Snakefile"), "--nolock", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment["CALIB_DATA"] = str(data_folder())
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(("sweep", "runs"), [("ladder", 9), ("paper", 27)])
def test_a_sweep_is_every_model_with_every_seed(sweep, runs):
    done = snakemake(
        "--configfile", f"sweep/{sweep}.yaml", "--config", "epochs=7", "out=nowhere", "--cores", "2", "-n", "-p"
    )
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
def test_two_jobs_through_a_scheduler(tmp_path):
    submit = tmp_path / "submit"
    submit.write_text(SUBMIT.format(log=tmp_path / "submitted"))
    submit.chmod(0o755)
    sweep = {
        "seeds": [1, 2],
        "sweep": {
            "cifar10h": {
                "command": "vision --images jpeg --epochs 1 --limit 40",
                "models": {"resnet8": "--model resnet8"},
            }
        },
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    done = snakemake(
        *("--profile", str(ROOT / "sweep/cluster"), "--cluster-generic-submit-cmd", str(submit)),
        *(
            "--configfile",
            "sweep.yaml",
            "--latency-wait",
            "10",
            "--seconds-between-status-checks",
            "1",
            "--retries",
            "0",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "submitted").read_text().splitlines()) == 2
    for seed in (1, 2):
        assert len(load_examples(tmp_path / f"predictions/cifar10h/resnet8-{seed}.npz")["test"]) == 40
