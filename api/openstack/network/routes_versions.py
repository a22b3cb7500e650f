# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documents by which clients find out what is spoken here. Anybody may read them."""

from __future__ import annotations

import typing as t

from flask import request

from ...web import policy
from .blueprint import Answer, network, network_versions


def _document() -> dict[str, t.Any]:
    return {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{request.url_root}network/v2.0/"}]}


@network_versions.get("/", strict_slashes=False)
@policy.allows("version")
def list_versions() -> Answer:
    return {"versions": [_document()]}, 200


@network.get("/", strict_slashes=False)
@policy.allows("version")
def show_version() -> Answer:
    names = ("network", "subnet", "port", "security_group", "security_group_rule", "floatingip", "router", "extension")
    return {
        "resources": [
            {
                "name": name,
                "collection": f"{name}s".replace("_", "-"),
                "links": [{"rel": "self", "href": f"{request.url_root}network/v2.0/{name}s".replace("_", "-")}],
            }
            for name in names
        ]
    }, 200
