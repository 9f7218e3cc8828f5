"""Training methods over their seeds: seeds are no pairs, their spread is pooled, and one network cannot say."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.trainings import compare_trainings
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record, make_result, make_scores


def network(number, moved, luck=0.0):
    """A network on the factory's images whose OOD scores are moved; its own noise by its number."""
    scores = make_scores()
    frame = scores.frame.copy()
    rng = np.random.default_rng(number)
    ood = frame["role"].isin(["near", "far"]).to_numpy()
    for name in ("knn", "msp"):
        own = frame[name].to_numpy().copy()
        frame[name] = own + own.std() * (0.4 * rng.normal(size=len(own)) + (moved + luck) * ood)
    record = make_record(f"run-{number}", model_fingerprint=f"{number:02d}" * 32)
    return Result(record, make_result(f"run-{number}").measurements, ScoreTable(frame, scores.context))


def test_a_clear_gain_of_a_training_is_seen_and_its_population_is_networks():
    """On 0.1 two trainings were compared as two runs: seeds had no part in it (finding A2)."""
    trainings = {"CE": [network(n, 0.0) for n in range(3)], "OE": [network(n, 1.5) for n in range(3, 6)]}
    found = compare_trainings(trainings, detectors=["knn"])
    near = next(row for row in found if (row.group, row.set) == ("near", "mean"))
    assert (near.first, near.second, near.statement, near.n_networks) == ("knn of CE", "knn of OE", "networks", 3)
    assert near.difference < 0 and near.distinguishable
    assert "for other networks of this recipe" in str(near)


def test_the_luck_of_seeds_is_no_gain():
    """Without the spread of seeds the same difference would be significant."""
    trainings = {
        "CE": [network(n, 0.0, luck) for n, luck in enumerate((-0.6, 0.1, 0.4))],
        "OE": [network(n + 3, 0.1, luck) for n, luck in enumerate((-0.4, 0.0, 0.6))],
    }
    found = compare_trainings(trainings, detectors=["knn"])
    assert not any(row.distinguishable for row in found)
    still = compare_trainings({"CE": [network(n, 0.0) for n in range(3)], "OE": trainings["OE"]}, detectors=["knn"])
    assert max(row.detectable for row in found) > max(row.detectable for row in still)


def test_misuse_is_named():
    one = [network(0, 0.0)]
    two = [network(1, 0.0), network(2, 0.0)]
    with pytest.raises(DataError, match=r"cannot say: one network was trained.*\(CE\)"):
        compare_trainings({"CE": one, "OE": two})
    with pytest.raises(DataError, match="needs two methods"):
        compare_trainings({"CE": two})
    with pytest.raises(DataError, match="of one network"):
        compare_trainings({"CE": two, "OE": two})
