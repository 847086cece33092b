"""Deadlines that no stepped clock, suspend or reboot turns into a lie."""

from __future__ import annotations

import time

import pytest

from custodes.supervision.record.clock import (
    after,
    boot_id,
    later,
    local_time,
    now,
    utc_time,
    wall_after,
    whole_seconds,
)
from support.health import Clock


@pytest.mark.parametrize("step", [-3600.0, 3600.0, 7200.0])
def test_within_a_boot_a_stepped_wall_clock_moves_nothing(step: float) -> None:
    clock = Clock()
    deadline = after(100, clock())
    clock.step_wall(step)
    clock.advance(40)
    assert deadline.remaining(clock()) == 60


def test_what_passed_since_a_moment_is_measured_within_a_boot_and_told_by_wall_time_after_it() -> None:
    clock = Clock()
    begun = clock()
    clock.advance(30)
    clock.step_wall(-7200)
    assert wall_after(begun, clock()) == begun.wall + 30
    clock.reboot(600)
    assert wall_after(begun, clock()) == clock().wall


def test_after_a_reboot_wall_time_says_what_is_left() -> None:
    clock = Clock()
    deadline = after(100, clock())
    clock.reboot(down_s=30)
    assert deadline.remaining(clock()) == pytest.approx(70)


def test_after_a_reboot_with_the_clock_far_behind_at_most_the_granted_length_is_left() -> None:
    clock = Clock()
    clock.step_wall(7200)
    deadline = after(100, clock())
    clock.step_wall(-7200)
    clock.reboot(down_s=30)
    assert deadline.remaining(clock()) == 100


def test_after_a_reboot_wall_time_has_one_word_only() -> None:
    clock = Clock()
    deadline = after(100, clock())
    clock.reboot(down_s=30)
    anchored = deadline.anchored(clock())
    clock.step_wall(-3600)
    clock.advance(10)
    assert anchored.remaining(clock()) == pytest.approx(60)
    assert anchored.anchored(clock()) is anchored


def test_each_reboot_grants_at_most_what_was_left_at_the_last() -> None:
    clock = Clock()
    deadline = after(100, clock())
    clock.reboot(down_s=90)
    deadline = deadline.anchored(clock())
    clock.step_wall(-86_400)
    clock.reboot(down_s=1)
    assert deadline.remaining(clock()) == pytest.approx(10)


def test_the_later_of_two_deadlines_stays() -> None:
    clock = Clock()
    short, long = after(10, clock()), after(60, clock())
    assert later(short, long, clock()) is long
    assert later(long, short, clock()) is long
    assert later(None, short, clock()) is short


@pytest.mark.parametrize(("seconds", "whole"), [(0.2, 1), (1.0, 1), (1.01, 2), (0.0, 1)])
def test_people_are_told_whole_seconds_rounded_up(seconds: float, whole: int) -> None:
    assert whole_seconds(seconds) == whole


def test_this_moment_is_read_from_the_clocks_of_this_boot() -> None:
    one, other = now(), now()
    assert one.boot == other.boot == boot_id()
    assert other.uptime >= one.uptime >= 0
    assert abs(one.wall - time.time()) < 3600


def test_a_system_without_proof_of_processes_is_told_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(RuntimeError, match=r"on this system \(win32\) nothing proves .* WSL on Windows"):
        boot_id.__wrapped__()


def test_a_moment_is_written_for_people_and_programs() -> None:
    assert utc_time(1_784_505_600.9) == "2026-07-20T00:00:00Z"
    assert len(local_time(1_784_505_600.9)) == len("2026-07-20 00:00:00")


@pytest.mark.parametrize("wall", [1e18, 1e308, -1e308, float("inf")])
def test_a_moment_that_no_calendar_holds_is_unknown(wall: float) -> None:
    assert local_time(wall) == utc_time(wall) == "?"
