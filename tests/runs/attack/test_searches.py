"""What an attack starts from, how it searches, and what it leaves behind."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oodscope as oods
from oodscope.base.errors import OodscopeError, StorageError, UnknownNameError, UsageError
from oodscope.data.generated.files import open_generated
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.registry import create_detector
from oodscope.generation.samplers.auto_projected_gradient import AutoProjectedGradient
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.search.energy import NormalScores
from oodscope.generation.search.portfolio import affordable, default_samplers, merge_searches
from oodscope.generation.search.search import search
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.linf import LInf
from oodscope.generation.variations.registry import create_variation
from oodscope.jobs.attack import AttackSettings
from oodscope.jobs.settings import named_settings
from oodscope.metrics.ranking.minrank import outlier_ranks, source_interval
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.dcgan import DcganGenerator, DcganShape
from oodscope.runs.attack.attacked import PixelView
from oodscope.runs.attack.convergence import convergence
from oodscope.runs.attack.measuring import judge_notes
from oodscope.runs.attack.plan import PRESETS, Plan
from oodscope.runs.attack.run import unit_of_search
from oodscope.runs.attack.sources import source_order
from oodscope.runs.attack.validity import Validity, truncation_curve
from tests.generation.toys import Shift
from tests.tiny import benchmark, imageset

MEAN = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)))


def labelled(sizes):
    """A set sorted by class, as folders are."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    pixels = np.zeros((len(labels), 1, 1, 3), np.uint8)
    return oods.ImageSet.from_arrays("sorted", pixels, labels, [str(each) for each in range(len(sizes))])


def attack(scorers=None, variations=None, outliers=None, **options):
    bench = benchmark()
    given = {"budget": 20, "chains": 20, "runs": 2, **options}
    varied = {"shift": Shift()} if variations is None else variations
    return oods.attack(
        scorers or {"mean": MEAN}, bench.id_val, bench.id_test, outliers or bench.near[0], varied, **given
    )


class TestSources:
    @given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 5), st.floats(0.05, 1))
    def test_every_beginning_has_each_class_in_its_share(self, sizes, seed, share):
        images = labelled(sizes)
        order = source_order(images, seed=seed)
        assert sorted(order) == list(range(len(images)))
        count = max(1, int(share * len(images)))
        drawn = np.bincount(images.labels[order[:count]], minlength=len(sizes))
        assert (np.abs(drawn - count * np.array(sizes) / sum(sizes)) <= 2).all()

    def test_each_image_is_equally_likely_to_be_early(self):
        images = labelled([30, 10])
        early = np.mean([np.isin(np.arange(40), source_order(images, seed=seed)[:10]) for seed in range(400)], axis=0)
        assert np.abs(early - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)

    def test_first_is_the_papers(self):
        assert source_order(labelled([3, 2]), "first").tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(UnknownNameError, match="unknown draw of sources 'frist'"):
            source_order(labelled([3]), "frist")

    def test_the_interval_of_the_clean_value_covers_that_of_the_whole_set(self):
        """25 classes of 200, sorted, each with a level of its own; 200 chains, 200 draws. First images: never."""
        rng = np.random.default_rng(0)
        images = labelled([200] * 25)
        scores = rng.normal(size=25)[images.labels] + rng.normal(size=len(images)) + 1.0
        id_scores = rng.normal(size=2000)
        whole = outlier_ranks(id_scores, scores).auroc

        def covered(rows):
            interval = source_interval(outlier_ranks(id_scores, scores[rows]))
            return interval.low <= whole <= interval.high

        hits = sum(covered(source_order(images, seed=seed)[:200]) for seed in range(200))
        assert hits >= 182, "91 % of 200 draws"
        assert not covered(source_order(images, "first")[:200])

    def test_runs_of_minrank_are_parts_of_the_draw(self):
        """Of a set sorted by class whose first class looks ID, every run finds one, not the first run alone."""
        pixels = np.full((60, 8, 8, 3), 200, np.uint8)
        pixels[:20] = 0
        made = oods.ImageSet.from_arrays("sorted", pixels, np.repeat([0, 1, 2], 20), list("abc"))
        found = attack(outliers=made, chains=30, runs=5, budget=2)
        (row,) = found.measurements.filter(protocol="attack", group="clean", metric="min_rank_se")
        assert row.value == 0
        assert found.about["sources"] == "stratified"
        sorted_runs = attack(outliers=made, chains=60, runs=3, budget=2, sources="first")
        (row,) = sorted_runs.measurements.filter(protocol="attack", group="clean", metric="min_rank_se")
        assert row.value > 0

    def test_rows_say_which_images(self):
        found, near = attack(seed=4), benchmark().near[0]
        names = found.scores.frame.loc[found.scores.frame["unit"] == "clean", "sample_id"].tolist()
        assert names == near.take(source_order(near, seed=4)[:20]).sample_ids()


