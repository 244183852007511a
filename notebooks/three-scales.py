# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Three scales, trained here
#
# Does the soft-label gap grow with the scale of a network? {cite:t}`dogah2026` says so of three ResNets on CIFAR-10, whose logits are not
# published. So this book trains three smaller ones from images, three times each, and asks again.
#
# :::{admonition} Before you start
# - **You will** see what nine networks learned, what became of both hypotheses on them, and what their gaps are made of.
# - **You need** the protocol of [](../soft-label-gap.md) and the parts of [](three-parts.ipynb). How the networks were trained is on the page
#   [](../raw-data.md).
# - **Time** about 10 minutes to read, half a minute to run; the training, which took hours, is not run again.
# :::
#
# :::{admonition} Primary analyses
# Written down before any of these gaps was computed:
#
# 1. *H1, the gap is above zero.* The gap of each of the nine networks, with a 95% interval over images, all fits inside the resampling.
# 2. *H2, the gap grows with scale.* By the rule that [](paper-audited.ipynb) applies to the paper: at both steps up, every run of the larger network
#    has the larger gap. And by the difference of mean gaps of two scales: with a 95% interval over images, fits inside, all networks on the
#    same resampled images; and with a t interval over the three training seeds.
# 3. *What the gap is made of.* The parts of each scale, mean over its seeds, with the interval of 1.
#
# Everything else on this page is exploratory.
# :::

# %% tags=["hide-input"]
import json
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from scipy.stats import ttest_1samp

from calib.data import cluster_names, load_dogah2026, load_soft_labels
from calib.names import DATASETS, MODELS
from calib.parts import PARTS, study_parts
from calib.plots import COLOURS, label, log_axis, show, table
from calib.resample import interval
from calib.results import glue, load_runs, record
from calib.rules import rises_with_size
from calib.seeds import configurations

plt.style.use("calib.paper")

# %% tags=["parameters"]
folder = "../sweep/predictions"  # logits and records of our own training, <dataset>/<model>-<seed>
models = ["resnet8", "resnet20", "resnet32"]  # from small to large
seeds = [42, 123, 456]  # training seeds
results_folder = "../_build/results"  # where the runs of the gap put their numbers
replicates = 2000  # of every bootstrap
draws = 200  # of random halves
