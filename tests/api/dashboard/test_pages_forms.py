# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page's forms: each is offered to whom it is for, and does what the API's operation does."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from api.dashboard.noun_forms import FORMS
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Page, Visitor

LISTS = ("/networks", "/security-groups", "/keys", "/volumes", "/floating-ips")
ADMIN_LISTS = ("/users", "/projects", "/quotas")
NETWORK, GROUP, KEY, VOLUME = tables.network, tables.security_group, tables.keypair, tables_volumes.volume
FLOATING, USER = tables.floating_ip, tables.tables_identity.user


def send(visitor: Visitor, path: str, status: int = 303, /, **values: str) -> Page | None:
    """Fill a form in and send it; returns the page that came, unless the browser is led on."""
    answer = visitor.post(path, path, **values)
    assert answer.status_code == status, (path, answer.status, answer.get_data(as_text=True)[-900:])
    return None if status == 303 else Page(answer.get_data(as_text=True))


def ways(visitor: Visitor, *pages: str) -> set[str]:
    """Paths to which links of these pages lead."""
    return {str(link["href"]) for path in pages for link in visitor.get(path).all("a")}


def only(api: seeds.Api, column: sa.Column[t.Any], *conditions: sa.ColumnElement[bool]) -> t.Any:
    (row,) = api.rows(sa.select(column).where(*conditions))
    return row[0]


def test_a_form_is_offered_to_whom_it_is_for(api: seeds.Api, scene: scenes.Scene) -> None:
    api.run("volume", project="demo", volumes=[{"name": "data", "size": 1}])
    paths = {form.path for form in FORMS if "<number>" not in form.path}
    reader, member, admin = (Visitor(api, name) for name in ("reader", "demo", "admin"))
    assert not paths & ways(reader, *LISTS)
    assert not any(way.endswith(("/delete", "/release", "/extend")) for way in ways(reader, *LISTS))
    of_members = paths - {"/users/new", "/projects/new"}
    assert paths & ways(member, *LISTS) == of_members
    assert paths & ways(admin, *LISTS, *ADMIN_LISTS) == paths
    for path in paths:
        reader.get(path, 403)
        member.get(path, 200 if path in of_members else 403)
        admin.get(path)
    for way in ways(admin, *LISTS, *ADMIN_LISTS):
        admin.get(way)


def test_networks(api: seeds.Api) -> None:
    member, admin = Visitor(api, "demo"), Visitor(api, "admin")
    fields = {field["name"] for field in member.get("/networks/new").all("input")}
    assert {"name", "cidr"} <= fields and not {"shared", "vlan", "is_default"} & fields
    send(member, "/networks/new", name="shop", cidr="10.7.0.0/24")
    uuid, owner = api.rows(sa.select(NETWORK.c.uuid, NETWORK.c.owner).where(NETWORK.c.display_name == "shop"))[0]
    assert owner == api.projects["demo"] and "10.7.0.0/24" in member.get("/networks").words
    send(member, "/networks/new", 403, name="mine", cidr="10.8.0.0/24", shared="yes")
    page = send(member, "/networks/new", 400, name="odd", cidr="10.8.0.0/99")
    assert page is not None and "10.8.0.0/99" in str(page.elements)
    assert "odd" not in member.get("/networks").words  # nothing of it was made
    send(admin, "/networks/new", name="all", cidr="10.9.0.0/24", shared="yes", is_default="yes")
    assert "all vxlan default" in member.get("/networks").words
    assert "10.7.0.0/24" in member.get(f"/networks/{uuid}/delete").words
    send(member, f"/networks/{uuid}/delete")
    assert api.rows(sa.select(NETWORK).where(NETWORK.c.uuid == uuid)) == []


def test_administrators_make_a_playbooks_network_the_default(api: seeds.Api) -> None:
    uuid = only(api, NETWORK.c.uuid, NETWORK.c.name == "private")
    member, admin = Visitor(api, "demo"), Visitor(api, "admin")
    assert f"/networks/{uuid}/make-default" not in ways(member, f"/networks/{uuid}")
    member.get(f"/networks/{uuid}/make-default", 403)
    assert member.post(f"/networks/{uuid}/make-default").status_code == 403
    send(admin, f"/networks/{uuid}/make-default")
    assert "default" in member.get(f"/networks/{uuid}").words
    assert f"/networks/{uuid}/delete" not in ways(admin, f"/networks/{uuid}")  # the rest is the playbook's
    send(admin, f"/networks/{uuid}/delete", 403)
    send(admin, f"/networks/{uuid}/end-default")
    assert not only(api, NETWORK.c.is_default, NETWORK.c.uuid == uuid)
    client = api.client_as("admin")
    for body, status in (({"is_default": True}, 200), ({"name": "other"}, 403), ({"is_default": False}, 200)):
        assert client.put(f"/network/v2.0/networks/{uuid}", json={"network": body}).status_code == status, body
    wish = {"network": {"is_default": True}}
    assert api.client_as("demo").put(f"/network/v2.0/networks/{uuid}", json=wish).status_code == 403


