# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Common parts of answers: times, tags, the region, and the one VPC that a project's networks form."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import tags as tag_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    Subnet,
    subnets_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import network_of_choice

from ..web.addresses import REGION
from ..work.calls import calling
from . import ids
from .faults import Ec2Error, as_codes, invalid

Body = JsonObject  # of an answer, as blueprint.py writes it
Parameters = JsonObject  # a request's parameters, as their shapes have made them
Record = JsonObject  # what the ledger has of something
Tags = dict[str, str]

DEFAULT_ZONE = "nova"
RESERVED = "aws:"  # what tags may not begin with
LONGEST_VALUE = 255  # as metadata of instances and volumes, which tags are
TAG_LIMIT: t.Mapping[type[Exception], str] = {QuotaError: "TagLimitExceeded"}

__all__ = ["REGION"]


def moment(seconds: float | None) -> str | None:
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def zones(connection: Connection) -> list[str]:
    return list(hypervisor_records.zones(connection)) or [DEFAULT_ZONE]


# --- tags -----------------------------------------------------------------------------------------------------------


def tag_set(tags: t.Mapping[str, str]) -> list[Body] | None:
    """The element `tagSet`; none for no tags, as Amazon answers."""
    return [{"key": key, "value": value} for key, value in sorted(tags.items())] or None


def tags_in(items: t.Sequence[Body]) -> Tags:
    """Tags as they are asked for. Raises Ec2Error for what cannot be one."""
    tags: Tags = {}
    for tag in items:
        key, value = tag["Key"], tag.get("Value", "")
        if not key or key.lower().startswith(RESERVED) or not is_plain(key):
            raise invalid("tag key", key, f"it must be text that does not begin with {RESERVED}")
        if key in tags:
            raise invalid("tag key", key, "it was given twice")
        if len(value) > LONGEST_VALUE or not is_plain(value):
            raise invalid("tag value", value, f"it must be a line of at most {LONGEST_VALUE} characters")
        tags[key] = value
    return tags


def tags_for(parameters: Parameters, *kinds: str) -> dict[str, Tags]:
    """{kind: tags} of the request's TagSpecification. Raises Ec2Error for another kind of resource."""
    tags: dict[str, Tags] = {kind: {} for kind in kinds}
    for specification in parameters.get("TagSpecification", []):
        kind = specification["ResourceType"]
        if kind not in tags:
            raise invalid("TagSpecification.ResourceType", kind, f"it can be {' or '.join(kinds)} here")
        tags[kind].update(tags_in(specification.get("Tag", [])))
    return tags


def keep_tags(connection: Connection, resource: str, tags: Tags) -> None:
    """Write a new resource's tags; what had its id before leaves none."""
    with as_codes(TAG_LIMIT):
        tag_operations.replace(calling(connection), resource, tags)


def forget_tags(connection: Connection, resource: str) -> None:
    """Remove the tags of a resource that is gone."""
    tag_operations.replace(calling(connection), resource, {})


# --- the virtual network --------------------------------------------------------------------------------------------


def vpc_id(project_id: str) -> str:
    """Return the id of a project's VPC. Each project has one: all the networks that it sees."""
    return ids.of("vpc", project_id)


def check_vpc(project_id: str, requested_vpc_id: str | None) -> None:
    if requested_vpc_id is not None and requested_vpc_id != vpc_id(project_id):
        raise ids.not_found("vpc", requested_vpc_id)


class VpcSubnet(t.NamedTuple):
    """A subnet as EC2 shows it: one of IPv4 of a network, of which a network may have several."""

    network: Network
    subnet: Subnet


def subnets(connection: Connection, project_id: str) -> dict[str, VpcSubnet]:
    """The subnets of the networks that the project sees, by their ids; the default one first."""
    rows = network_records.networks_seen(connection, project_id)
    default = network_of_choice(rows)
    rows.sort(key=lambda row: (row is not default, row.owner == "", row.id))
    by_network = subnets_of(connection, rows)
    return {
        ids.of_subnet(row.uuid, subnet.id): VpcSubnet(row, subnet)
        for row in rows
        for subnet in by_network[row.id]
        if subnet.version == 4
    }


def first_subnet(connection: Connection, project_id: str) -> VpcSubnet:
    """The subnet of an instance that asks for none: of the default network, else of the project's own before the public
    ones."""
    for row in subnets(connection, project_id).values():
        return row
    raise Ec2Error("MissingInput", "No subnets found for the default VPC: the project sees no network.")
