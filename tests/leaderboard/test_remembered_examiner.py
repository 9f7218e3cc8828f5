"""What an examiner found in the same files need not be found out twice, and nothing else is remembered."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from oodscope.base.errors import DataError
from oodscope.leaderboard.records.folder import read_entry, read_scores, write_entry
from oodscope.leaderboard.verify import remembered
from oodscope.leaderboard.verify.examining import examine
from oodscope.leaderboard.verify.remembered import RememberedExaminer
from oodscope.leaderboard.verify.verifying import verify_each
from oodscope.results.scoretable import ScoreTable
from tests.leaderboard.leaderboard_world import edit, enter, few_replicates  # noqa: F401


@pytest.fixture
def asked(monkeypatch):
    """Which entries were examined."""
    calls = []

    def counted(folder, entry):
        calls.append(entry.id)
        return examine(folder, entry)

    monkeypatch.setattr(remembered, "examine", counted)
    return calls


def same(a, b):
    assert a.measurements == b.measurements and a.flags == b.flags
    assert list(a.placed) == list(b.placed) and a.placed
    for one, other in zip(a.placed.values(), b.placed.values()):
        here, there = one.images, other.images
        assert [each.classes for each in one.classes] == [each.classes for each in other.classes]
        for mine, theirs in zip(one.classes, other.classes):
            for what in ("values", "plain", "of_id", "of_ood"):
                np.testing.assert_array_equal(getattr(mine, what), getattr(theirs, what))
        np.testing.assert_array_equal(here.of_id, there.of_id)
        assert list(here.of_ood) == list(there.of_ood)
        for name in here.of_ood:
            np.testing.assert_array_equal(here.of_ood[name], there.of_ood[name])


def test_the_answer_is_the_same_to_the_last_bit(tmp_path, asked):
    folder = enter(tmp_path / "board")
    examiner = RememberedExaminer(tmp_path / "examined")
    first, second = (examiner(folder, read_entry(folder)) for _ in range(2))
    assert len(asked) == 1
    same(first, second)
    same(second, examine(folder, read_entry(folder)))


def test_another_entry_or_other_code_is_another_question(tmp_path, asked, monkeypatch):
    folder = enter(tmp_path / "board")
    examiner = RememberedExaminer(tmp_path / "examined")
    examiner(folder, read_entry(folder))
    edit(folder, lambda content: content["execution"].update(seed=content["execution"]["seed"] + 1))
    examiner(folder, read_entry(folder))
    assert len(asked) == 2
    edit(folder, lambda content: content["protocols"].update(standard=2))
    for _ in range(2):  # a refusal is no answer to be kept
        with pytest.raises(DataError, match="version 2"):
            examiner(folder, read_entry(folder))
    assert len(asked) == 4
    edit(folder, lambda content: content["protocols"].update(standard=1))
    examiner(folder, read_entry(folder))
    assert len(asked) == 4
    monkeypatch.setattr(remembered, "_code", lambda: "changed")
    examiner(folder, read_entry(folder))
    assert len(asked) == 5


def test_other_scores_are_another_question(tmp_path, asked):
    folder = enter(tmp_path / "board")
    entry = read_entry(folder)
    scores = read_scores(folder, entry)
    examiner = RememberedExaminer(tmp_path / "examined")
    before = examiner(folder, entry)
    frame = scores.frame.copy()
    frame[entry.detector.id] = -frame[entry.detector.id]
    other = write_entry(tmp_path / "other", entry, ScoreTable(frame, scores.context))
    after = examiner(other, read_entry(other))
    assert len(asked) == 2 and after.measurements != before.measurements


def test_a_broken_answer_is_computed_again(tmp_path, asked):
    folder = enter(tmp_path / "board")
    examiner = RememberedExaminer(tmp_path / "examined")
    expected = examiner(folder, read_entry(folder))
    (path,) = examiner.folder.iterdir()
    path.write_bytes(b"not a table")
    same(examiner(folder, read_entry(folder)), expected)
    save_file({"0 id": np.zeros(3)}, path, metadata={"examined": '{"measurements": [{"value": 1.0}]}'})
    same(examiner(folder, read_entry(folder)), expected)
    assert len(asked) == 3


def test_a_changed_file_is_refused_though_its_numbers_are_remembered(tmp_path, asked):
    folder = enter(tmp_path / "board")
    examiner = RememberedExaminer(tmp_path / "examined")
    first = verify_each(tmp_path / "board", examiner)
    assert verify_each(tmp_path / "board", examiner).board.standings == first.board.standings
    assert len(asked) == 1 and first.refused == {}
    with (folder / "scores.parquet").open("ab") as stream:
        stream.write(b" ")
    assert "checksum differs" in verify_each(tmp_path / "board", examiner).refused[folder.name]


def test_a_claim_is_checked_though_the_numbers_are_remembered(tmp_path):
    folder = enter(tmp_path / "board")
    examiner = RememberedExaminer(tmp_path / "examined")
    verify_each(tmp_path / "board", examiner)
    edit(folder, lambda content: content["claims"][0].update(value=0.123))
    assert "claims" in verify_each(tmp_path / "board", examiner).refused[folder.name]
