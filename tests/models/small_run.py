"""A small training run on real images, for several files of tests."""

import numpy as np
import pytest

from calib.data.registry import status
from calib.models import images, vision

SMALL = {"model": "resnet8", "epochs": 3, "images": "jpeg", "limit": 300}
LABELS = np.repeat(np.arange(10), 3)
needs_images = pytest.mark.skipif(status(images.ARCHIVE) != "ok", reason="the JPEG copies of CIFAR-10 are not there")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run on real images, straight through."""
    out = tmp_path_factory.mktemp("vision") / "run.npz"
    return out, vision.train(out, **SMALL)
