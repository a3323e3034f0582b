"""How far a long computation is: what whoever watches is told."""

import numpy as np
import pytest

import labelsure as ls
from labelsure._runtime import limits as _limits

N_SAMPLES = 5


def mixture(n_labels, **settings):
    rng = np.random.default_rng(0)
    chains = [
        ls.distributions.LinearChain(
            rng.permutation(n_labels),
            rng.normal(size=(N_SAMPLES, n_labels)),
            0.3 * rng.normal(size=(n_labels, n_labels)),
        )
        for _ in range(2)
    ]
    return ls.distributions.ChainMixture(chains, **settings)


QUESTIONS = {
    "confidence": lambda dist: ls.confidence(dist),
    "marginals": lambda dist: dist.marginals(),
    "expected": lambda dist: (
        ls.expected_accuracy(dist, np.eye(N_SAMPLES, dist.n_labels), metric="f1").value
    ),
    "decide": lambda dist: ls.decide(dist, "f1").labelsets,
}
ENGINES = {
    "few labels": (4, {}),
    "dense": (6, {"engine": "dense"}),
    "certified": (16, {"engine": "certified", "budget": 100}),
    "sampled": (16, {"engine": "sampled", "budget": 100}),
    "auto": (16, {"max_exact_labels": 4, "budget": 400}),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.jit_only
def test_progress_rises_to_all_instances(question, engine):
    n_labels, settings = ENGINES[engine]
    told = []
    with ls.distributions.watch_progress(lambda n_done, n_all: told.append((n_done, n_all))):
        QUESTIONS[question](mixture(n_labels, **settings))
    assert told[-1] == (N_SAMPLES, N_SAMPLES)
    assert all(n_all == N_SAMPLES for _, n_all in told)
    done = [n_done for n_done, _ in told]
    assert done == sorted(done)
    QUESTIONS[question](mixture(n_labels, **settings))
    assert len(told) == len(done)  # nobody watches any more


def test_instances_are_told_of_as_they_are_finished(monkeypatch):
    monkeypatch.setattr(_limits, "SEEN_LABELSETS_BYTES", 1)  # one at a time
    told = []
    with ls.distributions.watch_progress(lambda n_done, n_all: told.append(n_done)):
        mixture(5, engine="certified").profile()
    assert told == [1, 2, 3, 4, 5]


def test_what_the_watcher_raises_ends_the_computation():
    def stop(n_done, n_all):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ls.distributions.watch_progress(stop):
        mixture(3).profile()


def test_a_watcher_is_a_function():
    with (
        pytest.raises(ls.InputError, match="`watcher`"),
        ls.distributions.watch_progress("loud"),
    ):
        pass
