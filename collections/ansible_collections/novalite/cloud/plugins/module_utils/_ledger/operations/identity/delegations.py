# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens that may give less than their users have: of trusts and of application credentials."""

from __future__ import annotations

from ...._errors import ForbiddenError
from ...queries.identity import credential_records
from ..call import Call


def refuse_delegated(call: Call, what: str) -> None:
    """Raise ForbiddenError for a token that may give less than its user has: what it made or read would give all."""
    if call.authority.application_credential_id is not None:
        raise ForbiddenError(f"A token of an application credential cannot be used for {what}.")
    if call.authority.trust_id is not None:
        raise ForbiddenError(f"A token of a trust cannot be used for {what}.")


def refuse_restricted(call: Call) -> None:
    """Raise ForbiddenError unless the token gives all that its user has: it is of no trust, and of no application
    credential but an unrestricted one without access rules."""
    number = call.authority.application_credential_id
    credential = number and credential_records.application_credential_of(call.connection, credential_id=number)
    if credential and (not credential["unrestricted"] or credential["access_rules"]):
        raise ForbiddenError("This application credential is restricted: it cannot make or remove others.")
    if call.authority.trust_id is not None:
        raise ForbiddenError("A token of a trust cannot make or remove application credentials.")
