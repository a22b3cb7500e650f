# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys, groups, images, tags, addresses, networks, places, volumes through the EC2 dialect, asked for by boto3."""

from __future__ import annotations

import base64
import hashlib
import typing as t

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.api.ec2.test_ec2_instances import became, jobs, run
from tests.api.ec2_door import Client, Door, refused
from tests.api.seeds import IMAGE_ID, PUBLIC_KEY

AMI = f"ami-{IMAGE_ID.replace('-', '')[:17]}"


def test_key_pairs(door: Door, demo: Client) -> None:
    made = demo.create_key_pair(KeyName="one")
    private = serialization.load_pem_private_key(made["KeyMaterial"].encode(), None)
    assert isinstance(private, rsa.RSAPrivateKey) and made["KeyMaterial"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    der = private.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert made["KeyFingerprint"].replace(":", "") == hashlib.sha1(der).hexdigest()
    other = demo.create_key_pair(KeyName="two", KeyType="ed25519")
    key = serialization.load_ssh_private_key(other["KeyMaterial"].encode(), None)
    line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    digest = base64.b64encode(hashlib.sha256(base64.b64decode(line.split()[1])).digest()).decode()
    assert other["KeyFingerprint"] == digest
    shown = {key_pair["KeyName"]: key_pair for key_pair in demo.describe_key_pairs(IncludePublicKey=True)["KeyPairs"]}
    assert shown["one"]["KeyFingerprint"] == made["KeyFingerprint"] and shown["one"]["KeyType"] == "rsa"
    assert shown["two"]["PublicKey"].startswith(line.decode())
    assert shown["test"]["PublicKey"] == PUBLIC_KEY
    # what was made is what the other doors give to servers
    other_door = door.api.client_as("demo").get("/compute/v2.1/os-keypairs").get_json()["keypairs"]
    assert {key_pair["keypair"]["name"] for key_pair in other_door} == {"one", "two", "test"}
    with refused("InvalidKeyPair.Duplicate"):
        demo.create_key_pair(KeyName="one")
    with refused("UnauthorizedOperation"):
        demo.delete_key_pair(KeyName="test")  # a playbook's
    demo.delete_key_pair(KeyPairId=made["KeyPairId"])
    demo.delete_key_pair(KeyName="one")  # gone already
    with refused("InvalidKeyPair.NotFound"):
        demo.describe_key_pairs(KeyNames=["one"])
    with refused("InvalidKeyPair.NotFound"):
        door.client("alt").describe_key_pairs(KeyNames=["two"])
    with refused("UnauthorizedOperation"):
        door.client("reader").create_key_pair(KeyName="three")


def test_a_key_is_its_users_own_and_goes_before_a_shared_one(door: Door, demo: Client) -> None:
    admin = door.client("admin")  # a manager's role is in an administrator's
    (shared,) = demo.describe_key_pairs()["KeyPairs"]
    with refused("UnauthorizedOperation"):
        demo.delete_key_pair(KeyName="test")
    made = {client: client.create_key_pair(KeyName="test", KeyType="ed25519") for client in (demo, admin)}
    with refused("InvalidKeyPair.Duplicate"):
        demo.create_key_pair(KeyName="test")
    admin.create_tags(Resources=[made[admin]["KeyPairId"]], Tags=[{"Key": "whose", "Value": "admin"}])
    for client, tags in ((demo, []), (admin, [{"Key": "whose", "Value": "admin"}])):
        (seen,) = client.describe_key_pairs()["KeyPairs"]
        assert (seen["KeyPairId"], seen["KeyFingerprint"]) == (
            made[client]["KeyPairId"],
            made[client]["KeyFingerprint"],
        )
        assert seen.get("Tags", []) == tags
    assert len({shared["KeyPairId"], *(key["KeyPairId"] for key in made.values())}) == 3
    admin.import_key_pair(KeyName="theirs", PublicKeyMaterial=PUBLIC_KEY)
    demo.delete_key_pair(KeyName="theirs")  # none of demo's: not an error, and nothing goes
    with refused("InvalidKeyPair.NotFound"):
        demo.run_instances(ImageId=IMAGE_ID, MinCount=1, MaxCount=1, KeyName="theirs")
    admin.delete_key_pair(KeyPairId=made[admin]["KeyPairId"])
    demo.delete_key_pair(KeyName="test")
    for client, names in ((demo, ["test"]), (admin, ["test", "theirs"])):
        assert [key["KeyName"] for key in client.describe_key_pairs()["KeyPairs"]] == names
        assert client.describe_key_pairs()["KeyPairs"][0]["KeyPairId"] == shared["KeyPairId"]


def test_keys_are_imported_in_several_forms(demo: Client) -> None:
    public = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    forms = {
        "ssh": (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
        "pem": (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        "der": (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
    }
    digest = hashlib.md5(public.public_bytes(*forms["der"])).hexdigest()
    for name, form in forms.items():
        made = demo.import_key_pair(KeyName=name, PublicKeyMaterial=public.public_bytes(*form))
        assert made["KeyFingerprint"].replace(":", "") == digest
    assert len({key_pair["KeyFingerprint"] for key_pair in demo.describe_key_pairs()["KeyPairs"]}) == 2
    for wrong in (b"x", b"\xff", b"ssh-rsa AAAA", b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"):
        with refused("InvalidKey.Format"):
            demo.import_key_pair(KeyName="wrong", PublicKeyMaterial=wrong)


def rules(client: Client, name: str, egress: bool = False) -> list[t.Any]:
    (group,) = client.describe_security_groups(GroupNames=[name])["SecurityGroups"]
    return list(group["IpPermissionsEgress" if egress else "IpPermissions"])


def test_security_groups_and_rules(door: Door, demo: Client) -> None:
    number = demo.create_security_group(GroupName="web", Description="for tests")["GroupId"]
    with refused("InvalidGroup.Duplicate"):
        demo.create_security_group(GroupName="web", Description="x")
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    made = demo.authorize_security_group_ingress(
        GroupId=number,
        IpPermissions=[
            {**ssh, "IpRanges": [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "192.0.2.0/24"}]},
            {**ssh, "Ipv6Ranges": [{"CidrIpv6": "2001:db8::/32"}]},
            {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
            {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 65535, "UserIdGroupPairs": [{"GroupName": "web"}]},
            {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "198.51.100.7/32", "Description": "a friend"}]},
            {"IpProtocol": "47", "IpRanges": [{"CidrIp": "198.51.100.7/32"}]},
        ],
    )["SecurityGroupRules"]
    assert len(made) == 7 and {group["GroupId"] for group in made} == {number}
    shown = {(rule["IpProtocol"], rule.get("FromPort"), rule.get("ToPort")): rule for rule in rules(demo, "web")}
    assert set(shown) == {("tcp", 22, 22), ("icmp", -1, -1), ("tcp", 1, 65535), ("-1", None, None), ("47", None, None)}
    of_ssh = shown["tcp", 22, 22]
    assert {ip_range["CidrIp"] for ip_range in of_ssh["IpRanges"]} == {"10.0.0.0/8", "192.0.2.0/24"}
    assert of_ssh["Ipv6Ranges"] == [{"CidrIpv6": "2001:db8::/32"}]
    assert shown["-1", None, None]["IpRanges"] == [{"CidrIp": "198.51.100.7/32", "Description": "a friend"}]
    assert shown["tcp", 1, 65535]["UserIdGroupPairs"][0]["GroupId"] == number
    with refused("InvalidPermission.Duplicate"):
        demo.authorize_security_group_ingress(GroupName="web", IpPermissions=[of_ssh])
    # what one door shows, the other takes back
    other = door.api.client_as("demo").get("/network/v2.0/security-groups?name=web").get_json()["security_groups"][0]
    assert len(other["security_group_rules"]) == 8 + 2  # the one about a group is one for each address family
    demo.revoke_security_group_ingress(GroupName="web", IpPermissions=[of_ssh])
    with refused("InvalidPermission.NotFound"):
        demo.revoke_security_group_ingress(GroupId=number, IpPermissions=[of_ssh])
    group_rules = demo.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [number]}])[
        "SecurityGroupRules"
    ]
    ingress = [rule["SecurityGroupRuleId"] for rule in group_rules if not rule["IsEgress"]]
    assert len(group_rules) == 4 + 2 and len(ingress) == 4
    demo.revoke_security_group_ingress(GroupId=number, SecurityGroupRuleIds=ingress)
    assert rules(demo, "web") == []
    # Amazon leaves out the bits beyond a prefix
    long = [{**ssh, "IpRanges": [{"CidrIp": "10.2.3.124/24"}], "Ipv6Ranges": [{"CidrIpv6": "2001:db8::7/64"}]}]
    demo.authorize_security_group_ingress(GroupId=number, IpPermissions=long)
    (permission,) = rules(demo, "web")
    assert permission["IpRanges"] == [{"CidrIp": "10.2.3.0/24"}]
    assert permission["Ipv6Ranges"] == [{"CidrIpv6": "2001:db8::/64"}]
    demo.revoke_security_group_ingress(GroupId=number, IpPermissions=long)
    assert rules(demo, "web") == []
    with refused("InvalidSecurityGroupRuleId.NotFound"):
        demo.revoke_security_group_ingress(GroupId=number, SecurityGroupRuleIds=ingress)
    demo.delete_security_group(GroupName="web")
    with refused("InvalidGroup.NotFound"):
        demo.delete_security_group(GroupId=number)


