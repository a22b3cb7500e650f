# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch: the form, the plan that it comes to, and the launch itself, as the Compute API takes it."""

from __future__ import annotations

import base64
import typing as t

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import flavors_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    networks_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import CreateRequest

from ..openstack.compute.servers import requests as server_requests
from ..openstack.compute.servers import schemas as server_schemas
from ..web import policy, validation
from ..web.context import current
from ..web.errors import LATER, message_of, status_of
from ..web.ledger import reading_ledger, writing_ledger
from ..work import launch_plans
from ..work.calls import calling
from ..work.images import offered
from ..work.networks import groups_seen
from ..work.refusals import refusals_as_bad_requests
from . import session
from .session import pages

VERSION = (2, 96)  # of the Compute API, whose words the form is put into
FIELDS = ("name", "image", "flavor", "network", "key", "count", "user_data")


@pages.get("/instances/launch", "compute:servers:create")
def show_launch() -> str:
    return _form({"count": "1", "groups": ["default"]})


@pages.post("/instances/launch", "compute:servers:plan")
def plan_launch() -> ResponseReturnValue:
    """Show what a launch would come to; with the field `change`, the form once more."""
    values = _values()
    if session.field("change"):
        return _form(values)
    try:
        create_request = _request(values)
        with refusals_as_bad_requests():
            plan = launch_plans.plan(create_request)
    except NovaliteError as error:
        return _refused(values, error)
    return render_template("pages/launch_plan.html", plan=plan, values=values, shown=_choices())


@pages.post("/instances/launch/now", "compute:servers:create")
def launch() -> ResponseReturnValue:
    values = _values()
    try:
        create_request = _request(values)
        with writing_ledger() as connection, refusals_as_bad_requests():
            made = servers.create(calling(connection), create_request)
    except NovaliteError as error:
        return _refused(values, error)
    if len(made.uuids) == 1:
        return redirect(url_for("pages.show_instance", uuid=made.uuids[0]), 303)
    return redirect(url_for("pages.list_instances", q=create_request.name), 303)


def _values() -> JsonObject:
    return {**{name: session.field(name).strip() for name in FIELDS}, "groups": request.form.getlist("groups")}


def _request(values: JsonObject) -> CreateRequest:
    """The request of the form, held against the schema of the Compute API. Raises BadRequestError."""
    # a form has lines end as mail does; a script's first line would name a shell that is not there
    script = values["user_data"].replace("\r\n", "\n")
    server = {
        "name": values["name"],
        "imageRef": values["image"],
        "flavorRef": values["flavor"],
        "min_count": values["count"] or 1,
        "max_count": values["count"] or 1,
        "networks": [{"uuid": values["network"]}] if values["network"] else "auto",
        "key_name": values["key"] or None,
        "user_data": base64.b64encode(script.encode()).decode() if script else None,
        **({"security_groups": [{"name": name} for name in values["groups"]]} if values["groups"] else {}),
    }
    body = {"server": {name: value for name, value in server.items() if value is not None}}
    validation.check(body, server_schemas.create(VERSION))
    with refusals_as_bad_requests():
        return server_requests.parse(body).create_request


def _refused(values: JsonObject, error: NovaliteError) -> ResponseReturnValue:
    if isinstance(error, LATER):
        raise error
    number = status_of(error)
    return _form(values, message_of(error, number)), number


def _form(values: JsonObject, message: str | None = None) -> str:
    return render_template("pages/launch.html", values=values, message=message, **_choices())


def _choices() -> dict[str, t.Any]:
    """Choices that the caller has: pairs of a value and what is shown, by fields of the form."""
    caller = current()
    groups = [group["name"] for group in groups_seen()]
    with reading_ledger() as connection:
        images = offered(images_seen(connection, caller.project), caller.project)
        flavors = flavors_seen(connection, policy.allowed("compute:servers:create:private"), caller.project)
        networks = networks_seen(connection, caller.project)
        keys = keypairs_of(connection, caller.project, caller.user_id)
        quotas = status.usage(connection, caller.project)
    return {
        "images": sorted(
            (image["id"], image["name"] or image["id"]) for image in images if image["status"] == "active"
        ),
        "flavors": [(flavor["flavorid"], flavor) for flavor in flavors],
        "networks": [
            (network.uuid, network.display_name or network.name, network.cidr)
            for network in sorted(networks, key=lambda network: not network.is_default)  # a form begins with the first
        ],
        "keys": [key["name"] for key in keys],
        "groups": sorted(groups),
        "quotas": [quota for quota in quotas if quota["resource"] in ("instances", "cores", "ram")],
    }
