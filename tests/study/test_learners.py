"""L1-penalised base learners against an objective minimised by another solver."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from labelsure.classifiers._base_learners import read_linear_form
from labelsure.study.learners import Lasso, LassoCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X @ [2.0, -1.0, 0.0, 0.0] + RNG.normal(size=120) > 0.3).astype(int)


def penalised_loss(coefficients, C):
    """liblinear's objective: it penalises the intercept as well."""
    positive, negative = coefficients[:5], coefficients[5:]
    w = positive - negative
    margins = (2 * Y - 1) * (X @ w[:4] + w[4])
    return coefficients.sum() + C * np.logaddexp(0, -margins).sum()


@pytest.mark.parametrize("C", [0.05, 0.3, 3.0])
def test_lasso_minimises_the_l1_penalised_loss(C):
    fitted = Lasso(C, max_iter=1000, random_state=0).fit(X, Y)
    best = minimize(penalised_loss, np.full(10, 0.1), args=(C,), bounds=[(0, None)] * 10)
    w = np.append(fitted.coef_[0], fitted.intercept_)
    found = penalised_loss(np.concatenate([w.clip(0), (-w).clip(0)]), C)
    assert found == pytest.approx(best.fun, rel=1e-3)


@pytest.mark.parametrize("Cs", [(0.01, 0.1, 1.0), (0.001, 0.3)])
def test_the_penalty_has_the_least_class_error_and_the_strongest_wins_ties(Cs):
    errors = []
    for C in Cs:
        rates = [
            np.mean(Lasso(C, random_state=3).fit(X[a], Y[a]).predict(X[b]) != Y[b])
            for a, b in StratifiedKFold(5).split(X, Y)
        ]
        errors.append(np.mean(rates))
    found = LassoCV(Cs, random_state=3).fit(X, Y)
    assert Cs.index(found.C_) == np.argmin(errors)
    single = Lasso(found.C_, random_state=3).fit(X, Y)
    assert (found.predict_proba(X) == single.predict_proba(X)).all()


@pytest.mark.parametrize("n_positive", [1, 4, 119])
def test_a_rare_label_gets_the_strongest_penalty(n_positive):
    y = np.arange(120) < n_positive
    assert LassoCV((0.02, 1.0), random_state=0).fit(X, y.astype(int)).C_ == 0.02
    enough = (np.arange(120) % 24 == 0).astype(int)  # five of them, one for each fold
    assert LassoCV((0.02, 1.0), random_state=0).fit(X, enough).C_ in (0.02, 1.0)


@pytest.mark.parametrize("learner", [Lasso(0.3), LassoCV((0.1, 1.0), cv=3)])
def test_their_weights_are_read(learner):
    assert clone(learner).get_params() == learner.get_params()
    fitted = learner.fit(X, Y)
    form = read_linear_form(fitted, X)
    assert (form.weights == fitted.coef_[0]).all()
    assert form.intercept == fitted.intercept_[0]
