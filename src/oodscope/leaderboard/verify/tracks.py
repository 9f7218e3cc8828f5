"""Tracks: where a training puts a row. What learned from outliers never stands among what did not."""

from oodscope.base.catalog import catalog
from oodscope.base.errors import DataError
from oodscope.leaderboard.records.entry import Track

PLAIN = ("cross_entropy", "fine_tune")
"""Recipes that no method of OOD detection is: scores of such networks are post-hoc."""


def track_of(recipe: str) -> Track | None:
    """The track that a recorded training, such as ``CrossEntropy + MixOE``, asks for; ``None`` where it is not known.

    The strictest of its stages counts: outliers once learned from are not forgotten.
    """
    entries = {entry["target"].rpartition(":")[2]: (name, entry) for name, entry in catalog("recipes").items()}
    stages = [entries.get(stage.strip()) for stage in recipe.partition(",")[0].split("+")]
    known = [stage for stage in stages if stage is not None]
    if any(entry["extra_data"] == "outliers" for _, entry in known):
        return "outlier-data"
    if any(name not in PLAIN for name, _ in known):
        return "training"
    return "post-hoc" if len(known) == len(stages) else None


def check_track(asked: Track | None, recipe: str) -> Track:
    """The track of an entry: the one asked for, unless the training behind the scores says otherwise."""
    least = track_of(recipe)
    if asked is None:
        return least or "post-hoc"
    if least == "outlier-data" and asked != "outlier-data":
        raise DataError(f"the network was trained by {recipe}, which learns from outliers: --track outlier-data")
    if least == "training" and asked == "post-hoc":
        raise DataError(f"the network was trained by {recipe}, which is a method of its own: --track training")
    return asked
