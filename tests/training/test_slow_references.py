"""The loss of each method again, slowly: image by image and pair by pair in plain Python, from its paper's formula.

The network's outputs are taken as they are; everything a method makes of them is computed anew in float64. Where a
published form differs from the paper it is computed too.
"""

import math

import numpy as np
import pytest
import torch

from oodscope.training.methods.npos import NPOS
from oodscope.training.methods.palm import PALM
from tests.training.every_method import prepared


def numbers(tensor):
    return tensor.detach().double().numpy()


def log_softmax(row):
    highest = max(row)
    return [value - highest - math.log(sum(math.exp(each - highest) for each in row)) for value in row]


def label_loss(logits, labels):
    return -sum(log_softmax(list(row))[label] for row, label in zip(logits, labels)) / len(labels)


def unit(vector):
    return np.asarray(vector) / max(math.sqrt(sum(each * each for each in vector)), 1e-12)


def log_sum(values):
    highest = max(values)
    return highest + math.log(sum(math.exp(each - highest) for each in values))


def close(found, expected):
    assert found.item() == pytest.approx(expected, rel=2e-5, abs=2e-5)


def supervised_contrast(points, classes, temperature, itself=False):
    """Mean over points of minus the mean log share of their kind; ``itself`` counts a point among its kind."""
    losses = []
    for i, anchor in enumerate(points):
        others = [float(anchor @ points[j]) / temperature for j in range(len(points)) if j != i]
        total = log_sum(others)
        shares = [-math.inf if j == i else float(anchor @ points[j]) / temperature - total for j in range(len(points))]
        kind = [j for j in range(len(points)) if classes[j] == classes[i] and (itself or j != i)]
        if not kind:
            continue
        logs = [math.log(math.exp(shares[j]) + 1e-8) if itself else shares[j] for j in kind]
        losses.append(-sum(logs) / len(kind))
    return sum(losses) / len(losses)


def test_godin():
    recipe, net, shown = prepared("godin")
    seen = []
    net.fc.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    found = recipe.loss(net, shown).loss
    features, layer = numbers(seen[0]), net.fc
    weight, (linear, norm, _) = numbers(layer.classes.weight), layer.any_class
    drawn = features @ numbers(linear.weight)[0] + linear.bias.item()
    scaled = (drawn - drawn.mean()) / math.sqrt(drawn.var() + norm.eps)
    g = [1 / (1 + math.exp(-(norm.weight.item() * each + norm.bias.item()))) for each in scaled]
    logits = []
    for row, quotient in zip(features, g):
        lengths = [(np.linalg.norm(row) + 1e-4) * (np.linalg.norm(own) + 1e-4) for own in weight]
        logits.append([float(row @ own) / length / quotient for own, length in zip(weight, lengths)])
    close(found, label_loss(logits, shown.labels.tolist()))


