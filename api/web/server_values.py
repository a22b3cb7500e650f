# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations that hide in the values of a request for a server, each with its own entry in operations.py."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hints
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.attributes import FOR_TENANTS

from . import policy
from .context import current
from .errors import BadRequestError


def check_zone(zone: str | None) -> None:
    """Raise ForbiddenError for a zone that names a host (Nova's `zone:host:node`), unless the caller may choose one."""
    if zone is not None and ":" in zone:
        policy.check("compute:servers:create:forced_host")


def check_hints(name: str, checked_hints: JsonMapping) -> None:
    """Raise BadRequestError for hints of the server `name`, as hints.checked() returns them, that ask about hosts what
    only administrators are told: by asking often enough one learns any of it, and chooses the host."""
    unknown = sorted(hints.attributes_in(dict(checked_hints)) - FOR_TENANTS)
    if unknown and not policy.may(current(), "compute:servers:create:host_attributes"):
        raise BadRequestError(
            f"requirements, rank and hints of '{name}': unknown attribute '{unknown[0][:70]}': "
            f"use {', '.join(sorted(FOR_TENANTS))}"
        )
