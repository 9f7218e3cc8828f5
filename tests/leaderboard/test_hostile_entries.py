"""Entries that mean harm, or that a careless hand spoiled: each is refused with one line, before it costs anything."""

import json
import os
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oodscope.base.errors import DataError
from oodscope.leaderboard.records import boundedscores
from oodscope.leaderboard.records.boundedscores import read_bounded_scores
from oodscope.leaderboard.records.folder import read_entry
from oodscope.leaderboard.records.text import LINE
from oodscope.leaderboard.verify.verifying import verify, verify_each
from oodscope.protocols.standard import Standard
from tests.leaderboard.leaderboard_world import copied, edit, few_replicates  # noqa: F401

SCRIPT = '<script>alert("x")</script><img src=x onerror=alert(1)>'
INVISIBLE = "\x1b\x00\x07\u202e\u200b\u2028\x9b"


@pytest.fixture
def entry(tmp_path):
    return copied(tmp_path / "board")


def replace_scores(entry: Path, change, fix_lists=False) -> Path:
    """Other scores, with the checksum set right, so that it is the content that is judged."""
    frame = pq.read_table(entry / "scores.parquet").to_pandas()
    frame = frame.astype(dict.fromkeys(("sample_id", "set", "role", "unit"), str))
    changed = change(frame)
    # by way of NumPy, so that NaN stays NaN and does not become an empty entry
    write_table(entry, pa.table({name: pa.array(changed[name].to_numpy()) for name in changed}))
    return entry


def write_table(entry: Path, table, **options) -> None:
    pq.write_table(table, entry / "scores.parquet", **options)
    told = {"sha256": sha256((entry / "scores.parquet").read_bytes()).hexdigest(), "rows": max(1, table.num_rows)}
    edit(entry, lambda content: content.update(scores=told))


def refused(entry: Path, words: str) -> str:
    """The one line that says why; a board goes on without the entry."""
    found = verify_each(entry.parent)
    assert not found.board.standings
    message = found.refused[entry.name]
    assert words in message
    assert "\n" not in message and message.isprintable()
    return message


def test_the_entry_that_the_others_spoil_is_good(entry):
    assert verify(entry).tier == "recomputed"


