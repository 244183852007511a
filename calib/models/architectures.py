"""Names of the networks that can be trained here, known without torch; `calib.models.resnet` builds them."""

DEPTHS = {"resnet8": 8, "resnet14": 14, "resnet20": 20, "resnet32": 32}
"""The CIFAR family of He et al. (2016), for CPUs, by the number of layers."""

LARGE = ("resnet18", "resnet50", "resnet101")
"""Torchvision's, with a small stem, for GPUs."""

NAMES = (*DEPTHS, *LARGE)
