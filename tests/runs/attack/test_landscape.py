"""The landscape of an attack: what is drawn is what the detector says, and samplers are compared on equal terms."""

import dataclasses

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.base.errors import DataError, OodscopeError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.plane import Plane
from oodscope.generation.variations.registry import create_variation
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.sources import source_order
from tests.generation.toys import Pixels, Shift
from tests.tiny import benchmark

CORNER = FunctionScorer(lambda images: images[:, 0, :4, :4].mean(dim=(1, 2)))
"""How red the upper left quarter is: rotation, shifts and colours all matter."""


def run(variation="affine", **options):
    bench = benchmark()
    settings = {"budget": 30, "chains": 12, "landscape": True, "seed": 3, "sampler": "paper", **options}
    return oods.attack({"corner": CORNER}, bench.id_val, bench.id_test, bench.near[0], [variation], **settings)


@pytest.fixture(scope="module")
def attack():
    return run()


@pytest.fixture(scope="module")
def energy(attack):
    """The standardised score of points of the whole variation, worked out again from source image and scorer."""
    val = attack.result.scores.scores("corner", role="id_val")
    near = benchmark().near[0]
    picture = near.images([source_order(near, "stratified", 3)[attack.landscape.chain]])[0]
    image = torch.from_numpy(picture).permute(2, 0, 1)[None] / 255
    whole = create_variation("affine", image_shape=(3, 8, 8))

    def of(points):
        made = whole(torch.as_tensor(np.array(points), dtype=torch.float32), image.expand(len(points), -1, -1, -1))
        return (CORNER.score_tensor(made).double().numpy() - val.mean()) / val.std()

    return whole, of


def points_of(whole, land, coordinates):
    """Natural values of both coordinates as points of the whole variation, one by one."""
    chosen = [whole.parameters.index(name) for name in land.coordinates]
    points = []
    for pair in coordinates:
        point = list(whole.identity)
        for place, value in zip(chosen, pair):
            low, high = whole.ranges[place].low, whole.ranges[place].high
            point[place] = (value - low) / (high - low)
        points.append(point)
    return points


class TestMap:
    def test_every_cell_is_the_score_there(self, attack, energy):
        land, (whole, of) = attack.landscape, energy
        grid = [(x, y) for y in land.y for x in land.x]
        assert land.scores.ravel() == pytest.approx(of(points_of(whole, land, grid)), abs=1e-4)
        for place, values in zip(land.coordinates, (land.x, land.y)):
            ends = whole.ranges[whole.parameters.index(place)]
            assert (values[0], values[-1]) == pytest.approx((ends.low, ends.high), abs=1e-5)

    def test_its_coordinates_are_those_that_lower_the_score_most(self, attack, energy):
        whole, of = energy
        lowest = {}
        for place, name in enumerate(whole.parameters):
            line = [list(whole.identity) for _ in range(33)]
            for step, point in enumerate(line):
                point[place] = step / 32
            lowest[name] = of(line).min()
        assert set(attack.landscape.coordinates) == set(sorted(lowest, key=lowest.get)[:2])

    def test_its_image_is_the_one_that_fell_most(self, attack):
        frame = attack.result.scores.frame
        clean, found = (frame.loc[frame["unit"] == unit, "corner"].to_numpy() for unit in ("clean", "affine"))
        assert attack.landscape.chain == np.argmax(clean - found)


class TestPaths:
    def test_states_and_their_scores(self, attack, energy):
        land, (whole, of) = attack.landscape, energy
        assert set(land.paths) == {"mh", "coordinate"}
        rest = whole.natural(torch.tensor([whole.identity]))[0]
        start = [float(rest[whole.parameters.index(name)]) for name in land.coordinates]
        for path in land.paths.values():
            assert path.shape == (31, 3)
            assert path[0, :2] == pytest.approx(start, abs=1e-5)
            assert path[:, 2] == pytest.approx(of(points_of(whole, land, path[:, :2])), abs=1e-4)
            assert len(np.unique(path[:, :2], axis=0)) > 3

    def test_descent_never_climbs_and_chance_does(self, attack):
        assert (np.diff(attack.landscape.paths["coordinate"][:, 2]) <= 1e-6).all()
        assert (np.diff(attack.landscape.paths["mh"][:, 2]) > 0).any()


