# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every list of every OpenStack service, page by page to its end: as clients go on that would else ask for ever.

The lists are found by asking all routes. One that takes no `limit` and `marker` stands in WITHOUT_PAGES or BY_OFFSET.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import re
import time
import typing as t
import uuid

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_migrations, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from tests.api import conftest, foreign
from tests.api.seeds import PUBLIC_KEY, Api
from tests.support.rows import a_flavor

SERVICES = ("identity", "compute", "image", "network", "volume")
ENOUGH = 3  # objects of a list, for pages in the middle
NOBODYS = str(uuid.uuid4())
NO_MARKER = {"compute": 400, "image": 400, "network": 400, "volume": 404}  # what a service says to an unknown one

# Lists of which the service gives all in one answer, and what is no list although it looks like one, by path and
# microversion of Compute; with the reason.
WITHOUT_PAGES: dict[str, str] = {
    r"/identity/v3/.*": "Keystone's lists have no pages",
    r"/\w+/(v2/|v3/|versions)?|/network/v2\.0/": "the versions of a service, and what is below one",
    r"/(compute/v2\.1|network/v2\.0|volume/v3(/{project})?)/extensions": "all extensions of a service",
    r".*/os-availability-zone(/detail)?": "all zones",
    r"/compute/v2\.1/(os-(aggregates|floating-ip-pools|floating-ips|hosts|services)|{kind})": "as in Nova",
    r"/compute/v2\.1/os-hypervisors/{pattern}/(search|servers)": "as in Nova",
    r"/compute/v2\.1/os-(hypervisors(/detail)?|keypairs|migrations|simple-tenant-usage) 2\.1": "Nova's first version",
    r"/compute/v2\.1/servers/{server_id}/os-instance-actions 2\.1": "Nova's first version",
    r"/compute/v2\.1/servers/{server_id}/(ips/{network}|migrations|os-interface|os-security-groups|tags)": "as in Nova",
    r"/compute/v2\.1/(os-hosts/{name}|servers/{server_id}/diagnostics)": "all of a host or server",
    r"/image/v2/(images/{image_id}|schemas/{name})": "all of an image or schema",
    r"/image/v2/(images/{image_id}/(members|tasks)|info/stores)": "as in Glance",
    r"/image/v2/(tasks|metadefs/(namespaces|resource_types))": "there are none",
    r"/network/v2\.0/({plural}/{resource_id}/tags|quotas)": "as in Neutron",
    r"/volume/v3/{project}/((consistency)?groups|(cg|group_)snapshots)(/detail)?": "there are none",
    r"/volume/v3/{project}/(clusters|manageable_\w+)(/detail)?": "there are none",
    r"/volume/v3/{project}/(default-types|group_types|messages|qos-specs)": "there are none",
    r"/volume/v3(/{project})?/(os-services|os-hosts(/{name})?|resource_filters|capabilities/{name})": "as in Cinder",
    r"/volume/v3/{project}/(scheduler-stats/get_pools|types/{type_id}/os-volume-type-access)": "as in Cinder",
}
# Lists with `limit` and `offset` alone.
BY_OFFSET = (
    r"/compute/v2\.1/os-(server-groups|security-groups|volumes|snapshots)(/detail)?",
    r"/compute/v2\.1/servers/{server_id}/os-volume_attachments",
)
FEW = {"availability_zones": 2}  # objects, of a list without ids
LINKS = {"volume_types": "volume_type_links", "instanceActions": "links"}  # else as the list
MARKERS = {
    **{"migrations": "uuid", "instanceActions": "request_id", "network_ip_availabilities": "network_id"},
    **{"tenant_usage": "instance_id", "tenant_usages": "instance_id"},
    "network_ip_availabilities": "network_id",
}
# Routes that answer nobody here, although they do not name an object at their end.
SILENT = (
    r"/compute/v2\.1/(os-agents|os-cells|os-certificates|os-cloudpipe|os-fping)",  # 410
    r"/compute/v2\.1/flavors/{flavor_id}/os-flavor-access",  # of private flavors
    r"/compute/v2\.1/os-hypervisors/{hypervisor_id}/uptime",
    r"/identity/v3/auth/tokens",  # asks for another token
    r"/identity/v3/(groups/{group_id}/users|roles/{role_id}/implies)",  # there is no group, and no role of one's own
    r"/identity/v3/(OS-INHERIT/)?{targets}/{target_id}/{actors}/{actor_id}/roles(/.*)?",  # of none of these
    r"/image/v2/images/{image_id}/file",
    r"/volume/v3/{project}/types/{type_id}/(encryption|os-volume-type-access)",  # of private types
)