def test_security_groups_and_their_rules(api: seeds.Api) -> None:
    member = Visitor(api, "demo")
    send(member, "/security-groups/new", name="web", description="what the world reaches")
    uuid = only(api, GROUP.c.uuid, GROUP.c.name == "web")
    inwards = {"direction": "ingress", "ethertype": "IPv4"}
    send(member, f"/security-groups/{uuid}/add-rule", protocol="tcp", port_min="22", cidr="10.0.0.0/8", **inwards)
    send(member, f"/security-groups/{uuid}/add-rule", protocol="icmp", port_min="8", remote_group=uuid, **inwards)
    words = member.get("/security-groups").words
    assert "in IPv4 tcp 22 from 10.0.0.0/8" in words and "in IPv4 icmp 8 from web" in words
    page = send(
        member, f"/security-groups/{uuid}/add-rule", 400, protocol="tcp", port_min="9", port_max="8", cidr="", **inwards
    )
    assert page is not None and page.all("option") and "alert" in str(page.elements)
    rules = {str(option["value"]) for option in member.get(f"/security-groups/{uuid}/remove-rule").all("option")}
    for rule in rules:
        send(member, f"/security-groups/{uuid}/remove-rule", rule=rule)
    send(member, f"/security-groups/{uuid}/remove-rule", 400, rule="nosuch")
    assert "tcp 22" not in member.get("/security-groups").words
    send(member, f"/security-groups/{uuid}/delete")
    assert api.rows(sa.select(GROUP).where(GROUP.c.uuid == uuid)) == []


def test_key_pairs_are_imported_or_generated_and_shown_once(api: seeds.Api) -> None:
    member = Visitor(api, "demo")
    send(member, "/keys/import", name="laptop", public_key=seeds.PUBLIC_KEY)
    assert only(api, KEY.c.user_id, KEY.c.name == "laptop") == api.users["demo"]
    send(member, "/keys/import", 409, name="laptop", public_key=seeds.PUBLIC_KEY)
    send(member, "/keys/import", 400, name="other", public_key="no key")
    send(member, "/keys/import", 400, name="a/b", public_key=seeds.PUBLIC_KEY)
    page = send(member, "/keys/generate", 200, name="new one")
    assert page is not None and "BEGIN RSA PRIVATE KEY" in page.text and "shown once" in page.words
    assert "PRIVATE KEY" not in member.get("/keys").text and "new one" in member.get("/keys").words
    send(member, "/keys/new one/delete")
    assert api.rows(sa.select(KEY).where(KEY.c.name == "new one")) == []
    # the project's own, which a playbook made
    assert "/keys/test/delete" not in ways(member, "/keys") and "/keys/test/delete" in ways(
        Visitor(api, "admin"), "/keys"
    )
    send(member, "/keys/test/delete", 403)


def test_volumes(api: seeds.Api) -> None:
    member = Visitor(api, "demo")
    send(member, "/volumes/new", name="data", size="2")
    number = only(api, VOLUME.c.id, VOLUME.c.display_name == "data")
    for size in ("0", "-1", "x", "", "9" * 40):
        send(member, "/volumes/new", 400, name="odd", size=size)
    send(member, f"/volumes/{number}/extend", size="3")
    assert "data available 3 GiB" in member.get("/volumes").words
    send(member, f"/volumes/{number}/extend", 400, size="1")
    assert "3 GiB, with all that is on it" in member.get(f"/volumes/{number}/delete").words
    send(member, f"/volumes/{number}/delete")
    assert "data" not in member.get("/volumes").words


def test_floating_ips(api: seeds.Api, scene: scenes.Scene) -> None:
    api.task("floating_pool", floating_pools=[{"name": "public", "cidr": "198.51.100.0/29", "interface": "eth0"}])
    member = Visitor(api, "demo")
    send(member, "/floating-ips/new", pool="public")
    number = only(api, FLOATING.c.id, FLOATING.c.project_id == api.projects["demo"])
    send(member, f"/floating-ips/{number}/associate", 400, port=scene.foreign)
    ports = [option["value"] for option in member.get(f"/floating-ips/{number}/associate").all("option")]
    send(member, f"/floating-ips/{number}/associate", port=str(ports[0]))
    assert only(api, FLOATING.c.vif_id, FLOATING.c.id == number) is not None
    assert [row.kind for row in api.rows(sa.select(job).where(job.c.kind == "floating_ips"))]
    send(member, f"/floating-ips/{number}/dissociate")
    send(member, f"/floating-ips/{number}/release")
    assert "198.51.100" not in member.get("/floating-ips").words
    Visitor(api, "alt").get(f"/floating-ips/{number}/release", 404)


