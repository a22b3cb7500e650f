# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy: the rules of operations.py, as the environment changes them, and their enforcement at every door."""

from __future__ import annotations

import functools
import typing as t

from flask import current_app, request
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from .context import ROLES, Caller, authenticate, current
from .errors import ForbiddenError
from .operations import OPERATIONS

POLICY: dict[str, str] = dict(OPERATIONS)

Given = t.ParamSpec("Given")
Returned = t.TypeVar("Returned", bound="ResponseReturnValue")


class Decorator(t.Protocol):
    """A decorator of route functions that keeps their signature."""

    def __call__(self, view: t.Callable[Given, Returned], /) -> t.Callable[Given, Returned]: ...


def override(text: str | None) -> None:
    """Change rules as `text` says: operation=role, several with commas. Raises NovaliteError for one that cannot be."""
    for item in (text or "").split(","):
        operation, _equals, role = item.strip().partition("=")
        if not operation:
            continue
        if POLICY.get(operation) in (None, "public") or role not in ("any", *ROLES):
            raise NovaliteError(
                f"NOVALITE_API_POLICY has {item.strip()!r}: write operation=role, with an operation of "
                f"api/web/operations.py, which holds at every door, and one of the roles any, {', '.join(ROLES)}"
            )
        POLICY[operation] = role


def allows(operation: str) -> Decorator:
    """Let only those call a route who may do `operation`. The route carries the operation's name for tests to read."""
    POLICY[operation]  # a route without a rule fails when it is declared

    def decorate(view: t.Callable[Given, Returned]) -> t.Callable[Given, Returned]:
        @functools.wraps(view)
        def checked(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            check(operation)
            return view(*args, **kwargs)

        checked.policy_operation = operation  # type: ignore[attr-defined]  # functions have no such attribute but this
        return checked

    return decorate


def guard() -> None:
    """A blueprint's before_request: find out who asks, unless the route is for anybody."""
    if not is_for_anybody():
        authenticate()


def is_for_anybody() -> bool:
    """Return whether the request's route says that anybody may have it."""
    view = current_app.view_functions.get(request.endpoint or "")
    return POLICY.get(operation_of(view) or "") == "public"


def operation_of(view: t.Callable[..., object] | None) -> str | None:
    """The operation that a route is held to; None for a function that is no route."""
    return getattr(view, "policy_operation", None)


def check(operation: str) -> None:
    """Raise ForbiddenError unless the caller may do `operation`."""
    role = POLICY[operation]
    if role != "public" and not may(current(), operation):
        raise ForbiddenError(f"Policy doesn't allow {operation} to be performed.")


def may(caller: Caller, operation: str) -> bool:
    """Tell whether the caller, who is known, may do `operation`."""
    role = POLICY[operation]
    return role in ("public", "any") or role in caller.roles


def allowed(operation: str) -> bool:
    """Tell whether the current request's caller may do `operation`."""
    return may(current(), operation)
