# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalog's doors: what one refuses, the others refuse, too."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from api.ec2 import ids
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


def test_a_protected_image_is_deleted_by_no_door(door: Door) -> None:
    api = door.api
    nova = glance = api.client_as("demo")
    body = {"name": "kept", "protected": True, "disk_format": "raw", "container_format": "bare"}
    number = glance.post("/image/v2/images", json=body).get_json()["id"]
    assert glance.delete(f"/image/v2/images/{number}").status_code == 403
    assert nova.delete(f"/compute/v2.1/images/{number}").status_code == 403
    with refused("OperationNotPermitted"):
        door.client().deregister_image(ImageId=ids.of("ami", number))
    with pytest.raises(NovaliteError, match="'kept' is protected"):
        api.task("image", project="demo", state="absent", images=[{"name": "kept"}])
    assert glance.get(f"/image/v2/images/{number}").status_code == 200


@pytest.mark.parametrize(("visibility", "status"), [("community", 403), ("private", 403), ("shared", 200)])
def test_only_a_shared_image_has_members(door: Door, visibility: str, status: int) -> None:
    """EC2 knows public images and others: sharing a private image is how it becomes a shared one."""
    glance, ec2, member = door.api.client_as("demo"), door.client(), "f" * 32
    body = {"name": "new", "visibility": visibility, "disk_format": "raw", "container_format": "bare"}
    number = glance.post("/image/v2/images", json=body).get_json()["id"]
    path = f"/image/v2/images/{number}/members"
    assert glance.post(path, json={"member": member}).status_code == status
    permission = {"ImageId": ids.of("ami", number), "LaunchPermission": {"Add": [{"UserId": "e" * 32}]}}
    if visibility == "community":
        with refused("UnauthorizedOperation"):
            ec2.modify_image_attribute(**permission)
        assert glance.get(path).get_json()["members"] == []
    else:
        ec2.modify_image_attribute(**permission)
        assert "e" * 32 in [sharing["member_id"] for sharing in glance.get(path).get_json()["members"]]
