# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and ids of images: they mean the same image at every door, whatever others call theirs."""

from __future__ import annotations

import typing as t
import uuid

import botocore.exceptions
import pytest

from tests.api import conftest, ec2_door
from tests.api.ec2_door import Door
from tests.api.seeds import IMAGE_ID, Api

AMI = f"ami-{IMAGE_ID.replace('-', '')[:17]}"
NAME = "ami-tiny"
UNKNOWN = "theirs"  # no image of the project's, the cloud's or the public's has that name
DISK = {"disk_format": "raw", "container_format": "bare"}
Client = t.Any


def upload(client: Client, **values: t.Any) -> str:
    """A new image with data. Returns its id."""
    made = client.post("/image/v2/images", json={**DISK, **values})
    assert made.status_code == 201, made.get_data(as_text=True)
    number = str(made.get_json()["id"])
    sent = {"Content-Type": "application/octet-stream"}
    assert client.put(f"/image/v2/images/{number}/file", data=bytes(512), headers=sent).status_code == 204
    return number


@pytest.fixture(scope="module")
def door(seeded: t.Any, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Door]:
    """A cloud in which alt gave its images all the names that the public image is asked for by."""
    with conftest.application(seeded, tmp_path_factory.mktemp("images") / "cloud") as api:
        alt = api.client_as("alt")
        for name in (NAME, AMI, AMI[:12], IMAGE_ID, UNKNOWN):
            upload(alt, name=name, visibility="community")
            shared = upload(alt, name=name, visibility="shared")  # offered to demo, who has not accepted it
            path = f"/image/v2/images/{shared}/members"
            assert alt.post(path, json={"member": api.projects["demo"]}).status_code == 200
        with ec2_door.open_door(api) as opened:
            yield opened


def servers(api: Api) -> dict[str, str]:
    """The ids of the images of demo's servers, by the servers' ids."""
    listed = api.client_as("demo").get("/compute/v2.1/servers/detail").get_json()["servers"]
    return {server["id"]: server["image"]["id"] for server in listed}


def by_ec2(door: Door, image: str) -> bool:
    """Launch of `image` at EC2; return whether it did. What it describes is what it launches of."""
    client = door.client()
    try:
        client.run_instances(ImageId=image, InstanceType="m1.tiny", MinCount=1, MaxCount=1)
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"].startswith("InvalidAMIID."), error
        with pytest.raises(botocore.exceptions.ClientError):
            client.describe_images(ImageIds=[image])
        return False
    assert [shown["ImageId"] for shown in client.describe_images(ImageIds=[image])["Images"]] == [AMI]
    return True


def by_compute(door: Door, image: str) -> bool:
    """Launch of `image` at Compute; return whether it did."""
    server = {"name": "new", "imageRef": image, "flavorRef": "1"}
    answer = door.api.client_as("demo").post("/compute/v2.1/servers", json={"server": server})
    assert answer.status_code in (202, 400), answer.get_data(as_text=True)
    return answer.status_code == 202


def by_v1(door: Door, image: str) -> bool:
    """Plan with `image` at /v1; return whether it did. If so, launch of it as its job does, by name in a playbook."""
    server = {"name": f"new-{uuid.uuid4().hex}", "flavor": "m1.tiny", "image": image}
    answer = door.api.client_as("demo").post("/v1/plan", json={"servers": [server]})
    assert answer.status_code in (200, 400, 404), answer.get_data(as_text=True)
    if answer.status_code == 200:
        door.api.task("server", project="demo", state="present", servers=[server])
    return answer.status_code == 200


# who launches, and which ways to ask for the operator's image this door has
LAUNCHERS: dict[str, tuple[t.Callable[[Door, str], bool], tuple[str, ...]]] = {
    "ec2": (by_ec2, (NAME, AMI, AMI[:12], IMAGE_ID)),
    "compute": (by_compute, (IMAGE_ID,)),
    "v1": (by_v1, (NAME,)),
}


@pytest.mark.parametrize("asked", [NAME, AMI, AMI[:12], IMAGE_ID, UNKNOWN])
@pytest.mark.parametrize("by", LAUNCHERS)
def test_a_launch_means_the_operators_image_or_none(door: Door, by: str, asked: str) -> None:
    launch, ways = LAUNCHERS[by]
    before = servers(door.api)
    assert launch(door, asked) == (asked in ways)
    after = servers(door.api)
    assert [after[server] for server in after.keys() - before] == ([IMAGE_ID] if asked in ways else [])


@pytest.mark.parametrize("service", ["/image/v2/images", "/compute/v2.1/images"])
@pytest.mark.parametrize("asked", [NAME, AMI, IMAGE_ID, UNKNOWN])
def test_a_list_by_name_holds_the_operators_image_or_none(door: Door, service: str, asked: str) -> None:
    """An id is no name here; what is asked for by an id is that image."""
    demo = door.api.client_as("demo")
    listed = demo.get(service, query_string={"name": asked}).get_json()["images"]
    assert [image["id"] for image in listed] == ([IMAGE_ID] if asked == NAME else [])
    by_id = demo.get(f"{service}/{asked}")
    assert by_id.status_code == (200 if asked == IMAGE_ID else 404)
    if asked == IMAGE_ID:
        body = by_id.get_json()
        assert body.get("image", body)["name"] == NAME


@pytest.mark.parametrize("user", ["alt", "demo", "admin"])
@pytest.mark.parametrize("tail", ["fff-ffffffffffff", "a11-0d0c6a1f7a11"])
def test_nobody_takes_an_id_that_reads_as_anothers_at_ec2(door: Door, user: str, tail: str) -> None:
    number = f"{IMAGE_ID[:20]}{tail}"
    answer = door.api.client_as(user).post("/image/v2/images", json={**DISK, "id": number, "name": "x"})
    assert answer.status_code == 409
    assert [image["ImageId"] for image in door.client().describe_images(ImageIds=[AMI])["Images"]] == [AMI]