def plenty(api: Api) -> foreign.Objects:
    """Several objects of each kind that a list shows. Returns the first of each, which are all of `alt`."""
    objects = foreign.make(api)
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["admin"], api.projects["alt"], "admin")
    alt, admin = api.client_as("alt"), api.client_as("admin", "alt")

    def make(path: str, who: FlaskClient = alt, **body: t.Any) -> t.Any:
        answer = who.post(path, json=body)
        assert answer.status_code < 300, (path, answer.get_json())
        return answer.get_json()

    network, now = "/network/v2.0", int(time.time())
    project, server = {"project_id": api.projects["alt"]}, objects.id("server")
    api.host("hv3", last_seen_at=now)
    for number in range(ENOUGH):
        name = f"more-{number}"
        net = make(f"{network}/networks", network={"name": name})["network"]["id"]
        subnet = {"network_id": net, "ip_version": 4, "cidr": f"10.40.{number}.0/24"}
        make(f"{network}/subnets", subnet=subnet)
        make(f"{network}/ports", port={"network_id": net})
        make(f"{network}/routers", router={"name": name})
        make(f"{network}/subnetpools", subnetpool={"name": name, "prefixes": ["10.41.0.0/16"]})
        make(f"{network}/address-scopes", address_scope={"name": name, "ip_version": 4})
        address = {"pool": "public", "address": 0xC6336410 + number, "released_at": 0}
        api.insert(tables.floating_ip, id=str(uuid.uuid4()), **address, **project)
        make(f"{network}/security-groups", security_group={"name": name})
        for who in (alt, admin):  # each has its own
            make("/compute/v2.1/os-keypairs", who, keypair={"name": name, "public_key": PUBLIC_KEY})
        make("/compute/v2.1/os-server-groups", server_group={"name": name, "policies": ["affinity"]})
        make("/compute/v2.1/os-aggregates", admin, aggregate={"name": name})
        make("/image/v2/images", name=name, disk_format="raw", container_format="bare")
        make(f"/volume/v3/{api.projects['alt']}/types", admin, volume_type={"name": name})
        made = {"created_at": now, "updated_at": now}
        another = api.instance("alt", name, host="hv1", user_id=api.users["alt"], launched_at=now)
        request = f"req-{uuid.uuid4()}"
        done = {"request_id": request, "started_at": now, "details": {}, **project}
        api.insert(tables.instance_action, instance_uuid=server, action="reboot", **done)
        flavors = {"old_flavor": a_flavor(), "new_flavor": a_flavor(), "old_vm_state": "active"}
        ids = {"uuid": str(uuid.uuid4()), "instance_uuid": another}
        api.insert(tables_migrations.migration, type="resize", status="confirmed", **ids, **flavors, **made, **project)
        for status in ("in-use", "awaiting-transfer"):
            volume = make(f"/volume/v3/{api.projects['alt']}/volumes", volume={"size": 1})["volume"]["id"]
            values = {"made_at": now, "status": status}
            api.write(tables_volumes.volume.update().where(tables_volumes.volume.c.id == volume).values(**values))
            if status == "in-use":
                taken = {"volume_id": volume, "size_gb": 1, "status": "available", "metadata": {}, "name": name}
                api.insert(tables_volumes.volume_snapshot, id=str(uuid.uuid4()), **taken, **made, **project)
                saved = {**taken, "incremental": False}
                api.insert(tables_volumes.volume_backup, id=str(uuid.uuid4()), **saved, **made, **project)
                there = {"instance_uuid": server, "device": f"vd{'cdefgh'[number]}", "created_at": now}
                api.insert(tables_volumes.volume_attachment, id=str(uuid.uuid4()), volume_id=volume, **there)
            else:
                offer = {"key_hash": "0" * 64, "created_at": now, "volume_id": volume}
                api.insert(tables_volumes.volume_transfer, id=str(uuid.uuid4()), **offer, **project)
    return objects