class TestCanonicalScores:
    def test_any_monotone_change_leaves_energies_as_they_are(self):
        rng = np.random.default_rng(0)
        val, sources = rng.normal(size=300), rng.normal(2, 2, size=200)
        asked = torch.from_numpy(np.concatenate([val, sources]))
        plain = NormalScores(val, sources).on(torch.device("cpu"))(asked)
        for change in (np.exp, lambda s: 1 / (1 + np.exp(-s)), lambda s: s**3):
            curved = NormalScores(change(val), change(sources)).on(torch.device("cpu"))
            assert torch.allclose(curved(torch.from_numpy(change(asked.numpy()))), plain)

    def test_each_sample_has_half_of_the_weight(self):
        """However many validation images there are, half of the sources lie above the middle of both."""
        energy = NormalScores(np.linspace(0, 1, 5000), np.linspace(2, 3, 50)).on(torch.device("cpu"))
        assert float(energy(torch.tensor([1.5]).double())) == pytest.approx(0, abs=0.05)
        assert float(energy(torch.tensor([9.0]).double())) > float(energy(torch.tensor([3.0]).double()))

    def test_an_attack_finds_the_same_against_sigmoid_and_exponential(self):
        """To a point of AUROC, as the search itself is the same but for what lies between two reference scores."""

        def wavy(images):
            return 8 * (images[:, 0].mean((1, 2)) - images[:, 1, :4].mean((1, 2)) ** 2 - 0.2)

        forms = {
            "s": FunctionScorer(wavy),
            "sigmoid": FunctionScorer(lambda images: torch.sigmoid(wavy(images))),
            "exp": FunctionScorer(lambda images: torch.exp(wavy(images))),
        }
        found = attack(forms, ["color"], outliers=imageset("others", 60, 9), chains=60, budget=200)
        rows = found.measurements.filter(protocol="attack", metric="auroc", group="color")
        values = [row.value for row in rows]
        assert max(values) - min(values) < 0.01


class TestPortfolio:
    def test_members_share_the_budget_and_each_chain_keeps_the_lowest(self):
        images = torch.rand(12, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        members = [MetropolisHastings(temperature=0.01), RandomSearch()]
        parts = [search(MEAN, Shift(), each, (5, 10), images, seed=1) for each in members]
        joined = merge_searches(parts)
        assert torch.equal(joined.scores, torch.minimum(parts[0].scores, parts[1].scores))
        assert joined.budgets == (10, 20)
        assert joined.evaluations == sum(each.evaluations for each in parts) == 12 * 20
        assert torch.equal(joined.at_budget, torch.minimum(parts[0].at_budget, parts[1].at_budget))
        assert [each["name"] for each in joined.sampler["members"]] == ["mh", "random"]
        found = Shift()(joined.points, images).mean((1, 2, 3))
        assert torch.allclose(found.double(), joined.scores.double(), atol=1e-6)

    def test_who_cannot_afford_a_step_is_left_out(self):
        members = default_samplers(Shift())
        assert [each.name for each in affordable(members, 20)] == ["mh", "mh", "tempering", "random", "apgd"]
        assert [each.name for each in affordable(members, 12)] == ["mh", "mh", "random", "apgd"]
        assert len(affordable(members, 1)) == 1
        assert [each.name for each in default_samplers(LInf())] == ["zeroth_order", "square", "apgd"]

    def test_equal_total_evaluations(self):
        one, several = (
            attack(sampler=each, budget=40).search("mean", "shift").costs for each in ("paper", "portfolio")
        )
        assert one["evaluations"] == several["evaluations"] == 20 * 40

    def test_gradients_only_where_there_are_some(self):
        step = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)).mul(50).round().detach())
        members = attack({"step": step}, budget=40).search("step", "shift").settings["sampler"]["members"]
        assert "apgd" not in [each["name"] for each in members]

    def test_no_sampler_and_unknown_mixes(self):
        with pytest.raises(OodscopeError, match="no sampler to search with"):
            Plan(sampler=())
        with pytest.raises(UnknownNameError, match="Did you mean 'portfolio'"):
            Plan(sampler="portfolo")


