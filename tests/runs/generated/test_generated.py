"""Generated sets judged: every number against a slow reference, every refusal, and what is kept on disk."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats

import oodscope as oods
from oodscope.document.claim import Claim, count_claims
from oodscope.metrics.generated.information import Window
from oodscope.runs.generated.claims import claims, judges_fit
from oodscope.runs.generated.judging import judge_generated
from oodscope.runs.generated.opinion import PER_PIXEL, perceived
from oodscope.runs.generated.ranks import ALL, INDEPENDENT, WITHIN, rank_agreements
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.generated.table import calibration_table, separation_table
from tests.runs.generated.generated_world import (
    DIM,
    EVIL,
    NEAR,
    SHIFTED,
    STORE,
    Length,
    checks,
    networks,
    study,
    trained,
    world_benchmark,
)
from tests.tiny import classifier, imageset


@pytest.fixture(scope="module")
def store():
    return STORE


@pytest.fixture(scope="module")
def done():
    return study()


def probabilities(network, images, store):
    logits = store.extract(network, images).logits.numpy().astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def slow_opinion(networks, images, store):
    """One image at a time: the class of the mean, and the mutual information as a difference of entropies."""
    each = [probabilities(network, images, store) for network in networks]
    found = []
    for row in range(len(images)):
        members = [p[row] for p in each]
        mean = sum(members) / len(members)
        found.append((int(mean.argmax()), entropy(mean) - sum(map(entropy, members)) / len(members)))
    return found


def members_of(bench):
    return {images.name: images for _, images in bench.members()}


@pytest.mark.parametrize("name", ["id_test", NEAR, SHIFTED, DIM, "static", "rain"])
def test_what_the_judges_see(done, store, name):
    bench, check = world_benchmark(), done.sanity.of(name)
    images, judges = members_of(bench)[name], checks().judges
    slow = slow_opinion(judges, images, store)
    if name in ("static", "rain"):
        assert check.confusion == ()
        assert check.preserved is None
    else:
        table = [[0] * 4 for _ in range(4)]
        for label, (seen, _) in zip(images.labels, slow):
            table[label][seen] += 1
        assert check.confusion == tuple(map(tuple, table))
        agreeing = sum(label == seen for label, (seen, _) in zip(images.labels, slow))
        assert check.preserved == agreeing / len(images)
        assert check.preserved_interval.low <= check.preserved <= check.preserved_interval.high
    most = math.log(3)
    bins = [0] * 40
    for _, value in slow:
        bins[min(39, int(40 * max(0.0, value) / most))] += 1
    # a value within rounding of an edge may fall on either side of it
    assert sum(check.information) == check.n == len(images)
    assert sum(abs(a - b) for a, b in zip(bins, check.information)) <= 2


def test_the_makers_information_and_the_window(done, store):
    images = members_of(world_benchmark())[NEAR]
    slow = [value for _, value in slow_opinion(checks().makers, images, store)]
    assert done.sanity.of(NEAR).kept == sum(0.05 <= value <= 0.45 for value in slow)
    assert 0 < done.sanity.of(NEAR).kept < len(images)
    assert sum(done.sanity.of(NEAR).made_information) == len(images)
    assert done.sanity.edges(2)[-1] == pytest.approx(math.log(2))
    assert done.sanity.window == (0.05, 0.45)


def test_distances_are_those_of_gaussians_of_equally_many_images(done, store):
    bench = world_benchmark()
    features = checks().judges[0]
    train = store.extract(features, bench.id_train).features.numpy().astype(np.float64)
    rng = np.random.default_rng(0)
    images = members_of(bench)[NEAR]
    chosen = np.sort(rng.permutation(len(images))[:30])  # the smallest set, rain, has 30
    near = store.extract(features, images).features.numpy().astype(np.float64)[chosen]
    both = [np.cov(part.T) for part in (train, near)]
    values = np.linalg.eigvals(both[0] @ both[1])
    root = np.sqrt(np.maximum(values.real, 0)).sum()
    slow = ((train.mean(0) - near.mean(0)) ** 2).sum() + np.trace(both[0]) + np.trace(both[1]) - 2 * root
    assert done.sanity.frechet_images == 30
    assert done.sanity.of(NEAR).frechet == pytest.approx(slow, rel=1e-5)
    distances = {each.name: each.frechet for each in done.sanity.sets}
    assert min(distances, key=distances.get) in ("id_val", "id_test")
    assert done.sanity.features == features.name


def slow_ece(confidence, right):
    total = 0.0
    for number in range(15):
        inside = [i for i, c in enumerate(confidence) if number / 15 < c <= (number + 1) / 15]
        if inside:
            gap = sum(right[i] for i in inside) - sum(confidence[i] for i in inside)
            total += abs(gap) / len(confidence)
    return total


def test_calibration_of_every_network_on_every_labelled_set(done, store):
    bench = world_benchmark()
    sets, found = members_of(bench), done.calibration()
    for network, result in zip(networks(), done.results):
        model = result.record.model
        for name in ("id_test", SHIFTED, DIM, "soft"):
            p = probabilities(network, sets[name], store)
            right = p.argmax(axis=1) == sets[name].labels
            row = found[model, name]
            assert row.value == pytest.approx(slow_ece(p.max(axis=1), right))
            assert row.low <= row.value <= row.high
            assert row.n_id == len(sets[name])
            classwise = np.mean([slow_ece(p[:, k], sets[name].labels == k) for k in range(4)])
            assert done.calibration("classwise_ece15")[model, name].value == pytest.approx(classwise)
            assert done.calibration("accuracy")[model, name].value == right.mean()
            bins = result.scores.context.extra["reliability"][name]
            gaps = np.multiply(bins["count"], np.subtract(bins["accuracy"], bins["confidence"]))
            assert np.abs(gaps).sum() / len(sets[name]) == pytest.approx(row.value)
        # the generated set is not among those it is compared with
        assert found[model, "max"].value == max(found[model, name].value for name in (DIM, "soft"))
    assert (EVIL, "static") not in found
    groups = {row.group for row in done.results[0].measurements.filter(protocol="generated")}
    assert groups == {"id", "csid"}


def test_adaptive_error_has_bins_of_equal_mass(done, store):
    bench = world_benchmark()
    p = probabilities(networks()[0], bench.id_test, store)
    order = np.argsort(p.max(axis=1), kind="stable")
    right = (p.argmax(axis=1) == bench.id_test.labels)[order]
    ends = [math.ceil(80 * k / 15) for k in range(16)]
    gaps = [abs(right[a:b].sum() - p.max(axis=1)[order][a:b].sum()) for a, b in pairwise(ends)]
    assert done.calibration("adaptive_ece15")[EVIL, "id_test"].value == pytest.approx(sum(gaps) / 80)


def test_who_made_the_images_is_marked(done):
    # one of the makers itself, and an ensemble that has the other one as a member
    assert done.circular == [trained(3).name, "ensemble"]
    assert [len(each.scores.context.extra["networks"]) for each in done.results] == [1, 1, 3]
    marked = {row.name for row in separation_table(done).rows if row.labels[1].value}
    assert marked == {trained(3).name, "ensemble"}


def test_detectors_on_generated_and_real_sets(done):
    table = separation_table(done)
    assert [(column.group, column.name) for column in table.columns] == [
        ("generated", NEAR),
        ("real", "static"),
        ("real", "rain"),
    ]
    assert len(table.rows) == 18
    for row in table.rows:
        network, _, detector = (entry.text for entry in row.labels)
        for column, cell in zip(table.columns, row.cells):
            (measured,) = done.result(network).measurements.filter(
                protocol="standard", metric="auroc", detector=detector, set=column.name
            )
            assert (cell.value, cell.low, cell.high) == (measured.value, measured.low, measured.high)
    assert (
        table.render("csv")
        .splitlines()[0]
        .startswith(f"network,made the images,detector,{NEAR},{NEAR} low,{NEAR} high")
    )
    assert table.render("markdown").count("↻ |") == 12
    assert [each.key for each in calibration_table(done).columns] == ["id_test", SHIFTED, "max", DIM, "soft"]


def test_agreement_of_rankings(done):
    found = {(each.real, each.scope): each for each in rank_agreements(done)}
    auroc = done.separation()
    rows = list(dict.fromkeys((network, detector) for network, detector, _ in auroc))
    for real, sets in {"static": ["static"], "rain": ["rain"], "mean": ["static", "rain"]}.items():
        ours = [auroc[*row, NEAR].value for row in rows]
        theirs = [np.mean([auroc[*row, name].value for name in sets]) for row in rows]
        each = found[real, ALL]
        assert each.tau == pytest.approx(scipy.stats.kendalltau(ours, theirs).statistic)
        assert each.rows == 18
        own = [i for i, (network, _) in enumerate(rows) if network == EVIL]
        slow = scipy.stats.kendalltau([ours[i] for i in own], [theirs[i] for i in own]).statistic
        assert found[real, EVIL].tau == pytest.approx(slow)
        assert found[real, EVIL].interval is None  # six rows are too few
    assert found["mean", WITHIN].rows == 18
    # of three networks two had a part in making: no ranking is left that compares networks without one
    assert INDEPENDENT not in {scope for _, scope in found}


def test_an_interval_where_there_are_detectors_enough(done):
    each = next(iter(rank_agreements(done)))
    assert each.scope == ALL
    assert each.interval.low <= each.tau <= each.interval.high


def test_networks_that_made_nothing_are_ranked_apart(done):
    second = _renamed(done.results[0], "another")
    wider = GeneratedStudy((*done.results, second), done.sanity, done.samples)
    found = {each.scope: each for each in rank_agreements(wider) if each.real == "mean"}
    assert found[INDEPENDENT].rows == 12


def _renamed(result, name):
    rows = [replace(row, model=name) for row in result.measurements]
    record = result.record.model_copy(update={"model": name})
    return oods.Result(record, type(result.measurements)(rows), result.scores)


def test_claims_follow_the_numbers(done):
    found = {each.text: each for each in claims(done)}
    share = done.sanity.of(NEAR).preserved
    fit = judges_fit(done)
    near = found[f"{NEAR}: judges see the class that an image came from in at most 50%"]
    ends = done.sanity.of(NEAR).preserved_interval
    assert near.holds == ((share <= 0.5) if fit and not ends.low <= 0.5 <= ends.high else None)
    kept = found[f"{SHIFTED}: judges see the class that an image came from in at least 60%"]
    ends = done.sanity.of(SHIFTED).preserved_interval
    said = fit and not ends.low <= 0.6 <= ends.high
    assert kept.holds == ((done.sanity.of(SHIFTED).preserved >= 0.6) if said else None)
    assert f"{100 * done.sanity.of(SHIFTED).preserved:.2f} %" in kept.evidence
    distance = {each.name: each.frechet for each in done.sanity.sets}
    closer = found[f"{NEAR} is closer to the training images than static is"]
    ours, theirs = (done.sanity.of(name).kernel for name in (NEAR, "static"))
    apart = ours[2] < theirs[1] or theirs[2] < ours[1]
    assert closer.holds == ((ours[0] < theirs[0]) if fit and apart else None)
    below = sum(distance[name] < distance[SHIFTED] for name in (DIM, "soft"))
    assert any(each.evidence.startswith(f"farther than {below} of 2") for each in found.values())
    auroc = done.separation()
    lower = sum(auroc[n, d, NEAR].value < auroc[n, d, "rain"].value for n, d, name in auroc if name == NEAR)
    assert found[f"{NEAR} is harder than rain for most detectors"].evidence == f"lower AUROC in {lower} of 18 rows"
    ece = done.calibration()
    above = sum(ece[name, SHIFTED].value > ece[name, "max"].value for name in done.networks)
    assert f"larger ECE in {above} of 3 networks" in [each.evidence for each in found.values()]


def _judged(study, right, wrong):
    """The study, as if its judges gave so many ID test images of each class that class, and so many another one."""
    size = len(study.sanity.class_names)
    square = tuple(tuple(right if i == j else wrong for j in range(size)) for i in range(size))
    sets = [
        each.model_copy(update={"confusion": square}) if each.role == "id_test" else each for each in study.sanity.sets
    ]
    return GeneratedStudy(study.results, study.sanity.model_copy(update={"sets": tuple(sets)}), study.samples)


def test_judges_that_cannot_read_decide_nothing(done):
    """0.1: judges that knew 12 % of the real test images said a green yes to "at most 50 % keep their class"."""
    poor, good = _judged(done, 2, 1), _judged(done, 100, 0)
    assert not judges_fit(poor) and judges_fit(good)
    by_judges = [each for each in claims(poor) if "judges see" in each.text or "training images" in each.text]
    assert by_judges and all(each.holds is None and each.answer == "cannot say" for each in by_judges)
    assert all("of the ID test images, less than 80%" in each.evidence for each in by_judges)
    for each in claims(good):
        if "judges see the class" in each.text:
            ends = good.sanity.of(each.text.split(":")[0]).preserved_interval
            bound = 0.5 if "at most" in each.text else 0.6
            assert (each.holds is None) == (ends.low <= bound <= ends.high), (
                "an interval that holds the bound decides nothing"
            )
    doubted = {doubt for trial in poor.trials() for entry in trial.entries for doubt in entry.cell.doubts}
    assert len(doubted) == 1 and "cannot be said" in doubted.pop()
    assert "cannot be said" in count_claims(claims(poor))


def test_claims_are_counted():
    held, failed, unknown = (Claim("a", holds, "b") for holds in (True, False, None))
    assert count_claims([held] * 3) == "3 of 3 claims hold."
    assert count_claims([held, failed, failed, unknown]) == "1 of 4 claims holds, 2 fail, 1 cannot be said."
    assert count_claims([]) == ""


def test_at_equal_length_only_the_kind_of_change_counts(done):
    bench = world_benchmark()
    radius = PER_PIXEL * math.sqrt(8 * 8 * 3)
    assert PER_PIXEL * math.sqrt(3 * 224 * 224) == pytest.approx(50)
    assert done.sanity.of(SHIFTED).perceptual == pytest.approx(radius, rel=1e-5)
    assert done.sanity.of(DIM).perceptual == pytest.approx(radius, rel=1e-5)
    assert done.sanity.of("soft").perceptual is None
    few = bench.id_test.take(np.arange(40))
    with pytest.raises(oods.OodscopeError, match="40 originals"):
        perceived(bench.id_test, few, Length(), trained(0).device)
    with pytest.raises(oods.OodscopeError, match="no image differs"):
        perceived(bench.id_test, bench.id_test, Length(), trained(0).device)


def test_a_saved_study_is_the_same_study(done, tmp_path):
    again = GeneratedStudy.load(done.save(tmp_path / "study"))
    assert again.sanity == done.sanity
    assert again.networks == done.networks
    assert [each.measurements for each in again.results] == [each.measurements for each in done.results]
    assert list(again.samples) == list(done.samples) == ["id_test", NEAR, SHIFTED]
    for name, sample in done.samples.items():
        assert (again.samples[name].images == sample.images).all()
        assert (again.samples[name].judged == sample.judged).all()
    assert again.samples[NEAR].originals is None
    assert (again.samples[SHIFTED].originals == 255 - done.samples[SHIFTED].images).all()
    (tmp_path / "study" / "run.json").unlink()
    with pytest.raises(oods.OodscopeError, match="no finished result here"):
        GeneratedStudy.load(tmp_path / "study")


def test_refusals(done, store):
    bench = world_benchmark()
    with pytest.raises(oods.OodscopeError, match="net0 judges it and has the weights of net0"):
        checks(makers=(trained(0), trained(4)))
    with pytest.raises(oods.OodscopeError, match="two networks or more, not 1"):
        checks(judges=(trained(0),))
    pair = [(trained(3), done.results[1])]
    with pytest.raises(oods.OodscopeError, match="'laid'"):
        judge_generated(pair, bench, checks(generated=("layd",)), store=store)
    with pytest.raises(oods.OodscopeError, match="another benchmark"):
        judge_generated(pair, replace(bench, version="2"), checks(), store=store)
    with pytest.raises(oods.OodscopeError, match="is not one of the network"):
        judge_generated([(trained(2), done.results[1])], bench, checks(), store=store)
    with pytest.raises(oods.OodscopeError, match="two networks of the study are called"):
        GeneratedStudy((done.results[0], done.results[0]), done.sanity, {})
    with pytest.raises(oods.OodscopeError, match="at least one network"):
        GeneratedStudy((), done.sanity, {})
    plain = oods.evaluate(classifier(7), bench, ["msp"], store=store)
    with pytest.raises(oods.OodscopeError, match="lacks measurements"):
        GeneratedStudy((plain,), done.sanity, {})


@pytest.mark.slow
def test_without_makers_originals_or_training_images_less_is_known(store):
    bench = replace(world_benchmark(), id_train=None)
    network = trained(5)
    result = oods.evaluate(network, bench, ["msp", "mls"], store=store)
    bare = checks(makers=(), window=None, perceptual=None, originals={})
    found = judge_generated([(network, result)], bench, bare, store=store)
    assert found.circular == []
    assert found.sanity.of(NEAR).kept is None
    assert found.sanity.of(NEAR).made_information == ()
    assert all(each.frechet is None and each.perceptual is None for each in found.sanity.sets)
    assert found.sanity.features == ""


def test_source_classes_are_matched_by_name(store):
    """A near set whose classes stand in another order, some images without one."""
    images = imageset("x", 40, 3)
    labels = np.where(np.arange(40) < 10, -1, images.labels)
    turned = oods.ImageSet.from_arrays(
        NEAR, np.stack(images.images(range(40))), np.where(labels < 0, -1, 3 - labels), images.class_names[::-1]
    )
    # a real set may call its classes by the same names, such as numbers; its images came from none of ours
    bench = world_benchmark(near=(turned, imageset("lookalike", 30, 9)), csid=())
    network = trained(5)
    result = oods.evaluate(network, bench, ["msp"], store=store)
    found = judge_generated(
        [(network, result)], bench, checks(generated=(NEAR,), originals={}, window=Window(0.0, 1.0)), store=store
    )
    assert found.sanity.of("lookalike").confusion == ()
    check = found.sanity.of(NEAR)
    assert sum(map(sum, check.confusion)) == 30
    slow = slow_opinion(checks().judges, images, store)
    assert check.preserved == sum(label == seen for label, (seen, _) in zip(labels, slow)) / 30
