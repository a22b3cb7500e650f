# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The `openstack` command, one process for each, as a person types it."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
import typing as t

from .cloud import Cloud, said
from .report import Report, Skipped

TIMEOUT = 300.0  # seconds


class Shell:
    """`openstack` as one user, at one microversion (None: the command's default)."""

    def __init__(self, cloud: Cloud, version: str | None = None, login: str = "openrc") -> None:
        self._environment = cloud.environment(login)
        self._options = [] if version is None else ["--os-compute-api-version", version]

    def __call__(self, *words: str) -> str:
        """Return what it prints. Raises AssertionError when it fails."""
        done = self.attempt(*words)
        assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def attempt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return said(["openstack", *self._options, *words], TIMEOUT, self._environment)

    def json(self, *words: str) -> t.Any:
        return json.loads(self(*words, "-f", "json"))


def run(report: Report, cloud: Cloud, part: str, version: str | None) -> None:
    """Every command of a user's day, in order."""
    shell = Shell(cloud, version)
    # of what is made here: parts run at the same time, and one that was cut off has left things behind
    name = f"{part.replace('.', '-')}-{secrets.token_hex(2)}"
    key, group, server, grouped = f"key-{name}", f"sg-{name}", f"web-{name}", f"grp-{name}"
    sdk = cloud.connect()
    ids: dict[str, t.Any] = {}

    def check(words: str, expected: str = "") -> None:
        """Run a command; what it prints must have `expected` in it."""
        with report.step(part, words):
            text = shell(*words.split())
            assert expected in text, f"no {expected!r} in:\n{text}"

    def status(expected_status: str) -> None:
        with report.step(part, f"... {expected_status}"):
            identifier = ids.get("id")
            if identifier is None:
                raise Skipped("there is no server")
            wait_for(sdk, identifier, expected_status)

    check("token issue", "expires")
    check("catalog list", "block-storage")
    with report.step(part, f"keypair create {key}"):
        assert "PRIVATE KEY" in shell("keypair", "create", key)
    check("keypair list", key)
    check("image list", "ami-tiny")
    check("flavor list", "m1.tiny")
    check("network list", "private")
    check(f"security group create {group}", group)
    check(f"security group rule create --protocol tcp --dst-port 22 {group}", "22")
    check("quota show", "instances")
    check("availability zone list", "nova")
    check("limits show --absolute", "total_instances")
    check(f"server group create --policy anti-affinity {grouped}", "anti-affinity")
    check("server group list", grouped)
    with report.step(part, f"server create --flavor m1.tiny --image ami-tiny --key-name test --wait {server}"):
        made = shell.json(
            "server", "create", "--flavor", "m1.tiny", "--image", "ami-tiny", "--key-name", "test", "--wait", server
        )
        ids["id"] = made["id"]
        assert made["status"] == "ACTIVE", made
    login(report, cloud, part, ids, server)
    check("server list", server)
    check(f"server show {server}", "ACTIVE")
    check(f"console log show {server}")
    check(f"console url show {server}", "/console/novnc#")
    check(f"console url show --serial {server}", "/console/serial#")
    with report.step(part, f"console url show --spice {server}: there is none"):
        refused = shell.attempt("console", "url", "show", "--spice", server)
        assert refused.returncode != 0 and "Unavailable console type spice-html5" in refused.stderr, refused
    with report.step(part, f"server set --password {server}: its guest has no agent"):
        refused = shell.attempt("server", "set", "--password", "for-the-guest", server)
        assert refused.returncode != 0 and "QEMU guest agent is not enabled" in refused.stderr, refused
    check(f"server add security group {server} {group}")
    check(f"server remove security group {server} {group}")
    check(f"server event list {server}", "create")
    check(f"server set --property a=b {server}")
    check(f"server stop {server}")
    status("SHUTOFF")
    check(f"server start {server}")
    status("ACTIVE")
    if version is None:  # it is asked in the same words in every microversion, and a guest boots each time
        check(f"server reboot --wait {server}")
        check(f"server reboot --hard --wait {server}")
        status("ACTIVE")
    login(report, cloud, part, ids, server)
    check(f"server delete --wait {server}")
    with report.step(part, f"server show {server}: it is gone"):
        assert shell.attempt("server", "show", server).returncode != 0
    check(f"server group delete {grouped}")
    check(f"security group delete {group}")
    check(f"keypair delete {key}")
    sdk.close()


def others(report: Report, cloud: Cloud) -> None:
    """Check what users of other projects and of lesser roles see of demo's server."""
    part = "others"
    sdk = cloud.connect()
    alt, reader, admin = (Shell(cloud, login=f"openrc-{name}") for name in ("alt", "reader", "admin"))
    ids: dict[str, t.Any] = {}
    with report.step(part, "a server that fits no host ends in ERROR, and says why"):
        made = Shell(cloud).json("server", "create", "--flavor", "m1.huge", "--image", "ami-tiny", "huge")
        ids["id"] = made["id"]
        server = wait_for(sdk, made["id"], "ERROR")
        assert "No valid host" in server.fault["message"], server.fault
    with report.step(part, "another project does not see it"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert ids["id"] not in alt("server", "list", "-f", "value")
        gone = alt.attempt("server", "show", ids["id"])
        assert gone.returncode != 0 and "no server" in gone.stderr.lower(), gone
    with report.step(part, "a reader sees it, and cannot remove it"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert ids["id"] in reader("server", "list", "-f", "value")
        refused = reader.attempt("server", "delete", ids["id"])
        assert refused.returncode != 0 and "403" in refused.stderr, refused
    with report.step(part, "an admin sees the hypervisors, and nobody else does"):
        assert "QEMU" in admin("hypervisor", "list")
        refused = Shell(cloud).attempt("hypervisor", "list")
        assert refused.returncode != 0 and "403" in refused.stderr, refused
    with report.step(part, "an admin sees it among all projects'"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert ids["id"] in admin("server", "list", "--all-projects", "-f", "value")
    with report.step(part, "an admin's user list"):
        assert "reader" in admin("user", "list", "-f", "value")
    with report.step(part, "server delete --wait huge"):
        Shell(cloud)("server", "delete", "--wait", "huge")
    sdk.close()


def login(report: Report, cloud: Cloud, part: str, ids: t.Mapping[str, t.Any], server: str) -> None:
    with report.step(part, f"ssh {server}"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert cloud.ssh(ids["id"], "hostname") == server


def wait_for(sdk: t.Any, identifier: str, expected_status: str) -> t.Any:
    """The server, once it has this status and nothing is under way."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        server = sdk.compute.get_server(identifier)
        if server.status == expected_status and server.task_state is None:
            return server
        if time.monotonic() > deadline or (server.status == "ERROR" and expected_status != "ERROR"):
            raise AssertionError(
                f"{expected_status} is expected, and it is {server.status}/{server.task_state}: {server.fault}"
            )
        time.sleep(1)
