"""The oracles of the methods that make outliers, groups or prototypes of their own, to six digits."""

import math

import pytest
import torch
from scipy.special import chdtri
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from oodscope.activations.activations import Activations
from oodscope.activations.probes.stepped import SteppedNumerators
from oodscope.activations.probes.taps import Output
from oodscope.activations.probes.turns import JointLogits
from oodscope.base.errors import ModelError
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.branches import OTHERS
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.streams import Streams
from oodscope.training.methods.ascood import ASCOOD, Standardised
from oodscope.training.methods.csi import released_contrast, turn_labels, turned
from oodscope.training.methods.godin import GODIN, Quotient
from oodscope.training.methods.ish import ShapedLinear, shaped
from oodscope.training.methods.mcd import MCD, gap
from oodscope.training.methods.mos import MOS, GroupedHead
from oodscope.training.methods.palm import contrast
from oodscope.training.methods.queues import ClassQueues
from oodscope.training.methods.udg import UDG, cluster_weights
from oodscope.training.methods.vos import VOS, EnergyHead, chi_square_beyond, virtual_outliers, weighted_energy
from oodscope.training.recipe import TrainingFacts
from oodscope.training.registry import create_recipe
from tests.training.every_method import fast, prepared, run
from tests.training.test_methods import D, F, U, W, Y, Z, batch, giving, near
from tests.training.training_toys import PREPROCESS, TinyNet, colours

CORNERS = torch.tensor([[1, 0], [0, 1], [0.8, 0.6], [0.6, -0.8]], dtype=D)
PAIRS = torch.tensor([0, 1, 0, 1])


def rows(values):
    return [near(row) for row in values]


class TestGODIN:
    def layer(self, similarity="cosine"):
        layer = Quotient(2, 3, similarity).double().eval()
        with torch.no_grad():
            layer.classes.weight.copy_(W)
        return layer

    def test_numerators_and_quotient(self):
        layer = self.layer()
        h = layer.numerators(F)
        assert h.tolist() == rows([[0.447149, 0.894298, 0.948574], [0.447129, -0.894258, -0.316177]])
        g = torch.tensor([[0.3], [-0.5]], dtype=D).sigmoid()
        assert g.flatten().tolist() == near([0.574443, 0.377541])
        linear, norm, _ = layer.any_class
        with torch.no_grad():  # so that the layer itself has these pre-activations
            linear.weight.copy_(torch.tensor([[0.2, 0.233333333]]))
            linear.bias.fill_(-0.366666667)
            norm.running_var.fill_(1 - norm.eps)
        z = layer(F)["logits"]
        assert z.tolist() == rows([[0.778405, 1.556810, 1.651295], [1.184320, -2.368640, -0.837465]])
        assert GODIN().loss(giving(layer(F)), batch()).loss.item() == near(1.944419)
        assert z.argmax(1).tolist() == h.argmax(1).tolist(), "the class is that of the numerators"

    def test_the_other_similarity(self):
        assert self.layer("euclid").numerators(F).tolist() == rows([[-2, -1, -0.5], [-0.625, -2.125, -2.125]])

    def test_the_paper_s_score_ranks_otherwise_than_the_softmax_of_cosines(self):
        h = self.layer().numerators(F).detach().float()
        seen = Activations(columns={SteppedNumerators(0.0025).column: h})
        ours, theirs = (create_detector("godin", form=form).score(seen) for form in ("max", "softmax"))
        assert ours.tolist() == near([-0.948574, -0.447129])
        assert (1 - theirs).tolist() == near([0.391721, 0.578836])
        assert (ours[0] < ours[1]) != (theirs[0] < theirs[1])

    def test_without_a_learnt_denominator_the_loss_has_a_floor(self):
        best = torch.full((1, 10), -1.0, dtype=D)
        best[0, 0] = 1.0
        assert cross_entropy(best, torch.tensor([0])).item() == near(0.796614)
        floor = math.log1p(2 * math.exp(-2))
        trained = run(fast("godin", epochs=14, batch_size=40), 240)
        assert trained.history[-1].loss < floor, "the denominator is learnt"


