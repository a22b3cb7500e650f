# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Version documents, and what is the same for everybody: domain, region, services, roles."""

from __future__ import annotations

import typing as t

from flask import Blueprint, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.users import ROLES

from ...web import policy
from . import catalog, views

Body = dict[str, t.Any]


blueprint = Blueprint("identity", __name__, url_prefix="/identity")
blueprint.before_request(policy.guard)


def _version(base: str) -> Body:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{base}/identity/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


@blueprint.get("/")
@policy.allows("identity:versions")
def versions() -> tuple[Body, int]:
    return {"versions": {"values": [_version(catalog.base_url())]}}, 300


@blueprint.get("/v3")
@policy.allows("identity:versions")
def version() -> Body:
    return {"version": _version(catalog.base_url())}


@blueprint.get("/v3/domains")
@policy.allows("identity:domains")
def list_domains() -> Body:
    wanted = request.args.get("name", views.DOMAIN["name"])
    domains = [_domain()] if wanted == views.DOMAIN["name"] else []
    return views.listing("domains", domains, f"{catalog.base_url()}/identity/v3/domains")


@blueprint.get("/v3/domains/<domain_id>")
@policy.allows("identity:domains")
def show_domain(domain_id: str) -> Body:
    if domain_id != views.DOMAIN["id"]:
        raise NotFoundError(f"Could not find domain: {domain_id[:64]}.")
    return {"domain": _domain()}


def _domain() -> Body:
    return {
        **views.DOMAIN,
        "description": "The default domain",
        "enabled": True,
        "tags": [],
        "options": {},
        "links": {"self": f"{catalog.base_url()}/identity/v3/domains/default"},
    }


@blueprint.get("/v3/regions")
@policy.allows("identity:regions")
def list_regions() -> Body:
    return views.listing("regions", [_region()], f"{catalog.base_url()}/identity/v3/regions")


@blueprint.get("/v3/regions/<region_id>")
@policy.allows("identity:regions")
def show_region(region_id: str) -> Body:
    if region_id != catalog.REGION:
        raise NotFoundError(f"Could not find region: {region_id[:64]}.")
    return {"region": _region()}


def _region() -> Body:
    self_ = f"{catalog.base_url()}/identity/v3/regions/{catalog.REGION}"
    return {"id": catalog.REGION, "description": "", "parent_region_id": None, "links": {"self": self_}}


@blueprint.get("/v3/services")
@policy.allows("identity:services")
def list_services() -> Body:
    services = [
        service
        for service in map(_service, catalog.services())
        if all(request.args.get(key, service[key]) == service[key] for key in ("type", "name"))
    ]
    return views.listing("services", services, f"{catalog.base_url()}/identity/v3/services")


@blueprint.get("/v3/services/<service_id>")
@policy.allows("identity:services")
def show_service(service_id: str) -> Body:
    for service in catalog.services():
        if service["id"] == service_id:
            return {"service": _service(service)}
    raise NotFoundError(f"Could not find service: {service_id[:64]}.")


def _service(service: Body) -> Body:
    return {**service, "links": {"self": f"{catalog.base_url()}/identity/v3/services/{service['id']}"}}


@blueprint.get("/v3/endpoints")
@policy.allows("identity:endpoints")
def list_endpoints() -> Body:
    endpoints = [
        endpoint
        for endpoint in map(_endpoint, catalog.endpoints(catalog.base_url(), None))
        if all(
            request.args.get(key, endpoint[key]) == endpoint[key] for key in ("interface", "service_id", "region_id")
        )
    ]
    return views.listing("endpoints", endpoints, f"{catalog.base_url()}/identity/v3/endpoints")


@blueprint.get("/v3/endpoints/<endpoint_id>")
@policy.allows("identity:endpoints")
def show_endpoint(endpoint_id: str) -> Body:
    for endpoint in catalog.endpoints(catalog.base_url(), None):
        if endpoint["id"] == endpoint_id:
            return {"endpoint": _endpoint(endpoint)}
    raise NotFoundError(f"Could not find endpoint: {endpoint_id[:64]}.")


def _endpoint(endpoint: Body) -> Body:
    return {**endpoint, "links": {"self": f"{catalog.base_url()}/identity/v3/endpoints/{endpoint['id']}"}}


@blueprint.get("/v3/roles")
@policy.allows("identity:roles")
def list_roles() -> Body:
    base = catalog.base_url()
    wanted = request.args.get("name")
    roles = [views.role(name, base) for name in ROLES if wanted in (None, name)]
    return views.listing("roles", roles, f"{base}/identity/v3/roles")


@blueprint.get("/v3/roles/<role_id>")
@policy.allows("identity:roles")
def show_role(role_id: str) -> Body:
    name = views.role_name(role_id)
    if name is None:
        raise NotFoundError(f"Could not find role: {role_id[:64]}.")
    return {"role": views.role(name, catalog.base_url())}
