# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of the ledger as Identity v3 shows them."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import ROLES

from ...web.addresses import base_url
from ...web.bodies import Body, Record, same
from ...web.context import Caller
from ...web.times import with_microseconds
from . import catalog as catalogs


def unknown(what: str, identifier: str) -> NotFoundError:
    return NotFoundError(f"Could not find {what}: {identifier[:64]}.")


def time_text(seconds: float) -> str:
    """Format a time as Keystone does: UTC, with microseconds."""
    return f"{with_microseconds(seconds)}Z"


def role_id(number: str) -> str:
    """The id of a role as clients know it: those that come with the ledger have other ones there."""
    return catalogs.fixed_id("role", number) if number in ROLES else number


def role_number(identifier: str) -> str:
    """The ledger's id of the role that clients know as `identifier`."""
    return next((name for name in ROLES if role_id(name) == identifier), "" if identifier in ROLES else identifier)


def role(row: Record) -> Body:
    return {
        **same(row, "name", "domain_id", "description"),
        "id": role_id(row["id"]),
        "options": {"immutable": True} if row["id"] in ROLES else {},
        "links": {"self": catalogs.url(f"roles/{role_id(row['id'])}")},
    }


def named_roles(names: t.Mapping[str, str], ids: t.Iterable[str] | None = None) -> list[Body]:
    """The highest first, as Keystone lists what a role implies; `names` are those of other roles than the four."""
    shown = set(names if ids is None else ids)
    others = sorted(shown - set(ROLES), key=lambda number: (names.get(number, ""), number))
    known: list[Body] = [{"id": role_id(name), "name": name} for name in reversed(ROLES) if name in shown]
    return known + [{"id": number, "name": names[number]} for number in others if number in names]


def _domain_of(shown: t.Mapping[str, str], what: str) -> Body:
    return {"id": shown[f"{what}_domain_id"], "name": shown[f"{what}_domain"]}


def token(caller: Caller, credential: Record | None = None, with_catalog: bool = True) -> Body:
    shown = caller.shown
    body: Body = {
        "methods": caller.method.split(","),
        "user": {
            "domain": _domain_of(shown, "user"),
            "id": caller.user_id,
            "name": shown["user"],
            "password_expires_at": None,
        },
        "audit_ids": [caller.audit_id],
        "expires_at": time_text(caller.expires_at),
        "issued_at": time_text(caller.issued_at),
    }
    if caller.domain_id is not None:
        body["domain"] = {"id": caller.domain_id, "name": shown["domain"]}
    if caller.project_id is not None:
        project_domain = _domain_of(shown, "project")
        body["project"] = {"domain": project_domain, "id": caller.project_id, "name": shown["project"]}
        body["is_domain"] = False
    if caller.domain_id is not None or caller.project_id is not None:
        body["roles"] = named_roles(caller.role_names, caller.roles)
        if with_catalog:
            body["catalog"] = catalogs.catalog(caller.project_id)
    if caller.trust is not None:
        body["OS-TRUST:trust"] = {
            **same(caller.trust, "id", "impersonation"),
            "trustor_user": {"id": caller.trust["trustor_user_id"]},
            "trustee_user": {"id": caller.trust["trustee_user_id"]},
        }
    if credential is not None:
        restricted = not credential["unrestricted"]
        rules = {"access_rules": credential["access_rules"]} if credential["access_rules"] else {}
        body["application_credential"] = {**same(credential, "id", "name"), "restricted": restricted, **rules}
    return {"token": body}


def domain(row: Record) -> Body:
    return {
        **same(row, "id", "name", "description", "enabled"),
        "tags": [],
        "options": {},
        "links": {"self": catalogs.url(f"domains/{row['id']}")},
    }


def project(row: Record) -> Body:
    return {
        **row["extra"],
        **same(row, "id", "description", "enabled", "domain_id", "tags"),
        "name": row["shown_name"],
        "parent_id": row["parent_id"] or row["domain_id"],
        "is_domain": False,
        "options": {},
        "links": {"self": catalogs.url(f"projects/{row['id']}")},
    }


def cloud_as_project() -> Body:
    """The owner of what the cloud's operator registered: no list has it, and it can be looked up."""
    row = {"id": catalogs.CLOUD, "shown_name": "cloud", "description": "The cloud's operator", "enabled": True}
    return project({**row, "domain_id": "default", "parent_id": None, "tags": [], "extra": {}})


def domain_as_project(row: Record) -> Body:
    """A domain as a project that acts as one."""
    links = {"self": catalogs.url(f"projects/{row['id']}")}
    return {**domain(row), "domain_id": None, "parent_id": None, "is_domain": True, "links": links}


