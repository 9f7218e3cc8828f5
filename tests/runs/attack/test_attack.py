"""Attacks on detectors: what is measured, what is flagged, what goes on after a kill, what is refused."""

import re

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.base.errors import DataError, DetectorError, OodscopeError, UnknownNameError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.deploy.scorer import Scorer
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.results.store.store import ResultStore
from oodscope.runs.attack.measuring import measure
from oodscope.runs.attack.plan import Plan
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.sources import source_order
from oodscope.runs.attack.table import attack_table
from oodscope.runs.evaluation.scoring import fit_scorers
from tests.generation.toys import Shift
from tests.tiny import benchmark, classifier, imageset, network, noise

pytestmark = pytest.mark.slow

NAMES = ["msp", "knn"]
VARIED = ["affine", "color"]


class Generator(torch.nn.Module):
    """Latents of twelve numbers as pixels around grey."""

    def forward(self, latents):
        return torch.tanh(latents.view(-1, 3, 2, 2).repeat_interleave(4, 2).repeat_interleave(4, 3) * 3)


@pytest.fixture(scope="module")
def scorers(tmp_path_factory):
    store = oods.ActivationStore(tmp_path_factory.mktemp("store"))
    fitted = fit_scorers(classifier(), benchmark(), NAMES, store=store)
    return {**fitted, "mean": FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)))}


def run(scorers, variations=VARIED, outliers=None, **options):
    bench = benchmark()
    settings = {"budget": 12, "chains": 20, "seed": 1, **options}
    return oods.attack(scorers, bench.id_val, bench.id_test, outliers or bench.near[0], variations, **settings)


@pytest.fixture(scope="module")
def attack(scorers):
    gan = GanVariation(Generator(), dimension=12)
    return run(scorers, {name: create_variation(name, image_shape=(3, 8, 8)) for name in VARIED} | {"gan": gan})


def sources(images=None, count=20):
    """Rows of the outliers that the chains of ``run`` start from."""
    return source_order(images or benchmark().near[0], "stratified", 1)[:count]


def slow_auroc(id_scores, outliers):
    return np.mean([[(b > a) + 0.5 * (b == a) for a in id_scores] for b in outliers])


def column(attack, detector, unit):
    frame = attack.result.scores.frame
    return frame.loc[frame["unit"] == unit, detector].to_numpy()


