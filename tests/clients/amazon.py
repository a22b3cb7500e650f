# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Amazon's clients: the `aws` command, boto3, and the amazon.aws collection that is made with it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import time
import typing as t

import boto3
import botocore.exceptions

from .cloud import ROOT, Cloud, answer_of, play_result, said
from .report import Report, Skipped

LOGIN_FILE = "ec2rc"
PLAYBOOK = pathlib.Path(__file__).with_name("ec2_instance.yml")
TIMEOUT = 400  # seconds
IMAGE, KIND, USER = "ami-tiny", "m1.nano", "root"


class Aws:
    """`aws ec2` as somebody types it who has sourced lab/ec2rc."""

    def __init__(self, cloud: Cloud) -> None:
        self._environment = {**cloud.environment(LOGIN_FILE), "AWS_PAGER": ""}

    def __call__(self, *words: str) -> str:
        done = self.attempt(*words)
        assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def attempt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return said(["aws", "ec2", *words], TIMEOUT, self._environment)

    def json(self, *words: str) -> t.Any:
        return json.loads(self(*words, "--output", "json"))


def boto(cloud: Cloud) -> t.Any:
    """boto3 with what it would find in its environment."""
    environment = cloud.environment(LOGIN_FILE)
    return boto3.session.Session().client(
        "ec2",
        endpoint_url=environment["AWS_ENDPOINT_URL_EC2"],
        region_name=environment["AWS_DEFAULT_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )


def uuid_of(cloud: Cloud, number: str) -> str:
    """Return the UUID that the other doors have for the instance: its id begins with it."""
    sdk = cloud.connect()
    uuid = next(server.id for server in sdk.compute.servers() if server.id.replace("-", "").startswith(number[2:]))
    sdk.close()
    return str(uuid)


def key_file(cloud: Cloud, name: str, private: str) -> pathlib.Path:
    path = cloud.logins / f"{name}.pem"
    path.touch(mode=0o600)
    path.write_text(private + "\n")
    return path


def ssh(cloud: Cloud, uuid: str, key: pathlib.Path, *command: str) -> str:
    """What `command` says in the guest, logged in with that key and no other."""
    only_key = ["-o", "IdentitiesOnly=yes", "-o", "IdentityFile=none", "-i", str(key)]
    return answer_of(["ssh", "-F", str(cloud.home / "ssh_config"), "-o", "BatchMode=yes", *only_key, uuid, *command])


def command(report: Report, cloud: Cloud) -> None:
    """The classic: make a key pair, run ami-tiny, log in; and the rest of a day with `aws ec2`."""
    part, name = "aws", f"aws-{secrets.token_hex(2)}"
    aws, resources = Aws(cloud), dict[str, t.Any]()
    group = f"group-of-{name}"

    def check(*words: str, expected: str = "") -> None:
        with report.step(part, " ".join(words)):
            text = aws(*(_filled(word, resources) for word in words))
            assert expected in text, f"no {expected!r} in:\n{text}"

    with report.step(part, f"create-key-pair --key-name {name} --query KeyMaterial --output text"):
        text = aws("create-key-pair", "--key-name", name, "--query", "KeyMaterial", "--output", "text")
        resources["key"] = key_file(cloud, name, text)
    with report.step(part, f"import-key-pair --key-name {name}-imported"):
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(cloud.logins / f"{name}-own")], check=True)
        public = f"fileb://{cloud.logins}/{name}-own.pub"
        aws("import-key-pair", "--key-name", f"{name}-imported", "--public-key-material", public)
    check("describe-key-pairs", "--key-names", name, expected=name)
    check("describe-images", "--image-ids", IMAGE, expected="available")
    check("describe-availability-zones", expected="nova")
    check("describe-regions", expected="RegionOne")
    check("describe-instance-types", "--instance-types", KIND, expected="96")
    check("describe-vpcs", expected="vpc-")
    check("describe-subnets", expected="subnet-")
    check("create-security-group", "--group-name", group, "--description", "tests", expected="sg-")
    for protocol, port in (("tcp", "22"), ("icmp", "-1")):
        check(
            "authorize-security-group-ingress",
            "--group-name",
            group,
            "--protocol",
            protocol,
            "--port",
            port,
            "--cidr",
            "0.0.0.0/0",
            expected="true",
        )
    run = (
        "run-instances",
        "--image-id",
        IMAGE,
        "--instance-type",
        KIND,
        "--key-name",
        name,
        "--security-groups",
        group,
        "--tag-specifications",
        f"ResourceType=instance,Tags=[{{Key=Name,Value={name}}}]",
    )
    with report.step(part, "run-instances --dry-run"):
        done = aws.attempt(*run, "--dry-run")
        assert done.returncode != 0 and "DryRunOperation" in done.stderr, done.stderr
    with report.step(part, f"run-instances --image-id {IMAGE} --instance-type {KIND} --key-name {name}"):
        resources["id"] = aws.json(*run)["Instances"][0]["InstanceId"]
    check("wait", "instance-running", "--instance-ids", "{id}")
    with report.step(part, "ssh with the created key"):
        resources["uuid"] = uuid_of(cloud, _have(resources, "id"))
        assert ssh(cloud, resources["uuid"], resources["key"], "hostname") == name
    check("describe-instances", "--instance-ids", "{id}", expected=name)
    check("describe-instances", "--filters", f"Name=tag:Name,Values={name[:6]}*", expected=name)
    check("wait", "instance-status-ok", "--instance-ids", "{id}")
    check("describe-instance-status", "--instance-ids", "{id}", expected="ok")
    check("get-console-output", "--instance-id", "{id}", "--output", "text", expected="Linux")
    check("create-tags", "--resources", "{id}", "--tags", "Key=k,Value=v")
    check("describe-tags", "--filters", "Name=resource-id,Values={id}", expected='"k"')
    check("delete-tags", "--resources", "{id}", "--tags", "Key=k")
    _secondary(report, part, aws, resources, cloud)
    _volume(report, part, aws, resources, check)
    check("stop-instances", "--instance-ids", "{id}", expected="stopping")
    check("wait", "instance-stopped", "--instance-ids", "{id}")
    check("start-instances", "--instance-ids", "{id}", expected="pending")
    check("wait", "instance-running", "--instance-ids", "{id}")
    check("reboot-instances", "--instance-ids", "{id}")
    with report.step(part, "ssh after all that"):
        assert ssh(cloud, _have(resources, "uuid"), resources["key"], "hostname") == name
    check("terminate-instances", "--instance-ids", "{id}", expected="shutting-down")
    check("wait", "instance-terminated", "--instance-ids", "{id}")
    check("delete-security-group", "--group-name", group)
    for key_name in (name, f"{name}-imported"):
        check("delete-key-pair", "--key-name", key_name)


