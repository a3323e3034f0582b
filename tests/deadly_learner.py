"""A learner and a task that take their process with them, as the system does without memory."""

import os
import signal

from sklearn.linear_model import LogisticRegression


def end_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlyLearner(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        end_this_process()