@pytest.mark.parametrize("parity", [False, True])
def test_csi(parity):
    recipe, net, shown = prepared("csi", parity=parity)
    output = net(shown.images)
    count, labels = len(shown.images), shown.labels.tolist()
    turns = [row // (count // 4) for row in range(count)]
    classes = [(turns[row], labels[row % len(labels)]) for row in range(count)]
    contrast = supervised_contrast(numbers(output["embedding"]), classes, recipe.temperature, itself=parity)
    probe = label_loss(numbers(output["logits"])[: len(labels)], labels)
    close(recipe.loss(net, shown).loss, contrast + probe)


def test_csi_heads():
    recipe, net, shown = prepared("csi_heads")
    output = {name: numbers(value) for name, value in net(shown.images).items()}
    labels = shown.labels.tolist()
    count = len(labels)
    turn = [row // count for row in range(4 * count)]
    joint = [3 * turn[row] + labels[row % count] for row in range(4 * count)]
    expected = label_loss(output["logits"][:count], labels)
    expected += label_loss(output["rotation"], turn) + label_loss(output["joint"], joint)
    close(recipe.loss(net, shown).loss, expected)


@pytest.mark.parametrize("parity", [False, True])
def test_mos(parity):
    from oodscope.training.methods.mixup import drawn_partners, drawn_share

    recipe, net, shown = prepared("mos", alpha=2.0, parity=parity)
    share, partner = drawn_share(shown, 2.0, 2.0).item(), drawn_partners(shown).tolist()
    shown.draws.manual_seed(1)
    mixed = torch.stack([share * one + (1 - share) * shown.images[other] for one, other in zip(shown.images, partner)])
    seen = []
    net.fc.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    net(shown.images if parity else mixed)
    outputs = numbers(net.fc.linear(seen[0]))  # groups by name: cold holds classes 1 and 2, warm class 0
    groups = {"cold": (0, [1, 2]), "warm": (3, [0])}

    def grouped(row, label):
        total = 0.0
        for start, members in groups.values():
            logs = log_softmax(list(row[start : start + 1 + len(members)]))
            total -= logs[1 + members.index(label)] if label in members else logs[0]
        return total

    labels = shown.labels.tolist()
    both = [[grouped(row, own) for row, own in zip(outputs, each)] for each in
            (labels, [labels[other] for other in partner])]  # fmt: skip
    close(recipe.loss(net, shown).loss, share * np.mean(both[0]) + (1 - share) * np.mean(both[1]))


def test_vos():
    from oodscope.training.methods.vos import virtual_outliers

    recipe, net, shown = prepared("vos", weight=0.7)
    logits, labels = numbers(net(shown.images)["logits"]), shown.labels.tolist()
    found = recipe.loss(net, shown).loss  # the batch is in the queues before outliers are drawn from them
    virtual = virtual_outliers(net.fc.queues.features, recipe.candidates, torch.Generator().manual_seed(1))
    weight, head = numbers(net.fc.weight_of_class), net.fc.is_real
    slope, offset = numbers(head.weight)[:, 0], numbers(head.bias)

    def real(row):
        energy = math.log(sum(max(own, 0.0) * math.exp(value) for own, value in zip(weight, row)))
        return [slope[0] * energy + offset[0], slope[1] * energy + offset[1]]

    judged = [real(row) for row in logits] + [real(row) for row in numbers(net.fc.main(virtual))]
    apart = label_loss(judged, [1] * len(logits) + [0] * len(virtual))
    close(found, label_loss(logits, labels) + 0.7 * apart)


def prototype_loss(embedding, labels, prototypes, recipe):
    """CIDER's loss, the prototypes moved one embedding after the other."""
    moved = [row.copy() for row in prototypes]
    for row, label in zip(embedding, labels):
        kept = recipe.momentum_of_prototypes
        moved[label] = unit(kept * moved[label] + (1 - kept) * row)
    compact = label_loss([[float(row @ own) / recipe.temperature for own in moved] for row in embedding], labels)
    apart = []
    for i, own in enumerate(moved):
        others = [float(own @ other) / recipe.temperature for j, other in enumerate(moved) if j != i]
        apart.append(log_sum(others) - math.log(len(others)))
    compact *= recipe.temperature / 0.07
    return recipe.compactness * compact + recipe.dispersion * sum(apart) / len(apart), moved


@pytest.mark.parametrize("name", ["cider", "npos"])
def test_prototypes(name):
    recipe, net, shown = prepared(name, **({"weight": 0.0} if name == "npos" else {}))
    embedding, before = numbers(net(shown.images)["embedding"]), numbers(net.fc.prototypes)
    expected, moved = prototype_loss(embedding, shown.labels.tolist() * 2, before, recipe)
    close(recipe.loss(net, shown).loss, expected)
    np.testing.assert_allclose(numbers(net.fc.prototypes), np.array(moved), atol=1e-5)


def nth_distance(point, bank, number, without=None):
    distances = [np.linalg.norm(point - each) for row, each in enumerate(bank) if row != without]
    return sorted(distances)[number - 1]


@pytest.mark.parametrize("parity", [False, True])
def test_outliers_of_npos(parity):
    recipe = NPOS(queue=30, neighbours=4, boundary=8, centres=2, noise=9, keep_of_noise=3, spread=0.5, parity=parity)
    queues = torch.randn(2, 30, 4, generator=torch.Generator().manual_seed(3)) + 1
    made = numbers(recipe.outliers_of(queues, torch.Generator().manual_seed(5))).reshape(2, 2, 3, 4)
    draws = torch.Generator().manual_seed(5)
    noise = numbers(0.5 * torch.randn(9, 4, generator=draws))
    for queue, found in zip(numbers(queues), made):
        bank = [unit(row) for row in queue]
        far = [nth_distance(row, bank, 4, without=number) for number, row in enumerate(bank)]
        edge = sorted(range(30), key=lambda row: -far[row])[:8]
        centres = [queue[edge[place]] for place in torch.rand(8, generator=draws).argsort()[:2].tolist()]
        around = [[centre + each for each in noise] for centre in centres]
        flat = [nth_distance(unit(point), bank, 4) for points in around for point in points]
        for number, (points, kept) in enumerate(zip(around, found)):
            # the released code takes every second number of the list for one centre's
            own = flat[number::2] if parity else flat[9 * number : 9 * number + 9]
            expected = [points[place] for place in sorted(range(9), key=lambda place: -own[place])[:3]]
            np.testing.assert_allclose(np.sort(kept, axis=0), np.sort(expected, axis=0), atol=1e-5)


def test_npos_tells_real_from_made():
    recipe, net, shown = prepared("npos", weight=0.6, compactness=0.0, dispersion=0.0)
    features = net(shown.images)["features"]
    found = recipe.loss(net, shown).loss
    made = recipe.outliers_of(net.fc.queues.features, torch.Generator().manual_seed(1))
    real, false = (numbers(net.fc.is_real(each)).flatten() for each in (features, made))
    losses = [math.log1p(math.exp(-each)) for each in real] + [math.log1p(math.exp(each)) for each in false]
    close(found, 0.6 * sum(losses) / len(losses))


def slow_shares(embedding, prototypes, recipe):
    """Sinkhorn's rounds with plain exponentials."""
    shares = np.array([[math.exp(float(f @ pi) / recipe.sharpness) for pi in prototypes] for f in embedding])
    for _ in range(recipe.rounds):
        for column in range(shares.shape[1]):
            shares[:, column] /= sum(shares[:, column])
        for row in range(shares.shape[0]):
            shares[row] /= sum(shares[row])
    return shares


def slow_assigned(shares, allowed, top):
    made = np.zeros_like(shares)
    for row, own in enumerate(allowed):
        best = sorted(own, key=lambda place: -shares[row, place])[:top]
        for place in best:
            made[row, place] = shares[row, place] / sum(shares[row, each] for each in best)
    return made


def test_palm():
    recipe, net, shown = prepared("palm")
    embedding, pi = numbers(net(shown.images)["embedding"]), numbers(net.fc.prototypes)
    labels = shown.labels.tolist() * 2
    own = [[place for place in range(len(pi)) if place % 3 == label] for label in labels]
    assigned = slow_assigned(slow_shares(embedding, pi, recipe), own, recipe.top)
    kept, moved = recipe.momentum_of_prototypes, []
    for place, prototype in enumerate(pi):
        column = assigned[:, place]
        drawn = sum(share * f for share, f in zip(column, embedding)) / max(column.sum(), 1e-12)
        moved.append(unit(kept * prototype + (1 - kept) * drawn))
    again = slow_assigned(slow_shares(embedding, moved, recipe), [np.flatnonzero(row) for row in assigned], recipe.top)
    likely = []
    for f, row in zip(embedding, again):
        similar = [float(f @ each) / recipe.temperature for each in moved]
        likely.append(log_sum(similar) - sum(share * value for share, value in zip(row, similar)))
    contrast = supervised_contrast(np.array(moved), [place % 3 for place in range(len(pi))], 0.5)
    close(recipe.loss(net, shown).loss, sum(likely) / len(likely) + contrast)
    np.testing.assert_allclose(numbers(net.fc.prototypes), np.array(moved), atol=1e-5)


def test_palm_assigns_even_what_lies_at_another_class():
    """Shares of the own class far below those of another are shares all the same: rows sum to 1."""
    recipe = PALM(prototypes=2, top=2)
    prototypes = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.98, 0.2], [-0.98, -0.2]])
    embedding = torch.tensor([[1.0, 0.0]] * 20 + [[-1.0, 0.0]] * 20)
    labels = torch.tensor([1] + [0] * 19 + [1] * 20)  # the first lies at the other class
    own = labels[:, None] == torch.arange(4) % 2
    shares = recipe.assigned(embedding, prototypes, own)
    torch.testing.assert_close(shares.sum(1), torch.ones(40))
    assert not shares[~own].any()


