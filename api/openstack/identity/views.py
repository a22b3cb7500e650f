# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of the ledger as Identity v3 shows them."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.users import ROLES

from ...web.bodies import Body, Record, same
from ...web.context import Caller
from ...web.times import with_microseconds
from . import catalog as catalogs

DOMAIN = {"id": "default", "name": "Default"}


def unknown(what: str, identifier: str) -> NotFoundError:
    return NotFoundError(f"Could not find {what}: {identifier[:64]}.")


def time_text(seconds: float) -> str:
    """As Keystone writes times: UTC, with microseconds."""
    return f"{with_microseconds(seconds)}Z"


def role_id(name: str) -> str:
    return catalogs.fixed_id("role", name)


def role_name(identifier: str) -> str | None:
    """The role that `identifier` stands for; None for none."""
    return next((name for name in ROLES if role_id(name) == identifier), None)


def role(name: str) -> Body:
    return {
        "id": role_id(name),
        "name": name,
        "domain_id": None,
        "description": "",
        "options": {},
        "links": {"self": catalogs.url(f"roles/{role_id(name)}")},
    }


def named_roles(names: t.Iterable[str]) -> list[Body]:
    """The highest first, as Keystone lists what a role implies."""
    return [{"id": role_id(name), "name": name} for name in reversed(ROLES) if name in names]


def token(caller: Caller, credential: Record | None = None, with_catalog: bool = True) -> Body:
    body: Body = {
        "methods": caller.method.split(","),
        "user": {"domain": DOMAIN, "id": caller.user_id, "name": caller.user_name, "password_expires_at": None},
        "audit_ids": [caller.audit_id],
        "expires_at": time_text(caller.expires_at),
        "issued_at": time_text(caller.issued_at),
    }
    if caller.project_id is not None:
        body["project"] = {"domain": DOMAIN, "id": caller.project_id, "name": caller.project_name}
        body["is_domain"] = False
        body["roles"] = named_roles(caller.roles)
        if with_catalog:
            body["catalog"] = catalogs.catalog(caller.project_id)
    if credential is not None:
        restricted = not credential["unrestricted"]
        body["application_credential"] = {**same(credential, "id", "name"), "restricted": restricted}
    return {"token": body}


def project(row: Record) -> Body:
    return {
        **same(row, "id", "name", "description", "enabled"),
        "domain_id": DOMAIN["id"],
        "parent_id": DOMAIN["id"],
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": {"self": catalogs.url(f"projects/{row['id']}")},
    }


def user(row: Record) -> Body:
    email = {} if row["email"] is None else {"email": row["email"]}
    return {
        **same(row, "id", "name", "description", "enabled"),
        "domain_id": DOMAIN["id"],
        "default_project_id": row["default_project_id"],
        "password_expires_at": None,
        "options": {},
        "links": {"self": catalogs.url(f"users/{row['id']}")},
        **email,
    }


def assignment(row: Record, with_names: bool = False) -> Body:
    """Render the assignment of a role to a user in a project."""
    role, user, project = {"id": role_id(row["role"])}, {"id": row["user_id"]}, {"id": row["project_id"]}
    path = f"projects/{row['project_id']}/users/{row['user_id']}/roles/{role_id(row['role'])}"
    return {
        "role": {**role, "name": row["role"]} if with_names else role,
        "user": {**user, "name": row["user_name"], "domain": DOMAIN} if with_names else user,
        "scope": {"project": {**project, "name": row["project_name"], "domain": DOMAIN} if with_names else project},
        "links": {"assignment": catalogs.url(path)},
    }


def application_credential(row: Record) -> Body:
    """Without its secret, which only the answer to its creation has."""
    end = row["expires_at"]
    return {
        **same(row, "id", "name", "description", "project_id", "user_id"),
        "roles": [{**entry, "domain_id": None} for entry in named_roles(row["roles"])],
        "unrestricted": row["unrestricted"],
        "expires_at": None if end is None else time_text(end).rstrip("Z"),  # as Keystone, without a zone
        "links": {"self": catalogs.url(f"users/{row['user_id']}/application_credentials/{row['id']}")},
    }


def ec2_credential(row: Record) -> Body:
    return {
        **same(row, "access", "secret", "user_id"),
        "tenant_id": row["project_id"],
        "trust_id": None,
        "links": {"self": catalogs.url(f"users/{row['user_id']}/credentials/OS-EC2/{row['access']}")},
    }


COMPARISONS: t.Mapping[str, t.Callable[[str, str], bool]] = {
    "contains": lambda value, part: part in value,
    "startswith": str.startswith,
    "endswith": str.endswith,
}


def listing(kind: str, items: t.Iterable[Body]) -> Body:
    """The answer to the current request, which is for a list: of those that its inexact filters let through.

    They are Keystone's: <attribute>__contains, __startswith, __endswith, and with an i before it for either case.
    """
    url = f"{catalogs.base_url()}{request.path.rstrip('/')}"
    shown = list(items)
    for parameter, text in request.args.items():
        attribute, _blank, word = parameter.rpartition("__")
        compare, either = COMPARISONS.get(word), COMPARISONS.get(word.removeprefix("i"))
        if attribute and compare is not None:
            shown = [item for item in shown if compare(str(item.get(attribute) or ""), text)]
        elif attribute and either is not None:
            shown = [item for item in shown if either(str(item.get(attribute) or "").lower(), text.lower())]
    return {kind: shown, "links": {"self": url, "previous": None, "next": None}}
