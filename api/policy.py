# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may do what: one table, and the decorator that holds every route to it."""

from __future__ import annotations

import functools
import typing as t

from flask import current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from .context import ROLES, authenticate, current
from .errors import ForbiddenError

# "public": anybody. "any": whoever has a valid token. Else the role that it takes in the token's project.
POLICY: dict[str, str] = {
    "version": "public",
}

View = t.TypeVar("View", bound=t.Callable[..., t.Any])


def grant(rules: t.Mapping[str, str]) -> None:
    """Add a service's rules to the table. Each action has one rule."""
    for action, role in rules.items():
        if POLICY.get(action, role) != role:
            raise ValueError(f"two rules for {action}")
        POLICY[action] = role


def override(text: str | None) -> None:
    """Change rules as `text` says: action=role, several with commas. Raises NovaliteError for one that cannot be."""
    for item in (text or "").split(","):
        action, _equals, role = item.strip().partition("=")
        if not action:
            continue
        if POLICY.get(action) in (None, "public") or role not in ("any", *ROLES):
            raise NovaliteError(
                f"NOVALITE_API_POLICY has {item.strip()!r}: write action=role, with an action of the policy table "
                f"and one of the roles any, {', '.join(ROLES)}"
            )
        POLICY[action] = role


def allows(action: str) -> t.Callable[[View], View]:
    """Let only those call a route who may do `action`. The route carries the action's name for tests to read."""
    POLICY[action]  # a route without a rule fails when it is declared

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def checked(*args: t.Any, **kwargs: t.Any) -> t.Any:
            check(action)
            return view(*args, **kwargs)

        checked.policy_action = action  # type: ignore[attr-defined]
        return t.cast(View, checked)

    return decorate


def guard() -> None:
    """A blueprint's before_request: find out who asks, unless the route is for anybody."""
    action = getattr(current_app.view_functions.get(request.endpoint or ""), "policy_action", None)
    if action is None or POLICY[action] != "public":
        authenticate()


def check(action: str) -> None:
    """Raise ForbiddenError unless the caller may do `action`."""
    role = POLICY[action]
    if role == "public":
        return
    caller = current()
    if role != "any" and role not in caller.roles:
        raise ForbiddenError(f"Policy doesn't allow {action} to be performed.")