class TestSamplers:
    def test_the_search_itself_is_one_of_them(self, attack):
        land = attack.landscape
        assert list(land.lowest) == ["mh", "coordinate", "random"]
        assert land.budgets == (1, 2, 3, 5, 7, 10, 15, 20, 30)
        rows = attack.result.measurements.filter(protocol="attack_budget", metric="lowest_score")
        assert land.lowest["mh"].min(axis=1) == pytest.approx([row.value for row in rows])
        for lowest in land.lowest.values():
            assert lowest.shape == (9, 12)
            assert (np.diff(lowest, axis=0) <= 0).all()

    def test_with_the_settings_of_the_attack(self):
        land = run(sampler=RandomSearch(), budget=5, chains=4).landscape
        assert list(land.lowest) == ["random", "mh", "coordinate"]
        again = run(budget=5, chains=4).landscape
        assert (land.lowest["random"] == again.lowest["random"]).all()
        assert (land.paths["mh"] == again.paths["mh"]).all()


class TestKept:
    def test_saved_and_read_again(self, attack, tmp_path):
        again = Attack.load(attack.save(tmp_path)).landscape
        for field in dataclasses.fields(again):
            ours, theirs = getattr(attack.landscape, field.name), getattr(again, field.name)
            if isinstance(ours, np.ndarray):
                assert (ours == theirs).all()
            elif isinstance(ours, dict):
                assert list(ours) == list(theirs)
                assert all((ours[name] == theirs[name]).all() for name in ours)
            else:
                assert ours == theirs
        (tmp_path / "attack" / "landscape.safetensors").write_bytes(b"\0" * 40)
        with pytest.raises(DataError, match="not the landscape of an attack"):
            Attack.load(tmp_path)

    def test_only_if_it_is_asked_for(self, tmp_path):
        plain = run(landscape=False, budget=2, chains=3)
        assert plain.landscape is None
        assert Attack.load(plain.save(tmp_path)).landscape is None

    def test_examples_are_of_the_same_source_images(self, attack, tmp_path):
        """The images of the first chains, whatever their scores; kept in the folder."""
        (pair,) = Attack.load(attack.save(tmp_path)).searches
        kept, scores = pair.examples, attack.result.scores
        assert kept.chains.tolist() == [0, 1, 2, 3, 4]
        near = benchmark().near[0]
        assert (kept.sources == np.stack(near.images(source_order(near, "stratified", 3)[:5]))).all()
        found = scores.frame.loc[scores.frame["unit"] == "affine", "corner"].to_numpy()[:5]
        assert kept.scores.tolist() == found.tolist()
        assert kept.ranks.tolist() == [(scores.scores("corner", role="id_test") < score).sum() for score in found]
        shown = torch.from_numpy(kept.images).permute(0, 3, 1, 2) / 255
        assert CORNER.score_tensor(shown).numpy() == pytest.approx(found, abs=0.003)  # of a rounding to 255 levels


def test_what_has_no_map_is_refused_before_the_search():
    generator = GanVariation(torch.nn.Sequential(torch.nn.Unflatten(1, (3, 8, 8)), torch.nn.Tanh()), dimension=192)
    for variation in (generator, Shift()):
        with pytest.raises(OodscopeError, match=f"no landscape of {variation.name}: .* attack with affine too"):
            run(variation, budget=10**9)
    with pytest.raises(OodscopeError, match="pixels has no plane to look at"):
        Plane(Pixels(2), 0, 1)


def test_a_plane_moves_two_coordinates():
    color = create_variation("color", image_shape=(3, 8, 8))
    plane = Plane(color, 3, 1)
    images, points = torch.rand(5, 3, 8, 8), torch.rand(5, 2)
    whole = torch.tensor(color.identity).repeat(5, 1)
    whole[:, 3], whole[:, 1] = points[:, 0], points[:, 1]
    assert torch.equal(plane(points, images), color(whole, images))
    assert torch.equal(plane.natural(points), color.natural(whole)[:, [3, 1]])
    assert plane(torch.tensor([plane.identity]), images[:1]) == pytest.approx(images[:1], abs=1e-6)
    assert plane.to("cpu").describe() == plane.describe()
    assert plane.describe()["coordinates"] == ["hue (turns)", "contrast"] == list(plane.parameters)