class TestVOS:
    def head(self):
        head = EnergyHead(nn.Linear(2, 3), ClassQueues(3, 4, 2)).double()
        with torch.no_grad():
            head.weight_of_class.copy_(torch.tensor([0.5, 1, 0.2]))
            head.is_real.weight.copy_(torch.tensor([[-0.4], [0.7]]))
            head.is_real.bias.copy_(torch.tensor([0.1, -0.2]))
        return head

    def test_energies(self):
        weight = torch.tensor([0.5, 1, 0.2], dtype=D)
        assert weighted_energy(Z, weight).tolist() == near([1.892184, 2.586020])
        assert weighted_energy(U, weight).tolist() == near([0.889009, 0.902983])
        assert weighted_energy(Z, torch.ones(3, dtype=D)).tolist() == near([2.417030, 2.720050])

    def test_the_regulariser_and_its_gradients(self):
        z, u = Z.clone().requires_grad_(), U.clone().requires_grad_()
        apart = self.head().real_or_virtual(z, u)
        assert apart.item() == near(0.604598)
        assert (cross_entropy(Z, Y) + 0.1 * apart).item() == near(1.479000)
        apart.backward()
        assert z.grad.tolist() == rows([[-0.022074, -0.016241, -0.001321], [-0.001243, -0.018367, -0.000407]])
        assert u.grad.flatten().tolist() == near([0.101905, 0.074978, 0.005517, 0.045387, 0.110871, 0.027084])

    def test_the_radius_of_the_least_likely_draw(self):
        beyond = torch.tensor([-math.expm1(math.log(0.5) / 10_000)], dtype=D)
        assert chi_square_beyond(512, beyond).item() == near(643.046157)
        assert chi_square_beyond(2, beyond).item() == near(19.153776)
        chance = torch.rand(20_000, dtype=D, generator=torch.Generator().manual_seed(0))
        drawn = chi_square_beyond(512, -torch.expm1(chance.log() / 10_000))
        assert drawn.mean().item() == pytest.approx(644.5, abs=0.3)
        assert drawn.std().item() == pytest.approx(11.4, abs=0.3)

    @pytest.mark.parametrize("width", [2, 3, 64, 512, 2048])
    def test_what_a_chi_square_exceeds_agrees_with_scipy(self, width):
        chance = torch.cat([torch.logspace(-14, -1, 40, dtype=D), torch.linspace(0.1, 0.999, 40, dtype=D)])
        expected = torch.from_numpy(chdtri(width, chance.numpy()))
        torch.testing.assert_close(chi_square_beyond(width, chance), expected, rtol=1e-8, atol=0)

    def test_one_draw_has_the_law_of_the_least_likely_of_many(self):
        torch.manual_seed(0)
        queues = torch.randn(2, 50, 3, dtype=D) @ torch.tensor([[2.0, 0, 0], [1, 1, 0], [0, 0, 0.5]], dtype=D)
        means = queues.mean(1)
        centred = (queues - means[:, None]).flatten(0, 1)
        covariance = centred.T @ centred / len(centred) + 1e-4 * torch.eye(3, dtype=D)
        inverse, factor = torch.linalg.inv(covariance), torch.linalg.cholesky(covariance)

        def radii(points):
            return torch.einsum("...ci,ij,...cj->...c", points - means, inverse, points - means).flatten()

        ours = radii(torch.stack([virtual_outliers(queues, 50, torch.Generator().manual_seed(n)) for n in range(400)]))
        plain = means[:, None] + torch.randn(400, 2, 50, 3, dtype=D) @ factor.T
        likely = torch.stack([radii(plain[:, :, n]) for n in range(50)]).amax(0)
        assert ours.mean().item() == pytest.approx(likely.mean().item(), rel=0.05)
        assert ours.std().item() == pytest.approx(likely.std().item(), rel=0.2)

    def test_queues_keep_the_latest_of_each_class(self):
        queues = ClassQueues(2, 3, 1)
        queues.push(torch.arange(5.0)[:, None], torch.tensor([0, 1, 0, 0, 0]))
        assert not queues.full
        queues.push(torch.tensor([[7.0], [8.0]]), torch.tensor([1, 1]))
        assert queues.full
        assert sorted(queues.features[0].flatten().tolist()) == [2, 3, 4]
        assert sorted(queues.features[1].flatten().tolist()) == [1, 7, 8]