class TestNumbers:
    def test_from_the_stored_scores_alone(self, attack):
        scores = attack.result.scores
        assert (
            measure(scores).to_dataframe().equals(attack.result.measurements.filter(protocol="attack").to_dataframe())
        )
        for detector in scores.detectors:
            id_test = scores.scores(detector, role="id_test")
            for unit in ("clean", *VARIED, "gan"):
                outliers = column(attack, detector, unit)
                assert len(outliers) == 20
                rows = attack.result.measurements.filter(protocol="attack", detector=detector, group=unit)
                (auroc,), (least,) = rows.filter(metric="auroc"), rows.filter(metric="min_rank")
                assert auroc.value == pytest.approx(slow_auroc(id_test, outliers))
                assert auroc.low <= auroc.value <= auroc.high
                ranks = np.array([(id_test < score).sum() for score in outliers]).reshape(5, 4).min(axis=1)
                assert least.value == pytest.approx(ranks.mean())
                (error,), (share,) = rows.filter(metric="min_rank_se"), rows.filter(metric="min_rank_share")
                assert error.value == pytest.approx(ranks.std(ddof=1) / np.sqrt(5))
                assert share.value == pytest.approx(ranks.mean() / 80)
                assert 0 <= share.low <= share.high <= 1

    def test_an_attack_never_helps(self, attack):
        for detector in attack.detectors:
            clean = column(attack, detector, "clean")
            worst = np.minimum(column(attack, detector, "affine"), column(attack, detector, "color"))
            for unit in VARIED:
                assert (column(attack, detector, unit) <= clean).all()
            rows = attack.result.measurements.filter(protocol="attack", detector=detector, metric="auroc")
            values = {row.group: row.value for row in rows}
            assert values["any"] <= min(values["affine"], values["color"]) <= values["clean"]
            id_test = attack.result.scores.scores(detector, role="id_test")
            assert values["any"] == pytest.approx(slow_auroc(id_test, worst))

    def test_clean_scores_are_those_of_the_scorer(self, attack, scorers):
        for detector in NAMES:
            plain = scorers[detector].score(benchmark().near[0])[sources()]
            assert column(attack, detector, "clean") == pytest.approx(plain, abs=1e-5)
            assert attack.result.scores.scores(detector, role="id_test") == pytest.approx(
                scorers[detector].score(benchmark().id_test), abs=1e-5
            )

    def test_curves_fall_to_the_result(self, attack):
        for detector in attack.detectors:
            for unit in (*VARIED, "gan"):
                rows = attack.result.measurements.filter(protocol="attack_budget", detector=detector, group=unit)
                curve = [row.value for row in rows.filter(metric="auroc")]
                # twelve evaluations allow four members three each; tempering, with four a step, is left out
                assert [row.set for row in rows.filter(metric="auroc")] == ["4", "8", "12"]
                assert curve == sorted(curve, reverse=True)
                (final,) = attack.result.measurements.filter(
                    protocol="attack", detector=detector, group=unit, metric="auroc"
                )
                assert curve[-1] == pytest.approx(final.value, abs=1e-6)
                lowest = [row.value for row in rows.filter(metric="lowest_score")]
                val = attack.result.scores.scores(detector, role="id_val")
                expected = (column(attack, detector, unit).min() - val.mean()) / val.std()
                assert lowest[-1] == pytest.approx(expected, rel=1e-4, abs=1e-4)

    def test_transfer(self, attack):
        """Every detector on the images found against every other; against itself, the result of its own search."""
        rows = attack.result.measurements.filter(protocol="attack_transfer", group="affine")
        found = {(row.detector, row.set): row.value for row in rows}
        assert len(found) == 9
        for detector in attack.detectors:
            own = attack.result.measurements.filter(
                protocol="attack", detector=detector, group="affine", metric="auroc"
            )
            assert found[detector, detector] == pytest.approx(own[0].value, abs=1e-6)

    def test_transfer_from_the_images_themselves(self, scorers):
        """What the spread says of the images that were found against the mean, and the other way round."""
        both = {
            "mean": scorers["mean"],
            "spread": FunctionScorer(lambda images: (images > 0.5).float().mean(dim=(1, 2, 3))),
        }
        attack, bench = run(both, {"shift": Shift()}), benchmark()
        pixels = torch.from_numpy(np.stack(bench.near[0].images(sources()))).permute(0, 3, 1, 2) / 255
        rows = attack.result.measurements.filter(protocol="attack_transfer")
        for against in both:
            points = torch.from_numpy(attack.search(against, "shift").found)
            found = Shift()(points, pixels)
            for judge in both:
                scores = both[judge].score_tensor(found).double().numpy()
                expected = slow_auroc(attack.result.scores.scores(judge, role="id_test"), scores)
                (row,) = rows.filter(detector=judge, set=against)
                assert row.value == pytest.approx(expected, abs=1e-3)

    def test_pictures_and_parameters(self, attack):
        pair = attack.search("msp", "affine")
        scores, id_test = column(attack, "msp", "affine"), attack.result.scores.scores("msp", role="id_test")
        assert pair.worst.scores.tolist() == sorted(scores)[:10]
        assert pair.worst.ranks.tolist() == [(id_test < score).sum() for score in pair.worst.scores]
        bench = benchmark()
        assert pair.worst.images.shape == (10, 8, 8, 3)
        for source, chain in zip(pair.worst.sources, pair.worst.chains):
            assert (source == bench.near[0].images([sources()[chain]])[0]).all()
        assert pair.found.shape == (20, len(pair.parameters)) == (20, 5)
        gan = attack.search("msp", "gan")
        assert gan.worst.sources is None
        assert gan.found.shape == (20, 0)

    def test_the_ball_is_searched_by_descent(self, scorers):
        """Random steps of all pixels at once lead nowhere; they may still be asked for."""
        attack = run({"msp": scorers["msp"]}, ["linf"], budget=6, sampler="paper")
        pair = attack.search("msp", "linf")
        assert pair.settings["sampler"]["name"] == "zeroth_order"
        change = pair.worst.images.astype(int) - pair.worst.sources.astype(int)
        assert np.abs(change).max() <= 3  # .01 of 255, and a rounding
        assert not attack.result.measurements.filter(metric="acceptance")
        walked = run({"msp": scorers["msp"]}, ["linf"], budget=6, sampler=MetropolisHastings())
        assert walked.search("msp", "linf").settings["sampler"]["name"] == "mh"

    def test_how_long_a_pass_takes(self, attack):
        for row in attack.result.measurements:
            assert row.microseconds_per_image > 0