class TestAutoProjectedGradient:
    def test_checkpoints_are_those_of_the_paper(self):
        """p = 0, .22, .41, .57, .70, .80, .87, .93, .99: steps of 100."""
        assert sorted(AutoProjectedGradient(length=100).checkpoints) == [22, 41, 57, 70, 80, 87, 93, 99]

    def test_it_finds_the_corner_of_a_ball_and_stays_in_it(self):
        images = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(1)) * 0.9 + 0.05
        ball = LInf((3, 8, 8), 0.02)
        found = search(MEAN, ball, AutoProjectedGradient(length=20), 20, images)
        assert torch.allclose(found.scores.double(), images.mean((1, 2, 3)).double() - 0.02, atol=1e-4)
        assert (ball(found.points, images) - images).abs().max() <= 0.02 + 1e-6

    def test_several_starts_leave_a_hollow(self):
        """One parameter, a shallow hollow at the start and a deep one elsewhere: a second start finds it."""

        def hollow(images):
            place = images.mean((1, 2, 3))
            return torch.minimum((place - 0.5).abs(), (place - 0.9).abs() - 0.3)

        images = torch.full((30, 3, 4, 4), 0.5)
        one = search(FunctionScorer(hollow), Shift(), AutoProjectedGradient(step=0.01, length=400), 60, images)
        many = search(FunctionScorer(hollow), Shift(), AutoProjectedGradient(step=0.1, length=10), 60, images)
        assert float(many.scores.mean()) < float(one.scores.mean())
        with pytest.raises(OodscopeError, match="2 or more"):
            AutoProjectedGradient(length=1)


class TestConvergence:
    def result(self, curve, budgets=(25, 50, 100, 200), images=200):
        """A search whose AUROC among 1,000 even ID scores follows a curve, with noise over images."""
        noise = np.random.default_rng(0).normal(scale=0.02, size=images)
        at = torch.from_numpy(np.stack([level + noise for level in curve]))
        return type("R", (), {"budgets": budgets, "at_budget": at})()

    ID = np.linspace(0, 1, 1000)

    def test_even_falls_go_on_and_halving_falls_end(self):
        steady = convergence([self.result([0.8, 0.75, 0.7, 0.65])], self.ID)
        assert steady.fall == pytest.approx(0.05, abs=0.002)
        assert steady.eightfold == pytest.approx(0.50, abs=0.01)
        halving = convergence([self.result([0.8, 0.76, 0.74, 0.73])], self.ID)
        # by shares .01 (.5 + .25 + .125), by steps nothing: half of it
        assert halving.eightfold == pytest.approx(0.73 - 0.01 * (0.5 + 0.25 + 0.125) / 2, abs=0.004)
        ended = convergence([self.result([0.8, 0.7, 0.7, 0.7])], self.ID)
        assert ended.eightfold == pytest.approx(0.7, abs=0.002)
        assert steady.eightfold_interval.low <= steady.eightfold <= steady.eightfold_interval.high

    def test_a_short_curve_says_nothing(self):
        assert convergence([self.result([0.8, 0.7], (1, 2))], self.ID) is None

    def test_it_foresees_a_search_of_eight_budgets(self):
        """Random search by the mean of uniform draws: what 8 times the budget finds lies within the interval."""
        images = torch.rand(300, 3, 4, 4, generator=torch.Generator().manual_seed(0))
        scorer = FunctionScorer(lambda pixels: pixels.mean((1, 2, 3)))
        result = search(
            scorer, create_variation("color", image_shape=(3, 4, 4)), RandomSearch(), (2, 4, 8, 16, 128), images
        )
        id_test = np.sort(np.random.default_rng(1).uniform(0.1, 0.7, 2000))
        at = {budget: np.asarray(row, dtype=np.float64) for budget, row in zip(result.budgets, result.at_budget)}
        short = self.result([0] * 4, (2, 4, 8, 16))
        short.at_budget = torch.from_numpy(np.stack([at[each] for each in short.budgets]))
        ahead, truth = convergence([short], id_test), outlier_ranks(id_test, at[128]).auroc
        now = outlier_ranks(id_test, at[16]).auroc
        assert ahead.eightfold_interval.low <= truth <= ahead.eightfold_interval.high < now
        assert abs(ahead.eightfold - truth) < now - truth, "nearer than the curve as it stands"


