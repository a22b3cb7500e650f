# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that a list does not know: refused where the service refuses them, so that nobody takes all for a choice."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from flask.testing import FlaskClient
from werkzeug.routing import Rule

from tests.api import conftest, foreign
from tests.api.seeds import Api

LAST = 96
# The microversion 2.x from which on Nova's schemas of these queries have no additional properties, by the route's end
REFUSES = {
    **dict.fromkeys(("/servers", "/servers/detail", "/flavors", "/flavors/detail", "/limits", "/os-services"), 75),
    **dict.fromkeys(("/os-keypairs", "/os-keypairs/<name>", "/os-server-groups"), 75),
    **dict.fromkeys(("/os-simple-tenant-usage", "/os-simple-tenant-usage/<project>"), 75),
    **dict.fromkeys((f"/os-quota-sets/<project>{end}" for end in ("", "/detail", "/defaults")), 75),
    **dict.fromkeys(("/os-hypervisors", "/os-hypervisors/detail", "/os-hypervisors/<hypervisor_id>"), 53),
    **{"/os-migrations": 59, "/servers/<server_id>/os-instance-actions": 58},
    "/servers/<server_id>/os-volume_attachments": 75,
}
UNKNOWN = ("bogus=1", "nmae=web", "Limit=1", "limit=1&bogus=")


@pytest.fixture(scope="module")
def api(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Api]:
    with conftest.application(seeded, tmp_path_factory.mktemp("filters") / "cloud") as opened:
        yield opened


@pytest.fixture(scope="module")
def objects(api: Api) -> foreign.Objects:
    return foreign.make(api)


def routes(api: Api, base: str) -> list[Rule]:
    rules = [rule for rule in api.app.url_map.iter_rules() if "GET" in (rule.methods or ())]
    return [
        rule for rule in rules if rule.rule.startswith(f"{base}/") and rule.endpoint.split(".")[0] != "compute_legacy"
    ]


def path_of(api: Api, objects: foreign.Objects, rule: Rule) -> str:
    return next(foreign.paths(rule, objects, api.projects["alt"]))[0][0]


def status(client: FlaskClient, path: str, query: str, version: str) -> int:
    return client.get(f"{path}?{query}", headers={"OpenStack-API-Version": version}).status_code


def test_compute_refuses_them_from_novas_microversion_on(api: Api, objects: foreign.Objects) -> None:
    """Every route that is read, on both sides of its limit; those that Nova lets pass answer as without."""
    client, left = api.client_as("admin"), dict(REFUSES)
    for rule in routes(api, "/compute/v2.1"):
        path, first = path_of(api, objects, rule), left.pop(rule.rule.removeprefix("/compute/v2.1"), LAST + 1)
        for minor in sorted({first - 1, first, LAST} - {LAST + 1}):
            version = f"compute 2.{minor}"
            without = status(client, path, "", version)
            asked = [status(client, path, query, version) for query in UNKNOWN]
            if minor >= first:
                assert asked == [400] * len(UNKNOWN), (rule.rule, minor)
                assert without in (200, 404), (rule.rule, minor)
            else:
                assert asked[:3] == [without] * 3, (rule.rule, minor)
    assert left == {}, "these routes are gone"


# What clients of Nova's ask for, of which each is a property of its schema
KNOWN = {
    "/servers/detail": "name=a&status=ACTIVE&all_tenants=True&deleted=False&sort_key=created_at&sort_dir=desc&ip=10"
    "&tags=x&changes-since=2026-01-01T00:00:00Z&changes-before=2027-01-01T00:00:00Z&locked=true&key_name=a&description=x"
    "&availability_zone=nova&user_id=x&project_id=y&limit=2&not-tags-any=z&host=hv1&flavor=1&image=x&power_state=1",
    "/flavors/detail": "is_public=None&minRam=1&minDisk=0&sort_key=name&sort_dir=asc&limit=3",
    "/os-keypairs": "limit=1",
    "/limits": "reserved=1",
    "/os-services": "host=hv1&binary=nova-compute",
    "/os-hypervisors/detail": "with_servers=True&limit=1",
    "/os-migrations": "host=hv1&status=done&user_id=x&project_id=y&changes-before=2027-01-01T00:00:00Z&limit=1",
    "/os-simple-tenant-usage": "start=2026-01-01T00:00:00&end=2026-02-01T00:00:00&detailed=1&limit=2",
}


