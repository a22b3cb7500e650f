# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packer, with the builders `openstack` and `amazon-ebs`: each builds an image, from which a server boots through the
other builder's API and has what the provisioners wrote."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import typing as t

from .amazon import LOGIN_FILE, boto, uuid_of
from .cloud import Cloud, said
from .command import wait_for
from .report import Report, Skipped

PART = "packer"
TIMEOUT = 900  # seconds for a build: two guests' boots under emulation, beside those of all other parts
IMAGE, FLAVOR, KEY = "ami-tiny", "m1.nano", "test"
WRITTEN = "by packer"


def run(report: Report, cloud: Cloud) -> None:
    builders = {"openstack": (_openstack, _boot_with_ec2), "amazon-ebs": (_amazon, _boot_with_compute)}
    with report.step(PART, "install"):
        _install()
    with Relay(cloud.home / "ssh_config") as relay:

        def follow(builder: str) -> None:
            options, boot = builders[builder]
            name, image = f"{builder}-{secrets.token_hex(2)}", ""
            with report.step(PART, f"build with {builder}"):
                image = _build(cloud, builder, name, {**options(cloud, name), **relay.options()})
            with report.step(PART, f"boot what {builder} built, through the other API"):
                if not image:
                    raise Skipped("there is no image")
                boot(cloud, name, image)
            with report.step(PART, f"delete what {builder} built"):
                _delete(cloud, name)

        threads = [threading.Thread(target=follow, args=(builder,)) for builder in builders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _install() -> None:
    """Install Debian's package: it is large, and nothing else here needs it."""
    if shutil.which("packer") is None:
        apt = ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=600"]
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "packer"]):
            done = said([*apt, *words], TIMEOUT, {**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
            assert done.returncode == 0, done.stdout + done.stderr


# --- builds ---------------------------------------------------------------------------------------------------------


def _openstack(cloud: Cloud, name: str) -> dict[str, t.Any]:
    return {
        "image_name": name,
        "source_image_name": IMAGE,
        "flavor": FLAVOR,
        "metadata": {"made": "by packer"},
        "image_tags": ["packer"],
    }


def _amazon(cloud: Cloud, name: str) -> dict[str, t.Any]:
    environment = cloud.environment(LOGIN_FILE)
    return {
        "ami_name": name,
        "ami_description": "made by packer",
        "source_ami": IMAGE,
        "instance_type": FLAVOR,
        "region": environment["AWS_DEFAULT_REGION"],
        "custom_endpoint_ec2": environment["AWS_ENDPOINT_URL_EC2"],
        "ssh_interface": "private_ip",
        "aws_polling": {"delay_seconds": 2, "max_attempts": TIMEOUT // 2},
        "tags": {"made": "by packer"},
        "snapshot_tags": {"of": name},
    }


def _build(cloud: Cloud, builder: str, name: str, options: t.Mapping[str, t.Any]) -> str:
    """Build an image with a key pair that is called `name` as well. Returns the image's id."""
    with tempfile.TemporaryDirectory(prefix="novalite-packer-") as directory:
        place = pathlib.Path(directory)
        (place / "written").write_text(f"{WRITTEN}\n")
        login = {"ssh_username": "root", "ssh_timeout": f"{TIMEOUT}s", "temporary_key_pair_name": name}
        template = {
            "builders": [{"type": builder, **login, **options}],
            "provisioners": [
                {"type": "file", "source": str(place / "written"), "destination": "/etc/by-file"},
                {"type": "shell", "inline": ["cp /etc/by-file /etc/by-shell", "sync"]},
            ],
        }
        (place / "template.json").write_text(json.dumps(template))
        environment = {
            **cloud.environment(),
            **cloud.environment(LOGIN_FILE),
            **{"CHECKPOINT_DISABLE": "1", "HOME": directory, "PACKER_CACHE_DIR": directory},
        }
        command = ["packer", "build", "-machine-readable", str(place / "template.json")]
        done = said(command, 2 * TIMEOUT, {key: value for key, value in environment.items() if value})
    assert done.returncode == 0, done.stdout + done.stderr
    # time,builder,artifact,0,id,RegionOne:ami-...
    rows = [line.split(",") for line in done.stdout.splitlines()]
    return next(row[5] for row in rows if row[2:5] == ["artifact", "0", "id"]).rpartition(":")[2]


def _boot_with_ec2(cloud: Cloud, name: str, image: str) -> None:
    client = boto(cloud)
    asked = {"ImageId": f"ami-{image.replace('-', '')[:17]}", "InstanceType": FLAVOR, "KeyName": KEY}
    number = client.run_instances(**asked, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    try:
        client.get_waiter("instance_running").wait(InstanceIds=[number])
        _check(cloud, uuid_of(cloud, number))
    finally:
        client.terminate_instances(InstanceIds=[number])


def _boot_with_compute(cloud: Cloud, name: str, image: str) -> None:
    sdk = cloud.connect()
    (row,) = boto(cloud).describe_images(ImageIds=[image])["Images"]
    glance_image = sdk.image.find_image(name)
    assert image == f"ami-{glance_image.id.replace('-', '')[:17]}" and row["Description"] == "made by packer", (
        glance_image,
        row,
    )
    assert {tag["Key"]: tag["Value"] for tag in row["Tags"]} == {"made": "by packer"}, row
    (snapshot,) = boto(cloud).describe_snapshots(SnapshotIds=[row["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"]])[
        "Snapshots"
    ]
    assert {"Key": "of", "Value": name} in snapshot["Tags"], snapshot
    server = sdk.create_server(
        name, image=glance_image.id, flavor=FLAVOR, key_name=KEY, network="private", auto_ip=False
    )
    try:
        wait_for(sdk, server.id, "ACTIVE")
        _check(cloud, server.id)
    finally:
        sdk.delete_server(server.id, wait=True)
        sdk.close()


def _check(cloud: Cloud, uuid: str) -> None:
    assert cloud.ssh(uuid, "cat /etc/by-file /etc/by-shell").splitlines() == [WRITTEN, WRITTEN]


def _delete(cloud: Cloud, name: str) -> None:
    """Delete the image. Packer has left no server and no key pair behind."""
    sdk = cloud.connect()
    try:
        assert sdk.delete_image(name)
        assert name not in [pair.name for pair in sdk.compute.keypairs()]
        assert name not in [server.name for server in sdk.compute.servers()]
    finally:
        sdk.close()


# --- the way to guests ----------------------------------------------------------------------------------------------


class Relay(socketserver.ThreadingTCPServer):
    """A SOCKS 5 proxy to guests, through their compute hosts as ssh_config says: this machine is not on their network,
    and Packer's own bastion is one host for all."""

    daemon_threads = True

    def __init__(self, ssh_config: pathlib.Path) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.ssh = ["ssh", "-F", str(ssh_config), "-o", "BatchMode=yes"]

    def options(self) -> dict[str, t.Any]:
        """Return what a builder needs to go this way."""
        return {"ssh_proxy_host": "127.0.0.1", "ssh_proxy_port": self.server_address[1]}

    def __enter__(self) -> Relay:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: t.Any) -> None:
        self.shutdown()
        super().__exit__(*error)


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(EOFError):
            self._take(self._take(2)[1])  # ways to authenticate: none is needed
            self.request.sendall(b"\x05\x00")
            by_name = self._take(4)[3] == 3
            address = self._take(self._take(1)[0]).decode() if by_name else socket.inet_ntoa(self._take(4))
            port = int.from_bytes(self._take(2), "big")
            ssh = t.cast(Relay, self.server).ssh
            options = dict(line.partition(" ")[::2] for line in said([*ssh, "-G", address], 30.0).stdout.splitlines())
            # its guest's launch has written it; until then there is no way, and Packer tries again
            if host := options.get("proxyjump"):
                self.request.sendall(b"\x05\x00\x00\x01" + bytes(6))
                way = [*ssh, "-W", f"{address}:{port}", host]
                subprocess.run(way, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False)

    def _take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises EOFError."""
        taken = b""
        while len(taken) < size:
            if not (more := self.request.recv(size - len(taken))):
                raise EOFError
            taken += more
        return taken
