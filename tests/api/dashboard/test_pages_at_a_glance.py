# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page's overview and lists: what needs attention, search, order, and many hosts at a glance."""

from __future__ import annotations

import re
import time

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.dashboard import rendering
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Page, Visitor
from tests.support.rows import QEMU

NOW = int(time.time())


def names_in(page: Page) -> list[str]:
    """The names of the list's instances, in its order."""
    return re.findall(r"\b(?:web|db|app)-\d+\b", page.text)


def many(api: seeds.Api) -> None:
    """Three servers, on hv1, hv2 and hv10; the last one failed."""
    api.host("hv10", last_seen_at=NOW, facts=QEMU)
    with api.engine.connect() as connection:
        number = connection.execute(sa.select(tables.network.c.id)).scalar_one()
    api.vif(api.instance("demo", "web-1", host="hv10", created_at=NOW - 30), number, "10.20.0.5")
    api.vif(api.instance("demo", "db-2", host="hv2", created_at=NOW - 20), number, "10.20.0.77")
    fault = {"code": 500, "message": f"hv1: no room {scenes.SCRIPT}\nsecond line", "created": NOW}
    api.instance("demo", "app-3", host="hv1", created_at=NOW - 10, vm_state="error", fault=fault)


def test_the_overview_begins_with_what_needs_attention(api: seeds.Api, scene: scenes.Scene) -> None:
    api.change_host("hv1", facts={**QEMU, "security_driver": "none"})
    heard_at = int(time.time()) - 2000  # a run of all tests is minutes old here
    silent = api.instance("demo", "quiet", vm_state="building", task_state="networking", updated_at=heard_at)
    page = Visitor(api, "admin").get("/")
    headings = re.findall("Needs attention|Latest jobs", page.text)
    assert headings == ["Needs attention", "Latest jobs"]
    words = page.words
    assert "no sign of life for 33 min: its run died" in words
    assert "No valid host was found" in words and f"no answer over ssh {scenes.SCRIPT}" in words
    assert "hv1unconfinedguests are confined neither by AppArmor nor by SELinux" in words
    leads = {link.get("href") for link in page.all("a")}
    assert {f"/instances/{silent}", f"/instances/{scene.failed}", "/hosts/hv2"} <= leads
    assert "/instances?status=error&all_projects=true" in leads
    assert not [each for each in page.all("p") if each.get("class") == "alert"]  # no box that stands there for ever


def test_tenants_are_told_of_their_own_troubles_alone(api: seeds.Api, scene: scenes.Scene) -> None:
    failed = api.instance("alt", "theirs", vm_state="error", fault={"code": 500, "message": "hv1: no", "created": NOW})
    member, other = Visitor(api, "demo").get("/"), Visitor(api, "alt").get("/")
    assert "theirs" not in member.text and not re.search(r"\bhv[12]\b", member.text)
    assert f"/instances/{failed}" in {link.get("href") for link in other.all("a")}
    assert not re.search(r"\bhv1\b", other.text)
    assert "Needs attention" not in Visitor(api, "reader").get("/quotas").text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["app-3", "db-2", "web-1"]),
        ("q=WEB", ["web-1"]),
        ("q=10.20.0.77", ["db-2"]),
        ("q=10.20.", ["db-2", "web-1"]),
        ("q=10.20.0.7", []),  # an address, not the beginning of one
        ("q=hv10", ["web-1"]),
        ("q=%25", []),  # a character like others
        ("status=error", ["app-3"]),
        ("host=hv2", ["db-2"]),
        ("q=-&status=active", ["db-2", "web-1"]),
        ("sort=name&order=up", ["app-3", "db-2", "web-1"]),
        ("sort=name", ["web-1", "db-2", "app-3"]),
        ("sort=host&order=up", ["app-3", "db-2", "web-1"]),
        ("sort=created&order=up", ["web-1", "db-2", "app-3"]),
        ("sort=nonsense&order=up", ["app-3", "db-2", "web-1"]),
        ("all_projects=true&project=alt", []),
        ("all_projects=true&project=demo&sort=project", ["app-3", "db-2", "web-1"]),
    ],
)
def test_a_list_is_searched_narrowed_and_sorted(api: seeds.Api, query: str, names: list[str]) -> None:
    many(api)
    page = Visitor(api, "admin").get(f"/instances?{query}")
    assert names_in(page) == names
    assert f"{len(names)} instance" in page.words


def test_a_list_tells_tenants_nothing_of_hosts(api: seeds.Api) -> None:
    many(api)
    member = Visitor(api, "demo")
    for query in ("q=hv10", "q=hv"):
        assert names_in(member.get(f"/instances?{query}")) == []
    for query in ("host=hv2", "sort=host&order=up"):
        assert names_in(member.get(f"/instances?{query}")) == ["app-3", "db-2", "web-1"]
    assert not re.search(r"\bhv\d", member.get("/instances").text)


