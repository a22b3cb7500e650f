# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of requests to Identity v3."""

from __future__ import annotations

from ...web.schemas import NAME, OPTIONAL, Schema, a_list, an_object, of, or_null, wrapped

ID: Schema = {**NAME, "maxLength": 64}
SECRET: Schema = {"type": "string", "maxLength": 4096}
NOTHING: Schema = {"type": "array", "maxItems": 0}
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
    "name": ID,
    "description": OPTIONAL,
    "enabled": {"type": "boolean"},
    "domain_id": ID,
    "parent_id": or_null({"type": "string", "maxLength": 64}),
    "is_domain": {"enum": [False]},
    "tags": NOTHING,
    "options": {"type": "object", "maxProperties": 0},
}
CREATE_PROJECT = wrapped("project", _PROJECT, ["name"])
UPDATE_PROJECT = wrapped("project", _PROJECT)

_USER_FIELDS: Schema = {
    "name": NAME,
    "password": or_null({**SECRET, "minLength": 1}),
    "description": OPTIONAL,
    "email": OPTIONAL,
    "enabled": {"type": "boolean"},
    "domain_id": ID,
    "default_project_id": or_null({"type": "string", "maxLength": 64}),
    "project_id": or_null({"type": "string", "maxLength": 64}),  # as clients of version 2 send it; of no effect
    "options": {"type": "object", "maxProperties": 0},
}
CREATE_USER = wrapped("user", _USER_FIELDS, ["name"])
UPDATE_USER = wrapped("user", {**_USER_FIELDS, "id": ID})  # of clients that send all they know
CHANGE_PASSWORD = wrapped(
    "user", {"password": {**SECRET, "minLength": 1}, "original_password": SECRET}, ["password", "original_password"]
)

CREATE_APPLICATION_CREDENTIAL = wrapped(
    "application_credential",
    {
        "name": NAME,
        "description": OPTIONAL,
        # as for a password, and long enough that nobody can try them all
        "secret": or_null({**SECRET, "minLength": 16}),
        "expires_at": or_null({"type": "string", "maxLength": 64}),
        "roles": a_list(an_object({"id": ID, "name": NAME, "domain_id": {"type": "null"}}), 10),
        "unrestricted": {"type": "boolean"},
        "access_rules": NOTHING,
        "project_id": ID,
    },
    ["name"],
)
CREATE_EC2_CREDENTIAL = of("tenant_id", ID)
