# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secondary private addresses of interfaces through the EC2 dialect, asked for by boto3."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import give_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from tests.api.compute.test_interfaces_api import network
from tests.api.ec2.test_ec2_instances import became, described, jobs, run
from tests.api.ec2_door import Client, Door, refused


def started(door: Door, demo: Client, subnet: str | None = None) -> tuple[str, str]:
    """An instance on hv1 with an address, and its interface."""
    number = run(demo, **({} if subnet is None else {"SubnetId": subnet}))["InstanceId"]
    uuid = became(door.api, number)
    with transaction(door.api.engine) as connection:
        give_addresses(connection, instances_by(connection, uuids=[uuid]))
    (interface,) = described(demo, number)["NetworkInterfaces"]
    return number, interface["NetworkInterfaceId"]


def addresses(demo: Client, number: str) -> list[tuple[str, bool]]:
    (interface,) = described(demo, number)["NetworkInterfaces"]
    return [(entry["PrivateIpAddress"], entry["Primary"]) for entry in interface["PrivateIpAddresses"]]


def test_secondary_addresses_come_and_go(door: Door, demo: Client) -> None:
    number, interface = started(door, demo)
    ((first, _primary),) = addresses(demo, number)
    done = demo.assign_private_ip_addresses(NetworkInterfaceId=interface, SecondaryPrivateIpAddressCount=2)
    new = [entry["PrivateIpAddress"] for entry in done["AssignedPrivateIpAddresses"]]
    assert len(new) == 2 and done["NetworkInterfaceId"] == interface
    assert addresses(demo, number) == [(first, True), *((address, False) for address in new)]
    job = jobs(door.api)[-1]
    assert job.kind == "security_groups" and len(job.variables["ports"]) == 1
    with refused("InvalidParameterValue"):
        demo.unassign_private_ip_addresses(NetworkInterfaceId=interface, PrivateIpAddresses=[first])
    demo.unassign_private_ip_addresses(NetworkInterfaceId=interface, PrivateIpAddresses=new[:1])
    assert addresses(demo, number) == [(first, True), (new[1], False)]


def test_what_cannot_be_assigned(door: Door, demo: Client) -> None:
    number, interface = started(door, demo)
    with refused("UnauthorizedOperation"):  # on the operator's network a project chooses no addresses
        demo.assign_private_ip_addresses(NetworkInterfaceId=interface, PrivateIpAddresses=["10.20.0.77"])
    with refused("MissingParameter"):
        demo.assign_private_ip_addresses(NetworkInterfaceId=interface)
    with refused("InvalidParameterValue"):
        demo.assign_private_ip_addresses(NetworkInterfaceId=interface, SecondaryPrivateIpAddressCount=5)
    with refused("InvalidNetworkInterfaceID.NotFound"):
        stranger = door.client("alt")
        stranger.assign_private_ip_addresses(NetworkInterfaceId=interface, SecondaryPrivateIpAddressCount=1)
    assert len(addresses(demo, number)) == 1


def test_an_address_of_the_projects_own_network_is_chosen(door: Door, demo: Client) -> None:
    of = network(t.cast(t.Any, door.api.client_as("demo")))
    number, interface = started(door, demo, f"subnet-{of.replace('-', '')[:17]}")
    assignment: dict[str, t.Any] = {"NetworkInterfaceId": interface, "PrivateIpAddresses": ["10.60.0.77"]}
    done = demo.assign_private_ip_addresses(**assignment)
    assert [entry["PrivateIpAddress"] for entry in done["AssignedPrivateIpAddresses"]] == ["10.60.0.77"]
    assert ("10.60.0.77", False) in addresses(demo, number)


def test_each_subnet_of_a_network_is_one_of_the_vpc(door: Door, demo: Client) -> None:
    client = t.cast(t.Any, door.api.client_as("demo"))
    of = network(client)
    subnet_body = {"network_id": of, "ip_version": 4, "cidr": "10.61.0.0/24", "name": "back"}
    further = client.post("/network/v2.0/subnets", json={"subnet": subnet_body}).get_json()["subnet"]["id"]
    first_id, further_id = (f"subnet-{uuid.replace('-', '')[:17]}" for uuid in (of, further))
    shown = {row["SubnetId"]: row for row in demo.describe_subnets()["Subnets"]}
    assert (shown[first_id]["CidrBlock"], shown[further_id]["CidrBlock"]) == ("10.60.0.0/24", "10.61.0.0/24")
    assert {"Key": "Name", "Value": "back"} in shown[further_id]["Tags"]
    assert "10.61.0.0/24" in [
        block["CidrBlock"] for block in demo.describe_vpcs()["Vpcs"][0]["CidrBlockAssociationSet"]
    ]
    for subnet, begin in ((first_id, "10.60.0."), (further_id, "10.61.0.")):
        number, interface = started(door, demo, subnet)
        (instance,) = demo.describe_instances(Filters=[{"Name": "subnet-id", "Values": [subnet]}])["Reservations"]
        assert instance["Instances"][0]["InstanceId"] == number
        assert addresses(demo, number)[0][0].startswith(begin)
        demo.assign_private_ip_addresses(NetworkInterfaceId=interface, SecondaryPrivateIpAddressCount=1)
        assert addresses(demo, number)[1][0].startswith(begin)
    chosen = run(demo, SubnetId=further_id, PrivateIpAddress="10.61.0.77")
    assert (chosen["PrivateIpAddress"], chosen["SubnetId"]) == ("10.61.0.77", further_id)
    with refused("InvalidParameterValue"):
        run(demo, SubnetId=further_id, PrivateIpAddress="10.60.0.77")