@pytest.mark.parametrize("path", KNOWN)
def test_compute_takes_what_nova_knows(api: Api, path: str) -> None:
    client = api.client_as("admin")
    assert status(client, f"/compute/v2.1{path}", KNOWN[path], "compute latest") == 200


CINDER = {"volumes": 31, "snapshots": 31, "attachments": 31, "backups": 31, "types": 52}
POOLS = "scheduler-stats"


@pytest.mark.parametrize("who", ["alt", "admin"])
def test_block_storage_refuses_them_for_members(api: Api, objects: foreign.Objects, who: str) -> None:
    """Every list, on both sides of its limit; an administrator may ask for anything, as in Cinder."""
    project = api.projects["alt" if who == "alt" else "demo"]
    client, left = api.client_as(who), set(CINDER)
    for rule in routes(api, "/volume/v3/<project>"):
        path = next(foreign.paths(rule, objects, project))[0][0].replace(api.projects["alt"], project)
        name, _slash, rest = rule.rule.removeprefix("/volume/v3/<project>/").partition("/")
        first = CINDER.get(name, 72) if rest in ("", "detail") and who == "alt" else 72
        first = 31 if name == POOLS and who == "admin" else first
        left -= {name}
        for minor in sorted({first - 1, first, 71} - {72}):
            without = status(client, path, "", f"volume 3.{minor}")
            for query in UNKNOWN[:3]:
                answered = status(client, path, query, f"volume 3.{minor}")
                assert answered == (400 if minor >= first else without), (path, query, minor)
    assert left == set()


@pytest.mark.parametrize("kind", ["volumes", "snapshots", "attachments"])
def test_block_storage_takes_what_it_says_it_takes(api: Api, kind: str) -> None:
    client, base = api.client_as("alt"), f"/volume/v3/{api.projects['alt']}"
    shown = client.get(
        f"{base}/resource_filters?resource={kind[:-1]}", headers={"OpenStack-API-Version": "volume 3.71"}
    )
    (filters,) = (row["filters"] for row in shown.get_json()["resource_filters"])
    for name in filters:
        value = "{}" if name == "metadata" else "x"
        for query in (f"{name}={value}", f"{name}={value}&limit=1&sort=id:asc&all_tenants=1"):
            assert status(client, f"{base}/{kind}", query, "volume latest") == 200, query
    assert client.get(f"{base}/volumes?group_id=x").get_json()["volumes"] == []


# Lists of Neutron's that are no resources with attributes of their own to filter by
NOT_FILTERED = ("/network/v2.0/", "/network/v2.0/extensions", "/network/v2.0/quotas")


def lists(api: Api, base: str) -> list[str]:
    """The paths of a service's GET routes that need no id."""
    return sorted({rule.rule for rule in routes(api, base) if not rule.arguments})


def test_network_refuses_them_on_every_list(api: Api) -> None:
    """As Neutron does that announces filter-validation."""
    client, paths = api.client_as("admin"), lists(api, "/network/v2.0")
    asked = {
        path: status(client, path, "bogus=1", "")
        for path in paths
        if not path.removesuffix(".json").endswith(NOT_FILTERED)
    }
    assert len(asked) >= 12 and set(asked.values()) == {400}, asked


@pytest.mark.parametrize("base", ["/image/v2", "/identity/v3", "/identity"])
def test_image_and_identity_let_them_pass(api: Api, base: str) -> None:
    """To Glance each name may be an image's property, which none has; Keystone looks at those that it knows."""
    client = api.client_as("admin")
    for path in lists(api, base):
        assert status(client, path, "bogus=1", "") == status(client, path, "", ""), path
    assert client.get("/image/v2/images?bogus=1").get_json()["images"] == []
