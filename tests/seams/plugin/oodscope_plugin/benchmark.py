"""A benchmark: a YAML file that lies in this package."""

from pathlib import Path

SHAPES = Path(__file__).parent / "shapes.yaml"
