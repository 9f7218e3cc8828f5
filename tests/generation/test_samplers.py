"""Each sampler against a law or a landscape that is known on paper."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.generation.samplers.registry import SAMPLERS, create_sampler
from oodscope.generation.search.energy import RELEASED, Standardised, rank_probit
from oodscope.generation.search.search import search
from tests.generation.toys import FLAT, SLOPE, Ball, Pixels, energy

pytestmark = pytest.mark.slow

GIBBS = 1 / 3 - math.exp(-3) / (1 - math.exp(-3))
"""The mean of p(z) = exp(-3z) on [0, 1]: 0.28094."""


def test_mh_with_reflection_samples_the_law_and_with_clamping_the_papers():
    assert abs(GIBBS - 0.28094) < 1e-5
    found = {
        boundary: search(SLOPE, Pixels(), create_sampler("mh", boundary=boundary), 150, chains=60_000, block=60_000)
        for boundary in ("reflect", "clamp")
    }
    assert abs(float(found["reflect"].last.mean()) - GIBBS) < 0.002
    assert kstest(found["reflect"].last[:5000, 0].numpy(), lambda z: -np.expm1(-3 * z) / -np.expm1(-3)).pvalue > 0.001
    assert abs(float(found["clamp"].last.mean()) - 0.2398) < 0.002
    stuck = (found["clamp"].last == 0) | (found["clamp"].last == 1)
    assert abs(float(stuck.float().mean()) - 0.20) < 0.01


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_temperature_divides_the_energy(temperature):
    found = search(SLOPE, Pixels(), create_sampler("mh", temperature=temperature, step=0.3), 40, chains=20_000)
    slope = 3 / temperature
    assert abs(float(found.last.mean()) - (1 / slope - math.exp(-slope) / (1 - math.exp(-slope)))) < 0.008


def test_langevin_samples_the_same_law():
    """On the slope most proposals end at a wall, where the correction must know the mirror images."""
    curved = energy(lambda z: 3 * z[:, 0] + 4 * (z[:, 0] - 0.4) ** 2)
    grid = np.linspace(0, 1, 20_001)
    weight = np.exp(-3 * grid - 4 * (grid - 0.4) ** 2)
    for scorer, mean, step in ((SLOPE, GIBBS, 0.3), (curved, (weight * grid).sum() / weight.sum(), 0.5)):
        found = search(scorer, Pixels(), create_sampler("langevin", step=step), 40, chains=20_000, block=20_000)
        assert abs(float(found.last.mean()) - mean) < 0.004
        assert 0.5 < float(found.acceptance.mean()) < 0.95


def test_a_constant_detector_accepts_all_and_stays_uniform():
    found = search(FLAT, Pixels(3), create_sampler("mh"), 50, chains=3000)
    assert found.acceptance.eq(1).all()
    assert all(kstest(found.last[:, axis].numpy(), "uniform").pvalue > 0.001 for axis in range(3))
    assert found.improved_at.eq(0).all()


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_the_sphere_is_never_left_and_evenly_covered(step):
    seen = []
    scorer = energy(lambda z: seen.append(z) or torch.zeros(len(z)))
    found = search(scorer, Pixels(16, sphere=True), create_sampler("mh", step=step), 30, chains=4000, block=4000)
    assert all((torch.linalg.vector_norm(z, dim=1) - 1).abs().max() < 1e-6 for z in seen)
    assert found.last.mean(dim=0).abs().max() < 5 * math.sqrt(1 / 16 / 4000)
    assert (found.last.square().mean(dim=0) - 1 / 16).abs().max() < 5 * math.sqrt(2 / 16**2 / 4000)


def test_cold_chains_only_go_down_and_equal_energies_are_accepted():
    seen = []
    plateau = energy(lambda z: seen.append(z.clone()) or (z[:, 0] * 5).floor())
    search(plateau, Pixels(), create_sampler("mh", temperature=1e-9), 60, chains=50)
    found = search(plateau, Pixels(), create_sampler("mh", temperature=1e-9), list(range(1, 61)), chains=50)
    assert (found.at_budget.diff(dim=0) <= 0).all() and (found.at_budget.diff(dim=0) < 0).any()
    # on the lowest plateau a chain moves unless the proposal is higher
    assert 0.6 < float(found.acceptance.mean()) < 1


BOWL = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
REACHED = {
    "mh": 0.1,
    "tempering": 0.1,
    "random": 0.2,
    "coordinate": 0.002,
    "zeroth_order": 0.02,
    "pgd": 0.02,
    "langevin": 0.1,
}


@pytest.mark.parametrize("name", REACHED)
def test_every_sampler_finds_the_bottom_of_a_bowl(name):
    bowl = energy(lambda z: 50 * (z - BOWL).square().sum(dim=1))
    settings = {"zeroth_order": {"step": 0.2, "reach": 0.01, "momentum": 0.5}}.get(name, {})
    found = search(bowl, Pixels(3), create_sampler(name, **settings), 400, chains=50)
    assert (found.points - BOWL).abs().max() < REACHED[name]
    assert torch.allclose(found.scores, 50 * (found.points.double() - BOWL).square().sum(dim=1))
    assert torch.allclose(found.scores, found.searched)


def test_mh_is_within_the_step_over_the_root_of_the_steps():
    bowl = energy(lambda z: 1000 * (z[:, :1] - BOWL[0]).square().sum(dim=1))
    found = search(bowl, Pixels(), create_sampler("mh"), 400, chains=200)
    assert float((found.points - 0.2).abs().median()) < 0.1 / math.sqrt(400)


def test_warm_up_finds_a_step_with_the_wanted_acceptance_and_keeps_it():
    narrow = energy(lambda z: 2000 * (z - 0.5).square().sum(dim=1))

    def later(adapt):
        """The acceptance of steps 300 to 600."""
        whole, half = (search(narrow, Pixels(5), create_sampler("mh", adapt=adapt), n, chains=100) for n in (600, 300))
        return float((2 * whole.acceptance - half.acceptance).mean())

    assert later(1) < 0.05
    assert abs(later(300) - 0.234) < 0.05


def test_a_step_by_dimension_is_the_step_over_its_root():
    one = search(SLOPE, Pixels(16), create_sampler("mh", step=0.4, by_dimension=True), 20, chains=20)
    two = search(SLOPE, Pixels(16), create_sampler("mh", step=0.1), 20, chains=20)
    assert torch.allclose(one.last, two.last, atol=1e-5)


def test_tempering_crosses_a_barrier_and_counts_all_replicas():
    """Two wells, the deeper one beyond a wall of energy 30."""
    wells = energy(lambda z: torch.where(z[:, 0] < 0.3, 0.0, torch.where(z[:, 0] > 0.8, -3.0, 30.0)))

    class Left(Pixels):
        @property
        def identity(self):
            return (0.1,)

    plain = search(wells, Left(), create_sampler("mh"), 1200, chains=60)
    hot = search(wells, Left(), create_sampler("tempering", ratio=4.0), 1200, chains=60)
    assert float((plain.scores == -3).float().mean()) < 0.05
    assert float((hot.scores == -3).float().mean()) > 0.8
    assert plain.evaluations == hot.evaluations == 1200 * 60
    # the cold replica moves there too: most of its mass is in the deeper well
    assert float((hot.last > 0.8).float().mean()) > 0.5


def test_tempering_leaves_the_cold_replica_its_law():
    found = search(SLOPE, Pixels(), create_sampler("tempering", swap_every=2), 240, chains=30_000, block=30_000)
    assert abs(float(found.last.mean()) - GIBBS) < 0.005


def test_coordinate_descent_ends_in_the_nearest_minimum():
    two = energy(lambda z: torch.minimum((z[:, 0] - 0.2).abs(), (z[:, 0] - 0.8).abs() - 0.1) + z[:, 1])
    found = search(two, Pixels(2), create_sampler("coordinate", step=0.05), 120, chains=200)
    local = found.points[:, 0].sub(0.2).abs() < 0.01
    assert 0.2 < float(local.float().mean()) < 0.7
    assert (found.points[:, 0].sub(0.8).abs()[~local] < 0.01).all() and (found.points[:, 1] < 0.01).all()


def slow_zeroth_order(score, images, noise, radius, step, reach, momentum, halve_every, steps):
    """The paper's code in NumPy, one image at a time, in pixels."""
    lowest = []
    for row, source in enumerate(images):
        x, v = source.copy(), np.zeros_like(source)
        best = score(x)
        for t in range(steps):
            halved = 0.5 ** (t // halve_every)
            e = reach * halved * noise[t][row]
            g = e * (score(np.clip(x + e, 0, 1)) - score(x)) / (reach * halved)
            v = step * halved * g + momentum * v
            x = np.clip(np.clip(x - v, source - radius, source + radius), 0, 1)
            best = min(best, score(x))
        lowest.append(best)
    return np.array(lowest)


def test_the_zeroth_order_attack_is_the_papers():
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 1, (40, 1, 2, 3)).round(1)
    weights = rng.normal(size=6)

    def score(x):
        return float(np.sin(20 * x.reshape(-1) + weights).sum() + (x.reshape(-1) * weights).sum())

    def scores(batch):
        rows = batch.flatten(1).double()
        return torch.sin(20 * rows + torch.from_numpy(weights)).sum(1) + rows @ torch.from_numpy(weights)

    drawn = []

    settings = {"step": 0.1, "reach": 0.005, "momentum": 0.9, "halve_every": 10}
    from oodscope.generation.search import target as stream

    original = stream.Noise.normal

    def listening(self, *shape):
        drawn.append(original(self, *shape))
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream.Noise, "normal", listening)
        found = search(
            energy(lambda rows: scores(rows)),
            Ball(0.05, pixels=6),
            create_sampler("zeroth_order", **settings),
            60,
            torch.from_numpy(images).float(),
        )
    noise = [each.numpy().reshape(images.shape).astype(np.float64) for each in drawn]
    assert len(noise) == 30 and found.evaluations == 2400
    expected = slow_zeroth_order(score, images, noise, radius=0.05, steps=30, **settings)
    assert np.allclose(found.scores.numpy(), expected, atol=2e-4)
    assert float((found.clean - found.scores).min()) > 0.05
    assert ((images == 0) | (images == 1)).sum() > 10


