# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the ledger as Identity v3 shows them. Pure functions; `base` is the application's own address."""

from __future__ import annotations

import datetime
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.users import ROLES

from ...web.context import Caller
from . import catalog as catalogs

Body = dict[str, t.Any]
Row = t.Mapping[str, t.Any]

DOMAIN = {"id": "default", "name": "Default"}


def time_text(seconds: float) -> str:
    """As Keystone writes times: UTC, with microseconds."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def role_id(name: str) -> str:
    return catalogs.fixed_id("role", name)


def role_name(identifier: str) -> str | None:
    """The role that `identifier` stands for; None for none."""
    return next((name for name in ROLES if role_id(name) == identifier), None)


def role(name: str, base: str) -> Body:
    return {
        "id": role_id(name),
        "name": name,
        "domain_id": None,
        "description": "",
        "options": {},
        "links": {"self": f"{base}/identity/v3/roles/{role_id(name)}"},
    }


def named_roles(names: t.Iterable[str]) -> list[Body]:
    """The highest first, as Keystone lists what a role implies."""
    return [{"id": role_id(name), "name": name} for name in reversed(ROLES) if name in names]


def token(caller: Caller, base: str, credential: Row | None = None, with_catalog: bool = True) -> Body:
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
            body["catalog"] = catalogs.catalog(base, caller.project_id)
    if credential is not None:
        body["application_credential"] = {
            "id": credential["id"],
            "name": credential["name"],
            "restricted": not credential["unrestricted"],
        }
    return {"token": body}


def project(row: Row, base: str) -> Body:
    return {
        "id": row["id"],
        "name": row["name"],
        "description": row["description"],
        "enabled": row["enabled"],
        "domain_id": DOMAIN["id"],
        "parent_id": DOMAIN["id"],
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": {"self": f"{base}/identity/v3/projects/{row['id']}"},
    }


def user(row: Row, base: str) -> Body:
    body = {
        "id": row["id"],
        "name": row["name"],
        "description": row["description"],
        "enabled": row["enabled"],
        "domain_id": DOMAIN["id"],
        "default_project_id": row["default_project_id"],
        "password_expires_at": None,
        "options": {},
        "links": {"self": f"{base}/identity/v3/users/{row['id']}"},
    }
    if row["email"] is not None:
        body["email"] = row["email"]
    return body


def assignment(row: Row, base: str, with_names: bool = False) -> Body:
    """Who has which role where."""
    body: Body = {
        "role": {"id": role_id(row["role"])},
        "user": {"id": row["user_id"]},
        "scope": {"project": {"id": row["project_id"]}},
        "links": {
            "assignment": f"{base}/identity/v3/projects/{row['project_id']}/users/{row['user_id']}"
            f"/roles/{role_id(row['role'])}"
        },
    }
    if with_names:
        body["role"]["name"] = row["role"]
        body["user"].update(name=row["user_name"], domain=DOMAIN)
        body["scope"]["project"].update(name=row["project_name"], domain=DOMAIN)
    return body


def application_credential(row: Row, base: str) -> Body:
    """Without its secret, which only the answer to its creation has."""
    end = row["expires_at"]
    return {
        "id": row["id"],
        "name": row["name"],
        "description": row["description"],
        "project_id": row["project_id"],
        "user_id": row["user_id"],
        "roles": [{**entry, "domain_id": None} for entry in named_roles(row["roles"])],
        "unrestricted": row["unrestricted"],
        "expires_at": None if end is None else time_text(end).rstrip("Z"),  # as Keystone, without a zone
        "links": {"self": f"{base}/identity/v3/users/{row['user_id']}/application_credentials/{row['id']}"},
    }


def ec2_credential(row: Row, base: str) -> Body:
    return {
        "access": row["access"],
        "secret": row["secret"],
        "user_id": row["user_id"],
        "tenant_id": row["project_id"],
        "trust_id": None,
        "links": {"self": f"{base}/identity/v3/users/{row['user_id']}/credentials/OS-EC2/{row['access']}"},
    }


def listing(kind: str, items: t.Sequence[Body], url: str) -> Body:
    return {kind: list(items), "links": {"self": url, "previous": None, "next": None}}
