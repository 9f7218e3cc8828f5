"""The small evaluation that tests of divided work, and the benchmark of it, run in many ways."""

import json

DETECTORS = ["msp", "ebo", "nci", "mds", "vim", "knn", "react", "odin", "klm", "dice", "gen", "rmds"]


def job(folder, **changes):
    """The file of a job on glyphs with a small network that is trained; a key that becomes ``None`` is left out."""
    declared = {
        "benchmark": "glyphs",
        "images_per_class": 5,
        "detectors": DETECTORS,
        "protocols": ["standard", "full_spectrum"],
        "device": "cpu",
        "model": {"architecture": "small_cnn", "train": {"epochs": 1}},
        "output": str(folder / "out"),
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.yaml"
    path.write_text(json.dumps({key: value for key, value in declared.items() if value is not None}))
    return path


def study(folder, models, **changes):
    """The file of a study of some models with one detector."""
    return job(
        folder, **{"model": None, "models": models, "detectors": ["msp"], "protocols": ["human_centric"], **changes}
    )
