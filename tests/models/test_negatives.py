"""Pools of negative labels, patches and pairs: on words with made-up embeddings, and on a miniature of open_clip."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from oodscope.activations.probes.local import LocalConcepts, has_patches, local_embeddings
from oodscope.activations.probes.taps import PairMatches
from oodscope.base.errors import ModelError
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.negatives import GENERAL_WORDS, conjugated, named_negatives, refined
from oodscope.models.zoo.openclip import ImageTower
from oodscope.models.zoo.zero_shot import TextHead, ZeroShot, embed_labels, zero_shot
from tests.data.similarity.test_wordnet import folder  # noqa: F401
from tests.models.test_language import Tower, embed
from tests.tiny_libraries import clip_architecture


def words(tmp_path, count=40):
    (tmp_path / "nouns.txt").write_text("\n".join(f"noun {n}" for n in range(count)))
    (tmp_path / "adjectives.txt").write_text("\n".join(f"adjective {n}" for n in range(20)))
    return {"negatives": str(tmp_path / "nouns.txt"), "adjectives": str(tmp_path / "adjectives.txt")}


def embedded(labels):
    return embed_labels(embed, labels, ("the nice {}.",))


def test_csp_adds_phrases_mined_like_words_and_drops_what_names_a_class(tmp_path):
    head = TextHead(**words(tmp_path), pool="csp", pool_share=0.5, negative_share=0.0)
    phrases = conjugated(head)
    assert len(GENERAL_WORDS) == 14 and phrases[15] == f"adjective 15 {GENERAL_WORDS[1]}"
    classes = torch.cat([embedded(["cat", "dog"]), embedded([phrases[3]])])
    names, rows = named_negatives(head, ("cat", "dog", "other"), classes, embedded)
    nearest = {
        each: float((embedded([each]) @ classes.T).max()) for each in [*phrases, *(f"noun {n}" for n in range(40))]
    }
    for kind, count in (("noun", 20), ("adjective", 10)):
        own = sorted((each for each in nearest if each.startswith(kind)), key=nearest.get)[:count]
        assert [name for name in names if name.startswith(kind)] == [each for each in own if nearest[each] <= 0.95]
    assert phrases[3] not in names and names[0].startswith("noun") and names[1].startswith("adjective")
    torch.testing.assert_close(rows, embedded(names))
    assert len(named_negatives(head.model_copy(update={"negative_count": 7}), ("a",), classes, embedded)[0]) == 7


def test_negrefine_drops_proper_nouns_and_kinds_of_the_classes(folder, tmp_path, monkeypatch):  # noqa: F811
    home, _ = folder
    monkeypatch.setenv("OODSCOPE_WORDNET", str(home))
    assert refined(["tabby", "herbie", "vehicle", "cat", "unknown thing"], ["cat"]) == ["vehicle", "unknown thing"]
    assert refined(["tabby"], ["vehicle"]) == ["tabby"]
    monkeypatch.setenv("OODSCOPE_WORDNET", str(tmp_path))
    with pytest.raises(Exception, match="no WordNet here"):
        refined(["tabby"], ["cat"])
    monkeypatch.delenv("OODSCOPE_WORDNET")
    monkeypatch.setattr("oodscope.models.zoo.negatives.WordNet.find", lambda: None)
    with pytest.raises(ModelError, match="or name the words to drop"):
        refined(["tabby"], ["cat"])
    (tmp_path / "dropped.txt").write_text("noun 3\nNoun 4\n")
    head = TextHead(**words(tmp_path), dropped=str(tmp_path / "dropped.txt"), pool="negrefine", pool_share=1.0)
    names, _ = named_negatives(head, ("cat",), embedded(["cat"]), embedded)
    assert "noun 3" not in names and "noun 4" not in names and "noun 5" in names


def test_pairs_are_those_of_the_nearest_words_and_are_embedded_once(tmp_path):
    asked = []

    def counted(sentences):
        asked.extend(sentences)
        return embed(sentences)

    head = TextHead(**words(tmp_path), negative_count=12)
    network = zero_shot(Tower(), counted, ("cat", "dog", "horse"), head, 100.0).eval()
    assert isinstance(network, ZeroShot) and "12 negative labels" in network.describe()
    images = torch.rand(6, 3, 8, 8)
    classifier = Classifier(network, device="cpu")
    with PairMatches(2).watching(classifier) as read, torch.no_grad():
        network(images)
        found = read()
    before = len(asked)
    with PairMatches(2).watching(classifier) as read, torch.no_grad():
        network(images)
        torch.testing.assert_close(found, read())
    assert len(asked) == before and "pair_matches" not in network(images)
    h = normalize(network.tower(images), dim=1).detach().double().numpy()
    texts = {name: embedded([name])[0].double().numpy() for name in network.pairs.negatives}
    classes = network.text.weight.detach().double().numpy() / 100
    for row, value in zip(h, found[:, 0].tolist()):
        best = sorted(range(3), key=lambda c: -row @ classes[c])[:2]
        near = sorted(texts, key=lambda n: -row @ texts[n])[:2]
        fits = [
            1
            / (
                1
                + np.exp(
                    -100
                    * (row @ embedded([f"{('cat', 'dog', 'horse')[p]} and {n}"])[0].double().numpy() - row @ texts[n])
                )
            )
            for p in best
            for n in near
        ]
        assert value == pytest.approx(max(fits), rel=1e-3, abs=1e-6)


@pytest.mark.slow
def test_patches_are_value_tokens_that_attend_to_nothing(tmp_path):
    open_clip = pytest.importorskip("open_clip")
    torch.manual_seed(0)
    visual = open_clip.create_model(clip_architecture(tmp_path)).visual.eval()
    texts = normalize(torch.randn(3, 16), dim=1)
    network = ZeroShot(ImageTower(visual), texts, 100.0).eval()
    assert has_patches(network) and not has_patches(ZeroShot(Tower(), texts, 100.0))
    images = torch.rand(5, 3, 16, 16)
    seen = []
    handle = visual.transformer.resblocks[-1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with LocalConcepts(0.5).watching(Classifier(network, device="cpu")) as read, torch.no_grad():
        network(images)
        found = read()
    handle.remove()
    local = local_embeddings(visual, seen[0])
    assert local.shape == (5, 4, 16)
    # one token alone attends to itself: the block's own attention gives its value token
    block, tokens = visual.transformer.resblocks[-1], seen[0]
    with torch.no_grad():
        alone = block.ln_1(tokens[:, 1:]).reshape(-1, 1, tokens.shape[2])
        value = block.attn(alone, alone, alone, need_weights=False)[0].reshape(5, 4, -1)
        slow = normalize(visual.ln_post(value) @ visual.proj, dim=2)
    torch.testing.assert_close(local, slow, rtol=1e-4, atol=1e-5)
    cosines = (slow @ texts.T).double().numpy() / 0.5
    p = np.exp(cosines) / np.exp(cosines).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found[:, 0].numpy(), p.max(axis=(1, 2)), rtol=1e-4)
