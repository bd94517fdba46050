"""A run that is asked to stop: the mark, the edge that raises it, and what becomes of signals before and after."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
from structlog.testing import capture_logs

from steps import cancellation, waits
from steps.cancellation import Cancelled


def test_the_first_edge_raises_and_what_follows_is_the_way_out() -> None:
    with cancellation.heeded(lambda: None):
        cancellation.edge()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Cancelled, match="cancelled by SIGTERM"):
            waits.sleep_s(60)
        cancellation.edge()
    cancellation.edge()


def test_signals_are_as_before_afterwards_and_one_that_came_too_late_asks_nothing_of_the_next(slept: list[float]) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with cancellation.heeded(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before

    with cancellation.heeded(lambda: None):
        waits.sleep_s(0.01)
    assert slept == [0.01]


def test_a_question_to_a_person_is_left_at_once() -> None:
    def asked() -> None:
        with cancellation.at_once():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

    with cancellation.heeded(lambda: None), pytest.raises(Cancelled, match="cancelled by SIGINT"):
        asked()


@pytest.mark.parametrize(("around", "told"), [(nullcontext, ["stopping at the next safe edge"]), (cancellation.untold, [])])
def test_a_stop_is_told_but_to_whoever_only_watches(around: Callable[[], AbstractContextManager[None]], told: list[str]) -> None:
    with capture_logs() as logs, around(), cancellation.heeded(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(4 * cancellation.LOOK_EVERY_S)
        with pytest.raises(Cancelled):
            cancellation.edge()

    assert [log["event"] for log in logs] == told


def test_where_no_edge_comes_the_run_is_cut_short_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "PATIENCE_S", 0.0)
    asked: list[bool] = []

    def hangs() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    with cancellation.heeded(lambda: asked.append(True)), pytest.raises(Cancelled, match="cancelled by SIGINT"):
        hangs()
    assert asked


def test_each_lane_stops_at_its_own_edge_and_the_main_thread_at_its_own() -> None:
    stopped: list[str] = []

    def lane() -> None:
        try:
            waits.sleep_s(60)
        except Cancelled as cancelled:
            stopped.append(str(cancelled))

    lanes = [threading.Thread(target=lane) for _ in range(2)]
    with cancellation.heeded(lambda: None):
        os.kill(os.getpid(), signal.SIGTERM)
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
        with pytest.raises(Cancelled):
            cancellation.edge()
    assert stopped == ["cancelled by SIGTERM"] * 2


def test_once_patience_is_over_what_waits_is_cut_on_the_way_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "PATIENCE_S", 0.2)
    cut = threading.Event()

    with cancellation.heeded(lambda: None, cut.set):
        assert not cut.wait(0.5)  # nobody has asked
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Cancelled):
            waits.sleep_s(60)
        assert cut.wait(30)  # as a record waits for its answer


def test_signals_soon_after_one_ask_for_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "_asked", cancellation._Asked())
    assert [cancellation.asks_anew() for _ in range(3)] == [True, False, False]

    monkeypatch.setattr(cancellation, "PATIENCE_S", 0.0)
    assert cancellation.asks_anew()

    monkeypatch.undo()
    with cancellation.heeded(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Cancelled):
            cancellation.edge()
    assert not cancellation.asks_anew()  # on the way out
