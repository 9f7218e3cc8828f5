"""The losses of methods that learn from outliers again, slowly; see ``test_slow_references.py``."""

import math

import numpy as np
import pytest
import torch

from oodscope.training.methods.udg import UDG, cluster_weights, k_means
from tests.training.every_method import prepared
from tests.training.test_slow_references import close, label_loss, log_softmax, numbers


@pytest.mark.parametrize("parity", [False, True])
def test_mcd(parity):
    recipe, net, shown = prepared("mcd", parity=parity, weight=0.9)
    output = net(torch.cat([shown.images, shown.ood.images]))
    count, labels = len(shown.labels), shown.labels.tolist()
    first, second = (numbers(output[name]) for name in ("logits", "second"))

    def entropy(values):
        return -sum(math.exp(each) * each for each in log_softmax(list(values)))

    def mean_entropy(outliers):
        rows = outliers.T if parity else outliers
        return sum(entropy(row) for row in rows) / len(rows)

    apart = mean_entropy(first[count:]) - mean_entropy(second[count:])
    expected = label_loss(first[:count], labels) + label_loss(second[:count], labels)
    close(recipe.loss(net, shown).loss, expected + 0.9 * max(0.0, recipe.margin - apart))


def test_udg():
    recipe, net, shown = prepared("udg", cluster_weight=0.3)
    draws = torch.Generator().manual_seed(2)
    head = net.fc
    head.label_of_ood.copy_(torch.randint(-1, 3, (40,), generator=draws))
    head.weight_of_ood.copy_(torch.randint(1, 3, (40,), generator=draws))
    head.of_train.copy_(torch.randint(0, head.cluster.out_features, (96,), generator=draws))
    head.of_ood.copy_(torch.randint(0, head.cluster.out_features, (40,), generator=draws))
    head.weight_of_cluster.copy_(torch.rand(head.cluster.out_features, generator=draws))
    known, other = net(shown.images), net(shown.ood.images)
    rows = shown.rows.tolist(), shown.ood.rows.tolist()
    labels = head.label_of_ood[shown.ood.rows].tolist()
    logits = numbers(known["logits"]), numbers(other["logits"])
    named = [(row, label) for row, label in zip(logits[1], labels) if label >= 0]
    expected = label_loss([*logits[0], *(row for row, _ in named)],
                          [*shown.labels.tolist(), *(label for _, label in named)])  # fmt: skip
    flat = [head.weight_of_ood[row].item() * -sum(log_softmax(list(values))) / 3
            for row, values, label in zip(rows[1], logits[1], labels) if label < 0]  # fmt: skip
    expected += recipe.weight * sum(flat) / len(flat)
    grouped = []
    for buffer, places, output in ((head.of_train, rows[0], known), (head.of_ood, rows[1], other)):
        for place, values in zip(places, numbers(output["clusters"])):
            cluster = int(buffer[place])
            grouped.append(-head.weight_of_cluster[cluster].item() * log_softmax(list(values))[cluster])
    close(recipe.loss(net, shown).loss, expected + 0.3 * sum(grouped) / len(grouped))


def test_labels_and_weights_of_udg():
    draws = np.random.default_rng(0)
    for _ in range(20):
        known = draws.integers(0, 3, 40)
        known[:3] = 0, 1, 2
        labels = np.concatenate([known, draws.integers(-1, 3, 30)])
        assigned = draws.integers(0, 12, 70)
        assigned[:10], labels[:10] = 12, 1  # one pure cluster of a class, one of outliers
        assigned[40:43], assigned[43:50], labels[43:50] = 12, 13, -1
        label, weight = UDG(purity=0.6).judged(torch.tensor(assigned), torch.tensor(labels), 40)
        for place in range(40, 70):
            own = labels[assigned == assigned[place]]
            best = max(set(own), key=lambda each: (own == each).mean())
            pure = (own == best).mean() > 0.6
            assert label[place - 40] == (best if pure else -1)
            assert weight[place - 40] == (2.0 if pure and best == -1 else 1.0)
        sizes = np.bincount(assigned, minlength=14)
        expected = [1 / math.sqrt(size) if size else 0.0 for size in sizes]
        expected = np.array(expected) / np.mean([each for each in expected if each])
        np.testing.assert_allclose(cluster_weights(torch.tensor(assigned), 14), expected, rtol=1e-5)


def test_clusters_of_udg_are_those_of_lloyd():
    points = torch.nn.functional.normalize(torch.randn(60, 5, generator=torch.Generator().manual_seed(0)))
    found = k_means(points, 4, torch.Generator().manual_seed(1)).tolist()
    start = torch.randperm(60, generator=torch.Generator().manual_seed(1))[:4]
    rows, centres = numbers(points), [numbers(points[place]) for place in start]
    for _ in range(20):
        own = [min(range(4), key=lambda k: np.linalg.norm(row - centres[k])) for row in rows]
        centres = [
            np.mean([row for row, k in zip(rows, own) if k == number], axis=0) if number in own else centres[number]
            for number in range(4)
        ]
    assert found == own
