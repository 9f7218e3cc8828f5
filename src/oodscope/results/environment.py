"""The environment of a run: what one needs to know to see why its numbers differ from another's."""

import os
import platform
from importlib.metadata import version

_PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-learn", "pillow")


def environment() -> dict[str, str | int]:
    """Versions of Python and of the libraries that compute, the platform, and the number of processors."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "platform": platform.platform(),
        "processors": os.cpu_count() or 1,
    }