def test_a_list_says_why_a_server_failed(api: seeds.Api) -> None:
    many(api)
    answer = Visitor(api, "admin").client.get("/instances?status=error").get_data(as_text=True)
    page = Page(answer)
    assert f"hv1: no room {scenes.SCRIPT}" in page.text and "second line" not in page.text
    assert scenes.SCRIPT not in answer


def test_a_search_is_shown_as_text(api: seeds.Api) -> None:
    answer = Visitor(api, "admin").client.get("/instances", query_string={"q": f'">{scenes.SCRIPT}'})
    text = answer.get_data(as_text=True)
    assert scenes.SCRIPT not in text
    assert next(field for field in Page(text).all("input") if field.get("id") == "q")["value"] == f'">{scenes.SCRIPT}'


def test_many_hosts_are_a_table_in_natural_order_or_by_fill(api: seeds.Api) -> None:
    for number in range(3, 41):
        api.host(f"hv{number}", last_seen_at=NOW, vcpus_used=3 if number == 17 else 0, facts=QEMU)
    admin = Visitor(api, "admin")
    for path in ("/hosts", "/"):
        page = admin.get(path)
        names = re.findall(r"\bhv\d+\b", page.text)
        assert names == [f"hv{number}" for number in range(1, 41)], path
        assert "li" not in {tag for tag, _attributes in page.elements}
    assert re.search(r"\bhv\d+\b", admin.get("/hosts?sort=fill").text.partition("Zone")[2])[0] == "hv17"  # type: ignore[index]  # it is there


def test_a_hosts_facts_are_in_words(api: seeds.Api) -> None:
    versions = {"hypervisor_version": 7002022, "libvirt_version": 9000000}
    api.change_host("hv1", facts={**QEMU, **versions, "booted_at": 1795735318, "libvirt_binding": True})
    words = Visitor(api, "admin").get("/hosts/hv1").words
    assert "Booted at2026-11-26 23:21:58 UTC" in words
    assert "Hypervisor version7.2.22" in words and "Libvirt version9.0.0" in words and "Libvirt bindingyes" in words


def test_a_quota_that_is_exceeded_looks_so(api: seeds.Api, scene: scenes.Scene) -> None:
    api.insert(tables.quota, project_id=api.projects["demo"], resource="instances", hard_limit=2)
    page = Visitor(api, "demo").get("/quotas")
    assert "4 of 2, over the limit" in page.words
    assert [meter["aria-label"] for meter in page.all("svg") if meter["class"] == "meter over"] == ["Instances"]
    assert "Volumes 0 of 10" in page.words and "Volumes, GiB 0 of 1000" in page.words


def test_a_jobs_page_has_no_heading_with_nothing_below(api: seeds.Api, scene: scenes.Scene) -> None:
    for play in ("Empty", "Filled"):
        scenes.add_event(api, scene.launched, event="play", play=play, task=None)
    scenes.add_event(api, scene.launched, event="result", play="Filled", task="Start", status="ok")
    scenes.add_event(api, scene.launched, event="play", play="Empty again", task=None)
    words = Visitor(api, "admin").get(f"/jobs/{scene.launched}").words
    assert "Filled" in words and "Empty" not in words


def test_how_it_was_launched_is_offered_of_what_was(api: seeds.Api, scene: scenes.Scene) -> None:
    admin = Visitor(api, "admin")
    assert "How it was launched" in admin.get(f"/instances/{scene.web}").words
    assert "How it was launched" not in admin.get(f"/instances/{scene.failed}").words


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (7002022, "qemu_version", "7.2.22"),
        (0, "libvirt_version", "unknown"),
        (False, "binding", "no"),
        (12, "cores", "12"),
    ],
)
def test_facts_in_words(value: int, name: str, text: str) -> None:
    assert rendering.fact(value, name) == text


@pytest.mark.parametrize(
    ("user", "path", "words"),
    [
        ("reader", "/images", "tiny"),
        ("reader", "/keys", "test"),
        ("demo", "/volumes", "data"),
        ("demo", "/security-groups", "in IPv4 tcp 22 from 10.0.0.0/8"),
        ("admin", "/users", "admin in demo"),
    ],
)
def test_lists_say_what_there_is(api: seeds.Api, user: str, path: str, words: str) -> None:
    rules = [{"protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "10.0.0.0/8"}]
    api.run("security_group", project="demo", security_groups=[{"name": "web", "rules": rules}])
    api.run("volume", project="demo", volumes=[{"name": "data", "size": 1}])
    assert words in Visitor(api, user).get(path).words
    assert "data" not in Visitor(api, "alt").get("/volumes").text