@dataclasses.dataclass(frozen=True)
class Page:
    """What a list answered: its objects by their markers, and the addresses of other pages by their kind."""

    objects: list[str]
    links: t.Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class ListRoute:
    """A path that answers with a list: with `kind` in the body."""

    name: str  # the path with its variables, and the microversion of Compute unless it is the latest
    path: str
    kind: str
    client: FlaskClient
    headers: t.Mapping[str, str]

    @property
    def service(self) -> str:
        return self.path.split("/")[1]

    def ask(self, **query: str | int) -> TestResponse:
        # a page of usage is one of servers, which are shown on request
        asked = {**query, "detailed": 1} if self.kind == "tenant_usages" else query
        return self.client.get(self.path, query_string=asked, headers=self.headers)

    def page(self, **query: str | int) -> Page:
        return self.read(self.ask(**query))

    def follow(self, link: str) -> Page:
        address = f"/image{link}" if self.service == "image" else link.removeprefix("http://localhost")
        return self.read(self.client.get(address, headers=self.headers))

    def read(self, answer: TestResponse) -> Page:
        body = answer.get_json() or {}
        assert answer.status_code == 200, (answer.request.url, body)
        rows = body[self.kind]
        if self.kind.startswith("tenant_usage"):
            usages = rows if isinstance(rows, list) else [rows]
            rows = [server for usage in usages for server in usage.get("server_usages", ())]
        links = {link["rel"]: link["href"] for link in body.get(LINKS.get(self.kind, f"{self.kind}_links"), ())}
        if self.service == "image" and "next" in body:
            links["next"] = body["next"]
        return Page([self.marker(row) for row in rows], links)

    def marker(self, row: t.Any) -> str:
        """What names an object in the query for the page after it."""
        if self.kind == "keypairs":
            return str(row["keypair"]["name"])
        return str(row.get(MARKERS.get(self.kind, "id")) or json.dumps(row))

    def is_one_of(self, patterns: t.Iterable[str]) -> bool:
        bare = self.name.removesuffix(" 2.1")
        return any(re.fullmatch(pattern, name) for pattern in patterns for name in (self.name, bare))


@pytest.fixture(scope="module")
def api(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Api]:
    with conftest.application(seeded, tmp_path_factory.mktemp("lists") / "cloud") as opened:
        yield opened


class Routes(t.NamedTuple):
    lists: list[ListRoute]
    silent: set[str]  # names of paths that answered nobody


@pytest.fixture(scope="module")
def routes(api: Api) -> Routes:
    """Every list there is."""
    objects, clients = plenty(api), (api.client_as("alt"), api.client_as("admin", "alt"))
    lists: dict[str, ListRoute] = {}
    silent: set[str] = set()
    rules = [rule for rule in api.app.url_map.iter_rules() if rule.rule.split("/")[1] in SERVICES]
    for rule in sorted((rule for rule in rules if "GET" in (rule.methods or ())), key=lambda rule: rule.rule):
        for (path, _decoy, _own), _kinds in foreign.paths(rule, objects, api.projects["alt"]):
            service, name = path.split("/")[1], foreign.VARIABLE.sub(r"{\1}", rule.rule)
            answers = []
            for version in ("2.1", "latest") if service == "compute" else ("latest",):
                label = name + (" 2.1" if version == "2.1" else "")
                headers = {"OpenStack-API-Version": f"{service} {version}"}
                for client, limit in itertools.product(clients, ("", "?limit=1")):
                    answer = client.get(path + limit, headers=headers)
                    answers.append(answer.status_code)
                    if (kind := _kind(answer)) is not None:
                        lists[f"{path} {version}"] = ListRoute(label, path, kind, client, headers)
            if set(answers) & {200, 204, 300} == set() and not name.endswith("}"):
                silent.add(name)
    return Routes(list(lists.values()), silent)


def _kind(answer: TestResponse) -> str | None:
    body = answer.get_json() if answer.is_json and answer.status_code < 400 else None
    if not isinstance(body, dict):
        return None
    kinds = [key for key in body if isinstance(body[key], list) and not key.endswith("links")]
    kinds += [key.removesuffix("_links") for key in body if key.endswith("_links")]
    return (kinds or [key for key in body if key == "links"] or [None])[0]


@pytest.fixture(scope="module")
def paged(routes: Routes) -> list[ListRoute]:
    """The lists with pages."""
    return [route for route in routes.lists if not route.is_one_of((*WITHOUT_PAGES, *BY_OFFSET))]


