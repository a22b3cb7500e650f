# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on domains, for every door."""

from __future__ import annotations

import typing as t

from ...identity import domains
from ...queries.identity.projects import Domain
from ..call import Call


class DomainRequest(t.TypedDict, total=False):
    """Values of a domain."""

    name: str
    description: str
    enabled: bool


def create(call: Call, request: DomainRequest) -> Domain:
    """Make a domain. Raises ConflictError for a name that is taken."""
    return domains.create_domain(call.connection, request)


def update(call: Call, domain_id: str, request: DomainRequest) -> Domain:
    """Change a domain; to disable it ends the tokens of its users and for its projects. Raises NotFoundError,
    ConflictError for a name that is taken."""
    return domains.update_domain(call.connection, domain_id, request)


def delete(call: Call, domain_id: str) -> None:
    """Remove a domain with all that is in it. Raises as domains.delete_domain()."""
    domains.delete_domain(call.connection, domain_id)


def place_for(call: Call, domain_id: str | None) -> str:
    """Return the domain that something is to be made in, by default the caller's, which stays until the transaction
    ends. Raises NotFoundError for one that is not there."""
    return str(domains.hold_domain(call.connection, domain_id or call.authority.domain_id)["id"])
