"""Heads made of words: sentences, negative labels, and the network that compares images with both."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from oodscope.activations.probes.taps import NegativeSums
from oodscope.base.config import parse
from oodscope.base.errors import ModelError, OodscopeError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.negatives import mine_negatives, read_words, unrelated_words
from oodscope.models.zoo.zero_shot import (
    NEGATIVE_COSINES,
    PROMPTS,
    TextHead,
    embed_labels,
    imagenet_names,
    zero_shot,
)
from tests.examples import examples

WIDTH = 6


def embed(sentences):
    """A text tower of a sort: every sentence has its own random vector, always the same."""
    rows = [np.random.default_rng(list(sentence.encode())).normal(size=WIDTH) for sentence in sentences]
    return torch.tensor(np.stack(rows), dtype=torch.float32) * 3


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, WIDTH))

    def forward(self, images):
        return self.net(images)


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_a_class_is_the_normalised_mean_of_its_sentences_unit_embeddings():
    labels, templates = ["great_white_shark", "cat"], ("a {}.", "the {} here.")
    ours = embed_labels(embed, labels, templates).numpy()
    for row, words in zip(ours, ("great white shark", "cat")):
        sentences = [f"a {words}.", f"the {words} here."]
        slow = unit(np.mean([unit(embed([sentence])[0].double().numpy()) for sentence in sentences], axis=0))
        assert np.allclose(row, slow, atol=1e-6)


def test_logits_are_scaled_cosines_and_the_head_is_proved():
    tower = Tower()
    model = zero_shot(tower, embed, ["cat", "dog", "cow"], TextHead(templates=("a {}.",)), scale=20.0, bias=-3.0)
    classifier = Classifier(model, Preprocess(size=8), device="cpu")
    images = torch.rand(5, 3, 8, 8)
    logits, features = classifier.forward(images)
    with torch.no_grad():
        embedding = tower(images).double().numpy()
    texts = [unit(embed([f"a {name}."])[0].double().numpy()) for name in ("cat", "dog", "cow")]
    slow = [[20 * unit(h) @ t - 3 for t in texts] for h in embedding]
    assert np.allclose(logits.numpy(), slow, atol=1e-4)
    assert np.allclose(features.numpy(), [unit(h) for h in embedding], atol=1e-6)
    assert classifier.head_path == "text"
    assert classifier.anatomy.negatives == 0
    assert "words: 3 class names in sentences (1 of the user's), no negative labels, words " in classifier.describe()


def test_negative_labels_come_out_beside_the_logits(tmp_path):
    (tmp_path / "words.txt").write_text("Dog\nsalt\nsalt\n\ndeep_sea\nglass\n")
    head = TextHead(templates=("a {}.",), negatives=str(tmp_path / "words.txt"), negative_count=2, negative_share=0.0)
    tower = Tower()
    model = zero_shot(tower, embed, ["cat", "dog"], head, scale=20.0)
    texts = {word: unit(embed([f"the nice {word}."])[0].double().numpy()) for word in ("salt", "deep sea", "glass")}
    classes = [unit(embed([f"a {name}."])[0].double().numpy()) for name in ("cat", "dog")]
    # a class's own name is no negative label, whatever its case; share 0 is the nearest class
    farthest = sorted(texts, key=lambda word: max(texts[word] @ c for c in classes))[:2]
    images = torch.rand(4, 3, 8, 8)
    with torch.no_grad():
        shown = model(images)[NEGATIVE_COSINES].numpy()
        slow = [[unit(h) @ texts[word] for word in farthest] for h in tower(images).double().numpy()]
    assert np.allclose(shown, slow, atol=1e-6)
    classifier = Classifier(model, Preprocess(size=8), device="cpu")
    assert classifier.anatomy.negatives == 2
    other = zero_shot(tower, embed, ["cat", "dog"], head.model_copy(update={"negative_count": 1}), scale=20.0)
    assert Classifier(other, Preprocess(size=8), device="cpu").fingerprint != classifier.fingerprint


@examples(40)
@given(st.integers(2, 30), st.integers(1, 12), st.floats(0, 0.9), st.integers(1, 40), st.integers(0, 99))
def test_mining_takes_the_words_farthest_from_all_but_a_share_of_the_classes(words, classes, share, count, seed):
    rng = np.random.default_rng(seed)
    w, c = (np.stack([unit(v) for v in rng.normal(size=(n, 5))]) for n in (words, classes))
    found = mine_negatives(torch.tensor(w), torch.tensor(c), count, share).tolist()
    nearness = [np.quantile([a @ b for b in c], 1 - share) for a in w]
    assert len(found) == min(count, words)
    assert len(set(found)) == len(found)
    kept = [nearness[i] for i in found]
    assert np.allclose(kept, sorted(nearness)[: len(found)])


def test_words_of_a_file_and_of_wordnet(tmp_path, monkeypatch):
    (tmp_path / "index.noun").write_text("  1 This is the licence.\n  2 more\nabacus n 2 2 @ ~ 2 0 0 1\nsea_bed n 1\n")
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    assert read_words("wordnet") == ["abacus", "sea bed"]
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "gone"))
    with pytest.raises(ModelError, match=r"no WordNet found \(looked for index.noun in .*gone\)\. Install it"):
        read_words("wordnet")
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(ModelError, match="holds no word"):
        read_words(str(tmp_path / "empty.txt"))
    with pytest.raises(ModelError, match="cannot read"):
        read_words(str(tmp_path / "none.txt"))


def test_a_class_is_no_negative_label_however_it_is_written():
    assert unrelated_words(["Dog", "sea lion", "salt", "dogs"], ["dog", "Sea_Lion"]) == ["salt", "dogs"]


def test_templates_have_one_place_for_a_name():
    assert all(prompt.count("{}") == 1 for prompt in PROMPTS)
    assert TextHead().name == f"oodscope-{len(PROMPTS)}"
    for wrong in (["a cat"], ["{} and {}"], []):
        with pytest.raises(OodscopeError, match="a template is a sentence with one {}"):
            parse(TextHead, {"templates": wrong}, "x")


def test_words_cannot_tell_two_classes_of_one_name_apart():
    with pytest.raises(ModelError, match="two classes are called 'crane'"):
        zero_shot(Tower(), embed, ["crane", "cat", "crane"], TextHead(), scale=1.0)


def test_negative_sums_deal_the_labels_out_to_groups():
    cosines = np.random.default_rng(0).uniform(-0.3, 0.5, size=(3, 7)).astype(np.float32)
    ours = NegativeSums(0.01, 3).reduce(torch.from_numpy(cosines)).numpy()
    for row, sums in zip(cosines.astype(float), ours):
        slow = [math.log(sum(math.exp(row[j] / 0.01) for j in range(group, 7, 3))) for group in range(3)]
        assert np.allclose(sums, slow, rtol=1e-5)
    few = NegativeSums(0.01, 100).reduce(torch.from_numpy(cosines))
    assert np.allclose(few.numpy(), cosines / 0.01, rtol=1e-5), "never more groups than labels"
    assert NegativeSums(0.01, 3) != NegativeSums(0.02, 3) != NegativeSums(0.02, 4)


def test_no_word_is_needed_to_read_the_catalogue():
    entries = json.loads((Path(__file__).parents[2] / "src/oodscope/catalog.json").read_text())["detectors"]
    assert entries["mcm"]["parameters"] == {"temperature": 1.0}
    assert entries["neglabel"]["needs"] == ["features", "head", "negatives"]


def test_numbers_are_no_words():
    with pytest.raises(ModelError, match=r"class '0' is a number, and a photo of a 0 shows nothing"):
        zero_shot(Tower(), embed, ["0", "1"], TextHead(), scale=1.0)


def test_names_and_sentences_have_a_digest():
    heads = TextHead(templates=("a {}.",)), TextHead(templates=("the {}.",))
    digests = [head.digest(names) for head in heads for names in (["cat", "dog"], ["dog", "cat"], ["cat", "cow"])]
    assert len(set(digests)) == 6
    assert heads[0].digest(["polar_bear"]) == heads[0].digest(["polar bear"])
    model = zero_shot(Tower(), embed, ["cat", "dog"], heads[0], scale=1.0)
    assert heads[0].digest(["cat", "dog"]) in model.describe()


def test_imagenets_words_come_from_open_clip():
    pytest.importorskip("open_clip")
    head = TextHead(class_names="imagenet", templates="imagenet")
    assert len(head.templates) == 80
    assert TextHead.model_validate_json(head.model_dump_json()) == head
    names = imagenet_names()
    assert (len(names), names[0]) == (1000, "tench")
    # as published, two of its names stand twice
    assert zero_shot(Tower(), embed, names, head.model_copy(update={"templates": ("a {}.",)}), 1.0).digest
    assert "a photo of a tench." in [template.format(names[0]) for template in head.templates]
