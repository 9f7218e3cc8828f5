"""Which images a score table is of: the fingerprint of each set's list, in order."""

import pandas as pd

from oodscope.base.errors import DataError
from oodscope.base.hashing import fingerprint
from oodscope.results.scoretable import ScoreTable

LISTED_UNITS = ("", "all", "clean")
"""Units whose rows are images of a published list; every other one holds what a search found."""


def list_hash(frame: pd.DataFrame) -> str:
    """Of names, labels and own classes in order: equal only for the same images in the same order."""
    return fingerprint(
        "image list",
        frame["sample_id"].astype(str).tolist(),
        frame["label"].to_numpy(dtype="int64"),
        frame["own_class"].to_numpy(dtype="int64"),
    )


def table_lists(scores: ScoreTable) -> dict[str, tuple[str, int, str]]:
    """Role, number of images and list hash of every set, from the rows themselves."""
    frame = scores.frame[scores.frame["unit"].isin(LISTED_UNITS)]
    found = {}
    for name in scores.sets():
        rows = frame[(frame["set"] == name).to_numpy()]
        roles = rows["role"].unique()
        if len(roles) != 1:
            raise DataError(f"set {name!r} has rows of {len(roles)} roles; a set has one")
        found[name] = (str(roles[0]), len(rows), list_hash(rows))
    return found
