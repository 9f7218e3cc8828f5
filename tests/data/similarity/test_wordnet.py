"""The reader of WordNet's files, on a database of eight meanings in their format; and class names by meaning."""

import pytest

from oodscope.base.errors import DataError
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.data.similarity.wordnet import WordNet

LICENCE = "  1 This is a notice, and its lines begin with two spaces.  \n  2 So readers pass over them.  \n"
MEANINGS = {  # name: (words, broader meanings and how they are pointed at, a pointer of another kind)
    "entity": (["entity"], []),
    "animal": (["animal", "beast"], [("@", "entity")]),
    "cat": (["cat", "true_cat"], [("@", "animal")]),
    "tabby": (["tabby", "tabby_cat"], [("@", "cat")]),
    "man": (["man", "cat"], [("@", "animal")]),
    "vehicle": (["vehicle"], [("@", "entity")]),
    "car": (["car", "automobile", "machine"], [("@", "vehicle")]),
    "herbie": (["Herbie"], [("@i", "car"), ("#p", "tabby")]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """``data.noun`` and ``index.noun`` as WordNet writes them; the offsets are fixed in a second pass."""
    home = tmp_path_factory.mktemp("wordnet")
    offsets = dict.fromkeys(MEANINGS, 0)
    for _ in range(2):
        text = LICENCE
        for name, (words, pointers) in MEANINGS.items():
            offsets[name] = len(text.encode())
            listed = " ".join(f"{word} 0" for word in words)
            aimed = " ".join(f"{symbol} {offsets[other]:08d} n 0000" for symbol, other in pointers)
            text += (
                f"{offsets[name]:08d} 03 n {len(words):02x} {listed} {len(pointers):03d} {aimed} | a {name}; @ 1 n  \n"
            )
    (home / "data.noun").write_text(text)
    index: dict[str, list[int]] = {}
    for name, (words, _) in MEANINGS.items():
        for word in words:
            index.setdefault(word.lower(), []).append(offsets[name])
    lines = [
        f"{word} n {len(found)} 1 @ {len(found)} 0 {' '.join(f'{o:08d}' for o in found)}  \n"
        for word, found in sorted(index.items())
    ]
    (home / "index.noun").write_text(LICENCE + "".join(lines))
    return home, offsets


def test_meanings_words_and_what_is_broader(folder):
    home, at = folder
    net = WordNet(home)
    assert net.meanings("cat") == [at["cat"], at["man"]]
    assert net.meanings("True cats") == [at["cat"]]
    assert net.meanings("dog") == []
    assert net.words(at["tabby"]) == ["tabby", "tabby cat"]
    assert net.broader(at["tabby"]) == {at["cat"], at["animal"], at["entity"]}
    assert net.broader(at["herbie"]) == {at["car"], at["vehicle"], at["entity"]}
    assert net.broader(at["entity"]) == frozenset()


def test_wordnet_ids(folder):
    home, at = folder
    net = WordNet(home)
    assert net.meanings(f"n{at['tabby']:08d}") == [at["tabby"]]
    assert net.meanings(f"n{at['tabby'] + 1:08d}") == []
    assert net.meanings("n99999999") == []
    with pytest.raises(DataError, match="no meaning at byte 3"):
        net.words(3)


def test_where_it_is_looked_for(folder, tmp_path, monkeypatch):
    home, _ = folder
    monkeypatch.setenv("OODSCOPE_WORDNET", str(home))
    assert WordNet.find().folder == home
    monkeypatch.setenv("OODSCOPE_WORDNET", str(tmp_path))
    with pytest.raises(DataError, match="no WordNet here: No such file"):
        WordNet.find()
    monkeypatch.delenv("OODSCOPE_WORDNET")
    monkeypatch.setattr("oodscope.data.similarity.wordnet.FOLDERS", (str(tmp_path), str(home)))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert WordNet.find().folder == home
    monkeypatch.setattr("oodscope.data.similarity.wordnet.FOLDERS", ())
    assert WordNet.find() is None


def relations(id_classes, ood_classes, net):
    return {(o.ood_class, o.id_class): o.relation for o in overlapping_classes(id_classes, ood_classes, net)}


def test_classes_by_meaning(folder):
    home, at = folder
    net = WordNet(home)
    tabby = f"n{at['tabby']:08d}"
    assert relations(["cat", "automobile"], [tabby, "car", "vehicle", "Herbie", "entity"], net) == {
        (tabby, "cat"): "kind of",
        ("car", "automobile"): "same meaning",
        ("vehicle", "automobile"): "broader than",
        ("Herbie", "automobile"): "kind of",
        ("entity", "cat"): "broader than",
        ("entity", "automobile"): "broader than",
    }
    # "man" is a rarer meaning of the word "cat"
    assert relations(["cat"], ["man"], net) == {("man", "cat"): "perhaps"}
    assert relations(["man"], ["tabby"], net) == {}


def test_classes_by_name_alone():
    found = relations(
        ["car", "butterfly", "bus", "sea lion", "A"],
        [
            "sports_car",
            "Butterflies",
            "buses",
            "SeaLions",
            "carpet",
            "lion",
            "a",
            "car, motorcar",
            "motorcar, automobile",
        ],
        None,
    )
    assert found == {
        ("sports_car", "car"): "perhaps",
        ("Butterflies", "butterfly"): "same name",
        ("buses", "bus"): "same name",
        ("SeaLions", "sea lion"): "same name",
        ("car, motorcar", "car"): "same name",
    }
    (why,) = overlapping_classes(["car"], ["sports car"], None)
    assert why.detail == "'sports car' ends with 'car'"
