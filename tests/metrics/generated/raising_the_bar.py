"""Tables 1 and 2 of "Raising the Bar on the Evaluation of Out-of-Distribution Detection" (arXiv 2209.11960).

Of table 2 the text has one header too few: ImageNet-C has two columns (mean and largest ECE over the corruptions), and
ImageNet-V2, which the text speaks of, has none.
"""

import numpy as np

SETS = ("ImageNet-O", "Species", "OpenImage-O", "Texture", "N-ImageNet")
VITS = ("ViT-B-16", "ViT-B-32", "ViT-L-16", "ViT-L-32")

AUROC = {
    ("ViT-B-16", "SC"): (82.13, 59.8, 90.8, 90.2, 75.72),
    ("ViT-B-16", "SE"): (89.15, 63.2, 94.5, 94.6, 80.63),
    ("ViT-B-16", "Ensemble"): (95.1, 75.6, 98.2, 98.3, 88.12),
    ("ViT-B-16", "MaxLogit"): (90.3, 68.1, 95.4, 95.6, 82.1),
    ("ViT-B-16", "Energy"): (92.0, 70.02, 96.0, 97.9, 84.15),
    ("ViT-B-32", "SC"): (75.96, 53.4, 85.4, 87.8, 74.2),
    ("ViT-B-32", "SE"): (78.94, 56.5, 87.3, 89.0, 76.98),
    ("ViT-B-32", "Ensemble"): (88.1, 67.3, 95.6, 97.0, 85.2),
    ("ViT-B-32", "MaxLogit"): (82.1, 61.6, 90.2, 93.2, 80.1),
    ("ViT-B-32", "Energy"): (85.6, 63.5, 93.0, 94.0, 83.21),
    ("ViT-L-16", "SC"): (90.69, 64.1, 93.3, 95.8, 82.6),
    ("ViT-L-16", "SE"): (92.36, 66.23, 94.0, 96.71, 84.7),
    ("ViT-L-16", "Ensemble"): (95.8, 77.3, 98.62, 99.2, 88.6),
    ("ViT-L-16", "MaxLogit"): (94.2, 72.1, 96.8, 97.8, 86.8),
    ("ViT-L-16", "Energy"): (93.5, 70.4, 95.1, 96.8, 85.3),
    ("ViT-L-32", "SC"): (86.91, 56.6, 88.6, 90.3, 80.06),
    ("ViT-L-32", "SE"): (89.51, 60.2, 91.0, 94.2, 81.65),
    ("ViT-L-32", "Ensemble"): (95.6, 70.1, 97.2, 97.0, 88.1),
    ("ViT-L-32", "MaxLogit"): (94.1, 63.4, 94.0, 95.2, 84.2),
    ("ViT-L-32", "Energy"): (92.8, 62.1, 93.2, 94.7, 83.0),
    ("RN50", "SC"): (52.8, 51.34, 58.2, 61.4, 53.4),
    ("RN50", "SE"): (53.1, 52.27, 60.8, 62.7, 54.2),
    ("RN50", "Maha"): (50.1, 50.3, 55.4, 54.3, 51.1),
    ("RN50", "Ensemble"): (62.5, 59.8, 67.4, 68.3, 60.1),
    ("RN50", "MaxLogit"): (58.4, 56.1, 63.5, 67.4, 57.45),
    ("RN50", "Energy"): (57.6, 55.3, 63.2, 66.2, 56.8),
    ("WRN-50-2", "SC"): (54.6, 52.1, 59.5, 63.4, 55.3),
    ("WRN-50-2", "SE"): (57.0, 54.3, 61.8, 66.1, 57.6),
    ("WRN-50-2", "Maha"): (53.1, 50.6, 57.2, 57.6, 52.8),
    ("WRN-50-2", "Ensemble"): (64.2, 61.3, 69.23, 71.4, 62.4),
    ("WRN-50-2", "MaxLogit"): (60.1, 57.87, 66.4, 69.2, 58.2),
    ("WRN-50-2", "Energy"): (58.5, 57.1, 65.3, 67.8, 57.8),
}
"""Table 1: AUROC in percent, by network and detector, on each of ``SETS``; the last is the generated one."""

ARCHITECTURES = [architecture for architecture, _ in AUROC]
TABLE_1 = np.array(list(AUROC.values()))

SHIFTS = ("val", "A", "C", "C max", "R", "Sketch", "S")
ECE = {
    "ViT-B-16": (3.62, 14.16, 7.43, 11.18, 18.61, 5.38, 15.44),
    "ViT-B-32": (3.70, 23.13, 8.15, 11.32, 19.21, 7.69, 17.64),
    "ViT-L-16": (2.35, 12.67, 7.30, 9.42, 13.44, 4.79, 14.97),
    "ViT-L-32": (2.51, 13.20, 7.62, 11.03, 15.76, 4.85, 15.12),
}
"""Table 2: ECE in percent of each network on each of ``SHIFTS``; S is the generated one."""


def column(name: str) -> np.ndarray:
    """One OOD set of table 1."""
    return TABLE_1[:, SETS.index(name)]
