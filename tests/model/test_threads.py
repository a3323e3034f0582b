"""BLAS is limited to one thread around our linear algebra, and never around the user's `fit`."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from data_for_classifiers import make_problem
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from threadpoolctl import threadpool_info

import labelsure as ls
from labelsure._kernels import threads
from labelsure.estimation._label_estimates import LabelCalibration

X, Y = make_problem(n_samples=300, n_labels=3, seed=1)


class Watched(ClassifierMixin, BaseEstimator):
    """A model of somebody else that notes whether BLAS is limited while it is fitted."""

    seen: list[int] = []  # noqa: RUF012  # shared by its clones

    def fit(self, X, y):
        self.seen.append(threads._blas.n_inside)
        self.model_ = MultiOutputClassifier(LogisticRegression()).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_our_linear_algebra_is_limited_and_the_users_fit_is_not(monkeypatch):
    inside = []
    own = LabelCalibration.fit.__func__

    def fit(cls, *given):
        inside.append(threads._blas.n_inside)
        return own(cls, *given)

    monkeypatch.setattr(LabelCalibration, "fit", classmethod(fit))
    Watched.seen.clear()
    before = blas_threads()
    for cv in (0.4, 3):
        ls.AccuracyAwareClassifier(Watched(), "f1", cv=cv, random_state=0).fit(X, Y)
    assert set(Watched.seen) == {0}
    assert min(inside) >= 1
    assert blas_threads() == before


def test_eight_threads_answer_alike_and_leave_the_limit_as_it_was():
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", random_state=0).fit(X, Y)
    before = blas_threads()
    wanted = model.assess(X, shift="ignore").accuracy

    def ask(seed):
        if seed % 4 == 0:
            other = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", random_state=0)
            return other.fit(X, Y).assess(X, shift="ignore").accuracy
        return model.assess(X, shift="ignore").accuracy

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(24)))
    assert all((one == wanted).all() for one in found)
    assert threads._blas.n_inside == 0
    assert blas_threads() == before
    assert np.isfinite(wanted).all()