class TestSearchSeeds:
    def test_numbers_are_means_over_searches(self):
        found = attack(search_seeds=3, budget=10, sampler=MetropolisHastings())
        scores, frame = found.scores, found.scores.frame
        id_test = scores.scores("mean", role="id_test")
        aurocs = [
            outlier_ranks(id_test, frame.loc[frame["unit"] == unit_of_search("shift", number), "mean"]).auroc
            for number in range(3)
        ]
        assert len(set(aurocs)) > 1
        rows = found.measurements.filter(protocol="attack", group="shift")
        (auroc,), (spread,) = rows.filter(metric="auroc"), rows.filter(metric="auroc_search_sd")
        assert auroc.value == pytest.approx(np.mean(aurocs))
        assert spread.value == pytest.approx(np.std(aurocs, ddof=1))

    def test_each_has_its_own_folder(self, tmp_path):
        attack(search_seeds=2, budget=4, folder=tmp_path)
        assert (tmp_path / "seed-1" / "mean").is_dir()


class TestGenerators:
    @pytest.mark.parametrize("truncation", [1.0, 0.5])
    def test_a_class_conditional_one_searches_classes_too(self, truncation):
        torch.manual_seed(0)
        gan = GanVariation(BigGanGenerator(BigGanShape(size=8, classes=3, latent=6, width=4)), truncation)
        assert gan.domain.dimension == 7
        points = gan.domain.draw(50, torch.Generator().manual_seed(0))
        assert set(gan.classes_of(points).tolist()) == {0, 1, 2}
        moved = gan.domain.move(points, torch.randn(50, 7) * 0.3)
        assert torch.allclose(moved[:, :6].norm(dim=1), torch.ones(50), atol=1e-5)
        assert ((moved[:, 6] >= 0) & (moved[:, 6] <= 1)).all()
        fixed = GanVariation(gan.generator, truncation, label=2)
        assert fixed.domain.dimension == 6
        point = torch.cat([points[:1, :6], torch.tensor([[0.9]])], dim=1)
        assert torch.equal(fixed(points[:1, :6]), gan(point))

    def test_dcgan_has_latents_of_gaussian_length(self):
        gan = GanVariation(DcganGenerator(DcganShape(size=8, latent=16, width=4)))
        assert gan.latent_scale == pytest.approx(4.0)

    def test_validity_counts_what_a_judge_accepts(self):
        """A judge that wants dark images: 95 % of the real ones, and of a generator's fewer the less truncated."""

        class Bright(torch.nn.Module):
            def forward(self, latents):
                return (latents[:, :1].abs() * 2 - 1).clamp(-1, 1)[:, :, None, None].expand(-1, 3, 4, 4)

        judge = FunctionScorer(lambda images: images.mean((1, 2, 3)))
        real = torch.rand(200, 1, 1, 1, generator=torch.Generator().manual_seed(0)).expand(-1, 3, 4, 4) * 0.3
        validity = Validity.of(judge, real)
        assert validity.accepts([real]).value == pytest.approx(0.95, abs=0.01)
        curve = truncation_curve(GanVariation(Bright(), dimension=3), validity, 500)
        shares = [each.value for each in curve.values()]
        assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]
        gan = GanVariation(Bright(), dimension=3)
        found = attack(variations={"shift": Shift(), "gan": gan}, judge=judge, outliers=imageset("others", 40, 9))
        rows = found.measurements.filter(metric="valid_share")
        assert {row.group for row in rows} == {"shift", "gan"}
        assert all(0 <= row.low <= row.value <= row.high <= 1 for row in rows)
        told = [note for note in found.record.notes if "accepted by the judge" in note]
        assert "mean under shift" in told[0] and "plain draws, truncation 0.5" in told[1]

    @pytest.mark.parametrize(("right", "words"), [(1.0, "recognises 100.0 %"), (0.2, "less than 80 %: it cannot say")])
    def test_a_judge_that_knows_too_little_decides_nothing(self, right, words):
        """A judge that names the class of every image, and one that names that of one in five."""
        outliers = imageset("others", 40, 9)
        labels = outliers.labels[source_order(outliers, seed=0)]
        count = int(labels.max()) + 1

        class Reads(torch.nn.Module):
            def forward(self, images):
                known = torch.as_tensor(labels[: len(images)])
                told = torch.where(torch.arange(len(known)) < right * len(known), known, (known + 1) % count)
                return torch.nn.functional.one_hot(told, count).float() * 5

        clf = oods.Classifier(Reads(), Preprocess(size=4), device="cpu")
        judge = Scorer(clf, create_detector("msp"))
        view = PixelView({"judge": judge})
        pool = view.rows(outliers, source_order(outliers, seed=0))
        validity = Validity.of(judge, pool, labels=labels)
        assert (validity.doubt is None) == (right == 1.0)
        assert any(words in note for note in judge_notes(validity, []))