def _secondary(report: Report, part: str, aws: Aws, resources: dict[str, t.Any], cloud: Cloud) -> None:
    """A secondary address, which the guest may use from then on, until it is taken away."""
    shown = ("--query", "Reservations[].Instances[].NetworkInterfaces[].NetworkInterfaceId")
    for word, passes in (("assign", True), ("unassign", False)):
        with report.step(part, f"{word}-private-ip-addresses"):
            (interface,) = aws.json("describe-instances", "--instance-ids", _have(resources, "id"), *shown)
            call = (f"{word}-private-ip-addresses", "--network-interface-id", interface)
            if passes:
                done = aws.json(*call, "--secondary-private-ip-address-count", "1")
                resources["secondary"] = done["AssignedPrivateIpAddresses"][0]["PrivateIpAddress"]
            else:
                aws(*call, "--private-ip-addresses", _have(resources, "secondary"))
            address, router = resources["secondary"], "$(ip route | awk '/^default/ {print $3}')"
            ping = f"ping -c 1 -W 2 -I {address} {router} > /dev/null"
            until = "" if passes else "!"
            add = f"ip addr add {address}/32 dev eth0;" if passes else ""
            script = f"{add} for turn in $(seq 30); do {until} {ping} && exit 0; sleep 1; done; exit 1"
            ssh(cloud, _have(resources, "uuid"), resources["key"], script)


def _volume(report: Report, part: str, aws: Aws, resources: dict[str, t.Any], check: t.Callable[..., None]) -> None:
    with report.step(part, "create-volume --availability-zone nova --size 1"):
        resources["volume"] = aws.json("create-volume", "--availability-zone", "nova", "--size", "1")["VolumeId"]
    check("wait", "volume-available", "--volume-ids", "{volume}")
    check("attach-volume", "--volume-id", "{volume}", "--instance-id", "{id}", "--device", "/dev/sdf", expected="vdf")
    with report.step(part, "describe-volumes: attached"):
        _until(aws, resources, "attached")
    check("detach-volume", "--volume-id", "{volume}", expected="detaching")
    check("wait", "volume-available", "--volume-ids", "{volume}")
    check("delete-volume", "--volume-id", "{volume}")
    check("wait", "volume-deleted", "--volume-ids", "{volume}")


