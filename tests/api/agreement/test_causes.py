# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's words about a build that failed are what people read, at every door: however many hosts were tried, whatever
stands before it, and whatever it is made of."""

from __future__ import annotations

import errno
import json
import os
import random
import time
import typing as t

import click.testing
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api import cli
from tests.api import ec2_door
from tests.api.seeds import IMAGE_ID, QEMU, Api

FACTS = {
    **{"up": True, "vcpus": 8, "memory_mb": 4096, "disk_gb": 50, "traits": [], "arch": "x86_64"},
    **{"domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu-system-x86_64", "disk_cache": "none"},
}
TASKS = ("Bring the images into the cache", "Make the disks", "Define and start the domains", "Write into the disks")
WORDS = ["qemu-img:", "error", "x" * 40, "{{ 7 * 7 }}", "100%", '"quoted"', "it's", "\n", "\t", "\u6771", "[Errno 28]"]
# what stands around causes
WORDS += ["No valid host", "(the last of 3 attempts: ", "; 0 of 2 hosts remain"]
VERSION = {"OpenStack-API-Version": "compute 2.84"}


def story(chance: random.Random) -> tuple[str, str]:
    """A host's long story, and the cause at its end."""
    cause = f"{os.strerror(chance.choice(sorted(errno.errorcode)))}: '/var/lib/x{chance.randrange(10**9)}'"
    words = [chance.choice(WORDS) for _word in range(chance.choice([0, 1, 5, 40, 400]))]
    return f"{chance.choice(TASKS)}: {' '.join(words)} {cause}", cause


def tried(api: Api, count: int, further: bool, reasons: list[str]) -> tuple[str, str]:
    """Launch a server that `count` hosts fail to build; with `further`, there is one more. Its UUID, and what the run's
    last line says."""
    hosts = [f"node{number}" for number in range(count + further)]
    for host in ("hv1", "hv2"):
        api.change_host(host, enabled=False)
    for host in hosts:
        api.host(host, last_seen_at=int(time.time()), disk_gb=100, cpu_ratio=4.0, ram_ratio=1.5, facts=QEMU)
    seen = [{"name": host, "address": f"192.0.2.{number}", **FACTS} for number, host in enumerate(hosts, 1)]
    asked = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "key": "test"}
    to_build = api.task("server", servers=[asked], project="demo")["to_build"]
    going = api.task("launch_plan", instances=to_build, compute_hosts=seen)
    (uuid,) = (server["uuid"] for server in going["instances"])
    for reason in reasons:
        (server,) = going["instances"]
        outcome = {"uuids": [uuid], "host": server["host"], "state": "retry", "reason": reason}
        again = {"launch": going["launch"], "plans": going["hosts"], "outcomes": [outcome], "compute_hosts": seen}
        going = api.task("launch_record", **again)
    (last,) = going["launch"]["failures"]
    return uuid, last


def said(api: Api, uuid: str) -> dict[str, str]:
    """The cause as each door tells it."""
    admin, member = api.client_as("admin"), api.client_as("demo")
    shown = json.loads(
        click.testing.CliRunner(env={"NOVALITE_LEDGER_URL": api.url})
        .invoke(cli.main, ["show", uuid, "--output", "json"])
        .stdout
    )
    texts = {
        "novalite show": shown["fault"]["message"],
        "its action log": json.dumps(shown["actions"], ensure_ascii=False),
        "server_info": api.task("server_info", name="web", project="demo")["servers"][0]["fault"]["message"],
    }
    for who, client in (("admin", admin), ("member", member)):
        path = f"/compute/v2.1/servers/{uuid}"
        texts[f"Compute, {who}"] = client.get(path, headers=VERSION).get_json()["server"]["fault"]["message"]
        (action,) = client.get(f"{path}/os-instance-actions", headers=VERSION).get_json()["instanceActions"]
        assert action["message"] == "Error"
    with ec2_door.open_door(api) as door:
        (reservation,) = door.client().describe_instances()["Reservations"]
        texts["EC2"] = reservation["Instances"][0]["StateReason"]["Message"]
    return texts


@pytest.mark.parametrize(("count", "further"), [(1, False), (2, False), (3, False), (3, True)])
@pytest.mark.parametrize("seed", range(3))
def test_the_cause_is_what_everybody_reads(api: Api, seed: int, count: int, further: bool) -> None:
    chance = random.Random(f"{seed} {count} {further}")
    stories = [story(chance) for _host in range(count)]
    uuid, last_line = tried(api, count, further, [text for text, _cause in stories])
    cause = stories[-1][1]
    texts = {**said(api, uuid), "the run's last line": last_line}
    assert {door: text for door, text in texts.items() if cause not in text} == {}


def by_compute(api: Api, network: str) -> str:
    server = {"name": "web", "flavorRef": "1", "imageRef": IMAGE_ID, "networks": [{"uuid": network}]}
    return str(api.client_as("demo").post("/compute/v2.1/servers", json={"server": server}, headers=VERSION).get_json())


def by_attachment(api: Api, network: str) -> str:
    uuid = api.instance("demo", "there", "hv1")
    path, body = f"/compute/v2.1/servers/{uuid}/os-interface", {"interfaceAttachment": {"net_id": network}}
    return str(api.client_as("demo").post(path, json=body, headers=VERSION).get_json())


def by_port(api: Api, network: str) -> str:
    client = api.client_as("demo")
    made = client.post("/network/v2.0/ports", json={"port": {"network_id": network}}).get_json()["port"]["id"]
    server = {"name": "web", "flavorRef": "1", "imageRef": IMAGE_ID, "networks": [{"port": made}]}
    return str(client.post("/compute/v2.1/servers", json={"server": server}, headers=VERSION).get_json())


def by_playbook(api: Api, network: str) -> str:
    asked = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "key": "test", "networks": ["bare"]}
    with pytest.raises(NovaliteError) as caught:
        api.task("server", servers=[asked], project="demo")
    return str(caught.value)


def by_instances(api: Api, network: str) -> str:
    asked = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "networks": ["bare"]}
    return str(api.client_as("demo").post("/v1/plan", json={"servers": [asked]}).get_json())


@pytest.mark.parametrize("door", [by_compute, by_attachment, by_port, by_playbook, by_instances])
def test_a_network_that_lacks_a_subnet_is_called_so(api: Api, door: t.Callable[[Api, str], str]) -> None:
    made = api.client_as("demo").post("/network/v2.0/networks", json={"network": {"name": "bare"}}).get_json()
    before = api.rows(sa.select(tables.instance.c.name))
    text = door(api, made["network"]["id"])
    assert "requires a subnet" in text, text
    assert {row.name for row in api.rows(sa.select(tables.instance.c.name))} - {row.name for row in before} <= {"there"}
