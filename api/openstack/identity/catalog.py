# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalog: where a token's holder finds every service."""

from __future__ import annotations

import uuid

from ...web.addresses import REGION, base_url
from ...web.bodies import Body, same

INTERFACES = ("public", "internal", "admin")
# type, name, path under the application's own address. Cinder is asked for under either of its types.
SERVICES = (
    ("identity", "keystone", "/identity/v3"),
    ("compute", "nova", "/compute/v2.1"),
    ("image", "glance", "/image"),
    ("network", "neutron", "/network"),
    ("volumev3", "cinderv3", "/volume/v3/{project_id}"),
    ("block-storage", "cinder", "/volume/v3/{project_id}"),
    ("ec2", "ec2", "/ec2"),
)
_NAMESPACE = uuid.UUID("0f2c4f5e-61f0-4e5c-9f0b-8a3cc5b2a1f7")


def url(path: str) -> str:
    """The address of `path` of Identity v3."""
    return f"{base_url()}/identity/v3/{path}"


def fixed_id(*names: str) -> str:
    """An id of 32 hex digits that is the same in every process and for ever."""
    return uuid.uuid5(_NAMESPACE, "/".join(names)).hex


CLOUD = fixed_id("project", "cloud")  # the owner of what the operator registered; Horizon looks owners up, by hex ids


def services() -> list[Body]:
    return [
        {"id": fixed_id("service", kind), "type": kind, "name": name, "enabled": True, "description": ""}
        for kind, name, _path in SERVICES
    ]


def endpoints(project_id: str | None) -> list[Body]:
    """List every service at every interface. Without a project, a project's part of an address stays a placeholder."""
    rows: list[Body] = []
    for kind, _name, path in SERVICES:
        address = base_url() + (path if project_id is None else path.format(project_id=project_id))
        for interface in INTERFACES:
            rows.append(
                {
                    "id": fixed_id("endpoint", kind, interface),
                    "interface": interface,
                    "region": REGION,
                    "region_id": REGION,
                    "service_id": fixed_id("service", kind),
                    "url": address.replace("{project_id}", "$(project_id)s"),
                    "enabled": True,
                }
            )
    return rows


def catalog(project_id: str | None) -> list[Body]:
    """The catalog of a token that is scoped to `project_id`; with None, to a domain: without what is a project's."""
    projects = {fixed_id("service", kind) for kind, _name, path in SERVICES if "{project_id}" in path}
    left_out = projects if project_id is None else ()
    everywhere = [endpoint for endpoint in endpoints(project_id) if endpoint["service_id"] not in left_out]
    return [
        {
            **same(service, "id", "type", "name"),
            "endpoints": [
                {key: endpoint[key] for key in ("id", "interface", "region", "region_id", "url")}
                for endpoint in everywhere
                if endpoint["service_id"] == service["id"]
            ],
        }
        for service in services()
    ]
