"""Residual networks for 32x32 images: the CIFAR family of He et al. (2016), and torchvision's with a small stem."""

from functools import partial
from itertools import pairwise

from torch import nn
from torch.nn import functional as F

from calib.models.architectures import DEPTHS, LARGE, NAMES


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters: every second pixel, new channels zero ("option A")."""

    def __init__(self, before, width):
        super().__init__()
        self.stride, self.new = width // before, width - before
        self.conv1 = nn.Conv2d(before, width, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        """Transform (n, before, h, w) to (n, width, h / stride, w / stride)."""
        shortcut = x
        if self.new:
            shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.new // 2, self.new // 2))
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + shortcut)


class CifarResNet(nn.Sequential):
    """He et al. (2016), section 4.2: 6n + 2 layers in three stages of 16, 32 and 64 channels."""

    def __init__(self, depth, n_classes=10):
        n = (depth - 2) // 6
        widths = [16, *[16] * n, *[32] * n, *[64] * n]
        super().__init__(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            *(Block(before, width) for before, width in pairwise(widths)),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, n_classes),
        )


def build(name, n_classes=10):
    """Make an untrained network by name.

    Parameters
    ----------
    name : str
        "resnet8", "resnet14", "resnet20", "resnet32": the CIFAR family, for CPUs. "resnet18", "resnet50",
        "resnet101": torchvision's, with a 3x3 stem of stride 1 and without max-pooling, as is usual on CIFAR-10.
    n_classes : int

    Returns
    -------
    torch.nn.Module
        Weights are drawn from torch's generator: seed it before.
    """
    if name not in NAMES:
        raise ValueError(f"model: expected one of {', '.join(NAMES)}, got {name!r}")
    if name in LARGE:
        import torchvision

        network = getattr(torchvision.models, name)(num_classes=n_classes)
        network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        network.maxpool = nn.Identity()
    else:
        network = CifarResNet(DEPTHS[name], n_classes)
    draw = partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            draw(module.weight)
    return network