class TestCSI:
    def test_contrast(self):
        assert contrast(CORNERS, PAIRS, 0.07).item() == near(10.028022)
        assert contrast(CORNERS, PAIRS, 0.5).item() == near(1.868040)
        assert released_contrast(CORNERS, PAIRS, 0.07).item() == near(13.782631), "counts each image as its own kind"
        alone = torch.eye(2, dtype=D)  # each is its only positive, with probability 0
        assert released_contrast(alone, torch.tensor([0, 1]), 0.07).item() == near(18.420681)

    def test_a_turn_of_all_vectors_changes_nothing(self):
        angle = torch.tensor(0.7, dtype=D)
        turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        torch.testing.assert_close(contrast(CORNERS @ turn, PAIRS, 0.07), contrast(CORNERS, PAIRS, 0.07))

    def test_two_copies_of_distinct_images_are_nt_xent(self):
        torch.manual_seed(0)
        v = normalize(torch.randn(6, 5, dtype=D))
        similar = (v @ v.T / 0.5).fill_diagonal_(-torch.inf)
        expected = cross_entropy(similar, torch.arange(6).roll(3))
        torch.testing.assert_close(contrast(v, torch.arange(3).repeat(2), 0.5), expected)

    def test_turns_and_their_labels(self):
        pixels = torch.arange(8, dtype=torch.uint8).view(2, 1, 2, 2)
        made = turned(pixels, torch.Generator().manual_seed(3))
        assert made.shape == (8, 1, 2, 2)
        for turn in range(4):
            torch.testing.assert_close(made[2 * turn : 2 * turn + 2], made[:2].rot90(turn, (2, 3)))
        assert turn_labels(torch.tensor([2, 0]), 3, 8).tolist() == [2, 0, 5, 3, 8, 6, 11, 9]

    def test_batches_are_two_copies_in_four_turns_as_their_labels_say(self):
        still = [{"kind": "jitter", "strength": 0, "hue": 0, "grey": 0}]
        recipe = create_recipe("csi", batch_size=12, augment=still)
        shown = next(Streams(recipe, Sets(colours(24), None, None), PREPROCESS, torch.device("cpu")).batches(0))
        first = shown.images[:24]
        for turn, block in enumerate(shown.images.split(24)):
            torch.testing.assert_close(block, first.rot90(turn, (2, 3)))
        one, two = first.split(12)
        same = [torch.equal(a, b) or torch.equal(a, b.flip(2)) for a, b in zip(one, two)]
        assert all(same) and not torch.equal(one, two), "the copies differ by a mirror"
        labels = turn_labels(shown.labels, 3, len(shown.images))
        assert labels.view(4, 2, 12)[2, 1].tolist() == (6 + shown.labels).tolist()

    def test_the_joint_score(self):
        seen = Activations(columns={JointLogits().column: Z.float()})
        assert create_detector("csi").score(seen).tolist() == near((1 - Z.softmax(1).amax(1)).tolist())


class TestMOS:
    z = torch.tensor([[0, 2, 1, 1.5, 0], [1, 0, 0.5, 0, 2]], dtype=D)

    def test_groups(self):
        head = GroupedHead(2, (0, 0, 1)).double()
        output = head.split(self.z)
        assert output["logits"].exp().tolist() == rows([[0.665241, 0.244728, 0.182426], [0.186324, 0.307196, 0.880797]])
        assert output[OTHERS].exp().tolist() == rows([[0.090031, 0.817574], [0.506480, 0.119203]])
        assert head.loss(output, torch.tensor([0, 2])).item() == near(0.708108)
        logs = output["logits"], output[OTHERS]
        own = [-(logs[0][0, 0] + logs[1][1, 0]) / 2, -(logs[1][0, 1] + logs[0][1, 2]) / 2]
        assert [each.item() for each in own] == near([0.543938, 0.164171]), "what each group adds"
        seen = Activations(columns={Output(OTHERS).column: output[OTHERS].float().detach()})
        assert create_detector("mos").score(seen).tolist() == near([0.090031, 0.119203])

    def test_classes_may_be_scattered_over_groups(self):
        torch.manual_seed(0)
        head, outputs = GroupedHead(2, (1, 0, 1, 0)), torch.randn(5, 6)
        output = head.split(outputs)  # outputs: others, class 1, class 3 | others, class 0, class 2
        first, second = outputs[:, :3].log_softmax(1), outputs[:, 3:].log_softmax(1)
        torch.testing.assert_close(
            output["logits"], torch.stack([second[:, 1], first[:, 1], second[:, 2], first[:, 2]], 1)
        )
        torch.testing.assert_close(output[OTHERS], torch.stack([first[:, 0], second[:, 0]], 1))

    def test_one_group_is_cross_entropy_over_one_more_class(self):
        torch.manual_seed(0)
        head, outputs = GroupedHead(2, (0, 0, 0)), torch.randn(5, 4)
        labels = torch.arange(5) % 3
        torch.testing.assert_close(head.loss(head.split(outputs), labels), cross_entropy(outputs, labels + 1))

    def test_rates(self):
        steps = (0, 250, 500, 3000, 3001, 6001, 9001)
        rates = [0.003 * MOS().schedule(step, 391) for step in steps]
        assert rates == near([0, 0.0015, 0.003, 0.003, 3e-4, 3e-5, 3e-6])
        long = MOS(steps=20_000)
        assert [0.003 * long.schedule(step, 5005) for step in (250, 6000, 6001)] == near([0.0015, 0.003, 3e-4])
        assert MOS().total_steps(391) == 10_000