def _until(aws: Aws, resources: dict[str, t.Any], state: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while True:
        shown = aws.json("describe-volumes", "--volume-ids", _have(resources, "volume"))["Volumes"][0]["Attachments"]
        if [attachment["State"] for attachment in shown] == [state]:
            return
        assert time.monotonic() < deadline, shown
        time.sleep(1)


def _filled(word: str, resources: t.Mapping[str, t.Any]) -> str:
    for name in ("id", "volume"):
        if f"{{{name}}}" in word:
            word = word.replace(f"{{{name}}}", _have(resources, name))
    return word


def _have(resources: t.Mapping[str, t.Any], name: str) -> str:
    if name not in resources:
        raise Skipped(f"there is no {name}")
    return str(resources[name])


def library(report: Report, cloud: Cloud) -> None:
    """boto3, with its waiters; a key of the other kind; and who is refused."""
    part, name = "boto3", f"boto3-{secrets.token_hex(2)}"
    client, resources = boto(cloud), dict[str, t.Any]()
    with report.step(part, "create_key_pair(KeyType='ed25519'), run_instances, wait until running"):
        private = client.create_key_pair(KeyName=name, KeyType="ed25519")["KeyMaterial"]
        resources["key"] = key_file(cloud, name, private)
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}]
        asked = {"ImageId": IMAGE, "InstanceType": KIND, "MinCount": 1, "MaxCount": 1, "KeyName": name}
        made = client.run_instances(**asked, TagSpecifications=tags, UserData="#!/bin/sh\n", ClientToken=name)
        resources["id"] = made["Instances"][0]["InstanceId"]
        again = client.run_instances(**asked, TagSpecifications=tags, UserData="#!/bin/sh\n", ClientToken=name)
        assert again["Instances"][0]["InstanceId"] == resources["id"]
        client.get_waiter("instance_running").wait(InstanceIds=[resources["id"]])
    with report.step(part, "ssh with the created key"):
        uuid = uuid_of(cloud, _have(resources, "id"))
        assert ssh(cloud, uuid, resources["key"], "hostname") == name
    with report.step(part, "the same through the other doors"):
        sdk = cloud.connect()
        server = sdk.compute.get_server(uuid_of(cloud, _have(resources, "id")))
        shown = client.describe_instances(InstanceIds=[resources["id"]])["Reservations"][0]["Instances"][0]
        assert (server.name, server.status) == (name, "ACTIVE") and shown["State"]["Name"] == "running"
        assert server.addresses["private"][0]["addr"] == shown["PrivateIpAddress"]
        sdk.compute.set_server_metadata(server, by="the SDK")
        shown = client.describe_instances(Filters=[{"Name": "tag:by", "Values": ["the*"]}])["Reservations"]
        assert [instance["InstanceId"] for instance in shown[0]["Instances"]] == [resources["id"]]
        sdk.close()
    with report.step(part, "stop, start and terminate with waiters"):
        number = [_have(resources, "id")]
        for call, waiter in (
            (client.stop_instances, "instance_stopped"),
            (client.start_instances, "instance_running"),
            (client.terminate_instances, "instance_terminated"),
        ):
            call(InstanceIds=number)
            client.get_waiter(waiter).wait(InstanceIds=number)
    with report.step(part, "delete_key_pair; what is unknown or forged is refused"):
        client.delete_key_pair(KeyName=name)
        with _refused("InvalidInstanceID.NotFound"):
            client.describe_instances(InstanceIds=["i-0123456789abcdef0"])
        environment = cloud.environment(LOGIN_FILE)
        forged = boto3.session.Session().client(
            "ec2",
            endpoint_url=environment["AWS_ENDPOINT_URL_EC2"],
            region_name="RegionOne",
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key="x" * 32,
        )
        with _refused("SignatureDoesNotMatch"):
            forged.describe_instances()


@contextlib.contextmanager
def _refused(code: str) -> t.Iterator[None]:
    try:
        yield
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == code, error
    else:
        raise AssertionError(f"no {code}")


def collection(report: Report, cloud: Cloud) -> None:
    """amazon.aws.ec2_instance: there, there already, stopped, and gone."""
    part, name = "amazon.aws", f"web-amazon-{secrets.token_hex(2)}"

    def play(state: str) -> dict[str, t.Any]:
        environment = {
            **cloud.environment(LOGIN_FILE),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_COLLECTIONS_PATH": os.environ.get("ANSIBLE_COLLECTIONS_PATH", str(ROOT / ".cache/collections")),
        }
        variables = {"instance_name": name, "instance_state": state}
        return play_result(PLAYBOOK, variables, 2 * TIMEOUT, environment)

    with report.step(part, "amazon.aws.ec2_instance: running"):
        made = play("running")
        assert made["changed"] and made["states"] == ["running"], made
    with report.step(part, "amazon.aws.ec2_instance: running already"):
        again = play("running")
        assert not again["changed"] and again["ids"] == made["ids"], (made, again)
    with report.step(part, "amazon.aws.ec2_instance: absent"):
        assert play("absent")["changed"]