class TestFlags:
    def flags(self, attack, detector="mean", variation="shift"):
        return " | ".join(attack.search(detector, variation).flags)

    def test_chains_that_still_fall(self, scorers):
        """Tiny steps downhill from the start: the last step is always the lowest so far."""
        crawl = MetropolisHastings(step=0.002, temperature=1e-6)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=30, sampler=crawl)
        (row,) = attack.result.measurements.filter(protocol="attack_search", metric="last_gain")
        assert row.value > 0.9
        faster = MetropolisHastings(step=0.02, temperature=1e-6)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=24, sampler=faster)
        assert re.search(r"AUROC still falls by [\d.]+ points per doubling; 192 evaluations", self.flags(attack))
        rows = attack.result.measurements.filter(protocol="attack_search")
        (ahead,), (fall,) = rows.filter(metric="auroc_8x"), rows.filter(metric="auroc_fall")
        (now,) = attack.result.measurements.filter(protocol="attack", metric="auroc", group="shift")
        assert ahead.low <= ahead.value <= ahead.high < now.value
        assert fall.low <= fall.value <= fall.high

    def test_moves_that_are_never_made(self, scorers):
        frozen = MetropolisHastings(step=2.0, temperature=1e-9)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=300, sampler=frozen)
        assert "of the moves were accepted; try a smaller step" in self.flags(attack)

    def test_moves_that_are_always_made(self, scorers):
        hot = MetropolisHastings(temperature=1e9)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=300, sampler=hot)
        assert "try a larger step or a lower temperature" in self.flags(attack)

    def test_gradients_that_find_more(self, scorers):
        crawl = MetropolisHastings(step=1e-6)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=40, sampler=crawl, white_box=True)
        assert "40 evaluations with gradients bring the AUROC" in self.flags(attack)
        (row,) = attack.result.measurements.filter(protocol="attack_search", metric="white_box_gain")
        assert row.value > 0.1

    def test_a_search_that_arrived_is_not_doubted(self, scorers):
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=400)
        assert self.flags(attack) == ""
        (row,) = attack.result.measurements.filter(protocol="attack_search", metric="unreliable")
        assert row.value == 0
        assert not [note for note in attack.result.record.notes if note.startswith("unreliable")]

    def test_doubts_are_in_the_record_and_the_table(self, scorers):
        crawl = MetropolisHastings(step=1e-6)
        attack = run({"mean": scorers["mean"]}, {"shift": Shift()}, budget=40, sampler=crawl, white_box=True)
        assert any(note.startswith("unreliable: mean under shift: ") for note in attack.result.record.notes)
        told = attack_table(attack).render("markdown")
        assert "\\*" in told
        assert "†" not in told and "**" not in told, "one detector alone is neither best nor close to the best"

    def test_a_score_without_gradient_is_no_fault(self, scorers):
        step = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)).mul(50).round().detach())
        attack = run({"step": step}, {"shift": Shift()}, budget=5, white_box=True)
        assert not attack.result.measurements.filter(protocol="attack_search", metric="white_box_gain")


class TestGoesOn:
    def test_in_a_folder_nothing_is_searched_twice(self, tmp_path):
        seen = []

        def score(images):
            seen.append(len(images))
            return images.mean(dim=(1, 2, 3))

        first = run({"mean": FunctionScorer(score)}, {"shift": Shift()}, folder=tmp_path)
        whole, seen[:] = sum(seen), []
        again = run({"mean": FunctionScorer(score)}, {"shift": Shift()}, folder=tmp_path)
        assert sum(seen) < whole / 5
        assert first.result.scores.frame.equals(again.result.scores.frame)
        columns = ["protocol", "group", "set", "metric", "value", "low", "high"]
        assert first.result.to_dataframe()[columns].equals(again.result.to_dataframe()[columns])

    def test_another_detector_of_the_same_name_is_noticed(self, tmp_path):
        run(
            {"mean": FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)))},
            {"shift": Shift()},
            folder=tmp_path,
        )
        other = FunctionScorer(lambda images: images.amax(dim=(1, 2, 3)))
        with pytest.raises(DetectorError, match="belongs to an attack on another detector"):
            run({"mean": other}, {"shift": Shift()}, folder=tmp_path)

    def test_fewer_chains_are_the_first_block_of_more(self, monkeypatch, tmp_path):
        monkeypatch.setattr("oodscope.runs.attack.plan.BLOCK", 10)
        scorers = {"mean": FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)))}
        few = run(scorers, {"shift": Shift()}, chains=10, folder=tmp_path)
        more = run(scorers, {"shift": Shift()}, chains=50, folder=tmp_path)
        assert len(column(more, "mean", "shift")) == 50
        assert (column(more, "mean", "shift")[:10] == column(few, "mean", "shift")).all()

    def test_saved_and_read_again(self, attack, tmp_path):
        read = Attack.load(attack.save(tmp_path / "run"))
        assert read.result.scores.frame.equals(attack.result.scores.frame)
        assert attack_table(read).render("json") == attack_table(attack).render("json")
        one, two = attack.search("knn", "color"), read.search("knn", "color")
        assert (one.worst.images == two.worst.images).all()
        assert (one.found == two.found).all()
        assert (one.flags, one.parameters) == (two.flags, two.parameters)
        ResultStore(tmp_path / "store.sqlite").add(read.result)
        (tmp_path / "run" / "attack" / "000.safetensors").write_bytes(b"rot")
        with pytest.raises(DataError, match="what the attack found cannot be read"):
            Attack.load(tmp_path / "run")


