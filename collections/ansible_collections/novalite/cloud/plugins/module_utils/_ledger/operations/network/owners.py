# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owners of what is made in networks: the caller's project, another that an administrator names, or all projects."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError, NotFoundError
from ...queries.counts import is_project
from ..call import Call

Named = t.Mapping[str, str]  # what the door calls it -> the project that a request names there


class UnknownProjectError(NotFoundError):
    """A request is for a project that there is none of."""


def owner_of(call: Call, named: Named) -> str:
    """Return the project that what is made will be of: the caller's, or the one that an administrator names. Raises
    ForbiddenError, and UnknownProjectError."""
    project_ids = set(named.values())
    if not call.permits("network:create:other_project") or project_ids <= {call.project}:
        check_own(call, named)
        return call.project
    if len(project_ids) > 1 or not is_project(call.connection, min(project_ids)):
        raise UnknownProjectError(f"Project {min(project_ids)[:64]} could not be found.")
    return project_ids.pop()


def check_own(call: Call, named: Named) -> None:
    """Raise ForbiddenError if a new object is to belong to another project than the caller's."""
    for name, project_id in named.items():
        if project_id != call.project:
            raise ForbiddenError(f"{name} is another project's: use a token for that one")


def check_for_all(call: Call, noun: str, choices: t.Mapping[str, object]) -> None:
    """Raise ForbiddenError for a choice that concerns all projects, except from administrators.

    `choices`: what Neutron calls the attribute of the noun -> the value; None, false and empty ones choose nothing.
    """
    for attribute, value in choices.items():
        if value and not call.permits("network:create:shared"):
            raise ForbiddenError(f"rule:create_{noun}:{attribute} is disallowed by policy: ask an administrator")
