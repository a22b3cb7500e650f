# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata service's documents for one guest, by their paths."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._guest.metadata import (
    EC2_VERSIONS,
    OPENSTACK_VERSIONS,
    ec2_listing,
    ec2_meta_data,
    openstack_meta_data,
)
from ansible_collections.novalite.cloud.plugins.module_utils._guest.network_data import openstack_network_data
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

LATEST = "latest"
OPENSTACK = "openstack"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BYTES = "application/octet-stream"  # may be compressed, or in any character set

RANDOM_SEED_BYTES = 512  # Nova's


@dataclasses.dataclass(frozen=True)
class Guest:
    instance: Instance
    user_data: str | None = None  # base64
    files: list[dict[str, str]] = dataclasses.field(default_factory=list)  # path, content (base64)
    tokens_required: bool = False  # no answer without a session token


class Document(t.NamedTuple):
    body: bytes
    content_type: str


def find(guest: Guest, path: str) -> Document | None:
    """The document at `path` (without its leading slash), or None."""
    words = [word for word in path.split("/") if word]
    if words[:1] == [OPENSTACK]:
        return _openstack(guest, words[1:])
    return _ec2(guest, words)


def _openstack(guest: Guest, words: list[str]) -> Document | None:
    if not words:
        return _text("\n".join((*OPENSTACK_VERSIONS, LATEST)))
    if words[0] == "content" and len(words) == 2:
        return _file(guest, words[1])
    if words[0] not in (*OPENSTACK_VERSIONS, LATEST):
        return None
    makers: dict[str, t.Callable[[Guest], Document]] = {
        "meta_data.json": _meta_data,
        "network_data.json": lambda guest: _json(openstack_network_data(guest.instance)),
        "password": lambda guest: _text(""),  # none was posted: there is no place to keep one
        "vendor_data.json": lambda guest: _json({}),
        "vendor_data2.json": lambda guest: _json({}),
    }
    if guest.user_data is not None:
        makers["user_data"] = _user_data
    if len(words) == 1:
        return _text("\n".join(sorted(makers)))
    maker = makers.get(words[1]) if len(words) == 2 else None
    return None if maker is None else maker(guest)


def _ec2(guest: Guest, words: list[str]) -> Document | None:
    if not words:
        return _text("\n".join((*EC2_VERSIONS, LATEST)))
    if words[0] not in (*EC2_VERSIONS, LATEST):
        return None
    if words[1:] == ["user-data"]:
        return None if guest.user_data is None else _user_data(guest)
    if len(words) == 1:
        return _text("meta-data/" if guest.user_data is None else "meta-data/\nuser-data")
    if words[1] != "meta-data":
        return None
    node: Json = ec2_meta_data(guest.instance)
    for word in words[2:]:
        # what begins with an underscore is said about a directory, and is not in it
        node = node.get(word) if isinstance(node, dict) and not word.startswith("_") else None
    return None if node is None else _text(ec2_listing(node))


def _meta_data(guest: Guest) -> Document:
    return _json(
        openstack_meta_data(
            guest.instance,
            files=[file["path"] for file in guest.files],
            random_seed=base64.b64encode(os.urandom(RANDOM_SEED_BYTES)).decode(),
        )
    )


def _user_data(guest: Guest) -> Document:
    return Document(base64.b64decode(guest.user_data or ""), BYTES)


def _file(guest: Guest, name: str) -> Document | None:
    if len(name) != 4 or not name.isascii() or not name.isdigit() or int(name) >= len(guest.files):
        return None
    return Document(base64.b64decode(guest.files[int(name)]["content"]), BYTES)


def _text(text: str) -> Document:
    return Document(text.encode(), TEXT)


def _json(value: JsonMapping) -> Document:
    return Document(json.dumps(value).encode(), JSON)