class TestRefused:
    def test_a_failing_detector_is_left_out_with_the_reason(self, scorers):
        broken = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)) / 0)
        attack = run({"mean": scorers["mean"], "broken": broken}, {"shift": Shift()}, budget=3)
        assert attack.detectors == ["mean"]
        assert "NaN or infinite" in attack.result.record.skipped["broken"]
        with pytest.raises(DetectorError, match="no detector could be attacked; broken: .*NaN or infinite"):
            run({"broken": broken}, {"shift": Shift()}, budget=3)

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            ({"variations": ["afine"]}, UnknownNameError, "Did you mean 'affine'"),
            ({"variations": []}, OodscopeError, "no variation to attack with"),
            ({"variations": "affine"}, OodscopeError, r"a list of names.*got 'affine'"),
            ({"variations": ["affine", "affine"]}, OodscopeError, "two variations have one name"),
            ({"variations": {"clean": Shift()}}, OodscopeError, "cannot be called 'clean'"),
            ({"budget": 0}, OodscopeError, "a budget of at least 1 evaluation per chain, not 0"),
            ({"chains": 0}, OodscopeError, "at least 1 chain, not 0"),
            ({"runs": 0}, OodscopeError, "at least 1 run, not 0"),
            ({"boundary": "clip"}, UnknownNameError, "unknown boundary 'clip'"),
            ({"energy": "standardized"}, UnknownNameError, "Did you mean 'standardised'"),
        ],
    )
    def test_settings(self, scorers, change, error, words):
        with pytest.raises(error, match=words):
            run(**{"scorers": {"mean": scorers["mean"]}, "variations": {"shift": Shift()}, **change})

    def test_no_scorer_and_sets_of_one_name(self, scorers):
        with pytest.raises(DetectorError, match="no detector to attack"):
            run({})
        with pytest.raises(DataError, match="two are called 'id_val'"):
            run(scorers, outliers=noise("id_val", 10, 3))

    def test_networks_of_different_sizes(self, scorers, tmp_path):
        large = oods.Classifier(network(), oods.Preprocess(size=16), device="cpu")
        other = Scorer(large, oods.create_detector("msp"))
        with pytest.raises(DetectorError, match=r"one size; these differ: msp \[3, 8, 8\], large \[3, 16, 16\]"):
            run({"msp": scorers["msp"], "large": other})

    def test_an_ordinary_result_is_no_attack(self, tmp_path):
        result = oods.evaluate(classifier(), benchmark(), ["msp"], store=oods.ActivationStore(tmp_path / "store"))
        with pytest.raises(DataError, match="a run of kind .evaluation., where one of kind .attack. is needed"):
            Attack.load(result.save(tmp_path / "run"))


def test_larger_pictures_are_seen_as_the_network_sees_them(scorers):
    """Outliers of another size pass through the preprocessing first."""
    rng = np.random.default_rng(0)
    large = oods.ImageSet.from_arrays("large", rng.integers(0, 256, (12, 20, 30, 3)).astype(np.uint8))
    attack = run({"msp": scorers["msp"]}, ["color"], outliers=large, budget=2)
    order = source_order(large, "stratified", 1)
    assert column(attack, "msp", "clean") == pytest.approx(scorers["msp"].score(large)[order], abs=1e-4)
    assert attack.result.scores.context.extra["attack"]["chains"] == 12


def test_rank_probit_finds_the_same_for_a_monotone_change():
    """Where no outlier leaves the validation scores, ranks are all that counts."""
    plain = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)).double())
    curved = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)).double().exp())
    outliers = imageset("others", 20, 9)
    options = {"energy": "rank_probit", "outliers": outliers, "budget": 1}
    one, two = (run({"x": each}, {"still": Still()}, **options) for each in (plain, curved))
    assert (one.search("x", "still").worst.chains == two.search("x", "still").worst.chains).all()
    assert Plan(energy="rank_probit").energy == "rank_probit"


class Still(Shift):
    """Nothing moves."""

    name = "still"

    def __call__(self, points, images=None):
        return images + 0 * points[:, :, None, None]
