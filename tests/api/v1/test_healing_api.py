# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Healing in /v1 and on the pages: how hosts are watched, armed or not, and who saw a host dead."""

from __future__ import annotations

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import host_watch, watch
from api.notices import matters
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Visitor


def watched(api: seeds.Api, **columns: object) -> None:
    """Have hv1 watched by a controller that is at it."""
    api.write(sa.insert(host_watch).values(host="hv1", heard=5, note="hv1 is silent", **columns))
    api.write(sa.insert(watch).values(id=1, controller="ctl", term=1, expires=4 * 10**9))


def test_healing_is_disarmed_for_all_or_one_and_said_everywhere(api: seeds.Api) -> None:
    scenes.build(api)
    watched(api)
    client = api.client_as("admin")
    shown = client.get("/v1/ha").get_json()["ha"]
    assert (shown["armed"], shown["watching"], shown["controller"]) == (True, True, "ctl")
    hosts = {host["host"]: host for host in shown["hosts"]}
    assert (hosts["hv1"]["state"], hosts["hv2"]["state"]) == ("up", None)
    assert "disarmed" not in Visitor(api, "admin").get("/hosts").words
    shown = client.post("/v1/ha", json={"armed": False, "host": "hv1"}).get_json()["ha"]
    assert (shown["armed"], next(host for host in shown["hosts"] if host["host"] == "hv1")["armed"]) == (True, False)
    for path in ("/", "/hosts", "/hosts/hv1"):
        assert "disarmed" in Visitor(api, "admin").get(path).words, path
    client.post("/v1/ha", json={"armed": True, "host": "hv1"})
    assert not client.post("/v1/ha", json={"armed": False}).get_json()["ha"]["armed"]
    assert "Healing is disarmed" in Visitor(api, "admin").get("/hosts").words
    assert client.post("/v1/ha", json={"armed": False, "host": "hv9"}).status_code == 404
    for client in (api.client_as("demo"), api.client_as("reader")):
        assert client.get("/v1/ha").status_code == client.post("/v1/ha", json={"armed": True}).status_code == 403


def test_a_person_confirms_the_death_of_a_silent_host_only(api: seeds.Api) -> None:
    scenes.build(api)
    client = api.client_as("admin")
    assert client.post("/v1/hosts/hv1/confirm-dead").status_code == 404  # it was never watched
    watched(api)
    assert client.post("/v1/hosts/hv1/confirm-dead").status_code == 409  # it answered
    api.write(sa.update(host_watch).values(state="suspect", silent_since=1.0))
    shown = client.post("/v1/hosts/hv1/confirm-dead").get_json()["ha"]
    assert next(host for host in shown["hosts"] if host["host"] == "hv1")["confirmed_by"] == "admin"
    page = Visitor(api, "admin").get("/hosts/hv1")
    assert "confirmed dead" in page.words and "admin confirmed the death of hv1" in page.words
    assert api.client_as("demo").post("/v1/hosts/hv1/confirm-dead").status_code == 403


def test_what_is_not_healed_needs_attention(api: seeds.Api) -> None:
    scene = scenes.build(api)
    watched(api, state="suspect")
    c = tables.instance.c
    api.write(sa.update(tables.instance).where(c.uuid == scene.web).values(ha=True, ha_reason="no host has room"))
    shown = api.client_as("admin").get("/v1/ha").get_json()["ha"]
    assert [(server["uuid"], server["ha_reason"]) for server in shown["servers"]] == [(scene.web, "no host has room")]
    shown_matters = [(matter.kind, matter.state, matter.problem) for matter in matters.of_healing(shown)]
    assert shown_matters == [("host", "suspect", "hv1 is silent"), ("server", "not healed", "no host has room")]
    stopped = {**shown, "watching": False, "armed": False}
    assert [matter.state for matter in matters.of_healing(stopped)][:2] == ["disarmed", "stopped"]
    assert matters.of_healing({**stopped, "controller": None}) == []  # nobody ever asked for it
    assert "no host has room" in Visitor(api, "admin").get("/").words


def test_a_balance_that_is_suggested_is_a_matter_of_its_own_until_it_is_another(api: seeds.Api) -> None:
    scenes.build(api)
    watched(api)

    def suggests(plan: str | None, text: str = "") -> list[str]:
        suggestion = plan and {"plan": plan, "at": 1.0, "moves": 2, "text": text}
        api.write(sa.update(watch).values(balance=suggestion))
        shown = api.client_as("admin").get("/v1/ha").get_json()["ha"]
        assert shown["balance"] == suggestion
        return [matter.key for matter in matters.of_healing(shown) if matter.kind == matters.BALANCE]

    assert suggests(None) == []
    (first,), (again,), (other,) = suggests("a", "two moves"), suggests("a", "some moves"), suggests("b", "one move")
    assert first == again != other  # who was told of one is told of the other
    assert "one move" in Visitor(api, "admin").get("/").words


def test_what_becomes_of_a_server_is_read_and_changed(api: seeds.Api) -> None:
    web = scenes.build(api).web
    path, member = f"/v1/instances/{web}/ha", api.client_as("demo")
    assert member.get(path).get_json() == {"ha": {"ha": False, "ha_priority": 0, "ha_rebuild": False}}
    wishes = {"ha": True, "ha_rebuild": True, "ha_priority": 9}
    assert member.patch(path, json=wishes).get_json() == {"ha": wishes}
    assert member.patch(path, json={"ha_priority": 4}).get_json()["ha"] == {**wishes, "ha_priority": 4}
    refused = member.patch(path, json={"ha_rebuild": False})
    assert (refused.status_code, "needs a disk on shared storage" in refused.get_data(as_text=True)) == (400, True)
    for body in ({}, {"ha_priority": 101}, {"ha": "yes"}, {"armed": True}):
        assert member.patch(path, json=body).status_code == 400, body
    api.write(sa.update(tables.instance).values(locked=True))
    assert member.patch(path, json={"ha": False}).status_code == 409
    assert api.client_as("admin").patch(path, json={"ha": False}).get_json()["ha"]["ha"] is False
    assert api.client_as("reader").patch(path, json={"ha": True}).status_code == 403
    assert (
        api.client_as("alt").get(path).status_code == api.client_as("alt").patch(path, json=wishes).status_code == 404
    )


def test_pages_tell_what_becomes_of_a_server_whose_host_dies(api: seeds.Api) -> None:
    web = scenes.build(api).web
    pages = (f"/instances/{web}", "/instances", "/hosts/hv1")
    assert "it stays dead" in Visitor(api, "demo").get(pages[0]).words
    assert "ha 9" not in Visitor(api, "admin").get(pages[2]).words
    api.client_as("demo").patch(f"/v1/instances/{web}/ha", json={"ha": True, "ha_rebuild": True, "ha_priority": 9})
    words = Visitor(api, "demo").get(pages[0]).words
    assert "it runs again on another: priority 9, with a new disk of its image" in words
    for user, page in (("demo", pages[1]), ("admin", pages[2])):
        assert "ha 9, rebuilt" in Visitor(api, user).get(page).words, page