class TestISH:
    x = torch.tensor([[1, 2, 3, 4], [0, 1, 0, 3]], dtype=D)
    g = torch.tensor([[-0.2, 0.1, 0.1], [0.3, -0.1, -0.2]], dtype=D)

    def test_the_weight_learns_from_shaped_features(self):
        made = shaped(self.x, 0.5)
        assert made.tolist() == rows([[0, 0, 12.518202, 16.690936], [0, 2.718282, 0, 8.154845]])
        assert (made[:, 3] / self.x[:, 3]).tolist() == near([4.172734, 2.718282])
        plain = nn.Linear(4, 3).double()
        layer, x = ShapedLinear.of(plain, 0.5).double(), self.x.clone().requires_grad_()
        (layer.train()(x) * self.g).sum().backward()
        assert layer.weight.grad[0].tolist() == near([0, 0.815485, -2.503640, -0.891733])
        torch.testing.assert_close(x.grad, self.g @ plain.weight)
        torch.testing.assert_close(layer.bias.grad, self.g.sum(0))
        assert (self.g.T @ self.x)[0].tolist() == near([-0.2, -0.1, -0.6, 0.1])
        torch.testing.assert_close(layer(self.x), plain(self.x))
        torch.testing.assert_close(layer.eval()(self.x), plain(self.x))

    def test_how_many_features_count(self):
        assert [(shaped(torch.ones(1, width), 0.15) > 0).sum().item() for width in (2048, 512)] == [307, 76]


class TestASCOOD:
    def test_standardised_features(self):
        h = torch.tensor([[1, 2, 3, 6]], dtype=D)
        layer = Standardised(0.5)
        assert layer.train()(h)[0].tolist() == near([-0.462910, -0.231455, 0, 0.694365])
        assert layer.eval()(h) is h

    def test_the_flat_term_is_that_of_outlier_exposure(self):
        flat = -U.log_softmax(1).mean() - math.log(3)
        assert flat.item() == near(0.161141)

    @pytest.mark.parametrize(("spoil", "share", "count"), [("shuffle", 0.1, 102), ("shuffle", 0.15, 153),
                                                           ("gradient", 0.1, 307)])  # fmt: skip
    def test_how_many_pixels_are_spoilt(self, spoil, share, count):
        torch.manual_seed(0)
        images, gradient = torch.rand(2, 3, 32, 32), torch.randn(2, 3, 32, 32)
        made = ASCOOD(spoil=spoil, share=share).spoilt(batch(images), gradient)
        changed = made != images
        if spoil == "gradient":
            assert changed.flatten(1).sum(1).tolist() == [count, count]
            largest = gradient.abs().flatten(1).topk(count).values[:, -1:]
            assert ((gradient.abs().flatten(1) >= largest) == changed.flatten(1)).all()
            return
        pixels = changed.any(1).flatten(1)
        assert all(0.9 * count <= each <= count for each in pixels.sum(1).tolist()), "some stay where they were"
        largest = gradient.exp().sum(1).flatten(1).topk(count).values[:, -1:]
        assert (gradient.exp().sum(1).flatten(1) >= largest)[pixels].all()
        torch.testing.assert_close(made.flatten(2).sort(2).values, images.flatten(2).sort(2).values)


