"""AdaNeg and TANL against slow forms that know the texts themselves, and on a miniature network that reads words."""

import math

import numpy as np
import pytest
import torch

from oodscope.activations.activations import Activations
from oodscope.detectors.streams.adaneg import AdaNeg
from oodscope.detectors.streams.tanl import TANL, otsu

RNG = np.random.default_rng(0)
CLASSES, NEGATIVES, DIM = 3, 7, 5


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


TEXTS = unit(RNG.normal(size=(CLASSES + NEGATIVES, DIM)))
IMAGES = unit(np.concatenate([TEXTS[RNG.integers(0, 10, 40)] + 0.3 * RNG.normal(size=(40, DIM))]))


def stream(rows=slice(None)):
    features = IMAGES[rows]
    columns = {"negative_cosines": features @ TEXTS[CLASSES:].T}
    return Activations(features=features, weight=TEXTS[:CLASSES] * 100, bias=np.zeros(CLASSES), columns=columns)


def slow_share(cosines, groups, tau):
    known = sum(math.exp(c / tau) for c in cosines[:CLASSES])
    shares = []
    for group in range(groups):
        other = sum(math.exp(c / tau) for c in cosines[CLASSES + group :: groups])
        shares.append(known / (known + other))
    return sum(shares) / groups


def slow_adaneg(images, tau, groups, size, beta):
    """One image at a time, with the embeddings of the texts themselves."""
    memory, scores = [[] for _ in TEXTS], []
    for h in images:
        text = [float(h @ t) for t in TEXTS]
        proxies = []
        for t, kept in zip(TEXTS, memory):
            members = [t, *(m for _, _, m in kept)]
            total = sum(math.exp(-beta * (1 - float(h @ m))) * m for m in members)
            proxies.append(float(h @ total) / math.sqrt(float(total @ total)))
        share = slow_share(text, groups, tau)
        scores.append(-(slow_share(proxies, groups, tau) + 0.1 * share))
        p = np.exp(np.array(text) / tau - max(text) / tau)
        p /= p.sum()
        entropy = -sum(q * math.log(q) for q in p if q > 0)
        if share > 0.75 or share < 0.25:
            label = int(np.argmax(text[:CLASSES])) if share > 0.75 else CLASSES + int(np.argmax(text[CLASSES:]))
            memory[label] = sorted([*memory[label], (entropy, len(scores), h)], key=lambda e: e[:2])[:size]
    assert max(map(len, memory)) == size, "memories were full"
    return np.array(scores)


@pytest.mark.parametrize("beta", [0.0, 5.5])
def test_adaneg_is_its_slow_form(beta):
    fast = AdaNeg("causal", temperature=0.1, groups=3, memory=2, beta=beta).score(stream())
    np.testing.assert_allclose(fast.numpy(), slow_adaneg(IMAGES, 0.1, 3, 2, beta), atol=1e-6)


def slow_otsu(values):
    """Every cut tried; the largest value of the lower group."""
    best, border = -1.0, max(values)
    for cut in sorted(set(values))[:-1]:
        low, high = [v for v in values if v <= cut], [v for v in values if v > cut]
        between = len(low) * len(high) * (sum(high) / len(high) - sum(low) / len(low)) ** 2
        if between > best + 1e-15:
            best, border = between, cut
    return border


def test_otsu_tries_every_cut():
    for seed in range(20):
        values = np.random.default_rng(seed).integers(0, 6, 9).astype(float).tolist()
        assert otsu(torch.tensor(values, dtype=torch.float64)) == slow_otsu(values)


def slow_tanl(images, tau, count, size):
    known, foreign, past, scores = [], [], [], []
    for h in images:
        text = np.array([float(h @ t) for t in TEXTS])
        weights = np.exp(text / tau)
        order = np.arange(NEGATIVES)
        if known and foreign:
            order = np.argsort(-(np.mean(foreign, axis=0) - np.mean(known, axis=0)), kind="stable")
        mine, lengths = weights[:CLASSES].sum(), range(1, min(count, NEGATIVES) + 1)
        shares = [mine / (mine + sum(weights[CLASSES + j] for j in order[:k])) for k in lengths]
        scores.append(-float(np.mean(shares)))
        past.append(scores[-1])
        queue = foreign if scores[-1] > slow_otsu(past) else known
        queue.append((weights / weights.sum())[CLASSES:])
        del queue[:-size]
    return np.array(scores)


def test_tanl_is_its_slow_form():
    fast = TANL("causal", temperature=0.1, negatives=4, queue=6).score(stream())
    np.testing.assert_allclose(fast.numpy(), slow_tanl(IMAGES, 0.1, 4, 6), atol=1e-6)


@pytest.mark.parametrize("cls", [AdaNeg, TANL])
def test_modes_are_kept(cls):
    causal = cls("causal", temperature=0.1)
    whole = causal.score(stream())
    causal.start()
    parts = torch.cat([causal.observe(stream(slice(a, b))) for a, b in ((0, 3), (3, 4), (4, 40))])
    torch.testing.assert_close(whole, parts)
    batch = cls("batch", temperature=0.1)
    batch.start()
    first = batch.observe(stream())
    assert not torch.equal(first, whole)
    batch.start()
    assert torch.equal(first, batch.observe(stream()))


def test_without_memory_adaneg_orders_images_as_neglabel_does():
    detector = AdaNeg("causal", temperature=0.1, groups=3, gap=1.0)  # no image is that certain
    base = np.array([slow_share(TEXTS @ h, 3, 0.1) for h in IMAGES])
    np.testing.assert_allclose(detector.score(stream()).numpy(), -1.1 * base, atol=1e-6)