def test_square_goes_to_the_corners_of_the_ball_in_squares():
    seen = []
    target = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(1)) < 0.5
    scorer = energy(lambda z: seen.append(z) or (z.view(-1, 3, 8, 8) * torch.where(target, -1.0, 1.0)).sum((1, 2, 3)))
    images = torch.full((20, 3, 8, 8), 0.5)
    found = search(scorer, Ball(0.1), create_sampler("square", schedule=400), 400, images)
    assert ((found.points - 0.5).abs() == 0.5).all()
    best = -0.1 * 3 * 64
    gained = (found.scores - found.clean) / best
    assert float(gained.min()) > 0.6 and float(found.acceptance.max()) < 1
    stripes = seen[3].view(-1, 3, 8, 8)
    assert (stripes == stripes[:, :, :1]).all()
    # one window, of one value per channel, changes at a time
    sampler = create_sampler("square", schedule=400)
    assert [sampler.side(step, 8, 8) for step in (1, 3, 399)] == [5, 4, 1]


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "square"])
def test_one_run_serves_several_budgets(name):
    bumpy = energy(lambda z: torch.sin(9 * z).sum(dim=1) + z[:, 0])
    sampler = create_sampler(name, **({"adapt": 5} if name == "mh" else {}))
    ladder = search(bumpy, Pixels(2), sampler, [12, 1, 5, 40], chains=30)
    assert ladder.budgets == (1, 5, 12, 40) and ladder.at_budget.isfinite().all()
    for place, budget in enumerate(ladder.budgets):
        if budget < sampler.evaluations:
            continue
        alone = search(bumpy, Pixels(2), sampler, budget, chains=30)
        assert torch.equal(ladder.at_budget[place], alone.at_budget[0]) and torch.equal(
            alone.searched, alone.at_budget[0]
        )
    assert torch.equal(ladder.points, alone.points) and torch.equal(ladder.last, alone.last)


