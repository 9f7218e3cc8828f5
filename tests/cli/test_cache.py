"""``oodscope cache`` and ``oodscope data pack``: what is kept on disk."""

import json

import pytest

from tests.jobs.test_cache import cache  # noqa: F401  (a fixture)
from tests.tiny import benchmark


@pytest.mark.usefixtures("cache")
def test_pruning_removes_what_it_said_it_would(oodscope, tmp_path):
    old = tmp_path / "cache" / "training" / "old" / "model.safetensors"
    shown = oodscope("cache", "prune", "--older", "90d", "--dry-run")
    assert shown.status == 0 and "training/old" in shown.out and "would go" in shown.out and old.exists()
    shown = oodscope("cache", "prune", "--older", "90d")
    assert shown.status == 0 and "training/old" in shown.out and "removed" in shown.out and not old.exists()
    listed = oodscope("cache", "list", "--kind", "training")
    assert listed.status == 0 and "recent" in listed.out and " old" not in listed.out
    entries = json.loads(oodscope("cache", "list", "--json").out)
    assert {"data", "training", "other"} <= {each["kind"] for each in entries}, "downloads stay"


@pytest.mark.usefixtures("cache")
def test_damage_is_status_1_until_it_is_removed(oodscope, tmp_path):
    (tmp_path / "cache" / "training" / "now" / "training.json").write_text("{}")
    found = oodscope("cache", "verify")
    assert found.status == 1 and "training/now" in found.out and "--remove" in found.err
    assert oodscope("cache", "verify", "--remove").status == 0 == oodscope("cache", "verify").status


@pytest.mark.parametrize(
    "words", [("prune", "--older", "soon"), ("prune", "--keep-under", "x"), ("list", "--kind", "nets")]
)
def test_what_cannot_be_meant_is_status_2(oodscope, words):
    assert oodscope("cache", *words).status == 2


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr("oodscope.data.loading.load_benchmark", lambda *_, **__: benchmark())


@pytest.mark.usefixtures("tiny")
def test_pack_says_what_it_takes_and_packs_once(oodscope):
    asked = ("data", "pack", "tiny", "--sets", "snow,rain", "--json")
    dry = json.loads(oodscope(*asked, "--dry-run").out)
    first = json.loads(oodscope(*asked).out)
    again = json.loads(oodscope(*asked).out)
    assert dry["bytes"] == first["bytes"] == (40 + 30) * 8 * 8 * 3
    assert (dry["packed"], first["packed"], again["packed"]) == (0, 70, 0)
    assert "pixels" in oodscope("cache", "list").out


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("words", [("--sets", "sow"), ("--size", "0"), ("--interpolation", "cubic")])
def test_pack_refuses_what_cannot_be_meant(oodscope, words):
    refused = oodscope("data", "pack", "tiny", *words)
    assert refused.status == 2 and len(refused.err.strip().splitlines()) <= 2
