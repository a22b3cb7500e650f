# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What clients may send to Identity v3, as JSON Schemas."""

from __future__ import annotations

import typing as t

Schema = dict[str, t.Any]

NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
SECRET: Schema = {"type": "string", "maxLength": 4096}
TEXT: Schema = {"type": ["string", "null"], "maxLength": 255}
DOMAIN: Schema = {"type": "object", "properties": {"id": NAME, "name": NAME}, "minProperties": 1}
_USER: Schema = {"id": ID, "name": NAME, "domain": DOMAIN}


def _object(properties: Schema, required: t.Sequence[str] = (), more: bool = False) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": more}


AUTHENTICATE = _object(
    {
        "auth": _object(
            {
                "identity": _object(
                    {
                        "methods": {"type": "array", "items": NAME, "minItems": 1, "maxItems": 4},
                        "password": _object(
                            {"user": _object({**_USER, "password": SECRET}, ["password"], more=True)}, ["user"]
                        ),
                        "token": _object({"id": SECRET}, ["id"]),
                        "application_credential": _object(
                            {"id": ID, "name": NAME, "secret": SECRET, "user": _object(_USER)}, ["secret"]
                        ),
                    },
                    ["methods"],
                    more=True,
                ),
                "scope": {
                    "oneOf": [
                        {"type": "string", "enum": ["unscoped"]},
                        _object(
                            {
                                "project": {"type": "object", "properties": {"id": ID, "name": NAME, "domain": DOMAIN}},
                                "domain": {"type": "object"},
                                "system": {"type": "object"},
                                "OS-TRUST:trust": {"type": "object"},
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

_PROJECT: Schema = {
    "name": {"type": "string", "minLength": 1, "maxLength": 64},
    "description": TEXT,
    "enabled": {"type": "boolean"},
    "domain_id": ID,
    "parent_id": {"type": ["string", "null"], "maxLength": 64},
    "is_domain": {"enum": [False]},
    "tags": {"type": "array", "maxItems": 0},
    "options": {"type": "object", "maxProperties": 0},
}
CREATE_PROJECT = _object({"project": _object(_PROJECT, ["name"])}, ["project"])
UPDATE_PROJECT = _object({"project": _object(_PROJECT)}, ["project"])

_USER_FIELDS: Schema = {
    "name": NAME,
    "password": {"type": ["string", "null"], "minLength": 1, "maxLength": 4096},
    "description": TEXT,
    "email": TEXT,
    "enabled": {"type": "boolean"},
    "domain_id": ID,
    "default_project_id": {"type": ["string", "null"], "maxLength": 64},
    "project_id": {"type": ["string", "null"], "maxLength": 64},  # as clients of version 2 send it; of no effect
    "options": {"type": "object", "maxProperties": 0},
}
CREATE_USER = _object({"user": _object(_USER_FIELDS, ["name"])}, ["user"])
UPDATE_USER = _object({"user": _object({**_USER_FIELDS, "id": ID})}, ["user"])  # of clients that send all they know
CHANGE_PASSWORD = _object(
    {
        "user": _object(
            {"password": {"type": "string", "minLength": 1, "maxLength": 4096}, "original_password": SECRET},
            ["password", "original_password"],
        )
    },
    ["user"],
)

CREATE_APPLICATION_CREDENTIAL = _object(
    {
        "application_credential": _object(
            {
                "name": NAME,
                "description": TEXT,
                # as for a password, and long enough that nobody can try them all
                "secret": {"type": ["string", "null"], "minLength": 16, "maxLength": 4096},
                "expires_at": {"type": ["string", "null"], "maxLength": 64},
                "roles": {
                    "type": "array",
                    "maxItems": 10,
                    "items": _object({"id": ID, "name": NAME, "domain_id": {"type": "null"}}),
                },
                "unrestricted": {"type": "boolean"},
                "access_rules": {"type": "array", "maxItems": 0},
                "project_id": ID,
            },
            ["name"],
        )
    },
    ["application_credential"],
)
CREATE_EC2_CREDENTIAL = _object({"tenant_id": ID}, ["tenant_id"])
