# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cloud, three doors: an instance that is made through one of them, changed through another and deleted through
the third is the same through all, with a guest that runs. tests/api/agreement/test_three_doors.py does more, without.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
import typing as t

from .amazon import boto
from .cloud import ROOT, Cloud
from .report import Report

Seen = dict[str, t.Any]
TIMEOUT = 400.0  # seconds, for an instance to become what it is to be
IMAGE, FLAVOR, KEY = "ami-tiny", "m1.nano", "test"


class Playbook:
    def __init__(self, cloud: Cloud) -> None:
        self._home = str(cloud.home)
        self._inventory = os.environ.get("NOVALITE_INVENTORY") or str(ROOT / "inventories/lab")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [words[0], "-i", self._inventory, *words[1:]],
            cwd=ROOT,
            env={**os.environ, "NOVALITE_HOME": self._home, "ANSIBLE_FORCE_COLOR": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def _play(self, playbook: str, **variables: t.Any) -> None:
        self._run("ansible-playbook", "-e", json.dumps(variables), f"playbooks/{playbook}.yml")

    def create(self, name: str) -> None:
        server = {"name": name, "flavor": FLAVOR, "image": IMAGE, "key": KEY, "metadata": {"made": "here"}}
        self._play("launch", servers=[server])

    def see(self, name: str) -> Seen | None:
        asked = json.dumps({"name": name, "home": self._home})
        output = self._run("ansible", "localhost", "-m", "novalite.cloud.server_info", "-a", asked)
        servers = json.loads(output.partition("=>")[2])["servers"]
        if not servers:
            return None
        (server,) = servers
        return {
            "uuid": server["uuid"],
            "state": server["vm_state"],
            "flavor": server["flavor"]["name"],
            "key": server["key"]["name"],
            "image": server["image"]["id"],
            "metadata": server["metadata"],
            "ip": server["nics"][0]["ip"],
        }

    def stop(self, name: str) -> None:
        self._play("stop", name=name)

    def delete(self, name: str) -> None:
        self._play("terminate", name=name)


class OpenStack:
    def __init__(self, cloud: Cloud) -> None:
        self.sdk = cloud.connect()

    def create(self, name: str) -> None:
        self.sdk.create_server(
            name,
            image=IMAGE,
            flavor=FLAVOR,
            key_name=KEY,
            network="private",
            auto_ip=False,
            meta={"made": "here"},
            wait=True,
            timeout=int(TIMEOUT),
        )

    def see(self, name: str) -> Seen | None:
        server = self.sdk.get_server(name)
        if server is None:
            return None
        flavor = server.flavor.get("original_name") or self.sdk.get_flavor_by_id(server.flavor["id"]).name
        return {
            "uuid": server.id,
            "state": server.vm_state,
            "flavor": flavor,
            "key": server.key_name,
            "image": server.image["id"],
            "metadata": dict(server.metadata),
            "ip": server.addresses["private"][0]["addr"],
        }

    def stop(self, name: str) -> None:
        server = self.sdk.get_server(name)
        self.sdk.compute.stop_server(server)
        self.sdk.compute.wait_for_server(server, status="SHUTOFF", wait=int(TIMEOUT))

    def delete(self, name: str) -> None:
        assert self.sdk.delete_server(name, wait=True, timeout=int(TIMEOUT))


class Ec2:
    STATES = {"running": "active"}

    def __init__(self, cloud: Cloud) -> None:
        self._client = boto(cloud)

    def create(self, name: str) -> None:
        tags = [{"Key": "Name", "Value": name}, {"Key": "made", "Value": "here"}]
        made = self._client.run_instances(
            ImageId=IMAGE,
            InstanceType=FLAVOR,
            KeyName=KEY,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        self._client.get_waiter("instance_running").wait(InstanceIds=[made["Instances"][0]["InstanceId"]])

    def _instance(self, name: str) -> Seen | None:
        """By its name in DNS, which every server has."""
        asked = [
            {"Name": "private-dns-name", "Values": [name]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ]
        reservations = self._client.describe_instances(Filters=asked)["Reservations"]
        return t.cast(Seen, reservations[0]["Instances"][0]) if reservations else None

    def _number(self, name: str) -> list[str]:
        server = self._instance(name)
        assert server is not None, f"no {name}"
        return [server["InstanceId"]]

    def see(self, name: str) -> Seen | None:
        server = self._instance(name)
        if server is None:
            return None
        state = server["State"]["Name"]
        return {
            "uuid": server["InstanceId"],
            "state": self.STATES.get(state, state),
            "flavor": server["InstanceType"],
            "key": server["KeyName"],
            "image": server["ImageId"],
            "ip": server["PrivateIpAddress"],
            "metadata": {tag["Key"]: tag["Value"] for tag in server["Tags"]},
        }

    def stop(self, name: str) -> None:
        number = self._number(name)
        self._client.stop_instances(InstanceIds=number)
        self._client.get_waiter("instance_stopped").wait(InstanceIds=number)

    def delete(self, name: str) -> None:
        number = self._number(name)
        self._client.terminate_instances(InstanceIds=number)
        self._client.get_waiter("instance_terminated").wait(InstanceIds=number)


def run(report: Report, cloud: Cloud) -> None:
    part = "doors"
    playbook, openstack, ec2 = Playbook(cloud), OpenStack(cloud), Ec2(cloud)
    rounds: list[tuple[t.Any, t.Any, t.Any]] = [
        (playbook, ec2, openstack),
        (openstack, playbook, ec2),
        (ec2, openstack, playbook),
    ]

    def same(name: str) -> Seen | None:
        """Return what all doors show; EC2's ids are the beginning of the others'."""
        first, second, third = (door.see(name) for door in (playbook, openstack, ec2))
        assert first == second, (first, second)
        if first is not None and third is not None:
            for field, kind in (("uuid", "i-"), ("image", "ami-")):
                assert third.pop(field) == kind + first[field].replace("-", "")[:17]
            assert third == {key: value for key, value in first.items() if key in third}, (first, third)
        assert (first is None) == (third is None), (first, third)
        return first

    def lives(name: str, creates: t.Any, changes: t.Any, deletes: t.Any) -> None:
        creates.create(name)
        seen = _until(lambda: same(name), "active")
        assert (seen["flavor"], seen["key"]) == (FLAVOR, KEY) and seen["metadata"]["made"] == "here", seen
        assert cloud.ssh(seen["uuid"], "hostname") == name
        changes.stop(name)
        assert _until(lambda: same(name), "stopped") == {**seen, "state": "stopped"}
        deletes.delete(name)
        assert same(name) is None

    for doors in rounds:
        words = [type(door).__name__ for door in doors]
        with report.step(part, "made by {}, stopped by {}, deleted by {}".format(*words)):
            lives(f"door-{secrets.token_hex(3)}", *doors)
    openstack.sdk.close()


def _until(look: t.Callable[[], Seen | None], state: str) -> Seen:
    """Return what is seen as soon as all doors say this state."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        seen = look()
        if seen is not None and seen["state"] == state:
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(1)