def test_a_project_is_renamed_and_deleted_once_it_holds_nothing(api: seeds.Api) -> None:
    admin, member = Visitor(api, "admin"), Visitor(api, "demo")
    number, table = api.projects["demo"], tables.project.c
    for form in ("change", "delete"):
        member.get(f"/projects/{number}/{form}", 403)
        assert member.post(f"/projects/{number}/{form}", name="mine").status_code == 403
    first = {field["name"]: field["value"] for field in admin.get(f"/projects/{number}/change").all("input")}
    assert first["name"] == "demo"
    send(admin, f"/projects/{number}/change", name="shop", description="what sells")
    assert "shop enabled what sells" in admin.get("/projects").words
    send(admin, f"/projects/{number}/change", 409, name="alt")
    send(admin, f"/projects/{number}/change", 400, name="")
    for name in ("one", "two"):
        api.instance("demo", name)
    assert "It still has 2 instances, such as one." in admin.get(f"/projects/{number}/delete").words
    page = send(admin, f"/projects/{number}/delete", 409)
    answer = api.client_as("admin").delete(f"/identity/v3/projects/{number}")
    assert page is not None and answer.status_code == 409 and answer.get_json()["error"]["message"] in page.words
    send(admin, "/projects/new", name="empty")
    empty = only(api, table.id, table.name == "empty")
    words = admin.get(f"/projects/{empty}/delete").words
    assert "It still has" not in words and "security groups" in words
    send(admin, f"/projects/{empty}/delete")
    assert api.rows(sa.select(table.id).where(table.id == empty)) == []


def test_users_roles_and_quotas(api: seeds.Api) -> None:
    admin = Visitor(api, "admin")
    send(admin, "/projects/new", name="shop", description="what sells")
    shop = only(api, tables.project.c.id, tables.project.c.name == "shop")
    assert "shop enabled what sells" in admin.get("/projects").words
    send(admin, "/users/new", name="ada", password="a secret", project=shop, role="member")
    ada = only(api, USER.c.id, USER.c.name == "ada")
    assert "ada enabled" in admin.get("/users").words and "member in shop" in admin.get("/users").words
    send(admin, "/users/new", 409, name="ada", password="a secret")
    page = send(admin, "/users/new", 400, name="", password="a secret")
    assert page is not None and "a secret" not in str(page.elements)
    send(admin, f"/users/{ada}/grant", project=api.projects["demo"], role="reader")
    send(admin, f"/users/{ada}/revoke", held=f"{shop} member")
    words = admin.get("/users").words
    assert "reader in demo" in words and "member in shop" not in words
    before = only(api, USER.c.password_hash, USER.c.id == ada)
    send(admin, f"/users/{ada}/change", password="", enabled="")
    assert only(api, USER.c.password_hash, USER.c.id == ada) == before
    assert "ada disabled" in admin.get("/users").words
    send(admin, f"/users/{ada}/change", password="another", enabled="yes")
    assert only(api, USER.c.password_hash, USER.c.id == ada) != before
    limits = {str(field["name"]): str(field["value"]) for field in admin.get(f"/projects/{shop}/quotas").all("input")}
    limits.pop("csrf")
    send(admin, f"/projects/{shop}/quotas", **{**limits, "instances": "3"})
    quota = tables.quota.c
    assert api.rows(sa.select(quota.resource, quota.hard_limit).where(quota.project_id == shop)) == [("instances", 3)]
    demo = api.projects["demo"]
    api.instance("demo", "one")
    send(admin, f"/projects/{demo}/quotas", 400, **{**limits, "instances": "0"})
    assert "reader in demo" in admin.get(f"/users/{ada}/delete").words
    send(admin, f"/users/{ada}/delete")
    assert "ada" not in admin.get("/users").words


@pytest.mark.parametrize("path", ["/keys/generate", "/volumes/new", "/users/new"])
def test_a_form_is_sent_by_its_page_alone(api: seeds.Api, path: str) -> None:
    admin = Visitor(api, "admin")
    assert admin.client.post(path, data={"name": "x", "csrf": "0" * 64}).status_code == 403
    answer = admin.client.post(path, data={"name": "x"}, headers={"Origin": "https://example.org"})
    assert answer.status_code == 403
