# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documents by which clients find out what is spoken here. Anybody may read them."""

from __future__ import annotations

from flask import request

from ...web.bodies import Answer, Body
from .blueprint import compute, compute_versions
from .microversions import MAX_VERSION, MIN_VERSION, text


def _document() -> Body:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": text(MAX_VERSION),
        "min_version": text(MIN_VERSION),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{request.url_root}compute/v2.1/"}],
    }


@compute_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    return {"versions": [_document()]}, 200


@compute.get("/", "version", strict_slashes=False)
def show_version() -> Answer:
    media = [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]
    return {"version": {**_document(), "media-types": media}}, 200
