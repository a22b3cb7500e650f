# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cloud, three doors: what a playbook, the OpenStack API or the EC2 API makes, each of the others sees the same,
changes and deletes."""

from __future__ import annotations

import typing as t

import pytest

from tests.api import ec2_door
from tests.api.ec2.test_ec2_instances import RUN, became
from tests.api.ec2_door import Door
from tests.api.seeds import IMAGE_ID, Api

Seen = dict[str, t.Any]
COMPUTE = "/compute/v2.1/servers"


class Playbook:
    """As launch.yml and its like do: servers by their names."""

    def __init__(self, door: Door) -> None:
        self.api = door.api

    def create(self, name: str) -> None:
        server = {"name": name, "flavor": "m1.tiny", "image": "ami-tiny", "key": "test", "metadata": {"made": "here"}}
        self.api.task("server", project="demo", state="present", servers=[server])

    def see(self, name: str) -> Seen:
        (instance,) = self.api.task("server_info", project="demo", names=[name])["servers"]
        return {
            "uuid": instance["uuid"],
            "state": instance["vm_state"],
            "flavor": instance["flavor"]["name"],
            "key": instance["key"]["name"],
            "image": instance["image"]["id"],
            "metadata": instance["metadata"],
            "ip": instance["nics"][0]["ip"],
            "groups": [group["name"] for group in instance["security_groups"]],
        }

    def delete(self, name: str) -> None:
        self.api.task("server", project="demo", state="absent", servers=[{"name": name}])


class OpenStack:
    def __init__(self, door: Door) -> None:
        self.client = door.api.client_as("demo")

    def create(self, name: str) -> None:
        flavors = self.client.get("/compute/v2.1/flavors").get_json()["flavors"]
        (flavor,) = (record["id"] for record in flavors if record["name"] == "m1.tiny")
        server = {
            "name": name,
            "flavorRef": flavor,
            "imageRef": IMAGE_ID,
            "key_name": "test",
            "metadata": {"made": "here"},
        }
        assert self.client.post(COMPUTE, json={"server": server}).status_code == 202

    def see(self, name: str) -> Seen:
        latest = {"OpenStack-API-Version": "compute 2.96"}
        (instance,) = self.client.get(f"{COMPUTE}/detail?name=^{name}$", headers=latest).get_json()["servers"]
        return {
            "uuid": instance["id"],
            "state": instance["OS-EXT-STS:vm_state"],
            "flavor": instance["flavor"]["original_name"],
            "key": instance["key_name"],
            "image": instance["image"]["id"],
            "metadata": instance["metadata"],
            "ip": next((ip["addr"] for ips in instance["addresses"].values() for ip in ips), None),
            "groups": [group["name"] for group in instance["security_groups"]],
        }

    def change(self, name: str) -> None:
        path = f"{COMPUTE}/{self.see(name)['uuid']}/metadata"
        assert self.client.post(path, json={"metadata": {"changed": "there"}}).status_code == 200

    def delete(self, name: str) -> None:
        assert self.client.delete(f"{COMPUTE}/{self.see(name)['uuid']}").status_code == 204


class Ec2:
    STATES = {"pending": "building", "running": "active"}

    def __init__(self, door: Door) -> None:
        self.client = door.client()

    def create(self, name: str) -> None:
        tags = [{"Key": "Name", "Value": name}, {"Key": "made", "Value": "here"}]
        self.client.run_instances(**RUN, KeyName="test", TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])

    def _instance(self, name: str) -> Seen:
        """By its name in DNS, which every server has."""
        asked = [{"Name": "private-dns-name", "Values": [name]}]
        (reservation,) = self.client.describe_instances(Filters=asked)["Reservations"]
        return t.cast(Seen, reservation["Instances"][0])

    def see(self, name: str) -> Seen:
        instance = self._instance(name)
        return {
            "uuid": instance["InstanceId"],
            "state": self.STATES[instance["State"]["Name"]],
            "flavor": instance["InstanceType"],
            "key": instance["KeyName"],
            "image": instance["ImageId"],
            "ip": instance.get("PrivateIpAddress"),
            "metadata": {tag["Key"]: tag["Value"] for tag in instance["Tags"]},
            "groups": [group["GroupName"] for group in instance["SecurityGroups"]],
        }

    def change(self, name: str) -> None:
        number = self._instance(name)["InstanceId"]
        self.client.create_tags(Resources=[number], Tags=[{"Key": "changed", "Value": "there"}])

    def delete(self, name: str) -> None:
        self.client.terminate_instances(InstanceIds=[self._instance(name)["InstanceId"]])


@pytest.fixture
def door(api: Api) -> t.Iterator[Door]:
    with ec2_door.open_door(api) as opened:
        yield opened


@pytest.mark.parametrize(
    ("creates", "changes", "deletes"),
    [(Playbook, Ec2, OpenStack), (OpenStack, Ec2, Playbook), (Ec2, OpenStack, Playbook), (Playbook, OpenStack, Ec2)],
)
def test_each_door_leads_to_the_same(door: Door, creates: t.Any, changes: t.Any, deletes: t.Any) -> None:
    doors: list[t.Any] = [Playbook(door), OpenStack(door), Ec2(door)]

    def same() -> Seen:
        """Return what all doors show; EC2's ids are the beginning of the others'."""
        first, second, amazons = (each.see("web") for each in doors)
        assert first == second
        for field, kind in (("uuid", "i-"), ("image", "ami-")):
            assert amazons.pop(field) == kind + first[field].replace("-", "")[:17]
        assert amazons == {name: value for name, value in first.items() if name not in ("uuid", "image")}
        return first

    creates(door).create("web")
    seen = same()
    assert (seen["state"], seen["flavor"], seen["key"]) == ("building", "m1.tiny", "test")
    assert seen["metadata"]["made"] == "here"
    became(door.api, doors[2].see("web")["uuid"])
    assert same()["state"] == "active"
    changes(door).change("web")
    assert same()["metadata"]["changed"] == "there"
    deletes(door).delete("web")
    states = {instance["task_state"] for instance in _instances(door.api)}
    assert states == {"deleting"}


def _instances(api: Api) -> list[Seen]:
    return t.cast("list[Seen]", api.task("server_info", project="demo")["servers"])
