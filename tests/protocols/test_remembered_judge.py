"""What a judge said of the same scores need not be computed twice, and nothing else is remembered."""

import pandas as pd
import pytest

from oodscope.base.errors import DataError
from oodscope.protocols.leaderboard import remembered, verify_each
from oodscope.protocols.leaderboard.judging import judge
from oodscope.protocols.leaderboard.remembered import RememberedJudge
from oodscope.results import ScoreTable
from oodscope.results.leaderboard.folder import read_entry, read_scores

from ..leaderboard_world import edit, enter, few_replicates  # noqa: F401


@pytest.fixture
def scores(tmp_path):
    folder = enter(tmp_path / "board")
    return read_scores(folder, read_entry(folder))


@pytest.fixture
def asked(monkeypatch):
    """How often the numbers were computed."""
    calls = []

    def counted(scores, protocols):
        calls.append(protocols)
        return judge(scores, protocols)

    monkeypatch.setattr(remembered, "judge", counted)
    return calls


def test_the_answer_is_the_same_to_the_last_bit(scores, tmp_path, asked):
    judged = RememberedJudge(tmp_path / "judged")
    first, second = (judged(scores, {"standard": 1}) for _ in range(2))
    assert len(asked) == 1
    assert first == second == judge(scores, {"standard": 1})


def test_another_score_name_setting_protocol_or_code_is_another_question(scores, tmp_path, asked, monkeypatch):
    judged = RememberedJudge(tmp_path / "judged")
    judged(scores, {"standard": 1})
    frame = scores.frame.copy()
    frame.loc[0, "knn"] += 1e-9
    judged(ScoreTable(frame, scores.metadata), {"standard": 1})
    assert len(asked) == 2
    judged(ScoreTable(scores.frame.assign(prediction=scores.frame["prediction"] + 1), scores.metadata), {"standard": 1})
    assert len(asked) == 3
    judged(ScoreTable(scores.frame, scores.metadata | {"run": "another"}), {"standard": 1})
    assert len(asked) == 4
    judged(ScoreTable(scores.frame.assign(sample_id="x" + scores.frame["sample_id"]), scores.metadata), {"standard": 1})
    assert len(asked) == 5
    with pytest.raises(DataError, match="version 2"):
        judged(scores, {"standard": 2})
    monkeypatch.setattr(remembered, "_code", lambda: "changed")
    judged(scores, {"standard": 1})
    assert len(asked) == 7


def test_a_broken_answer_is_computed_again(scores, tmp_path, asked):
    judged = RememberedJudge(tmp_path / "judged")
    expected = judged(scores, {"standard": 1})
    (path,) = judged.folder.iterdir()
    path.write_bytes(b"not a table")
    assert judged(scores, {"standard": 1}) == expected
    pd.DataFrame({"value": [1.0]}).to_parquet(path)
    assert judged(scores, {"standard": 1}) == expected
    assert len(asked) == 3


def test_a_changed_file_is_refused_though_its_numbers_are_remembered(tmp_path, asked):
    folder = enter(tmp_path / "board")
    judged = RememberedJudge(tmp_path / "judged")
    first = verify_each(tmp_path / "board", judged)
    assert verify_each(tmp_path / "board", judged).board.standings == first.board.standings
    assert len(asked) == 1 and first.refused == {}
    with (folder / "scores.parquet").open("ab") as stream:
        stream.write(b" ")
    assert "checksum differs" in verify_each(tmp_path / "board", judged).refused[folder.name]


def test_a_claim_is_checked_though_the_numbers_are_remembered(tmp_path):
    folder = enter(tmp_path / "board")
    judged = RememberedJudge(tmp_path / "judged")
    verify_each(tmp_path / "board", judged)
    edit(folder, lambda content: content["claims"][0].update(value=0.123))
    assert "claims" in verify_each(tmp_path / "board", judged).refused[folder.name]
