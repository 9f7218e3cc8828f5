"""A scorecard of encoders: one section for each detector, ranks on the same images, words never mixed."""

import json
from dataclasses import replace

import numpy as np
import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.results.opening import open_runs
from oodscope.runs.encoders.order import find_orders, find_worded
from oodscope.runs.encoders.run import Scorecard, scorecard_of
from oodscope.runs.models.run import StudyModel

WIDTH, CLASSES = 6, 3
HEAD = np.eye(CLASSES, WIDTH), np.zeros(CLASSES)


def arrays(count, shift, seed, logits):
    """Features around their class, outliers ``shift`` away from all of them; each kind of encoder has its own noise."""
    draw = np.random.default_rng([seed, logits])
    labels = np.arange(count) % CLASSES
    features = 3 * HEAD[0][labels] + draw.normal(size=(count, WIDTH)) + shift * HEAD[0].sum(0)
    known = {"features": features, "labels": labels}
    return known | ({"logits": features @ HEAD[0].T} if logits else {})


def judged(strength, words="", logits=True):
    """An encoder whose outliers lie ``strength`` away, all on the same images; without logits it has no head."""
    result = oods.evaluate_activations(
        id_train=arrays(90, 0, 1, logits),
        id_val=arrays(60, 0, 5, logits),
        id_test=arrays(300, 0, 2, logits),
        near={"a": arrays(200, strength, 3, logits)},
        far={"b": arrays(200, 2 * strength, 4, logits)},
        csid={"c": arrays(60, 0.1, 6, logits)},
        detectors=["knn", "mcm"] if logits else ["knn"],
        protocols=["standard", "full_spectrum", "human_centric"] if logits else ["standard", "full_spectrum"],
        head=HEAD if logits else None,
        model=f"net {strength}",
    )
    record = result.record.model_copy(update={"words": words, "benchmark_version": "1"})
    return replace(result, record=record)


@pytest.fixture(scope="module")
def runs():
    return {
        "weak words": judged(0.6, "aaaa"),
        "strong words": judged(3.0, "aaaa"),
        "other words": judged(2.9, "bbbb"),
        "no head": judged(3.0, logits=False),
    }


def card_of(runs, *names):
    return scorecard_of((StudyModel(name=name), runs[name]) for name in names)


def ranks(card, detector, group="near"):
    return {
        name: places
        for each in card.orders
        if (each.detector, each.group) == (detector, group)
        for name, places in each.places.items()
    }


def test_encoders_with_and_without_a_head_are_ranked_under_one_detector(runs):
    card = card_of(runs, "weak words", "strong words", "no head")
    found = ranks(card, "knn")
    assert found["weak words"] == (3, 3)
    assert {found["strong words"], found["no head"]} == {(1, 2)}
    assert set(ranks(card, "mcm")) == {"weak words", "strong words"}
    rows = {(row.section, row.name): row for row in card.table("encoders").rows}
    assert set(rows) == {("knn", name) for name in runs if name != "other words"} | {
        ("mcm", name) for name in ("weak words", "strong words")
    }
    headless, worded = rows["knn", "no head"], rows["knn", "weak words"]
    assert headless.cells[4] is None, "without classes there is no error rate"
    assert worded.cells[4] is not None
    assert worded.cells[0].rank == (3, 3) and worded.cells[0].low < worded.cells[0].value < worded.cells[0].high
    assert "knn, near OOD: strong words or no head may be first of 3" in card.verdict()


def test_other_words_are_never_ranked_with_these_where_a_score_reads_them(runs):
    card = card_of(runs, "weak words", "strong words", "other words")
    assert find_worded(runs) == ["mcm"]
    assert set(ranks(card, "mcm")) == {"weak words", "strong words"}, "the other words stand alone"
    assert set(ranks(card, "knn")) == {"weak words", "strong words", "other words"}, "features know no words"
    sections = {row.section for row in card.table("encoders").rows}
    assert sections == {"knn", "mcm (aaaa)", "mcm (bbbb)"}
    assert card.notes == (
        "mcm: class names or sentences differ (aaaa, bbbb); encoders are ranked among those of the same words alone",
    )
    assert card.record.words == "aaaa, bbbb"


def test_a_head_fitted_to_images_reads_no_words_and_is_ranked_with_one_kind_of_them():
    fitted, worded = judged(2.0), judged(0.5, "aaaa")
    orders, notes = find_orders({"fitted": fitted, "worded": worded}, ["mcm"])
    assert not notes
    assert {each.detector: each.words for each in orders} == {"knn": "", "mcm": "aaaa"}


def test_it_is_saved_found_and_shown_like_every_run(runs, tmp_path):
    card = card_of(runs, *runs)
    card.save(tmp_path / "card")
    (again,) = open_runs(tmp_path)
    assert isinstance(again, Scorecard)
    assert again.table("encoders").render("json") == card.table("encoders").render("json")
    assert again.orders == card.orders and again.notes == card.notes and again.record == card.record
    heads = {row.name: row for row in again.table("heads").rows}
    assert [heads[name].cells[0].text for name in runs] == ["words", "words", "words", "none"]
    page = oods.write_report([again], tmp_path / "page.html").read_text()
    assert "4 encoders on arrays" in page and "class names or sentences differ" in page
    assert json.loads(again.table("heads").render("json"))["rows"]


def test_two_of_one_name_and_none_at_all(runs):
    with pytest.raises(DataError, match="two encoders of the scorecard are called 'no head'"):
        card_of(runs, "no head", "no head")
    with pytest.raises(DataError, match="needs at least one encoder"):
        card_of(runs)


def test_other_images_have_no_order(runs):
    other = replace(runs["no head"], record=runs["no head"].record.model_copy(update={"benchmark_version": "2"}))
    card = scorecard_of([(StudyModel(name="a"), runs["strong words"]), (StudyModel(name="b"), other)])
    assert not card.orders
    assert card.notes[0].startswith("knn: no order, because networks of a recipe are compared on one benchmark")
    assert card.verdict() == "No two encoders share a detector and near-OOD sets: there is no order."