def test_what_makes_no_sense_is_said():
    with pytest.raises(UnknownNameError, match="unknown sampler 'mhh'. Did you mean 'mh'"):
        create_sampler("mhh")
    with pytest.raises(OodscopeError, match="unknown setting 'stepp'. Did you mean 'step'"):
        create_sampler("mh", stepp=1)
    with pytest.raises(UnknownNameError, match="boundary 'reflekt'. Did you mean 'reflect'"):
        create_sampler("mh", boundary="reflekt")
    for name, settings in [
        ("mh", {"step": 0}),
        ("mh", {"temperature": -1}),
        ("mh", {"adapt": -1}),
        ("tempering", {"replicas": 1}),
        ("langevin", {"step": 0.7}),
        ("square", {"share": 2}),
        ("zeroth_order", {"momentum": 1}),
    ]:
        with pytest.raises(OodscopeError, match=name):
            create_sampler(name, **settings)
    with pytest.raises(OodscopeError, match="tempering evaluates 4 times per step; a budget of 3 allows none"):
        search(SLOPE, Pixels(), create_sampler("tempering"), 3, chains=2)
    with pytest.raises(OodscopeError, match="square: needs a variation with one parameter per pixel"):
        search(SLOPE, Pixels(), create_sampler("square"), 3, chains=2)
    for name in ("langevin", "zeroth_order"):
        with pytest.raises(OodscopeError, match=f"{name}.*sphere"):
            search(SLOPE, Pixels(3, sphere=True), create_sampler(name), 4, chains=2)


