"""The search around the samplers: blocks, shards, kills, precision, and input that is wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp

import oodscope as oods
from oodscope.base.errors import DataError, DetectorError, OodscopeError, StorageError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.registry import create_sampler
from oodscope.generation.search.energy import Standardised
from oodscope.generation.search.result import SearchResult, images_of
from oodscope.generation.search.search import search
from oodscope.generation.variations.registry import create_variation
from oodscope.metrics.ranking.ranking import Ranking
from tests.generation.toys import SLOPE, Pixels, Shift, energy
from tests.tiny import classifier, imageset, noise

MH = create_sampler("mh")
BUMPY = energy(lambda z: 3 * torch.sin(9 * z).sum(dim=1))
TENSORS = ("points", "scores", "searched", "at_budget", "acceptance", "improved_at", "last")


def bumpy(**options):
    return search(BUMPY, Pixels(2), MH, [10, 40], chains=250, block=100, **options)


def same(one, two):
    return all(torch.equal(getattr(one, name), getattr(two, name)) for name in TENSORS)


def test_shards_in_any_order_are_bit_equal_to_the_whole():
    whole = bumpy()
    shards = [bumpy(blocks=[2]), bumpy(blocks=[0, 1])]
    assert [part.blocks for part in shards] == [(2,), (0, 1)] and len(shards[0]) == 50
    assert same(SearchResult.join(shards), whole) and same(SearchResult.join(shards[::-1]), whole)
    assert whole.evaluations == 250 * 40
    # a block is its number: it does not know how many others there are
    other = search(BUMPY, Pixels(2), MH, [10, 40], chains=100, block=100)
    assert torch.equal(other.points, whole.points[:100])


def test_blocks_and_seeds_draw_different_numbers():
    whole, again = bumpy(), bumpy(seed=1)
    assert not torch.equal(whole.last[:100], whole.last[100:200])
    assert not torch.equal(whole.last, again.last)


def test_another_block_size_is_another_draw_of_the_same_law():
    one = search(SLOPE, Pixels(), MH, 60, chains=4000, block=4000)
    two = search(SLOPE, Pixels(), MH, 60, chains=4000, block=700)
    assert two.blocks == (0, 1, 2, 3, 4, 5) and not torch.equal(one.last, two.last)
    assert ks_2samp(one.last[:, 0].numpy(), two.last[:, 0].numpy()).pvalue > 0.001
    assert ks_2samp(one.scores.numpy(), two.scores.numpy()).pvalue > 0.001


def test_parts_that_do_not_belong_together_are_refused():
    with pytest.raises(DataError, match="different searches"):
        SearchResult.join([bumpy(blocks=[0]), bumpy(blocks=[1], seed=1)])
    with pytest.raises(DataError, match="overlap"):
        SearchResult.join([bumpy(blocks=[0, 1]), bumpy(blocks=[1])])
    with pytest.raises(DataError, match="nothing to join"):
        SearchResult.join([])
    with pytest.raises(OodscopeError, match="blocks 0 to 2, not \\[3\\]"):
        bumpy(blocks=[3])


class TestIdentity:
    images = torch.rand(60, 1, 4, 4, generator=torch.Generator().manual_seed(0))

    def test_the_start_is_the_source_and_nothing_found_is_worse(self):
        scorer = FunctionScorer(lambda x: -(x.mean(dim=(1, 2, 3)) - 0.9).abs())
        result = search(scorer, Shift(), MH, [1, 30], self.images)
        assert torch.equal(result.clean, scorer.score_tensor(self.images).double())
        assert (result.scores <= result.clean).all() and (result.at_budget <= result.clean).all()
        assert float((result.at_budget[1] < result.clean).float().mean()) > 0.9
        assert torch.allclose(scorer.score_tensor(images_of(result, Shift(), self.images)).double(), result.scores)

    def test_an_earlier_search_saves_the_check_and_the_sources_and_changes_nothing(self):
        calls = []

        def scored(x):
            calls.append(len(x))
            return -(x.mean(dim=(1, 2, 3)) - 0.9).abs()

        def searched(sampler, **options):
            calls.clear()
            return search(FunctionScorer(scored), Shift(), sampler, 10, self.images, block=25, **options)

        first, other = searched(MH), create_sampler("random")
        alone = searched(other)
        many = len(calls)
        after = searched(other, earlier=first)
        assert same(alone, after) and torch.equal(alone.clean, after.clean)
        # two calls check the scorer, and each of three blocks scores its sources
        assert len(calls) == many - 2 - 3
        # the rows of a part that does not begin at the first are not those of the whole
        assert same(alone, searched(other, earlier=searched(MH, blocks=[1, 2])))
        assert len(searched(other, earlier=searched(MH, blocks=[0])).clean) == 60
        assert torch.equal(searched(other, earlier=searched(MH, blocks=[0])).clean, alone.clean)

    def test_where_the_source_is_the_best_it_stays(self):
        best = FunctionScorer(lambda x: (x - self.images.repeat(len(x) // 60, 1, 1, 1)).abs().amax(dim=(1, 2, 3)))
        result = search(best, Shift(), MH, 30, self.images)
        assert (result.points == 0.5).all() and result.improved_at.eq(0).all()
        assert torch.equal(result.scores, result.clean)

    def test_a_minimum_that_only_low_precision_sees_is_not_believed(self):
        """A stand-in for bf16: during the search this scorer flatters every image but the source."""
        calls = []

        def flattering(x):
            calls.append(len(x))
            searching = 3 <= len(calls) < 44
            return x.mean(dim=(1, 2, 3)) + (-5.0 if searching and not torch.equal(x, self.images) else 1.0)

        # checks are two calls, the start one, the search forty; then the best states and the sources in float32
        result = search(FunctionScorer(flattering), Rising(), MH, 40, self.images)
        assert len(calls) == 45
        assert torch.equal(result.scores, result.clean) and (result.points == 0).all()
        assert torch.equal(result.searched, result.clean) and result.improved_at.eq(0).all()
        assert (result.at_budget < result.clean - 4).all()


class Rising(Shift):
    """Only brighter: the source is the darkest."""

    @property
    def identity(self):
        return (0.0,)

    def __call__(self, points, images=None):
        return (images + points[:, :, None, None]).clamp(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("fast", [False, True])
def test_an_attacked_detector_never_ranks_better_than_a_clean_one(fast, monkeypatch):
    from oodscope.generation.search import fast as compiling

    monkeypatch.setattr(compiling, "compile_for_one_size", lambda function: function)
    compiling._KEPT.clear()
    scorer = oods.fit_scorer(classifier(), "ebo", imageset("held out", 60, 2), imageset("train", 200, 1), target=0.1)
    inside = scorer.score(np.stack([np.asarray(p) for p in imageset("test", 80, 3).pictures(np.arange(80))]))
    outside = torch.stack([torch.tensor(np.asarray(p)) for p in noise("static", 40, 4).pictures(np.arange(40))])
    images = outside.permute(0, 3, 1, 2).float() / 255
    for name in ("affine", "color"):
        vary = create_variation(name, image_shape=(3, 8, 8))
        result = search(scorer, vary, MH, [5, 50], images, energy=Standardised.of(inside), fast=fast, block=30)
        assert (result.scores <= result.clean).all()
        auc = {
            key: Ranking(inside, values.numpy()).auroc
            for key, values in (("adv", result.scores), ("clean", result.clean))
        }
        assert auc["adv"] < auc["clean"]
        assert np.allclose(result.scores.numpy(), scorer.score(images_of(result, vary, images)), atol=1e-5)
        assert result.description["precision"] == ("bf16" if fast else "float32")
        gap = float(result.precision_gap.abs().max())
        assert (0 < gap < 0.05) if fast else gap == 0
        assert result.notes == ()
    compiling._KEPT.clear()


class TestFolder:
    def test_a_finished_search_is_read_back(self, tmp_path):
        result = bumpy(folder=tmp_path)
        assert sorted(os.listdir(tmp_path)) == [*(f"block-0000{n}.safetensors" for n in range(3)), "search.json"]
        assert json.loads((tmp_path / "search.json").read_text())["sampler"]["step"] == 0.1

        def nobody(images):
            raise AssertionError("nothing is left to score")

        nobody.__qualname__ = BUMPY.function.__qualname__
        again = search(FunctionScorer(nobody), Pixels(2), MH, [10, 40], chains=250, block=100, folder=tmp_path)
        assert same(again, result) and same(SearchResult.load(tmp_path), result)
        assert again.description == result.description and again.seconds == result.seconds > 0
        result.save(tmp_path / "whole" / "found.safetensors")
        whole = SearchResult.load(tmp_path / "whole" / "found.safetensors")
        assert same(whole, result) and whole.blocks == (0, 1, 2) and whole.clean is None

    def test_shards_may_fill_one_folder(self, tmp_path):
        bumpy(folder=tmp_path, blocks=[1])
        assert same(bumpy(folder=tmp_path), bumpy())

    @pytest.mark.parametrize(
        ("change", "named"),
        [({"seed": 3}, "seed"), ({"energy": Standardised(0, 2)}, "energy"), ({"block": 50}, "block")],
    )
    def test_another_search_never_takes_the_folder(self, tmp_path, change, named):
        bumpy(folder=tmp_path, blocks=[0])
        options = {"chains": 250, "block": 100, "folder": tmp_path, **change}
        with pytest.raises(StorageError, match=f"holds another search: {named} differ"):
            search(BUMPY, Pixels(2), MH, [10, 40], **options)

    def test_other_images_are_another_search(self, tmp_path):
        scorer = FunctionScorer(lambda x: x.mean(dim=(1, 2, 3)))
        search(scorer, Shift(), MH, 5, torch.zeros(3, 1, 2, 2), folder=tmp_path)
        with pytest.raises(StorageError, match="images differ"):
            search(scorer, Shift(), MH, 5, torch.ones(3, 1, 2, 2), folder=tmp_path)

    def test_a_damaged_block_is_searched_again(self, tmp_path):
        whole = bumpy(folder=tmp_path)
        path = tmp_path / "block-00001.safetensors"
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        with pytest.raises(StorageError, match="damaged"):
            SearchResult.load(path)
        (tmp_path / "block-00002.safetensors").write_bytes(b"torn")
        assert same(bumpy(folder=tmp_path), whole)

    def test_a_fitted_scorer_is_known_by_its_numbers(self):
        held_out, train = imageset("held out", 60, 2), imageset("train", 80, 1)
        one, two = (oods.fit_scorer(classifier(), "knn", held_out, train, target=0.1) for _ in range(2))
        other = oods.fit_scorer(classifier(), "knn", held_out, imageset("train", 80, 5), target=0.1)
        assert one.fingerprint == two.fingerprint != other.fingerprint
        assert one.name == "TinyNet/knn"


CHILD = """
import sys, time, torch
torch.set_num_threads(1)
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.registry import create_sampler
from oodscope.generation.search.search import search
from tests.generation.toys import Pixels

