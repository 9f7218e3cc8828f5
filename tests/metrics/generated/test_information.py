"""Mutual information against the oracles of the paper, entropies, and scikit-learn's of a contingency table."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from oodscope.activations.activations import Activations
from oodscope.activations.probes.taps import MemberLogits
from oodscope.base.errors import DataError
from oodscope.detectors.methods.ensembles import MutualInformation
from oodscope.metrics.generated.information import most_information, mutual_information
from tests.examples import examples


def one_hot(classes, count):
    """``[T, 1, C]``: members that are certain, each of its class."""
    return np.eye(count)[list(classes)][:, None]


@st.composite
def ensembles(draw):
    members, images, classes = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # the small concentrations make members that are certain, down to probabilities of exactly 0
    return rng.dirichlet(np.full(classes, draw(st.sampled_from([1e-3, 0.1, 1.0, 50.0]))), size=(members, images))


class TestOracles:
    def test_two_members_certain_of_different_classes(self):
        assert mutual_information(one_hot([0, 1], 2)).tolist() == [pytest.approx(np.log(2), abs=1e-15)]
        assert np.log(2) == pytest.approx(0.693147, abs=1e-6)

    @pytest.mark.parametrize("member", [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [1 / 3] * 3])
    def test_members_that_say_the_same(self, member):
        assert mutual_information([[member]] * 7)[0] == pytest.approx(0, abs=1e-30)

    def test_three_undecided_members(self):
        assert mutual_information([[[0.9, 0.1]], [[0.6, 0.4]], [[0.3, 0.7]]])[0] == pytest.approx(0.136692, abs=1e-6)

    @pytest.mark.parametrize(("dissenters", "value"), [(0, 0.0), (1, 0.4506), (2, 0.6365), (3, 0.6931)])
    def test_dissent_among_six_certain_members(self, dissenters, value):
        classes = [3] * dissenters + [7] * (6 - dissenters)
        assert mutual_information(one_hot(classes, 10))[0] == pytest.approx(value, abs=5e-5)

    @pytest.mark.parametrize(("members", "classes", "value"), [(4, 10, 1.386), (6, 10, 1.792), (3, 1000, 1.099)])
    def test_the_bound_is_reached_by_members_who_all_differ(self, members, classes, value):
        assert most_information(members, classes) == pytest.approx(value, abs=5e-4)
        assert mutual_information(one_hot(range(members), classes))[0] == pytest.approx(
            most_information(members, classes)
        )

    def test_the_bound_is_the_number_of_classes_where_they_are_fewer(self):
        assert mutual_information(one_hot([0, 1, 2] * 2, 3))[0] == pytest.approx(most_information(6, 3))
        assert most_information(6, 3) == pytest.approx(np.log(3))


class TestAnyEnsemble:
    @examples(50)
    @given(ensembles())
    def test_is_a_difference_of_entropies_and_scikit_learns(self, probabilities):
        found = mutual_information(probabilities)
        slow = [
            entropy(image.mean(axis=0)) - np.mean([entropy(member) for member in image])
            for image in probabilities.transpose(1, 0, 2)
        ]
        # scikit-learn wants counts: of a thousand million answers of each member
        counts = np.round(probabilities * 1e9).astype(np.int64)
        learned = [mutual_info_score(None, None, contingency=counts[:, i]) for i in range(found.size)]
        np.testing.assert_allclose(found, slow, atol=1e-12)
        np.testing.assert_allclose(found, learned, atol=1e-7)

    @examples(50)
    @given(ensembles())
    def test_stays_within_its_bounds(self, probabilities):
        found = mutual_information(probabilities)
        assert (found >= 0).all()
        assert (found <= most_information(probabilities.shape[0], probabilities.shape[2]) + 1e-12).all()

    def test_small_values_keep_their_digits(self):
        """Two members 1e-9 apart: the leading term is the squared distance over 8 p (1 - p)."""
        found = mutual_information([[[0.5 + 5e-10, 0.5 - 5e-10]], [[0.5 - 5e-10, 0.5 + 5e-10]]])[0]
        assert found == pytest.approx(1e-18 / 8 / 0.25, rel=1e-3)

    def test_is_the_score_of_the_detector(self):
        logits = torch.randn(20, 4, 5, generator=torch.Generator().manual_seed(0)) * 3
        column = MemberLogits().column
        batch = Activations(logits=logits.mean(dim=1), columns={column: logits})
        detector = MutualInformation().fit(batch)
        found = mutual_information(logits.double().softmax(dim=-1).transpose(0, 1).numpy())
        np.testing.assert_allclose(found, detector.score(batch).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.5]], r"\[members, images, classes\]; the shape is \(1, 2\)"),
        (np.zeros((0, 3, 2)), r"the shape is \(0, 3, 2\)"),
        ([[[0.7, 0.7]]], "sum to 1; take the softmax of logits"),
        ([[[1.5, -0.5]]], "must be 0 or more"),
        ([[[np.nan, 1.0]]], "must be 0 or more"),
    ],
)
def test_mistakes(probabilities, message):
    with pytest.raises(DataError, match=message):
        mutual_information(probabilities)


def test_an_ensemble_of_nobody():
    with pytest.raises(DataError, match="at least one member and one class; it has 0 and 3"):
        most_information(0, 3)