def test_each_list_is_walked_or_named_with_its_reason(routes: Routes, paged: list[ListRoute]) -> None:
    counts = {route.name: (len(route.page().objects), FEW.get(route.kind, ENOUGH)) for route in paged}
    few = {name: count for name, (count, enough) in counts.items() if count < enough}
    assert few == {}, "make more of these in plenty(), or say in WITHOUT_PAGES why they have no pages"
    assert len(paged) > 30
    for named in (WITHOUT_PAGES, BY_OFFSET):
        unknown = [pattern for pattern in named if not any(route.is_one_of([pattern]) for route in routes.lists)]
        assert unknown == [], "these lists are gone"
    unknown = [pattern for pattern in SILENT if not any(re.fullmatch(pattern, name) for name in routes.silent)]
    assert unknown == [], "these answer by now"
    unasked = {name for name in routes.silent if not any(re.fullmatch(pattern, name) for pattern in SILENT)}
    assert unasked == set(), "make in plenty() what these show, or say in SILENT why they answer nobody"


def test_lists_without_pages_give_all(routes: Routes) -> None:
    """If one of them takes a limit by now, it is to be walked."""
    for route in routes.lists:
        if route.is_one_of(WITHOUT_PAGES):
            limited = route.ask(limit=1)
            if limited.status_code == 400:  # it says so itself
                continue
            answers = [answer.get_json()[route.kind] for answer in (limited, route.ask())]
            assert len(answers[0]) == len(answers[1]), route.name


def test_a_client_that_goes_on_after_the_last_object_comes_to_the_end(paged: list[ListRoute]) -> None:
    for route, limit in itertools.product(paged, (1, 2)):
        everything = route.page().objects
        assert len(set(everything)) == len(everything)
        if route.kind in FEW:
            continue  # they have no ids
        seen: list[str] = []
        for _request in range(len(everything) // limit + 2):
            page = route.page(limit=limit, **({"marker": seen[-1]} if seen else {}))
            assert len(page.objects) <= limit, route.name
            seen += page.objects
            if not page.objects:
                break
        else:
            pytest.fail(f"{route.name} has no end: {seen}")
        assert seen == everything, route.name


def test_a_client_that_follows_links_comes_to_the_end(paged: list[ListRoute]) -> None:
    for route, limit in itertools.product(paged, (1, 2)):
        everything = route.page().objects
        page = route.page(limit=limit)
        seen = list(page.objects)
        for _request in range(len(everything) // limit + 2):
            if "next" not in page.links:
                break
            page = route.follow(page.links["next"])
            assert len(page.objects) <= limit, route.name
            seen += page.objects
        else:
            pytest.fail(f"{route.name} has no end: {seen}")
        assert seen == everything, route.name


def test_networks_lists_are_walked_backwards(paged: list[ListRoute]) -> None:
    of_network = [route for route in paged if route.service == "network"]
    assert len(of_network) > 6
    for route, limit in itertools.product(of_network, (1, 2)):
        everything = route.page().objects
        page = route.page(limit=limit, page_reverse="True")
        followed, seen, requests = page, list(page.objects), 0
        while "previous" in followed.links and (requests := requests + 1) <= len(everything):
            followed = route.follow(followed.links["previous"])
            seen = followed.objects + seen
        assert seen == everything, route.name
        if route.kind in FEW:
            continue
        seen = list(page.objects)
        for _request in range(len(everything) // limit + 2):
            page = route.page(limit=limit, page_reverse="True", marker=seen[0])
            seen = page.objects + seen
            if not page.objects:
                break
        else:
            pytest.fail(f"{route.name} has no beginning: {seen}")
        assert seen == everything, route.name


def test_a_marker_that_is_not_there_is_refused(paged: list[ListRoute]) -> None:
    statuses = {route.name: route.ask(limit=1, marker=NOBODYS).status_code for route in paged}
    assert statuses == {route.name: NO_MARKER[route.service] for route in paged}


def test_lists_with_an_offset_come_to_their_end(routes: Routes) -> None:
    for route, limit in itertools.product(routes.lists, (1, 2)):
        if not route.is_one_of(BY_OFFSET):
            continue
        everything = route.page().objects
        assert len(everything) >= ENOUGH, route.name
        pages = [route.page(limit=limit, offset=place).objects for place in range(0, len(everything) + limit, limit)]
        assert [number for page in pages for number in page] == everything, route.name
        assert max(map(len, pages)) == limit and pages[-1] == []
        if not route.name.endswith(" 2.1"):
            assert route.ask(marker=everything[0]).status_code == 400, f"{route.name} begins anew for ever"