def test_the_default_group_lets_its_own_members_in_until_that_is_revoked(door: Door, demo: Client) -> None:
    """Terraform's `aws_default_security_group` takes away what is there, and gives back what its user says."""
    run(demo)
    (group,) = demo.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    (itself,) = group["IpPermissions"]
    assert (itself["IpProtocol"], itself["IpRanges"], itself["Ipv6Ranges"]) == ("-1", [], [])
    assert [(pair["GroupId"], pair["GroupName"]) for pair in itself["UserIdGroupPairs"]] == [
        (group["GroupId"], "default")
    ]
    (egress,) = group["IpPermissionsEgress"]
    assert (egress["IpProtocol"], egress["IpRanges"]) == ("-1", [{"CidrIp": "0.0.0.0/0"}])

    def ingress() -> list[t.Any]:
        listed = demo.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group["GroupId"]]}])
        return [rule for rule in listed["SecurityGroupRules"] if not rule["IsEgress"]]

    (shown,) = ingress()
    assert shown["ReferencedGroupInfo"]["GroupId"] == group["GroupId"]
    revoked = demo.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[itself])
    assert len(revoked["RevokedSecurityGroupRules"]) == 1
    other = door.api.client_as("demo")
    path = "/network/v2.0/security-group-rules?direction=ingress"
    assert other.get(path).get_json()["security_group_rules"] == [] == ingress() == rules(demo, "default")
    for _time in range(2):
        (made,) = demo.authorize_security_group_ingress(GroupName="default", IpPermissions=[itself])[
            "SecurityGroupRules"
        ]
        assert rules(demo, "default") == [itself] and ingress() == [made]
        families = [rule["ethertype"] for rule in other.get(path).get_json()["security_group_rules"]]
        assert sorted(families) == ["IPv4", "IPv6"]
        with refused("InvalidPermission.Duplicate"):
            demo.authorize_security_group_ingress(GroupName="default", IpPermissions=[itself])
        demo.revoke_security_group_ingress(GroupName="default", SecurityGroupRuleIds=[made["SecurityGroupRuleId"]])
        assert ingress() == rules(demo, "default") == []


