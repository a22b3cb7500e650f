# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples from readings: rates between them, gaps where nothing is known, and files that do not grow."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES, Reading, measured
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import KEPT, WINDOWS, Samples

NOON = 1_790_000_000 // 86400 * 86400 + 43200.0
UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
FOREIGN = "00000000-0000-0000-0000-00000000000f"


def reading(clock: float, run: str = "boot", **values: float | None) -> Reading:
    return Reading(run, clock, {**dict.fromkeys(MEASURES), **values})


def answer(clock: float, cpu: float, guests: t.Mapping[str, tuple[str, float]] | None = None) -> dict[str, t.Any]:
    """Answer of a host that has counted so many seconds, and whose guests did, each by its UUID with its run."""
    of_guests = [
        {"uuid": uuid, "run": run, "clock": clock, "values": {"cpu": seconds, "memory": 1024.0}}
        for uuid, (run, seconds) in (guests or {}).items()
    ]
    values = {"cpu": cpu, "memory": 4096.0}
    return {"host": {"run": "b", "clock": clock, "values": values}, "guests": of_guests, "complaints": []}


def cpu(samples: Samples, kind: str, name: str, now: float, window: str = "hour") -> list[float | None]:
    return [record.mean["cpu"] for record in samples.history(kind, name, WINDOWS[window], now)]


def test_a_rate_is_what_was_counted_between_two_readings() -> None:
    values = measured(reading(100.0, cpu=50.0, disk_read=1000), reading(160.0, cpu=80.0, disk_read=4000, memory=7))
    assert values["cpu"] == 0.5 and values["disk_read"] == 50.0
    assert values["memory"] == 7 and values["net_sent"] is None


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, reading(160.0, cpu=80.0)),
        (reading(100.0, "hv1 1", cpu=50.0), reading(160.0, "hv1 2", cpu=80.0)),  # started anew, and busier than before
        (reading(100.0, "hv1 1", cpu=50.0), reading(160.0, "hv2 1", cpu=80.0)),  # moved
        (reading(100.0, cpu=50.0), reading(160.0, cpu=2.0)),  # counts anew
        (reading(100.0, cpu=50.0), reading(100.1, cpu=80.0)),  # two runs at once
        (reading(100.0, cpu=50.0), reading(5000.0, cpu=80.0)),  # nobody looked for long
        (reading(100.0), reading(160.0, cpu=80.0)),
    ],
)
def test_what_two_readings_do_not_say_is_not_known(before: Reading | None, now: Reading) -> None:
    assert measured(before, now)["cpu"] is None


