# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page's form for a launch: the plan first, then the launch as the Compute API takes it."""

from __future__ import annotations

import base64
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Page, Visitor

FORM, NOW = "/instances/launch", "/instances/launch/now"


def values(api: seeds.Api, **changed: t.Any) -> dict[str, t.Any]:
    """The fields of a form that somebody filled in."""
    with api.engine.connect() as connection:
        network = connection.execute(sa.select(tables.network.c.uuid)).scalar_one()
        name = tables.flavor.c.name == "m1.tiny"
        flavor = connection.execute(sa.select(tables.flavor.c.flavorid, tables.flavor.c.id).where(name)).one()
    chosen = {"image": seeds.IMAGE_ID, "flavor": str(flavor.flavorid or flavor.id), "network": network}
    return {"name": "shop", "count": "1", "key": "test", "groups": ["default"], "user_data": "", **chosen, **changed}


def servers(api: seeds.Api) -> list[t.Any]:
    return api.rows(sa.select(tables.instance).order_by(tables.instance.c.id))


def test_a_plan_is_shown_and_nothing_is_done(api: seeds.Api) -> None:
    form = Visitor(api, "demo").get(FORM)
    assert "private (10.20.0.0/24)" in form.words and "m1.tiny: 1 vCPU, 512 MiB, 1 GiB" in form.words
    answer = Visitor(api, "admin").post(FORM, **values(api))
    page = Page(answer.get_data(as_text=True))
    assert answer.status_code == 200
    assert "Launch shop?" in page.words and "10.20.0." in page.words and "Instances 1 of 10" in page.words
    assert "was chosen" in page.words and ("hv1" in page.words or "hv2" in page.words)
    assert page.actions == {NOW, FORM, "/logout"}
    assert servers(api) == [] and api.rows(sa.select(job)) == []


def test_what_the_plan_shows_is_launched(api: seeds.Api) -> None:
    member = Visitor(api, "demo")
    script = "#!/bin/sh\r\necho <b>\r\n"
    plan = Page(member.post(FORM, **values(api, user_data=script)).get_data(as_text=True))
    kept = {str(field["name"]): field["value"] or "" for field in plan.all("input") if field["name"] != "change"}
    answer = member.client.post(NOW, data=kept)
    (server,) = servers(api)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/instances/{server.uuid}")
    assert (server.name, server.key_name, server.vm_state) == ("shop", "test", "building")
    assert base64.b64decode(server.user_data) == b"#!/bin/sh\necho <b>"
    assert [row.kind for row in api.rows(sa.select(job))] == ["launch"]
    assert "shop" in member.get(f"/instances/{server.uuid}").words


def test_several_lead_to_their_list(api: seeds.Api) -> None:
    member = Visitor(api, "demo")
    plan = Page(member.post(FORM, **values(api, count="3")).get_data(as_text=True))
    assert all(f"shop-{number}" in plan.words for number in (1, 2, 3))
    answer = member.post(NOW, **values(api, count="3"))
    assert answer.headers["Location"] == "/instances?q=shop"
    assert len(servers(api)) == 3


def test_a_tenants_plan_names_no_host(api: seeds.Api) -> None:
    page = Page(Visitor(api, "demo").post(FORM, **values(api)).get_data(as_text=True))
    assert "hv1" not in page.text and "hv2" not in page.text and "10.20.0." in page.text


def test_a_plan_says_that_there_is_no_room(api: seeds.Api) -> None:
    with api.engine.connect() as connection:
        huge = tables.flavor.c.name == "m1.huge"
        flavor = connection.execute(sa.select(tables.flavor.c.flavorid, tables.flavor.c.id).where(huge)).one()
    page = Page(
        Visitor(api, "demo").post(FORM, **values(api, flavor=str(flavor.flavorid or flavor.id))).get_data(as_text=True)
    )
    assert "it would end in ERROR" in page.words and servers(api) == []


@pytest.mark.parametrize("where", [FORM, NOW])
@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"name": ""}, 400, "name"),
        ({"image": "00000000-0000-0000-0000-000000000000"}, 400, "image"),
        ({"count": "many"}, 400, "count"),
        ({"count": "11"}, 403, "uota"),
        ({"groups": [scenes.SCRIPT]}, 400, scenes.SCRIPT[:20]),
        ({"key": "nobody's"}, 400, "key"),
    ],
)
def test_what_cannot_be_is_said_over_the_form(
    api: seeds.Api, where: str, changed: dict[str, t.Any], status: int, says: str
) -> None:
    answer = Visitor(api, "demo").post(where, **values(api, **changed))
    text = answer.get_data(as_text=True)
    page = Page(text)
    assert answer.status_code == status and says in page.text
    assert scenes.SCRIPT not in text
    assert FORM in page.actions and servers(api) == []


def test_readers_launch_nothing(api: seeds.Api) -> None:
    reader = Visitor(api, "reader")
    assert FORM not in {link.get("href") for link in reader.get("/instances").all("a")}
    reader.get(FORM, 403)
    for where in (FORM, NOW):
        assert reader.post(where, **values(api)).status_code == 403
    assert FORM in {link.get("href") for link in Visitor(api, "demo").get("/instances").all("a")}