def test_gradients_are_refused_where_there_are_none():
    class Stepwise(Pixels):
        differentiable = False

    with pytest.raises(OodscopeError, match="pgd follows gradients, and pixels has none"):
        search(SLOPE, Stepwise(), create_sampler("pgd"), 3, chains=2)
    cut = energy(lambda z: z[:, 0].detach())
    with pytest.raises(OodscopeError, match="no gradient flows"):
        search(cut, Pixels(), create_sampler("langevin"), 3, chains=2)


def test_projected_gradient_goes_down_on_a_sphere_too():
    pole = energy(lambda z: z[:, 0])
    found = search(pole, Pixels(8, sphere=True), create_sampler("pgd", step=0.5), 100, chains=20)
    assert (found.points[:, 0] < -0.95).all()


class TestEnergy:
    val = np.random.default_rng(0).normal(5, 2, 400)

    def test_standardised(self):
        scale = Standardised.of(self.val)
        values = scale.on(torch.device("cpu"))(torch.from_numpy(self.val))
        assert abs(float(values.mean())) < 1e-12 and abs(float(values.std(correction=0)) - 1) < 1e-12
        assert Standardised.of([2, 2, 2]) == Standardised(2.0, 1e-12)

    def test_rank_probit_is_the_same_for_every_monotone_change_and_never_flat(self):
        one, two = rank_probit(self.val), rank_probit(np.exp(self.val))
        inside = torch.from_numpy(np.sort(self.val))
        energies = one.on(torch.device("cpu"))(inside)
        assert torch.allclose(energies, two.on(torch.device("cpu"))(inside.exp()))
        assert abs(float(energies.mean())) < 1e-9 and 0.95 < float(energies.std()) < 1.02
        wide = one.on(torch.device("cpu"))(torch.linspace(-100, 100, 5001, dtype=torch.float64))
        assert (wide.diff() > 0).all()
        slope = float(wide[1] - wide[0]) / 0.04
        assert abs(slope * self.val.std() - 1) < 1e-6

    def test_ties_share_their_middle_rank(self):
        energies = rank_probit([1, 2, 2, 3]).on(torch.device("cpu"))(torch.tensor([1.0, 2.0, 2.5, 3.0]).double())
        from scipy.stats import norm

        expected = norm.ppf([1 / 5, 2.5 / 5, 4 / 5])
        assert np.allclose(energies.numpy()[[0, 1, 3]], expected)
        assert np.isclose(float(energies[2]), expected[1:].mean())

    def test_chains_weigh_energies_not_scores(self):
        steep = energy(lambda z: 300 * z[:, 0] + 7)
        found = search(steep, Pixels(), create_sampler("mh", step=0.3), 40, chains=20_000, energy=Standardised(7, 100))
        assert abs(float(found.last.mean()) - GIBBS) < 0.006
        assert torch.allclose(found.scores, 300 * found.points[:, 0].double() + 7)

    def test_the_released_code_adds_to_the_deviation(self):
        """A reject probability that spreads by .0005 is searched at three times the temperature."""
        narrow = 0.0005 * np.array([-1.0, 1.0])
        assert Standardised.of(narrow, RELEASED).scale / Standardised.of(narrow).scale == pytest.approx(3)

    @pytest.mark.parametrize("scores", [[1.0], [1.0, np.nan]])
    def test_scores_that_give_no_scale_are_refused(self, scores):
        for kind in (Standardised.of, rank_probit):
            with pytest.raises(OodscopeError, match="validation"):
                kind(scores)
        with pytest.raises(OodscopeError, match="all the same"):
            rank_probit([1, 1])