def test_a_missed_sample_is_a_gap_and_the_next_one_no_spike(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    for minute in (0, 1, 2, 5, 6):  # two cores are busy throughout; the looks of two minutes were missed
        samples.record({"hv1": answer(1000 + 60 * minute, 120.0 * minute)}, (), NOON + 60 * minute)
    assert cpu(samples, "host", "hv1", NOON + 60 * 6)[-7:] == [None, 2.0, 2.0, None, None, 2.0, 2.0]


def test_a_host_that_does_not_answer_costs_its_own_samples_only(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    for minute, hosts in enumerate((("hv1", "hv2"), ("hv1",), ("hv1", "hv2"))):
        samples.record({host: answer(60 * minute, 60.0 * minute) for host in hosts}, (), NOON + 60 * minute)
    assert cpu(samples, "host", "hv1", NOON + 120)[-3:] == [None, 1.0, 1.0]
    assert cpu(samples, "host", "hv2", NOON + 120)[-3:] == [None, None, 1.0]


def test_a_guest_that_is_started_again_begins_anew(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    counted = [("1", 500.0), ("1", 530.0), ("2", 570.0), ("2", 600.0)]
    for minute, counter in enumerate(counted):
        samples.record({"hv1": answer(60 * minute, 0, {UUID: counter})}, {UUID}, NOON + 60 * minute)
    assert cpu(samples, "guest", UUID, NOON + 180)[-4:] == [None, 0.5, None, 0.5]


def test_only_guests_of_the_ledger_are_kept(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    samples.record({"hv1": answer(1, 0, {UUID: ("1", 0), FOREIGN: ("2", 0)})}, {UUID}, NOON)
    assert {name for _kind, name in samples.newest(NOON)} == {"hv1", UUID}
    assert not list(tmp_path.rglob(f"*{FOREIGN}*"))


def test_the_newest_are_forgotten_when_they_are_old_or_their_host_has_them_no_more(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    samples.record({"hv1": answer(0, 0, {UUID: ("1", 0)}), "hv2": answer(0, 0)}, {UUID}, NOON)
    samples.record({"hv1": answer(60, 30)}, {UUID}, NOON + 60)
    assert samples.newest(NOON + 60).keys() == {("host", "hv1"), ("host", "hv2")}
    assert samples.newest(NOON + 60)["host", "hv1"]["cpu"] == 0.5
    assert samples.newest(NOON + 330).keys() == {("host", "hv1")}


def test_a_month_keeps_means_and_peaks(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    counter, busy = 0.0, [1, 1, 1, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    samples.record({"hv1": answer(0, counter)}, (), NOON - 60)
    for minute, cores in enumerate(busy):
        counter += 60.0 * cores
        samples.record({"hv1": answer(60 * (minute + 1), counter)}, (), NOON + 60 * minute)
    (quarter,) = [each for each in samples.history("host", "hv1", WINDOWS["week"], NOON + 900) if each.samples > 1]
    assert quarter.mean["cpu"] == pytest.approx(sum(busy) / 15) and quarter.peak["cpu"] == 7
    assert quarter.mean["memory"] == 4096.0 and quarter.mean["io_pressure"] is None


def test_a_file_is_written_over_and_does_not_grow(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    day = 24 * 3600
    for at in (*range(0, 120, 60), *range(day, day + 120, 60), *range(31 * day, 31 * day + 120, 60)):
        samples.record({"hv/1": answer(at, at)}, (), NOON + at)
    assert cpu(samples, "host", "hv/1", NOON + 31 * day + 60, "day")[-1] == 1.0
    assert sum(value is not None for value in cpu(samples, "host", "hv/1", NOON + 31 * day + 60, "month")) == 1
    (file,) = (tmp_path / "samples").glob("host-*")
    assert file.stat().st_size <= (1440 + 2880) * 80
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


def test_a_record_that_was_cut_off_and_a_file_of_others_cost_no_more_than_themselves(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    for minute in range(3):
        samples.record({"hv1": answer(60 * minute, 60 * minute)}, (), NOON + 60 * minute)
    (file,) = (tmp_path / "samples").glob("host-*")
    os.truncate(file, file.stat().st_size - 7)
    (tmp_path / "samples/newest.json").write_text("[]")
    samples.record({"hv1": answer(180, 180)}, (), NOON + 180)
    samples.record({"hv1": answer(240, 240)}, (), NOON + 240)
    assert cpu(samples, "host", "hv1", NOON + 240)[-5:] == [None, 1.0, 1.0, None, 1.0]
    assert json.loads((tmp_path / "samples/newest.json").read_text())["entries"].keys() == {"host-hv1"}


def test_what_is_gone_for_a_month_is_removed(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    samples.record({"hv1": answer(0, 0, {UUID: ("1", 0)})}, {UUID}, NOON)
    (file,) = (tmp_path / "samples").glob("guest-*")
    os.utime(file, (NOON, NOON))
    samples.record({"hv1": answer(60, 0)}, (), NOON + KEPT - 1)
    assert file.exists()
    samples.record({"hv1": answer(120, 0)}, (), NOON + KEPT + 1)
    assert not file.exists()


def test_what_was_never_measured_has_an_empty_history(tmp_path: pathlib.Path) -> None:
    samples = Samples(str(tmp_path))
    assert samples.newest(NOON) == {}
    for name, window in WINDOWS.items():
        history = samples.history("guest", UUID, window, NOON)
        assert len(history) == window.seconds // window.step and not any(each.samples for each in history), name
