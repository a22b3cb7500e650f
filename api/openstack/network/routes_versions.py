# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documents by which clients find out what is spoken here. Anybody may read them."""

from __future__ import annotations

from flask import request

from ...web.bodies import Answer
from .blueprint import network, network_versions


@network_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    links = [{"rel": "self", "href": f"{request.url_root}network/v2.0/"}]
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}, 200


@network.get("/", "version", strict_slashes=False)
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
