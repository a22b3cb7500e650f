# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalog's doors: what one refuses, the others refuse, too."""

from __future__ import annotations

import typing as t

import pytest

from tests.api import ec2_door
from tests.api.ec2_door import Door, refused
from tests.api.seeds import PUBLIC_KEY, Api


@pytest.fixture
def door(api: Api) -> t.Iterator[Door]:
    with ec2_door.open_door(api) as opened:
        yield opened


@pytest.mark.parametrize("name", ["a/b", "what?", "{{ a }}"])
def test_a_key_pairs_name_is_one_that_nova_takes(door: Door, name: str) -> None:
    """A name with a slash could be made by EC2, and had no path in the Compute API to be shown or deleted by."""
    nova = door.api.client_as("demo")
    body: dict[str, t.Any] = {"keypair": {"name": name, "public_key": PUBLIC_KEY}}
    assert nova.post("/compute/v2.1/os-keypairs", json=body).status_code == 400
    with refused("InvalidParameterValue"):
        door.client().import_key_pair(KeyName=name, PublicKeyMaterial=PUBLIC_KEY)
    with refused("InvalidParameterValue"):
        door.client().create_key_pair(KeyName=name, KeyType="ed25519")
