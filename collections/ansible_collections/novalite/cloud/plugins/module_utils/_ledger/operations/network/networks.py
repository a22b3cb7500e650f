# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on networks, those that are floating pools too: a project makes its own, the operator's are changed by
administrators, and the rest of these by playbooks."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError, NovaliteError
from ...network import external_networks, provider_networks, tenant_networks
from ...queries.network.carriers import Carrier
from ...queries.network.network_records import Network
from ...queries.network.pool_records import Pool
from ..call import Call
from ..hosts import update_networks_of_hosts
from .owners import Named, check_for_all, owner_of

OPERATE: t.Final = "network:operate"
BY_ADMINISTRATORS = frozenset(["is_default"])  # of a network that a playbook made, which says the rest of it


class Site(t.Protocol):
    """Settings of the cloud: what carries projects' networks, and interfaces of hosts that administrators may name."""

    @property
    def carrier(self) -> Carrier: ...

    @property
    def interfaces(self) -> t.Collection[str]: ...


class NetworkValues(t.TypedDict, total=False):
    """Values of a network. `provider` holds attributes of carriers.ATTRIBUTES."""

    name: str
    description: str
    mtu: int | None
    port_security_enabled: bool
    admin_state_up: bool
    is_default: bool
    shared: bool
    external: bool
    provider: t.Mapping[str, str | int | None]


def create(call: Call, named: Named, values: NetworkValues, site: Site) -> str:
    """Record a network without addresses, of the project that is `named`; return its UUID. Raises ForbiddenError, and
    as owners.owner_of(), external_networks.create_external(), provider_networks.carrier_of() and
    tenant_networks.create_network()."""
    _check_for_all(call, values)
    owner, provider = owner_of(call, named), values.get("provider", {})
    if values.get("external"):
        return external_networks.create_external(call.connection, owner, {**values, **provider}, site.interfaces)
    how = provider_networks.carrier_of(provider, site.interfaces) or site.carrier
    of = "" if values.get("shared") else owner
    return tenant_networks.create_network(call.connection, of, {**values, "made_by": owner}, how)


def update(call: Call, seen: Network | Pool, values: NetworkValues, site: Site) -> None:
    """Change the network `seen`, make a floating pool of it, or a network of the pool. Raises ForbiddenError,
    NovaliteError, and as the functions of external_networks and tenant_networks.update_network()."""
    call.check("network:write")
    check_changes(call, seen, values)
    _check_for_all(call, values)
    if "provider" in values:
        raise NovaliteError("Invalid input for operation: Plugin does not support updating provider attributes.")
    external = values.get("external", isinstance(seen, Pool))
    if external and values.get("is_default"):
        external_networks.check_attributes({"is_default": True})
    if isinstance(seen, Pool):
        if external:
            external_networks.update_external(call.connection, seen, values)
            return
        seen = external_networks.make_internal(call.connection, seen, call.project, site.carrier, site.interfaces)
    hosts = tenant_networks.update_network(call.connection, seen, values)
    update_networks_of_hosts(call, hosts, seen.owner)
    if external:
        external_networks.make_external(call.connection, seen, site.interfaces)


def delete(call: Call, seen: Network | Pool) -> None:
    """Remove the network with its subnets. Raises ForbiddenError, and as tenant_networks.delete_network() and
    external_networks.delete_external()."""
    check_changes(call, seen, ())
    if isinstance(seen, Pool):
        external_networks.delete_external(call.connection, seen)
    else:
        tenant_networks.delete_network(call.connection, seen)


def check_changes(call: Call, seen: Network | Pool, attributes: t.Collection[str]) -> None:
    """Raise ForbiddenError unless the caller, who sees the network, may change these attributes of it (none: delete
    it)."""
    by_operator = call.permits(OPERATE)
    if isinstance(seen, Pool):
        if not by_operator:
            raise ForbiddenError(f"network {seen.uuid} is the cloud's operator's floating pool")
        return
    of_playbook = bool(attributes) and BY_ADMINISTRATORS.issuperset(attributes)
    of_project = seen.tenant and seen.owner != ""
    if not of_project and not (by_operator and (seen.tenant or of_playbook)):
        raise ForbiddenError(
            f"network {seen.uuid} is the cloud's operator's, who changes it with novalite.cloud.network"
        )


def _check_for_all(call: Call, values: NetworkValues) -> None:
    choices = {name: values.get(name) for name in ("shared", "is_default")}
    provider = values.get("provider", {})
    check_for_all(call, "network", {**choices, "router:external": values.get("external"), **provider})