class TestMCD:
    second = torch.tensor([[0.5, 0.5, 0], [2, -1, 0]], dtype=D)

    def test_the_gap(self):
        sure = torch.tensor([[900.0, 0, 0]], dtype=D)  # without entropy
        assert gap(U, self.second).item() == near(0.159586)
        entropies = [[gap(row[None], sure).item() for row in each] for each in (U, self.second)]
        assert entropies == rows([[0.832396, 1.085411], [1.074368, 0.524267]])
        output = {"logits": torch.cat([Z, U]), "second": torch.cat([Z, self.second])}
        shown = batch(ood=batch())._replace(epoch=99)
        loss = MCD().loss(giving(output), shown).loss.item()
        assert loss == near(2 * 1.418540 + 1.040414, 2e-6)
        released = MCD(parity=True).loss(giving(output), shown).loss.item()
        assert released == near(2 * 1.418540 + 1.165973, 2e-6)
        before = {"logits": Z, "second": Z}
        assert MCD().loss(giving(before), shown._replace(epoch=88)).loss.item() == near(2 * 1.418540, 2e-6)

    def test_the_score(self):
        seen = Activations(logits=U.float(), columns={Output("second").column: self.second.float()})
        assert create_detector("mcd").score(seen).tolist() == near([0.563178, 1.148974])

    def test_descending_raises_the_first_entropy_and_lowers_the_second(self):
        u, v = U.clone().requires_grad_(), self.second.clone().requires_grad_()
        (1.2 - gap(u, v)).relu().backward()
        with torch.no_grad():
            moved = gap(u - 0.1 * u.grad, V := v.clone()) - gap(u, V), gap(u, v - 0.1 * v.grad) - gap(u, v)
        assert all(each > 0 for each in moved)


class TestUDG:
    def test_weights_of_clusters(self):
        assigned = torch.tensor([0] * 4 + [1] + [2] * 9)
        assert cluster_weights(assigned, 3).tolist() == near([0.818182, 1.636364, 0.545455])
        with_an_empty_one = cluster_weights(assigned, 4)
        assert with_an_empty_one.tolist() == near([0.818182, 1.636364, 0.545455, 0.0])

    def test_pure_clusters_name_their_outliers(self):
        # nine of class 0 and an outlier; nine outliers and one of class 1; a mixed one
        labels = torch.tensor([0] * 9 + [1] + [0, 1] + [-1] + [-1] * 9 + [-1])
        assigned = torch.tensor([0] * 9 + [1] + [2, 2] + [0] + [1] * 9 + [2])
        label, weight = UDG().judged(assigned, labels, known=12)
        assert label.tolist() == [0] + [-1] * 10
        assert weight.tolist() == [1.0] + [2.0] * 9 + [1.0]

    def test_no_outliers_left_is_no_loss(self):
        recipe, net, shown = prepared("udg", cluster_weight=0)
        net.eval()
        net.fc.label_of_ood.fill_(1)
        named = torch.cat([net(shown.images)["logits"], net(shown.ood.images)["logits"]])
        labels = torch.cat([shown.labels, torch.ones(12, dtype=torch.long)])
        torch.testing.assert_close(recipe.loss(net, shown).loss, cross_entropy(named, labels))

    def test_without_named_outliers_and_clusters_it_is_outlier_exposure_in_two_passes(self):
        recipe, net, shown = prepared("udg", cluster_weight=0)
        known, other = net.eval()(shown.images)["logits"], net(shown.ood.images)["logits"]
        expected = cross_entropy(known, shown.labels) - 0.5 * other.log_softmax(1).mean()
        torch.testing.assert_close(recipe.loss(net, shown).loss, expected)


def test_vos_refuses_queues_that_do_not_fit():
    many = TrainingFacts(class_names=tuple(map(str, range(1000))), n_train=10, size=12)
    with pytest.raises(ModelError, match="set a smaller queue"):
        VOS(queue=100_000).prepare(TinyNet(1000), many)
