"""A run whose activations two kinds of device computed says so."""

from oodscope.activations.store import store as module
from oodscope.activations.store.store import ActivationStore
from oodscope.runs.evaluation.evaluate import evaluate
from tests.tiny import benchmark, classifier


def test_a_run_of_two_kinds_of_device_has_a_note(tmp_path, monkeypatch):
    clf, bench = classifier(), benchmark()
    alone = evaluate(clf, bench, ["msp"], store=ActivationStore(tmp_path / "a"), intervals="none")
    assert not any("device" in note for note in alone.record.notes)
    ActivationStore(tmp_path / "b").extract(clf, bench.id_test)
    monkeypatch.setattr(module, "_device_name", lambda device: "another")
    mixed = evaluate(clf, bench, ["msp"], store=ActivationStore(tmp_path / "b"), intervals="none")
    (note,) = (note for note in mixed.record.notes if "device" in note)
    assert "2 kinds of device (another, cpu)" in note