class TestExport:
    def test_found_outliers_are_an_ordinary_sealed_set(self, tmp_path):
        found, near = attack(export=tmp_path, seed=2), benchmark().near[0]
        images = open_generated(tmp_path / "mean-shift")
        assert len(images) == 20
        assert images.labels.tolist() == near.labels[source_order(near, seed=2)[:20]].tolist()
        scores = np.array([picture.mean() / 255 for picture in images.images(range(20))])
        frame = found.scores.frame
        assert scores == pytest.approx(frame.loc[frame["unit"] == "shift", "mean"].to_numpy(), abs=0.003)
        with pytest.raises(StorageError, match="holds a generated set already"):
            attack(export=tmp_path, seed=2)


class TestSettings:
    def test_settings_follow_their_name(self):
        assert named_settings(["mh,temperature=0.1,step=.05,random", {"tempering": {"replicas": 3}}]) == [
            ("mh", {"temperature": 0.1, "step": 0.05}),
            ("random", {}),
            ("tempering", {"replicas": 3}),
        ]
        spec = "gan=python:pkg:build,dimension=128,truncation=0.7"
        assert named_settings([f"affine,{spec}"])[1] == ("gan=python:pkg:build", {"dimension": 128, "truncation": 0.7})
        with pytest.raises(UsageError, match="stands before any name"):
            named_settings(["step=1"])
        with pytest.raises(UsageError, match="has no value"):
            named_settings(["mh,step="])

    def test_the_papers_preset_is_the_papers_for_every_variation(self):
        settings = AttackSettings(preset="paper", variations=["affine", "color", "linf"])
        options = settings.options()
        plan = Plan(**{key: value for key, value in options.items() if key != "runs"})
        assert (options["runs"], plan.chains, plan.sources, plan.energy) == (5, 5000, "first", "standardised")
        ball = create_variation("linf")
        assert plan.budget_for(ball) == 40_000 and plan.budget_for(create_variation("color")) == 2000
        assert plan.budget_for(ball) // plan.samplers_for(ball)[0].evaluations == 20_000
        assert plan.samplers_for(create_variation("color")) == (MetropolisHastings(boundary="clamp"),)
        assert settings.named_variations() == [("affine", {"interpolation": "nearest"}), "color", "linf"]

    def test_what_is_given_stands_over_the_preset(self):
        options = AttackSettings(preset="paper", budget=50, samplers=["mh,temperature=0.5", "random"]).options()
        assert options["linf_budget"] is None and options["budget"] == 50
        assert options["sampler"] == [MetropolisHastings(temperature=0.5, boundary="clamp"), RandomSearch()]
        assert AttackSettings(preset="quick").options()["chains"] == PRESETS["quick"]["chains"] == 200

    def test_variations_take_settings(self):
        named = AttackSettings(variations=["linf,epsilon=0.03", "affine,interpolation=nearest"]).named_variations()
        assert named == [("linf", {"epsilon": 0.03}), ("affine", {"interpolation": "nearest"})]
        found = attack(variations=[("linf", {"epsilon": 0.03}), "linf"], budget=4)
        assert found.variations == ["linf,epsilon=0.03", "linf"]
        with pytest.raises(OodscopeError, match="no parameter 'epsilo'. Did you mean 'epsilon'"):
            AttackSettings(variations=["linf,epsilo=0.03"]).named_variations()