calls = 0

def slow(images):
    global calls
    calls += 1
    if calls == 60:
        print("ready", flush=True)
        time.sleep(60)
    return 3 * torch.sin(9 * images.flatten(1).double()).sum(dim=1)

slow.__qualname__ = "energy.<locals>.<lambda>"
search(FunctionScorer(slow), Pixels(2), create_sampler("mh"), [10, 40], chains=250, block=100, folder=sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_search_goes_on_after_its_last_block(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert (tmp_path / "block-00000.safetensors").exists() and not (tmp_path / "block-00001.safetensors").exists()
    written = (tmp_path / "block-00000.safetensors").stat().st_mtime_ns
    time.sleep(0.01)
    resumed = bumpy(folder=tmp_path)
    assert (tmp_path / "block-00000.safetensors").stat().st_mtime_ns == written
    assert same(resumed, bumpy())


class TestBadInput:
    @pytest.mark.parametrize("budget", [0, -3, [], [0, 5]])
    def test_a_budget_of_nothing(self, budget):
        with pytest.raises(OodscopeError, match="budget is a number of scorer evaluations"):
            search(SLOPE, Pixels(), MH, budget, chains=3)

    def test_a_scorer_that_dices(self):
        def dice(images):
            return images.flatten(1)[:, 0] + 1e-3 * torch.rand(len(images))

        with pytest.raises(DetectorError, match="dice: not deterministic: .* differ by"):
            search(FunctionScorer(dice), Pixels(), MH, 5, chains=30)

    def test_rounding_is_no_dice(self):
        calls = []

        def rounded(images):
            calls.append(1)
            return images.flatten(1)[:, 0] + 1e-7 * len(calls)

        search(FunctionScorer(rounded), Pixels(), MH, 5, chains=30)

    def test_nan_at_the_start(self):
        with pytest.raises(DetectorError, match="NaN or infinite for 30 of 30 start images \\(row 0\\)"):
            search(energy(lambda z: z[:, 0] / 0 * 0), Pixels(), MH, 5, chains=30)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
    def test_nan_on_the_way_names_chain_and_evaluation(self, bad):
        calls = []

        def breaking(z):
            calls.append(1)
            scores = z[:, 0].clone()
            # two checks, then a start, 30 steps and one more look at the best; then the second block's start
            if len(calls) >= 34 + 1 + 9:
                scores[7] = bad
            return scores

        with pytest.raises(DetectorError, match="in 1 of 20 chains of this block \\(chain 27 at evaluation 9\\)"):
            search(energy(breaking), Pixels(), MH, 30, chains=40, block=20)

    @pytest.mark.parametrize("wrong", [lambda x: x.flatten(1), lambda x: x.mean(), lambda x: 3.0])
    def test_scores_of_the_wrong_shape(self, wrong):
        class Own:
            device = torch.device("cpu")

            def score_tensor(self, images):
                return wrong(images)

        with pytest.raises(DetectorError, match="Own: turns 5 images into .*needed: one score per image"):
            search(Own(), Pixels(2), MH, 5, chains=5)

    def test_images_and_chains(self):
        with pytest.raises(DataError, match="pixels makes its own images"):
            search(SLOPE, Pixels(), MH, 5)
        with pytest.raises(DataError, match="pixels makes its own images"):
            search(SLOPE, Pixels(), MH, 5, torch.zeros(2, 1, 1, 1), chains=2)
        with pytest.raises(DataError, match="shift varies source images"):
            search(SLOPE, Shift(), MH, 5)
        with pytest.raises(DataError, match="float pixels in \\[0, 1\\]"):
            search(SLOPE, Shift(), MH, 5, torch.zeros(2, 1, 1, 1, dtype=torch.uint8))
        with pytest.raises(OodscopeError, match="block is the number of chains"):
            search(SLOPE, Pixels(), MH, 5, chains=2, block=0)
        result = search(SLOPE, Pixels(), MH, 5, chains=2)
        with pytest.raises(DataError, match="2 chains were searched"):
            images_of(result, Shift(), torch.zeros(3, 1, 1, 1))


def test_progress_shows_the_falling_minimum_a_few_times_per_block():
    remarks, stages = [], {}

    class Watching:
        @contextmanager
        def stage(self, description, total):
            stages[description] = [total, 0]

            def advance(finished, remark=None):
                stages[description][1] += finished
                if remark:
                    remarks.append(remark())

            yield advance

    search(SLOPE, Pixels(), MH, 300, chains=10, block=5, progress=Watching())
    assert stages == {"search block 0": [300, 300], "search block 1": [300, 300]}
    assert len(remarks) == 2 * 9 and remarks[0].startswith("minimum ")
    falling = [float(remark.split()[1]) for remark in remarks[:9]]
    assert falling == sorted(falling, reverse=True) and falling[0] > falling[-1]