def test_what_may_go_out(demo: Client) -> None:
    number = demo.create_security_group(GroupName="web", Description="x")["GroupId"]
    everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}
    demo.revoke_security_group_egress(GroupId=number, IpPermissions=[everything])
    assert rules(demo, "web", egress=True) == []
    dns = {"IpProtocol": "udp", "FromPort": 53, "ToPort": 53, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    demo.authorize_security_group_egress(GroupId=number, IpPermissions=[dns])
    assert [rule["FromPort"] for rule in rules(demo, "web", egress=True)] == [53]


def test_hosts_are_told_of_a_rule(door: Door, demo: Client) -> None:
    demo.create_security_group(GroupName="web", Description="x")
    became(door.api, run(demo, SecurityGroups=["web"])["InstanceId"])
    asked = {"GroupName": "web", "IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "CidrIp": "0.0.0.0/0"}
    demo.authorize_security_group_ingress(**asked)
    assert jobs(door.api)[-1].kind == "security_groups"
    with refused("DependencyViolation"):
        demo.delete_security_group(GroupName="web")
    demo.revoke_security_group_ingress(**asked)


@pytest.mark.parametrize(
    ("permission", "code"),
    [
        ({"IpProtocol": "tcp", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "tcp", "FromPort": 9, "ToPort": 1, "IpRanges": [{"CidrIp": "::/0"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 99999, "IpRanges": []}, "InvalidParameterValue"),
        (
            {"IpProtocol": "tcp", "FromPort": 9, "ToPort": 1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
            "InvalidParameterValue",
        ),
        ({"IpProtocol": "nosuch", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "-1", "IpRanges": [{"CidrIp": "nosuch"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "-1", "IpRanges": [{"CidrIp": "::/0"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupName": "nosuch"}]}, "InvalidGroup.NotFound"),
        ({"IpProtocol": "-1", "PrefixListIds": [{"PrefixListId": "pl-1"}]}, "InvalidParameterValue"),
        ({"IpProtocol": "-1"}, "MissingParameter"),
    ],
)
def test_rules_that_make_no_sense_are_refused(demo: Client, permission: dict[str, t.Any], code: str) -> None:
    demo.create_security_group(GroupName="web", Description="x")
    with refused(code):
        demo.authorize_security_group_ingress(GroupName="web", IpPermissions=[permission])
    assert rules(demo, "web") == []


@pytest.mark.parametrize("owner", ["alt", "123456789012"])
@pytest.mark.parametrize("verb", ["authorize", "revoke"])
def test_a_group_of_another_owner_is_not_the_projects_own_of_that_name(
    door: Door, demo: Client, owner: str, verb: str
) -> None:
    alt = door.client("alt")
    number = alt.create_security_group(GroupName="web", Description="x")["GroupId"]
    if owner == "alt":
        owner = alt.describe_security_groups(GroupIds=[number])["SecurityGroups"][0]["OwnerId"]
    for name in ("web", "db"):
        demo.create_security_group(GroupName=name, Description="x")
    pair: dict[str, t.Any] = {"GroupName": "web"}
    permission: dict[str, t.Any] = {"IpProtocol": "-1", "UserIdGroupPairs": [pair]}
    mine = demo.describe_security_groups(GroupNames=["web"])["SecurityGroups"][0]["OwnerId"]
    if verb == "revoke":
        demo.authorize_security_group_ingress(
            GroupName="db", IpPermissions=[{**permission, "UserIdGroupPairs": [{**pair, "UserId": mine}]}]
        )
    before, change = rules(demo, "db"), getattr(demo, f"{verb}_security_group_ingress")
    with refused("InvalidGroup.NotFound"):
        change(GroupName="db", IpPermissions=[{**permission, "UserIdGroupPairs": [{**pair, "UserId": owner}]}])
    with refused("InvalidGroup.NotFound"):
        change(GroupName="db", SourceSecurityGroupName="web", SourceSecurityGroupOwnerId=owner)
    with refused("InvalidVpcID.NotFound"):
        change(GroupName="db", IpPermissions=[{**permission, "UserIdGroupPairs": [{**pair, "VpcId": "vpc-1"}]}])
    assert rules(demo, "db") == before


def test_the_default_group_is_there_and_stays(door: Door, demo: Client) -> None:
    (group,) = demo.describe_security_groups()["SecurityGroups"]
    assert group["GroupName"] == "default"
    with refused("CannotDelete"):
        demo.delete_security_group(GroupName="default")
    with refused("InvalidParameterValue"):
        demo.create_security_group(GroupName="default", Description="x")
    for call in ("describe_security_groups", "delete_security_group"):
        asked = {"GroupIds": [group["GroupId"]]} if call.startswith("describe") else {"GroupId": group["GroupId"]}
        with refused("InvalidGroup.NotFound"):
            getattr(door.client("alt"), call)(**asked)