def strings(content, path=()):
    """Where strings stand in a JSON value."""
    if isinstance(content, str):
        yield path
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from strings(value, (*path, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from strings(value, (*path, number))


def put(content, path, value):
    for step in path[:-1]:
        content = content[step]
    content[path[-1]] = value


def all_texts(entry: Path):
    return list(strings(json.loads((entry / "entry.json").read_text())))


class TestStrings:
    def test_markup_in_any_string_is_refused_or_kept_as_plain_data(self, entry):
        for path in all_texts(entry):
            original = (entry / "entry.json").read_text()
            edit(entry, lambda content, path=path: put(content, path, SCRIPT))
            try:
                assert SCRIPT in json.dumps(read_entry(entry).model_dump(mode="json"), ensure_ascii=False).replace(
                    '\\"', '"'
                )
            except DataError as error:
                assert "\n" not in str(error)
            (entry / "entry.json").write_text(original)

    def test_invisible_characters_survive_in_no_string(self, entry):
        cleaned = 0
        for path in all_texts(entry):
            original = (entry / "entry.json").read_text()
            edit(entry, lambda content, path=path: put(content, path, f"a{INVISIBLE}\nb"))
            try:
                shown = list(texts(read_entry(entry).model_dump(mode="json")))
                cleaned += 1
            except DataError as error:
                shown = [str(error)]
            assert not [(path, text) for text in shown for char in INVISIBLE if char in text]
            (entry / "entry.json").write_text(original)
        assert cleaned > 20

    def test_half_a_character_is_refused(self, entry):
        edit(entry, lambda content: content.update(method="\ud800"))
        refused(entry, "method")

    def test_an_overlong_string_is_refused(self, entry):
        for name in ("method", "submitted"):
            original = (entry / "entry.json").read_text()
            edit(entry, lambda content, name=name: content.update({name: "x" * (LINE + 1)}))
            refused(entry, name)
            (entry / "entry.json").write_text(original)

    def test_an_overlong_parameter_is_refused(self, entry):
        edit(entry, lambda content: content["detector"]["params"].update(k="x" * 1000))
        refused(entry, "characters")

    @pytest.mark.parametrize(
        "link",
        [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "http://example.org",
            "data:text/html,x",
            "https://user:pw@example.org",
            "https://",
            "//example.org",
            "https://example.org/ onclick=x",
            'https://example.org/"onclick="x',
            "https://example.org:8443/",
            "https://exämple.org",
            "java\nscript:alert(1)",
        ],
    )
    @pytest.mark.parametrize("place", ["code", "weights", "paper"])
    def test_only_plain_https_links(self, entry, link, place):
        edit(entry, lambda c: c["paper"].update(link=link) if place == "paper" else c.update({place: link}))
        refused(entry, "entry.json")


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


class TestPaths:
    @pytest.mark.parametrize("id", ["../up", "/etc/passwd", "a/b", "..", ".hidden", "a..b", "", "A", "a\\b", "x" * 81])
    def test_an_id_is_one_plain_name(self, entry, id):
        edit(entry, lambda content: content.update(id=id))
        refused(entry, "id")

    def test_an_id_that_is_not_the_folders_name(self, entry):
        edit(entry, lambda content: content.update(id="another"))
        refused(entry, "folder must be called the same")

    @pytest.mark.parametrize("name", ["entry.json", "scores.parquet"])
    def test_a_link_to_a_file_is_not_followed(self, entry, name, tmp_path):
        (tmp_path / "outside").write_bytes((entry / name).read_bytes())
        (entry / name).unlink()
        (entry / name).symlink_to(tmp_path / "outside")
        refused(entry, "not a plain file")

    def test_a_link_to_a_folder_is_not_an_entry(self, entry, tmp_path):
        moved = entry.rename(tmp_path / entry.name)
        entry.symlink_to(moved)
        refused(entry, "not a link")

    def test_a_pipe_is_not_waited_for(self, entry):
        (entry / "scores.parquet").unlink()
        os.mkfifo(entry / "scores.parquet")
        refused(entry, "not a plain file")

    def test_other_files_are_refused(self, entry):
        (entry / "receipt.json").write_text("{}")
        refused(entry, "nothing else")

    def test_a_receipt_for_other_scores_raises_no_tier(self, entry):
        receipts = entry.parent / "receipts"
        receipts.mkdir()
        told = {"entry": entry.name, "scores": "0" * 64, "activations": "0" * 64, "weights_hash": "x"}
        told |= {"detector": "knn", "detector_version": 1, "one_by_one_rows": 1, "tolerance": 1e-4}
        told |= dict.fromkeys(("in_order", "repeated", "shuffled", "one_by_one"), 0.0)
        told |= {"verdict": "re-executed", "created": "", "oodscope_version": ""}
        (receipts / f"{entry.name}@001.json").write_text(json.dumps(told))
        assert verify(entry).tier == "recomputed"


class TestSize:
    def test_ten_gigabytes_are_refused_by_size(self, entry):
        with (entry / "scores.parquet").open("wb") as stream:
            stream.truncate(10 * 2**30)
        started = perf_counter()
        refused(entry, "10,737,418,240 bytes")
        assert perf_counter() - started < 1.0

    def test_a_record_of_three_megabytes(self, entry):
        (entry / "entry.json").write_text(json.dumps({"notes": ["x" * 3_000_000]}))
        refused(entry, "at most 2,097,152")

    def test_ten_thousand_brackets(self, entry):
        (entry / "entry.json").write_text('{"notes": ' + "[" * 10_000 + "]" * 10_000 + "}")
        refused(entry, "levels deep")

    def test_brackets_inside_of_strings_are_only_text(self, entry):
        edit(entry, lambda content: content.update(notes=["[{" * 100 + '\\"[[']))
        assert verify(entry).tier == "recomputed"

    def test_too_many_rows(self, entry, monkeypatch):
        monkeypatch.setattr(boundedscores, "MOST_ROWS", 100)
        refused(entry, "rows; at most 100")

    def test_pages_that_unpack_to_much_more(self, entry, monkeypatch):
        """A few kilobytes that stand for 40 MB of equal numbers: the footer says so before a page is read."""
        rows = 1_000_000
        columns = {name: pa.array(np.zeros(rows, dtype=np.int64)) for name in ("label", "own_class", "prediction")}
        columns |= {name: pa.repeat(pa.scalar("x"), rows) for name in ("sample_id", "set", "role", "unit")}
        write_table(entry, pa.table({**columns, "knn": np.zeros(rows)}), use_dictionary=False, compression="zstd")
        assert (entry / "scores.parquet").stat().st_size < 200_000
        monkeypatch.setattr(boundedscores, "MOST_UNPACKED", 20 * 2**20)
        monkeypatch.setattr(pq.ParquetFile, "read", lambda *a, **k: pytest.fail("a page was read"))
        refused(entry, "once unpacked")

    def test_one_long_name_that_stands_for_every_row(self, entry):
        """2 MB in a dictionary, 100,000 rows that point at it: 200 GB once spread out."""
        rows = 100_000
        name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x" * 2_000_000]))
        same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["id_test"]))
        numbers = pa.array(np.zeros(rows, dtype=np.int64))
        columns = {"sample_id": name} | dict.fromkeys(("set", "role", "unit"), same)
        columns |= dict.fromkeys(("label", "own_class", "prediction"), numbers)
        table = pa.table({**columns, "knn": np.zeros(rows)})
        write_table(entry, table)
        refused(entry, "a sample_id of 2,000,000 bytes")

    @pytest.mark.parametrize("column", ["sample_id", "label", "knn"])
    def test_nested_types_are_refused(self, entry, column):
        table = pq.read_table(entry / "scores.parquet")
        nested = pa.array([[1.0]] * table.num_rows)
        write_table(entry, table.set_column(table.schema.get_field_index(column), column, nested))
        refused(entry, column)

    def test_not_a_parquet_file(self, entry):
        (entry / "scores.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
        told = {"sha256": sha256((entry / "scores.parquet").read_bytes()).hexdigest(), "rows": 1}
        edit(entry, lambda content: content.update(scores=told))
        refused(entry, "not a readable Parquet file")


class TestScores:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_scores_that_are_no_numbers(self, entry, value):
        replace_scores(entry, lambda frame: frame.assign(knn=frame["knn"].where(frame.index != 7, value)))
        refused(entry, "NaN or infinite")

    def test_a_file_that_was_changed(self, entry):
        with (entry / "scores.parquet").open("ab") as stream:
            stream.write(b"x")
        refused(entry, "checksum differs")

    def test_no_scores_where_there_should_be_some(self, entry):
        (entry / "scores.parquet").unlink()
        refused(entry, "no such file")

    def test_images_in_another_order(self, entry):
        def swapped(frame):
            order = np.arange(len(frame))
            order[[0, 1]] = [1, 0]
            return frame.iloc[order]

        replace_scores(entry, swapped)
        refused(entry, "list hash differs")

    def test_other_names(self, entry):
        replace_scores(entry, lambda frame: frame.assign(sample_id=frame["sample_id"] + "x"))
        refused(entry, "list hash differs")

    @pytest.mark.parametrize("column", ["label", "own_class"])
    def test_other_labels(self, entry, column):
        replace_scores(entry, lambda frame: frame.assign(**{column: frame[column].replace({0: 1})}))
        refused(entry, "list hash differs")

    def test_rows_that_stand_there_twice(self, entry):
        replace_scores(entry, lambda frame: pd.concat([frame, frame[:1]], ignore_index=True))
        refused(entry, "occurs twice")

    def test_hard_images_left_out(self, entry):
        replace_scores(entry, lambda frame: frame[frame.index != 3])
        refused(entry, "79 images of id_test, by the entry 80")

    def test_easy_outliers_slipped_in_beside_the_list(self, entry):
        """Rows of another unit are on no list, but a protocol would count them."""

        def padded(frame):
            easy = frame[frame["set"] == "snow"].assign(unit="more", knn=99.0)
            return pd.concat([frame, easy], ignore_index=True)

        replace_scores(entry, padded)
        refused(entry, "unit 'more', which no list covers")

    def test_a_role_that_does_not_exist(self, entry):
        replace_scores(entry, lambda frame: frame.assign(role="judge"))
        refused(entry, "unknown role 'judge'")

    def test_an_attack_without_a_search_and_a_search_without_an_attack(self, entry):
        edit(entry, lambda content: content.update(protocols={"attack": 1}))
        refused(entry, "is judged by the protocol 'attack'")
        told = {"outliers": "snow", "runs": 1, "searches": [], "conditional": []}
        edit(entry, lambda content: content.update(protocols={"standard": 1}, attack=told))
        refused(entry, "is judged by the protocol 'attack'")

    def test_a_whole_set_left_out(self, entry):
        replace_scores(entry, lambda frame: frame[frame["set"] != "snow"])
        refused(entry, "'snow', which was not scored")

    def test_a_set_that_the_entry_does_not_list(self, entry):
        edit(entry, lambda content: content["benchmark"]["sets"].pop("snow"))
        refused(entry, "'snow', which the entry does not list")

    def test_a_second_detector_in_the_file(self, entry):
        replace_scores(entry, lambda frame: frame.assign(other=0.0))
        refused(entry, "'other'")

    def test_other_scores_than_the_claims(self, entry):
        def worse(frame):
            """The claims may be perfect already, so nothing could be better."""
            known = frame["role"].isin(["id_test"])
            return frame.assign(knn=frame["knn"] + np.where(known, 1e3, -1e3))

        replace_scores(entry, worse)
        refused(entry, "the entry claims auroc")

    def test_names_with_control_characters(self, entry):
        replace_scores(entry, lambda frame: frame.assign(sample_id=frame["sample_id"] + "\x1b[2J"))
        assert "\x1b" not in refused(entry, "control characters")

    def test_what_the_file_says_of_itself_is_not_believed(self, entry):
        table = pq.read_table(entry / "scores.parquet").replace_schema_metadata({b"oodscope.scores": b"[" * 10_000})
        write_table(entry, table)
        assert verify(entry).tier == "recomputed"


class TestNumbers:
    def test_a_claim_that_the_scores_do_not_give(self, entry):
        edit(entry, lambda content: content["claims"][1].update(value=0.99))
        refused(entry, "the entry claims auroc")

    def test_a_claim_off_by_rounding_stands_and_by_a_ten_thousandth_does_not(self, entry):
        for change, stands in ((5e-7, True), (1e-4, False)):
            original = (entry / "entry.json").read_text()
            edit(entry, lambda c, change=change: c["claims"][1].update(value=c["claims"][1]["value"] + change))
            if stands:
                assert verify(entry).tier == "recomputed"
            else:
                refused(entry, "the entry claims auroc")
            (entry / "entry.json").write_text(original)

    def test_an_accuracy_that_the_predictions_do_not_give(self, entry):
        edit(entry, lambda content: (content.update(claims=[]), content["model"].update(id_accuracy=0.999)))
        refused(entry, "the entry claims accuracy")

    def test_a_claim_about_nothing(self, entry):
        edit(entry, lambda content: content["claims"][1].update(set="elsewhere"))
        refused(entry, "which its scores do not give")

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_numbers_that_are_none(self, entry, number):
        text = (entry / "entry.json").read_text()
        value = json.loads(text)["model"]["id_accuracy"]
        (entry / "entry.json").write_text(text.replace(f'"id_accuracy": {value}', f'"id_accuracy": {number}'))
        refused(entry, "entry.json")

    def test_another_version_of_a_protocol(self, entry):
        edit(entry, lambda content: content["protocols"].update(standard=2))
        refused(entry, "standard version 2")

    def test_a_failing_protocol_refuses_the_entry_and_not_the_board(self, entry, monkeypatch):
        def failing(self, scores):
            raise KeyError("surprise")

        monkeypatch.setattr(Standard, "measure", failing)
        refused(entry, "cannot judge these scores: KeyError")

    def test_a_negative_seed(self, entry):
        edit(entry, lambda content: content["execution"].update(seed=-1))
        refused(entry, "execution.seed")

    def test_another_schema(self, entry):
        edit(entry, lambda content: content.update(schema_version=2))
        refused(entry, "schema_version 2")

    def test_unknown_keys_and_repeated_ones(self, entry):
        edit(entry, lambda content: content["model"].update(weihgts_hash="x"))
        assert "Did you mean 'weights_hash'" in refused(entry, "unknown key")
        (entry / "entry.json").write_text('{"id": "a", "id": "b"}')
        refused(entry, "twice")

    def test_a_list_is_no_entry(self, entry):
        (entry / "entry.json").write_text("[]")
        refused(entry, "not a JSON object")

    def test_bytes_that_are_no_text(self, entry):
        (entry / "entry.json").write_bytes(b"\xff\xfe{}")
        refused(entry, "not valid JSON")

    def test_neither_scores_nor_reported_numbers(self, entry):
        edit(entry, lambda content: content.update(scores=None, reported=[]))
        refused(entry, "has scores, or at least one reported number")

    def test_an_unknown_protocol_is_an_error_for_people(self, entry):
        edit(entry, lambda content: content.update(protocols={"standart": 1}))
        refused(entry, "Did you mean 'standard'")


def test_reading_needs_the_columns_and_types_it_says(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="columns of one detector"):
        read_bounded_scores(tmp_path / "x.parquet", "knn")
