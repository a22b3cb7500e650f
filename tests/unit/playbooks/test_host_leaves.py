# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Things that leave with a compute host, and what stays: the role's own tasks, in a mount namespace over this
machine's directories. The kernel here has no AppArmor: that its file is there, and apparmor_parser, are made up."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from tests.support.patience import GENEROUS
from tests.unit.playbooks.controller import ROOT

PROFILE = "/etc/apparmor.d/local/usr.lib.libvirt.virt-aa-helper"
GUESTS = "/etc/apparmor.d/local/abstractions/libvirt-qemu"
THEIRS = "# the operator's own\n/srv/images/* r,\n"
# one line each of what compute_nodes.yml writes, and of what others have beside it
PREPARE = r"""
for directory in /etc/apparmor.d /etc/systemd/system /etc/sudoers.d /usr/local/sbin /usr/sbin; do
  mkdir -p "$directory" "$SCRATCH/$directory/upper" "$SCRATCH/$directory/work"
  options="lowerdir=$directory,upperdir=$SCRATCH/$directory/upper,workdir=$SCRATCH/$directory/work"
  mount -t overlay -o "$options" none "$directory"
done
mount -t tmpfs none /sys/kernel/security
mkdir -p /sys/kernel/security/apparmor /etc/apparmor.d/local/abstractions /etc/systemd/system/multi-user.target.wants
touch /sys/kernel/security/apparmor/profiles
printf '#!/bin/sh\necho "$@" >>%s\n' "$SCRATCH/parsed" >/usr/sbin/apparmor_parser
chmod 755 /usr/sbin/apparmor_parser
printf '%s# BEGIN novalite\n"%s/volumes/*" r,\n# END novalite\n' "$THEIRS" "$STATE" >"$PROFILE"
cp "$PROFILE" "$GUESTS"
ln -s ../novalite-firewall.service /etc/systemd/system/multi-user.target.wants/novalite-firewall.service
touch /etc/systemd/system/novalite-firewall.service /usr/local/sbin/novalite-firewall /usr/local/sbin/novalite-reach
touch /etc/sudoers.d/novalite-reach /usr/local/sbin/theirs
"""
LEAVE = 'ansible-playbook -i hv1, leave.yml "$@"; cp "$PROFILE" "$SCRATCH/profile"; cp "$GUESTS" "$SCRATCH/guests"; '
FOUND = "find /etc /usr/local/sbin -name '*novalite*' | sort; ls /usr/local/sbin/theirs"
PLAY = """
- hosts: hv1
  gather_facts: false
  connection: local
  tasks:
    - ansible.builtin.include_role: {name: novalite.cloud.compute_node, tasks_from: remove.yml}
"""


class Host:
    """A host with novalite's files; its state directory is `state`."""

    def __init__(self, scratch: pathlib.Path) -> None:
        self.scratch, self.state = scratch, scratch / "state"
        for name in ("_base/a.raw", "code/c.zip", "facts/f", "firewall/owner", "instances/", "volumes/", "adopted/"):
            (self.state / name).parent.mkdir(parents=True, exist_ok=True)
            (self.state / name).mkdir() if name.endswith("/") else (self.state / name).write_text("")
        (self.state / "host-record.json").write_text("{}")
        (scratch / "leave.yml").write_text(PLAY)

    def leave(self) -> str:
        """Run the role's tasks; returns what they said, and which of novalite's files there are at the end."""
        script = f"mount -t tmpfs none {self.scratch}/overlay; {PREPARE} {LEAVE} {FOUND}"
        (self.scratch / "overlay").mkdir()
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "sh",
                "-euc",
                script.replace("$SCRATCH/$d", "$SCRATCH/overlay/$d"),
                "sh",
                "-e",
                f"compute_node_state_dir={self.state} ansible_python_interpreter={sys.executable}",
            ],
            cwd=self.scratch,
            capture_output=True,
            text=True,
            check=False,
            timeout=GENEROUS,
            env={
                **os.environ,
                "SCRATCH": str(self.scratch),
                "STATE": str(self.state),
                "PROFILE": PROFILE,
                "THEIRS": THEIRS,
                "GUESTS": GUESTS,
                "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections:{ROOT}/.cache/collections",
                "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
                "ANSIBLE_NOCOLOR": "1",
                "NOVALITE_HOME": str(self.scratch / "home"),
            },
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    return Host(tmp_path)


def test_all_that_carries_novalites_mark_goes(host: Host) -> None:
    said = host.leave()
    assert said.splitlines()[-1:] == ["/usr/local/sbin/theirs"] and "novalite-" not in said.splitlines()[-2]
    assert (host.scratch / "profile").read_text() == (host.scratch / "guests").read_text() == THEIRS
    assert (host.scratch / "parsed").read_text().split() == [
        "--replace",
        "/etc/apparmor.d/usr.lib.libvirt.virt-aa-helper",
    ]
    assert not host.state.exists()


def test_what_guests_of_another_ledger_stand_on_stays(host: Host) -> None:
    (host.state / "instances/5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41").mkdir()
    said = host.leave()
    assert "hv1 keeps what compute_nodes.yml installed" in said and "5d7b1a3e-8a57" in said
    assert "/etc/systemd/system/novalite-firewall.service\n" in said
    assert "novalite" in (host.scratch / "profile").read_text() and (host.state / "_base/a.raw").exists()
