# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forms of administrators: users and their roles, projects and their quotas."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import assignments, quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    projects as project_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import users as user_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.assignments import Held
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.projects import ProjectRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.users import UserRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects, user_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects as project_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import ROLES, Place
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

from .forms import DESCRIPTION, NAME, Choice, Field, Form, Thing, Values, forms_of
from .rendering import QUOTAS, quota_name

GRANTS, REVOKES = "identity:assignments:create", "identity:assignments:delete"


# --- Users ----------------------------------------------------------------------------------------------------------


def _user(call: Call, number: str) -> Thing:
    row = user_records.find_user(call.connection, number)
    return Thing(row["shown_name"], row)


def _projects(call: Call, _thing: Thing) -> list[Choice]:
    return [(row["id"], row["shown_name"]) for row in project_records.projects(call.connection)]


def _roles(_call: Call, _thing: Thing) -> list[Choice]:
    return [(role, role) for role in ROLES]


def _held(call: Call, thing: Thing) -> list[Choice]:
    held = user_records.list_roles(call.connection, thing.record["id"])
    return [(f"{row['project_id']} {row['role']}", f"{row['role']} in {row['project_name']}") for row in held]


def _hashed(values: Values) -> Values:
    password = values.pop("password")
    return {**values, **({"password_hash": hash_password(password)} if password else {})}


def _create_user(call: Call, _thing: Thing, values: Values) -> None:
    project, role = values.pop("project", ""), values.pop("role", "")
    request = t.cast("UserRequest", {**values, "default_project_id": project or None})
    user_operations.create(call, request, [Held(project, role)] if project else ())


def _change_user(call: Call, thing: Thing, values: Values) -> None:
    user_operations.update(call, thing.record["id"], t.cast("UserRequest", values))


def _grant(call: Call, thing: Thing, values: Values) -> None:
    assignments.grant(call, Place(thing.record["id"], project_id=values["project"]), values["role"])


def _revoke(call: Call, thing: Thing, values: Values) -> None:
    project_id, _space, role = values["held"].partition(" ")
    assignments.revoke(call, Place(thing.record["id"], project_id=project_id), role)


def _delete_user(call: Call, thing: Thing, _values: Values) -> None:
    user_operations.delete(call, thing.record["id"])


def _goes_with_user(call: Call, thing: Thing) -> list[str]:
    held = ", ".join(shown for _value, shown in _held(call, thing)) or "none"
    return [f"Its roles: {held}.", "Its sessions, key pairs and credentials. What it launched stays."]


PROJECT = Field("project", "Project", "choice", options=_projects, required=True)
ROLE = Field("role", "Role", "choice", options=_roles, required=True)
PASSWORD = Field("password", "Password", "password", required=True, most=1024)
USER_FORMS = forms_of(
    "identity:users:create",
    Form(
        "/users/new",
        "Create a user…",
        "Create a user",
        _create_user,
        (
            NAME,
            PASSWORD,
            Field("email", "Mail address"),
            Field("project", "Project", "choice", options=_projects, none="None", entry=GRANTS),
            Field("role", "Role there", "choice", options=_roles, entry=GRANTS, initial=lambda _call, _thing: "member"),
        ),
        prepare=_hashed,
    ),
    Form(
        "/users/<number>/change",
        "Change…",
        "Change the user",
        _change_user,
        (
            Field("password", "New password", "password", "(none: it stays)", most=1024),
            Field("enabled", "Enabled", "check", initial=lambda _call, thing: thing.record["enabled"]),
        ),
        find=_user,
        prepare=_hashed,
        entry="identity:users:update",
    ),
    Form("/users/<number>/grant", "Give a role…", "Give a role", _grant, (PROJECT, ROLE), find=_user, entry=GRANTS),
    Form(
        "/users/<number>/revoke",
        "Take a role…",
        "Take a role",
        _revoke,
        (Field("held", "Role", "choice", options=_held, required=True),),
        find=_user,
        entry=REVOKES,
    ),
    Form(
        "/users/<number>/delete",
        "Delete…",
        "Delete the user",
        _delete_user,
        find=_user,
        goes=_goes_with_user,
        entry="identity:users:delete",
    ),
)


# --- Projects -------------------------------------------------------------------------------------------------------


def _project(call: Call, number: str) -> Thing:
    row = project_records.project_by_id(call.connection, number)
    if row is None:
        raise NotFoundError(f"Project {number[:64]} could not be found.")
    return Thing(row["shown_name"], row)


def _create_project(call: Call, _thing: Thing, values: Values) -> None:
    project_operations.create(call, {"name": values["name"], "description": values["description"]})


def _change_project(call: Call, thing: Thing, values: Values) -> None:
    project_operations.update(call, thing.record["id"], t.cast("ProjectRequest", values))


def _delete_project(call: Call, thing: Thing, _values: Values) -> None:
    project_operations.delete(call, thing.record["id"])


def _goes_with_project(call: Call, thing: Thing) -> list[str]:
    left = projects.left_in(call.connection, thing.record["id"])
    held = [
        f"It still has {number} {kind}{':' if number == 1 else 's, such as'} {first}." for kind, number, first in left
    ]
    refused = ["While it has any of these, it is not deleted."] if held else []
    return [*held, *refused, "With it go its security groups, key pairs and quotas, and the roles in it."]


def _limit(name: str) -> Field:
    def now(call: Call, thing: Thing) -> int:
        limits = status.usage(call.connection, thing.record["id"])
        return next(row["limit"] for row in limits if row["resource"] == name)

    unit = "(MiB; -1: no limit)" if name == "ram" else "(-1: no limit)"
    return Field(
        name, quota_name(name), "number", unit, required=True, least=-1, initial=now, entry=quotas.ENTRIES.get(name, "")
    )


def _set_quotas(call: Call, thing: Thing, values: Values) -> None:
    before = {row["resource"]: row["limit"] for row in status.usage(call.connection, thing.record["id"])}
    changed = {name: limit for name, limit in values.items() if limit != before[name]}
    quotas.set_limits(call, thing.record["id"], changed)


PROJECT_FORMS = forms_of(
    "identity:projects:create",
    Form("/projects/new", "Create a project…", "Create a project", _create_project, (NAME, DESCRIPTION)),
    Form(
        "/projects/<number>/change",
        "Change…",
        "Change the project",
        _change_project,
        (
            dataclasses.replace(NAME, initial=lambda _call, thing: thing.name),
            dataclasses.replace(DESCRIPTION, initial=lambda _call, thing: thing.record["description"] or ""),
        ),
        find=_project,
        entry="identity:projects:update",
    ),
    Form(
        "/projects/<number>/quotas",
        "Set quotas…",
        "Set quotas",
        _set_quotas,
        tuple(_limit(name) for name in QUOTAS),
        find=_project,
        entry="compute:quotas:write",
    ),
    Form(
        "/projects/<number>/delete",
        "Delete…",
        "Delete the project",
        _delete_project,
        find=_project,
        goes=_goes_with_project,
        entry="identity:projects:delete",
    ),
)
IDENTITY_FORMS = (*USER_FORMS, *PROJECT_FORMS)
