"""Tasks on one machine: every one comes back, whatever happens to workers; one thread for each."""

import gc
import re
import threading
import time
import warnings

import pytest
from deadly_learner import end_this_process
from joblib.parallel import get_active_backend

import labelsure as ls
from labelsure._kernels.threads import n_threads, one_blas_thread, one_thread
from labelsure._runtime.processes import TaskFailure, check_jobs, run_tasks


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_task_comes_back_with_its_place(n_jobs):
    found = dict(run_tasks(divmod, [(7, 2), (9, 4), (5, 5)], n_jobs=n_jobs))
    assert found == {0: (3, 1), 1: (2, 1), 2: (1, 0)}


def test_no_tasks():
    assert list(run_tasks(divmod, [])) == []


def test_what_is_raised_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(run_tasks(divmod, [(1, 0)]))


@pytest.mark.jit_only
def test_a_worker_that_ends_takes_its_tasks_with_it():
    found = dict(run_tasks(end_this_process, [(), ()], n_jobs=2))
    assert found.keys() == {0, 1}
    message = (
        "A worker process was ended from outside, often for lack of memory. Run again with fewer "
        "jobs: finished work is kept."
    )
    assert found[0] == TaskFailure("TerminatedWorkerError", message)


def test_numbers_of_jobs():
    assert check_jobs(None, 7) == 7
    assert check_jobs(3, 7) == 3
    for wrong in (0, -1, True, 1.5, "2"):
        message = f"`n_jobs` must be a whole number >= 1, got {wrong!r}."
        with pytest.raises(ls.InputError, match=re.escape(message)):
            check_jobs(wrong, 7)
    with pytest.raises(ls.TooLargeError, match="at most 1024, got 1025"):
        check_jobs(1025, 7)


def test_one_thread_is_for_kernels_and_joblib(monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    before = type(get_active_backend()[0])
    with one_thread():
        assert n_threads() == 1
        assert type(get_active_backend()[0]).__name__ == "SequentialBackend"
        with one_thread():
            assert n_threads() == 1
        assert n_threads() == 1
    assert n_threads() == 3
    assert type(get_active_backend()[0]) is before


def blas_threads():
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("context", [one_blas_thread, one_thread])
def test_blas_has_one_thread_while_anyone_needs_it(context):
    """Threads enter and leave in any order; the limit holds until the last one is out."""
    from threadpoolctl import threadpool_limits

    first_is_in, second_is_in, first_may_leave = (threading.Event() for _ in range(3))

    def work():
        with context():
            first_is_in.set()
            second_is_in.wait(30)
        first_may_leave.set()

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=work)
        thread.start()
        first_is_in.wait(30)
        with context():
            second_is_in.set()
            first_may_leave.wait(30)
            assert blas_threads() == {1}
        thread.join()
        assert blas_threads() == {2}


def test_cancelled_tasks_warn_of_nothing():
    results = run_tasks(time.sleep, [(0.01,)] * 20, n_jobs=2)
    next(results)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results.close()
        gc.collect()
    assert not caught
