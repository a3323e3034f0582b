"""A base learner that takes its process with it, as the system does when memory runs out."""

import os
import signal

from sklearn.linear_model import LogisticRegression


class DeadlyLearner(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        os.kill(os.getpid(), signal.SIGKILL)
