# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of requests to Identity v3."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.attributes import MOST

from ...web.schemas import NAME, OPTIONAL, Schema, a_list, an_object, of, or_null, wrapped

ID: Schema = {**NAME, "maxLength": 64}
SECRET: Schema = {"type": "string", "maxLength": 4096}
NO_OPTIONS: Schema = {"type": "object", "maxProperties": 0}
# attributes of the clients' own, which Keystone keeps beside those that it knows
EXTRA: Schema = {"type": ["string", "boolean", "null"], "maxLength": 255}
DOMAIN = an_object({"id": NAME, "name": NAME}, more=True, minProperties=1)
_USER: Schema = {"id": ID, "name": NAME, "domain": DOMAIN}


AUTHENTICATE = an_object(
    {
        "auth": an_object(
            {
                "identity": an_object(
                    {
                        "methods": a_list(NAME, 4, 1),
                        "password": an_object(
                            {"user": an_object({**_USER, "password": SECRET}, ["password"], more=True)}, ["user"]
                        ),
                        "token": an_object({"id": SECRET}, ["id"]),
                        "application_credential": an_object(
                            {"id": ID, "name": NAME, "secret": SECRET, "user": an_object(_USER)}, ["secret"]
                        ),
                    },
                    ["methods"],
                    more=True,
                ),
                "scope": {
                    "oneOf": [
                        {"type": "string", "enum": ["unscoped"]},
                        an_object(
                            {
                                "project": an_object(_USER, more=True),
                                "domain": an_object({"id": NAME, "name": NAME}, more=True),
                                "system": {"type": "object"},
                                "OS-TRUST:trust": an_object({"id": ID}, ["id"]),
                            }
                        ),
                    ]
                },
            },
            ["identity"],
        )
    },
    ["auth"],
)


def _open(name: str, properties: Schema, required: t.Sequence[str] = ()) -> Schema:
    """{"<name>": {...}} with attributes of the client's own."""
    fixed = {**properties, "id": False, "links": False, **({"id": properties["id"]} if "id" in properties else {})}
    return of(name, an_object(fixed, required, EXTRA, maxProperties=MOST))


_FLAG: Schema = {"type": "boolean"}
TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^,/]*$"}
TAGS = a_list(TAG, 80)
_DOMAIN: Schema = {"name": ID, "description": OPTIONAL, "enabled": _FLAG, "tags": a_list(TAG, 0), "options": NO_OPTIONS}
CREATE_DOMAIN = wrapped("domain", {**_DOMAIN, "explicit_domain_id": {"enum": [None]}}, ["name"])
UPDATE_DOMAIN = wrapped("domain", _DOMAIN)

_PROJECT: Schema = {
    "name": ID,
    "description": OPTIONAL,
    "enabled": _FLAG,
    "domain_id": or_null(ID),
    "parent_id": or_null({"type": "string", "maxLength": 64}),
    "is_domain": _FLAG,
    "tags": TAGS,
    "options": NO_OPTIONS,
}
CREATE_PROJECT = _open("project", _PROJECT, ["name"])
UPDATE_PROJECT = _open("project", _PROJECT)
REPLACE_TAGS = of("tags", TAGS)

_USER_OPTIONS = an_object(
    {
        **{
            name: {"type": ["boolean", "null"]}
            for name in (
                *("ignore_change_password_upon_first_use", "ignore_lockout_failure_attempts", "ignore_password_expiry"),
                *("ignore_user_inactivity", "lock_password", "multi_factor_auth_enabled"),
            )
        },
        "multi_factor_auth_rules": or_null(a_list(a_list(NAME, 10, 1), 20)),
    }
)
_USER_FIELDS: Schema = {
    "name": NAME,
    "password": or_null({**SECRET, "minLength": 1}),
    "description": OPTIONAL,
    "email": OPTIONAL,
    "enabled": _FLAG,
    "domain_id": or_null(ID),
    "default_project_id": or_null({"type": "string", "maxLength": 64}),
    "options": _USER_OPTIONS,
}
CREATE_USER = _open("user", _USER_FIELDS, ["name"])
UPDATE_USER = _open("user", {**_USER_FIELDS, "id": ID})  # of clients that send all they know
CHANGE_PASSWORD = wrapped(
    "user", {"password": {**SECRET, "minLength": 1}, "original_password": SECRET}, ["password", "original_password"]
)

_GROUP: Schema = {"name": ID, "description": OPTIONAL, "domain_id": or_null(ID)}
CREATE_GROUP = _open("group", _GROUP, ["name"])
UPDATE_GROUP = _open("group", _GROUP)

_ROLE: Schema = {"name": NAME, "description": OPTIONAL, "domain_id": or_null(ID), "options": NO_OPTIONS}
CREATE_ROLE = wrapped("role", _ROLE, ["name"])
UPDATE_ROLE = wrapped("role", {**_ROLE, "id": ID})

_NAMED_ROLES = a_list(an_object({"id": ID, "name": NAME, "domain_id": or_null(ID)}, minProperties=1), 20)
_TIME: Schema = or_null({"type": "string", "maxLength": 64})
CREATE_TRUST = wrapped(
    "trust",
    {
        "trustor_user_id": ID,
        "trustee_user_id": ID,
        "impersonation": _FLAG,
        "project_id": or_null(ID),
        "roles": _NAMED_ROLES,
        "expires_at": _TIME,
        "remaining_uses": {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1},
        "allow_redelegation": {"type": ["boolean", "null"]},
        "redelegation_count": {"type": ["integer", "null"], "minimum": 0, "maximum": 3},
        "redelegated_trust_id": {"type": "null"},
    },
    ["trustor_user_id", "trustee_user_id", "impersonation"],
)

BLOB: Schema = {"type": "string", "minLength": 1, "maxLength": 16384}
_CREDENTIAL: Schema = {"type": NAME, "blob": BLOB, "project_id": or_null(ID), "user_id": ID}
CREATE_CREDENTIAL = wrapped("credential", _CREDENTIAL, ["type", "blob"])
UPDATE_CREDENTIAL = wrapped("credential", {**_CREDENTIAL, "id": ID})

_ACCESS_RULE: Schema = {
    "oneOf": [
        an_object({"id": ID}, ["id"]),
        an_object(
            {
                "service": ID,
                "method": {"enum": ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]},
                "path": {"type": "string", "maxLength": 225, "pattern": "^/"},
            },
            ["service", "method", "path"],
        ),
    ]
}
CREATE_APPLICATION_CREDENTIAL = wrapped(
    "application_credential",
    {
        "name": NAME,
        "description": OPTIONAL,
        # as for a password: guesses are slowed down, and lock the address that they come from
        "secret": or_null({**SECRET, "minLength": 8}),
        "expires_at": _TIME,
        "roles": _NAMED_ROLES,
        "unrestricted": {"type": ["boolean", "null"]},
        "access_rules": a_list(_ACCESS_RULE, 100),
        "project_id": ID,
    },
    ["name"],
)
CREATE_EC2_CREDENTIAL = of("tenant_id", ID)
