# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolling maintenance of hosts behind a real sshd, by a controller that is killed: no guest is off or twice for it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._host.waiting import wait_until
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_migrations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.support.grown import FACTS
from tests.support.patience import GENEROUS
from tests.support.playbooks import COMMAND
from tests.support.rows import add_host, an_instance, insert
from tests.unit.playbooks.controller import ROOT, Controller

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="an sshd that lets root in")
TASK = """
- name: Upgrade the host
  hosts: compute
  gather_facts: false
  tasks:
    - name: Reboot the host
      ansible.builtin.raw: systemctl reboot
"""
MOST_SOCKETS = 16  # of one sshd
# where the controller dies in the turn of a host; a host's look is of its emptying, since that comes first
KILLS = [
    *(("compute_host", moment) for moment in ("before", "after")),
    *(("disk_move", moment) for moment in ("before", "after")),
    *(("image_cache", moment) for moment in ("before", "after")),
    *(("live_migration", moment) for moment in ("before", "during", "after")),
    *(("domain_info", moment) for moment in ("before", "after")),
    *(("reboot", moment) for moment in ("before", "after")),
]


def _parts(names: list[str], most: int) -> t.Iterator[list[str]]:
    return (names[first : first + most] for first in range(0, len(names), most))


def _listens(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
        return True
    return False


class Cloud(Controller):
    """A controller, and hosts with as many guests each, which nobody but the stand-in behind sshd runs."""

    def __init__(self, path: pathlib.Path, seeded: pathlib.Path, hosts: int, guests: int) -> None:
        super().__init__(path)
        shutil.copytree(seeded, self.home, dirs_exist_ok=True)
        self.path, self.names = path, [f"hv{number}" for number in range(1, hosts + 1)]
        for name in ("stand_in_ssh.py", "recording_host.py"):
            shutil.copy(pathlib.Path(__file__).with_name(name), path)
        (path / "dead").write_text("")
        self.addresses = {f"127.0.77.{number}": name for number, name in enumerate(self.names, 1)}
        (path / "addresses").write_text(json.dumps(self.addresses))
        (self.elsewhere / "upgrade.yml").write_text(TASK)
        self.mark = f"ROLLING_MARK={uuid.uuid4()}"
        self.environment |= {"ROLLING_MARK": self.mark.partition("=")[2], "ANSIBLE_PIPELINING": "1"}
        self.guests = dict(self._fill(guests))
        (path / "world").write_text(json.dumps({guest: [host] for guest, host in self.guests.items()}))

    def _fill(self, count: int) -> t.Iterator[tuple[str, str]]:
        engine = open_ledger(str(self.home))
        with transaction(engine) as connection:
            demo = lookups.project_by_name(connection, "demo")["id"]
            for host in self.names:
                host_id = add_host(connection, host, facts=FACTS, last_seen_at=2 * 10**9, vcpus=8, memory_mb=16384)
                for number in range(count):
                    row = an_instance(f"{host}-{number}", project_id=demo, host=host, power_state=1)
                    insert(connection, tables.instance, **row)
                    sizes = {"vcpus": 1, "memory_mb": 512, "disk_gb": 1}
                    insert(
                        connection,
                        tables.allocation,
                        instance_uuid=row["uuid"],
                        compute_host_id=host_id,
                        created_at=0,
                        **sizes,
                    )
                    yield str(row["uuid"]), host
                used = {f"{name}_used": count * size for name, size in sizes.items()} if count else {}
                connection.execute(
                    sa.update(tables.compute_host).where(tables.compute_host.c.id == host_id).values(used)
                )
        engine.dispose()

    @contextlib.contextmanager
    def behind_ssh(self) -> t.Iterator[None]:
        """Have sshds that are all hosts, each at its address."""
        for name in ("host", "login"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / name], check=True)
        (self.path / "keys").write_text((self.path / "login.pub").read_text())
        with socket.socket() as free:
            free.bind(("127.0.77.1", 0))
            port = free.getsockname()[1]
        (self.path / "sshd_config").write_text(
            f"Port {port}\nHostKey {self.path}/host\nAuthorizedKeysFile {self.path}/keys\nPidFile none\n"
            f"UsePAM no\nStrictModes no\nPermitRootLogin yes\nMaxStartups 100\n"
            f"ForceCommand {sys.executable} -I {self.path}/recording_host.py\n"
        )
        lines = [f"{name} ansible_host={address}" for address, name in self.addresses.items()]
        ssh = f"ansible_user=root\nansible_port={port}\nansible_ssh_private_key_file={self.path}/login\n"
        known = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=auto -o ControlPersist=3"
        (self.elsewhere / "hosts.ini").write_text(
            "[compute]\n" + "\n".join(lines) + f"\n\n[compute:vars]\n{ssh}ansible_python_interpreter=/usr/bin/python3\n"
            f"ansible_ssh_args='{known}'\n"
        )
        os.makedirs("/run/sshd", exist_ok=True)
        with contextlib.ExitStack() as daemons:
            for some in _parts(list(self.addresses), MOST_SOCKETS):
                listens = [word for address in some for word in ("-o", f"ListenAddress={address}")]
                command = ["/usr/sbin/sshd", "-D", "-E", f"{self.path}/log", "-f", f"{self.path}/sshd_config", *listens]
                process = subprocess.Popen(command)
                daemons.callback(process.wait)
                daemons.callback(process.terminate)
                wait_until(functools.partial(_listens, some[0], port), GENEROUS, "no sshd", pause=0.05)
            yield

    def roll(self, *more: str, kill: tuple[str, str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the maintenance; `kill` is the host, step and moment at which its controller dies."""
        order = self.path / "kill"
        order.unlink(missing_ok=True)
        if kill is not None:
            order.write_text(json.dumps(dict(zip(("host", "step", "moment"), kill)) | {"mark": self.mark}))
        playbook = str(ROOT / "playbooks/rolling.yml")
        words = [str(COMMAND), "-i", "hosts.ini", playbook, "-e", "task=upgrade.yml", *more]
        options = {"cwd": self.elsewhere, "env": self.environment, "capture_output": True, "text": True}
        patience = GENEROUS * len(self.names)  # each host takes a minute or two
        done: subprocess.CompletedProcess[str] = subprocess.run(words, check=False, timeout=patience, **options)  # type: ignore[call-overload]  # typed one by one
        assert (done.returncode == -signal.SIGKILL) == (kill is not None), done.stdout + done.stderr
        return done

    def lines(self, name: str) -> list[t.Any]:
        path = self.path / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def runs(self) -> dict[str, list[str]]:
        return dict(json.loads((self.path / "world").read_text()))

    def check(self) -> None:
        """Hold that no guest was ever off, or on two hosts, and that the ledger has each where it runs."""
        for guests in self.lines("history"):
            assert {len(hosts) for hosts in guests.values()} == {1}, guests
        engine, columns = open_ledger(str(self.home)), tables.instance.c
        with reading(engine) as connection:
            rows = connection.execute(sa.select(columns.uuid, columns.host, columns.task_state)).all()
            assert not connection.scalars(sa.select(tables_migrations.rolling_host.c.host)).all()
            in_service = set(
                connection.scalars(sa.select(tables.compute_host.c.name).where(tables.compute_host.c.enabled))
            )
        engine.dispose()
        assert {row.uuid: [row.host] for row in rows} == self.runs()
        assert {row.task_state for row in rows} == {None} and in_service == set(self.names)


@pytest.mark.thorough
def test_a_controller_that_is_killed_goes_on_where_it_was(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    cloud = Cloud(tmp_path, seeded, hosts=3, guests=1)
    with cloud.behind_ssh():
        cloud.roll(kill=("hv1", "live_migration", "during"))
        cloud.roll("-e", "takeover=true", kill=("hv2", "reboot", "after"))
        done = cloud.roll("-e", "takeover=true")
    assert "3 hosts were maintained: hv1, hv2, hv3" in done.stdout
    # that of hv2 ended, and nobody was left to note it
    assert cloud.lines("rebooted") == [["hv1", []], ["hv2", []], ["hv2", []], ["hv3", []]]
    cloud.check()
    assert cloud.runs() == {guest: [host] for guest, host in cloud.guests.items()}


@pytest.mark.thorough
def test_twenty_hosts_are_maintained_by_a_controller_that_dies_at_each_step(
    seeded: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cloud = Cloud(tmp_path, seeded, hosts=20, guests=1)
    with cloud.behind_ssh():
        for number, (step, moment) in enumerate(KILLS, 1):
            cloud.roll(*(["-e", "takeover=true"] if number > 1 else []), kill=(f"hv{number}", step, moment))
        done = cloud.roll("-e", "takeover=true")
    assert "20 hosts were maintained" in done.stdout
    reboots = [host for host, guests in cloud.lines("rebooted") if not guests]
    again = [f"hv{number}" for number, kill in enumerate(KILLS, 1) if kill == ("reboot", "after")]
    assert sorted(reboots) == sorted([*cloud.names, *again])
    assert list(dict.fromkeys(reboots)) == cloud.names  # in their order
    cloud.check()
    assert cloud.runs() == {guest: [host] for guest, host in cloud.guests.items()}
