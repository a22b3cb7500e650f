# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Graphs of hosts and instances: what they show, to whom, and lines and axes that say the truth."""

from __future__ import annotations

import re

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Record
from api.dashboard import graphs
from tests.api import measured, scenes, seeds
from tests.api.dashboard.visitor import ELEMENTS, Page, Visitor


def record(at: int, samples: int = 1, **values: float) -> Record:
    whole = {**dict.fromkeys(MEASURES), **values}
    return Record(at, samples, whole, whole)


def figures(page: Page) -> list[str]:
    """The graphs of a page, by their titles."""
    return [str(svg["aria-labelledby"]) for svg in page.all("svg") if svg.get("class") == "graph"]


def test_a_reader_sees_what_an_instance_of_the_project_used(api: seeds.Api, scene: scenes.Scene) -> None:
    measured.measure(api.app, "hv1", scene.web)
    page = Visitor(api, "reader").get(f"/instances/{scene.web}?window=hour")
    assert len(figures(page)) == 5 and {tag for tag, _attributes in page.elements} <= ELEMENTS
    assert (
        "CPU in the last hour" in page.words
        and "at work: 0.01 cores on average, 0.5 cores at most of 1 core" in page.words
    )
    assert "used: 256 MiB on average, 256 MiB at most of 512 MiB" in page.words
    day = Visitor(api, "reader").get(f"/instances/{scene.web}")
    assert "CPU in the last day" in day.words and "0.5 cores at most" in day.words and "3 MiB/s at most" in day.words
    (link,) = [link for link in day.all("a") if link.get("aria-current") == "true"]
    assert str(link["href"]).endswith("?window=day#use")


def test_hosts_are_operators_and_instances_their_projects(api: seeds.Api, scene: scenes.Scene) -> None:
    measured.measure(api.app, "hv1", scene.foreign, hours=1)
    assert figures(Visitor(api, "admin").get("/hosts/hv1?window=week"))
    Visitor(api, "demo").get("/hosts/hv1", status=403)
    Visitor(api, "demo").get(f"/instances/{scene.foreign}", status=404)
    assert figures(Visitor(api, "admin").get(f"/instances/{scene.foreign}"))


def test_what_was_never_measured_has_no_heading(api: seeds.Api, scene: scenes.Scene) -> None:
    page = Visitor(api, "admin").get("/hosts/hv1")
    assert not figures(page) and "Use" not in [word for word in page.words.split(" ") if word == "Use"]


def test_a_window_without_samples_says_so(api: seeds.Api, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    now = measured.measure(api.app, "hv1", scene.web, hours=1)
    monkeypatch.setattr(graphs.time, "time", lambda: now + 7200)
    page = Visitor(api, "admin").get("/hosts/hv1?window=hour")
    assert not figures(page) and "Nothing was measured in this time." in page.words
    assert figures(Visitor(api, "admin").get("/hosts/hv1?window=nonsense"))


def test_a_line_is_broken_where_nothing_is_known() -> None:
    line = graphs.path([0.0, 1.0, None, 1.0, None], 2.0)
    assert re.sub(r"[\d.]+ ([\d.]+)", r"\1", line) == "M128.0h0L69.0M69.0h0"
    assert line.startswith(f"M{graphs.LEFT}.0 ")


def test_peaks_are_drawn_where_a_step_has_more_than_one_sample() -> None:
    calm = record(0, cpu=1.0)
    busy = Record(300, 5, {**calm.mean, "cpu": 1.0}, {**calm.peak, "cpu": 4.0})
    (graph,) = graphs.drawn([calm, busy], "day", {"cores": 8})
    assert graph.title == "CPU" and graph.lines[0].peaks and graph.up[-1].label == "5 cores"
    assert graph.description == "at work: 1 core on average, 4 cores at most of 8 cores"
    (graph,) = graphs.drawn([calm], "day", {})
    assert not graph.lines[0].peaks


def test_the_axis_of_time_has_round_times() -> None:
    records = [record(at, cpu=1.0) for at in range(1_790_000_000 // 300 * 300, 1_790_086_400, 300)]
    (graph,) = graphs.drawn(records, "day", {})
    assert {tick.label for tick in graph.across} == {"00:00", "06:00", "12:00", "18:00"}
    assert all(graphs.LEFT <= tick.at <= graphs.WIDTH - graphs.RIGHT for tick in graph.across)


@pytest.mark.parametrize(
    ("value", "unit", "top", "text"),
    [
        (0, "cores", 0.1, "0 cores"),
        (0.26, "cores", 0.5, "0.26 cores"),
        (3, "cores", 5, "3 cores"),
        (10, "cores", 10, "10 cores"),
        (0.003, "share", 0.01, "0.3 %"),
        (0.31, "share", 0.5, "31 %"),
        (0, "bytes/s", 1024, "0 B/s"),
        (700, "bytes/s", 1024, "700 B/s"),
        (1536, "bytes", 2048, "1.5 KiB"),
        (5 * 2**40, "bytes", 8 * 2**40, "5 TiB"),
    ],
)
def test_axes_and_figures_are_round(value: float, unit: str, top: float, text: str) -> None:
    assert graphs.rounded_up(value, unit) == pytest.approx(top) and graphs.written(value, unit) == text