def test_reweightood():
    recipe, net, shown = prepared("reweightood")
    embedding, labels = numbers(net(shown.images)["embedding"]), shown.labels.tolist() * 2
    near, far = [], []
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            s = float(embedding[i] @ embedding[j])
            if labels[i] == labels[j]:
                near.append(-s / (1 + math.exp(2 * s - 1)) / recipe.temperature)
            else:
                far.append(s / (1 + math.exp(4 - 5 * s)) / recipe.temperature)
    total = log_sum(near) + log_sum(far)
    close(recipe.loss(net, shown).loss, total if total > 0 else math.expm1(total))


def test_ish():
    recipe, net, shown = prepared("ish", share=0.25)
    seen = []
    net.fc.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    recipe.loss(net, shown).loss.backward()
    features, labels = numbers(seen[0]), shown.labels.tolist()
    logits = features @ numbers(net.fc.weight).T + numbers(net.fc.bias)
    expected = np.zeros(net.fc.weight.shape)
    for row, label, z in zip(features, labels, logits):
        p = [math.exp(each) for each in log_softmax(list(z))]
        best = sorted(range(len(row)), key=lambda place: -row[place])[: int(0.25 * len(row))]
        factor = math.exp(sum(row) / sum(row[place] for place in best))
        for c in range(len(p)):
            for place in best:
                expected[c, place] += (p[c] - (c == label)) / len(labels) * factor * row[place]
    np.testing.assert_allclose(numbers(net.fc.weight.grad), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("spoil", ["shuffle", "gradient"])
def test_ascood(spoil):
    recipe, net, shown = prepared("ascood", spoil=spoil, share=0.1, weight=0.4)
    side, labels = shown.images.shape[-1], shown.labels.tolist()
    fixed = [part for part in net.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for part in fixed:
        part.eval()  # both passes then see the same statistics
    made = []
    for number, image in enumerate(shown.images):
        leaf = image[None].clone().requires_grad_(True)
        net(leaf)[0, labels[number]].backward()
        made.append((image.clone(), leaf.grad[0]))
    spoilt = []
    for image, gradient in made:
        if spoil == "gradient":
            flat, step = gradient.flatten(), torch.zeros(gradient.numel())
            for place in flat.abs().argsort(descending=True)[: int(0.1 * flat.numel())]:
                step[place] = recipe.length * flat[place]
            spoilt.append(image + step.view_as(image))
        else:
            matter = sum(gradient[channel].exp() for channel in range(3)).flatten()
            spoilt.append((image, matter.argsort(descending=True)[: int(0.1 * side * side)]))
    if spoil == "shuffle":
        found = recipe.spoilt(shown, torch.stack([gradient for _, gradient in made]))
        for (image, places), each in zip(spoilt, found):
            assert torch.equal(each.flatten(1)[:, places].sort(1).values, image.flatten(1)[:, places].sort(1).values)
            rest = torch.ones(side * side, dtype=torch.bool)
            rest[places] = False
            assert torch.equal(each.flatten(1)[:, rest], image.flatten(1)[:, rest])
        spoilt, _ = list(found), shown.draws.manual_seed(1)
    logits = numbers(net(torch.cat([shown.images, torch.stack(spoilt)])))
    flat = [-sum(log_softmax(list(row))) / 3 - math.log(3) for row in logits[len(labels) :]]
    expected = label_loss(logits[: len(labels)], labels) + 0.4 * sum(flat) / len(flat)
    seen = []
    net.conv.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    for part in fixed:
        part.train(False)
        part.train = lambda mode=True, part=part: part  # the recipe switches modes around its gradient
    close(recipe.loss(net, shown).loss, expected)
    torch.testing.assert_close(seen[-1][len(labels) :], torch.stack(spoilt), atol=1e-4, rtol=1e-4)