def user(row: Record) -> Body:
    email = {} if row["email"] is None else {"email": row["email"]}
    return {
        **row["extra"],
        **same(row, "id", "description", "enabled", "domain_id", "default_project_id", "options"),
        "name": row["shown_name"],
        "password_expires_at": None,
        "links": {"self": catalogs.url(f"users/{row['id']}")},
        **email,
    }


def group(row: Record) -> Body:
    return {
        **row["extra"],
        **same(row, "id", "name", "description", "domain_id"),
        "links": {"self": catalogs.url(f"groups/{row['id']}")},
    }


def assignment(row: Record, with_names: bool = False) -> Body:
    """Render the assignment of a role to a user or a group, in a project or a domain."""

    def part(word: str, in_domain: bool = True) -> Body:
        body: Body = {"id": row[f"{word}_id"]}
        if with_names:
            body["name"] = row[f"{word}_name"]
        if with_names and in_domain:
            body["domain"] = {"id": row[f"{word}_domain_id"], "name": row[f"{word}_domain_name"]}
        return body

    actor = "user" if row["user_id"] is not None else "group"
    target = "project" if row["project_id"] is not None else "domain"
    shown_role: Body = {"id": role_id(row["role"])}
    if with_names:
        shown_role["name"] = row["role_name"]
    scope: Body = {target: part(target, target == "project")}
    if row["inherited"]:
        scope["OS-INHERIT:inherited_to"] = "projects"
    granted_row = row.get("through", row)
    links: Body = {"assignment": _assignment_url(granted_row)}
    if granted_row["group_id"] is not None and granted_row is not row:
        links["membership"] = catalogs.url(f"groups/{granted_row['group_id']}/users/{row['user_id']}")
    return {"role": shown_role, actor: part(actor), "scope": scope, "links": links}


def _assignment_url(row: Record) -> str:
    target = f"projects/{row['project_id']}" if row["project_id"] is not None else f"domains/{row['domain_id']}"
    actor = f"users/{row['user_id']}" if row["user_id"] is not None else f"groups/{row['group_id']}"
    path = f"{target}/{actor}/roles/{role_id(row['role'])}"
    return catalogs.url(f"OS-INHERIT/{path}/inherited_to_projects" if row["inherited"] else path)


def application_credential(row: Record, names: t.Mapping[str, str]) -> Body:
    """Without its secret, which only the answer to its creation has. `names` are its roles'."""
    end = row["expires_at"]
    return {
        **same(row, "id", "name", "description", "project_id", "user_id"),
        "roles": [{**entry, "domain_id": None} for entry in named_roles(names, row["roles"])],
        "unrestricted": row["unrestricted"],
        "expires_at": None if end is None else time_text(end).rstrip("Z"),  # as Keystone, without a zone
        "links": {"self": catalogs.url(f"users/{row['user_id']}/application_credentials/{row['id']}")},
        **({"access_rules": row["access_rules"]} if row["access_rules"] else {}),
    }


def access_rule(row: Record, user_id: str) -> Body:
    links = {"self": catalogs.url(f"users/{user_id}/access_rules/{row['id']}")}
    return {**same(row, "id", "service", "method", "path"), "links": links}


def trust(row: Record, roles: t.Sequence[Record] | None = None) -> Body:
    """Render a trust; lists leave the roles out, as Keystone's do."""
    url, end = catalogs.url(f"OS-TRUST/trusts/{row['id']}"), row["expires_at"]
    body: Body = {
        **same(row, "id", "trustor_user_id", "trustee_user_id", "project_id", "impersonation", "remaining_uses"),
        "expires_at": None if end is None else time_text(end),
        "deleted_at": None,
        "redelegation_count": 0,
        "redelegated_trust_id": None,
        "links": {"self": url},
    }
    if roles is None:
        return body
    links = {"self": f"{url}/roles", "previous": None, "next": None}
    return {**body, "roles": [role(record) for record in roles], "roles_links": links}


def credential(row: Record) -> Body:
    links = {"self": catalogs.url(f"credentials/{row['id']}")}
    return {**same(row, "id", "type", "user_id", "project_id", "blob"), "links": links}


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
    url = f"{base_url()}{request.path.rstrip('/')}"
    shown = list(items)
    for parameter, text in request.args.items():
        attribute, _blank, word = parameter.rpartition("__")
        compare, either = COMPARISONS.get(word), COMPARISONS.get(word.removeprefix("i"))
        if attribute and compare is not None:
            shown = [item for item in shown if compare(str(item.get(attribute) or ""), text)]
        elif attribute and either is not None:
            shown = [item for item in shown if either(str(item.get(attribute) or "").lower(), text.lower())]
    return {kind: shown, "links": {"self": url, "previous": None, "next": None}}
