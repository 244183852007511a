"""What several tests share: the real data, the built site, and reasons to skip."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from calib.data.registry import REGISTRY, data_folder, status

ROOT = Path(__file__).parents[1]

settings.register_profile("calib", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("calib")


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
    if item.get_closest_marker("site") and not (ROOT / "_build/html/index.html").exists():
        pytest.skip("the site is not built: make book")
