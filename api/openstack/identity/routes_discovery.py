# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Version documents, and what is the same for everybody: domain, region, services, roles."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.users import ROLES

from ...web import services
from ...web.bodies import Answer, Body, the_one
from . import catalog, views

service = services.Service("identity", "/identity")


def _version() -> Body:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": catalog.url("")}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


@service.get("/", "identity:versions")
def versions() -> Answer:
    return {"versions": {"values": [_version()]}}, 300


@service.get("/v3", "identity:versions")
def version() -> Answer:
    return {"version": _version()}, 200


def _put_into(word: str, everything: t.Callable[[], t.Sequence[Body]], filters: t.Sequence[str] = ()) -> None:
    """The routes by which the clients list and show what is the same for everybody. A list can be filtered."""
    plural = f"{word}s"

    def linked() -> list[Body]:
        return [{**body, "links": {"self": catalog.url(f"{plural}/{body['id']}")}} for body in everything()]

    @service.get(f"/v3/{plural}", f"identity:{plural}", endpoint=f"list_{plural}")
    def list_all() -> Answer:
        asked = {name: request.args[name] for name in filters if name in request.args}
        return views.listing(plural, [body for body in linked() if asked.items() <= body.items()]), 200

    @service.get(f"/v3/{plural}/<resource_id>", f"identity:{plural}", endpoint=f"show_{word}")
    def show(resource_id: str) -> Answer:
        return {word: the_one(linked(), "id", resource_id, views.unknown(word, resource_id))}, 200


def _domains() -> list[Body]:
    return [{**views.DOMAIN, "description": "The default domain", "enabled": True, "tags": [], "options": {}}]


def _regions() -> list[Body]:
    return [{"id": catalog.REGION, "description": "", "parent_region_id": None}]


_put_into("domain", _domains, ["name"])
_put_into("region", _regions)
_put_into("service", catalog.services, ["type", "name"])
_put_into("endpoint", lambda: catalog.endpoints(None), ["interface", "service_id", "region_id"])
_put_into("role", lambda: [views.role(name) for name in ROLES], ["name"])
