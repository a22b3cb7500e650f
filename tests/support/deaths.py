# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deaths of hypervisors of a lab, one after the other, while controllers watch them: for each the time until its
guests run elsewhere. An observer beside it counts all the while how often each guest runs, and who writes to which
disk.

`python -m tests.support.deaths HOME INVENTORY [NUMBER ...]` plays all of them, or those with a NUMBER, over the lab and
the ledger in HOME, and ends with a table and without the guests. The ledger goes to a PostgreSQL for that, since there
are several controllers.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import ssl
import subprocess
import sys
import threading
import time
import typing as t
import urllib.request

import psycopg

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing.watch_lock import WatchLock
from api.jobs import chores, supervisor

from . import postgresql, redfish

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ("hv1", "hv2", "hv3")
INTERVAL = 10  # seconds between the beginnings of two looks, as docs/ha.md has it
LIMIT = 60.0  # seconds for a guest to be back, after the word where a person has to say it
PATIENCE = 300.0  # seconds, after which it is not
STAYS = 75.0  # seconds for which a guest must stay where it is
PERSON = 45.0  # seconds, after which a person says that a host is dead
SHARED, LOCAL = "rooted", "rebuilt"


@dataclasses.dataclass(frozen=True)
class Death:
    """Death of the host that bears the guest `of`: `commands` of the lab's, and what else happens.

    `fault` is that of its management controller, `word` says that a person confirms it; `killed` is the state of the
    host in which the controller dies; `watchers` are how many there are; `stays` says that no guest may be moved.
    """

    name: str
    of: str
    commands: tuple[str, ...]
    fault: str = ""
    word: bool = False
    killed: str = ""
    watchers: int = 1
    stays: bool = False


UNPLUGGED, CUT = ("unplug",), ("cut",)
DEATHS = (
    Death("SIGKILL of everything", SHARED, UNPLUGGED),
    Death("SIGKILL of everything", LOCAL, UNPLUGGED),
    Death("network cut in both directions", SHARED, CUT),
    Death("network cut in both directions", LOCAL, CUT),
    Death("nothing comes in", SHARED, ("cut in",)),
    Death("nothing comes in", LOCAL, ("cut in",)),
    Death("nothing goes out", SHARED, ("cut out",)),
    Death("nothing goes out", LOCAL, ("cut out",)),
    Death("frozen with its kernel", SHARED, ("freeze", "cut")),
    Death("frozen with its kernel", LOCAL, ("freeze", "cut")),
    Death("frozen, its kernel answers", SHARED, ("freeze",), stays=True),
    Death("libvirtd alone is killed", LOCAL, ("exec pkill -KILL -x libvirtd",), stays=True),
    Death("BMC gone, a person confirms", SHARED, UNPLUGGED, redfish.REFUSES, word=True),
    Death("BMC gone, a person confirms", LOCAL, UNPLUGGED, redfish.REFUSES, word=True),
    Death("controller dies while it fences", SHARED, CUT, redfish.SLOW, killed="fencing"),
    Death("controller dies while it fences", LOCAL, CUT, redfish.SLOW, killed="fencing"),
    Death("controller dies while it recovers", SHARED, UNPLUGGED, killed="evacuating"),
    Death("controller dies while it recovers", LOCAL, UNPLUGGED, killed="evacuating"),
    Death("two controllers", SHARED, CUT, watchers=2),
    Death("two controllers, one dies while it fences", LOCAL, UNPLUGGED, redfish.SLOW, killed="fencing", watchers=2),
)


class Lab:
    """Hypervisors and their management controller, below `home`, and the ledger, which goes to `url`."""

    def __init__(self, home: pathlib.Path, inventory: pathlib.Path, url: str) -> None:
        self.home, self.inventory = home, inventory
        self.state = home / "lab/hypervisors"
        file = {"ledger_file": f"{home}/deaths.jsonl"}
        self.play("ledger_export.yml", **file)
        os.environ["NOVALITE_LEDGER_URL"] = url  # from now on for all playbooks
        self.play("ledger_import.yml", **file)
        self._ledger = psycopg.connect(url, autocommit=True)
        self.uuids = {
            name: self.ask("SELECT uuid FROM instance WHERE name = %s", name)[0][0] for name in (SHARED, LOCAL)
        }

    def ask(self, query: t.LiteralString, *values: object) -> list[tuple[t.Any, ...]]:
        return self._ledger.execute(query, values).fetchall()

    def row(self, host: str) -> tuple[str, list[str]]:
        """Return the state of a host, and the guests that it has to give up."""
        rows = self.ask("SELECT state, moved FROM host_watch WHERE host = %s", host)
        return rows[0] if rows else ("", [])

    def command(self, command: str, host: str) -> str:
        first, *more = command.split()
        argv = [str(redfish.HYPERVISORS), first, "--state", str(self.state), host, *more]
        return subprocess.run(
            argv, check=first != "exec", stdin=subprocess.DEVNULL, capture_output=True, text=True
        ).stdout

    def bmc(self, host: str, fault: str) -> None:
        (self.home / "bmc" / host).write_text(fault)

    def boot(self, host: str) -> None:
        port = (self.home / "bmc/port").read_text().strip()
        url = f"https://127.0.0.1:{port}{redfish.uri(host)}/Actions/ComputerSystem.Reset"
        secret = base64.b64encode(f"{redfish.USER}:{redfish.PASSWORD}".encode("latin-1")).decode()
        order = urllib.request.Request(
            url, json.dumps({"ResetType": "On"}).encode(), {"Authorization": f"Basic {secret}"}
        )
        with urllib.request.urlopen(order, context=ssl._create_unverified_context(), timeout=120):  # its own
            pass

    def has(self, host: str) -> list[str]:
        """List the guests that are defined on a host."""
        return self.command("exec virsh -q list --all --uuid", host).split()

    def command_of(self, playbook: str, **variables: object) -> tuple[str, ...]:
        words = ("--extra-vars", json.dumps(variables))
        return ("ansible-playbook", "--inventory", str(self.inventory), *words, f"{ROOT}/playbooks/{playbook}")

    def play(self, playbook: str, **variables: object) -> None:
        pipes: dict[str, t.Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        playing = subprocess.run(self.command_of(playbook, **variables), **pipes, text=True, cwd=ROOT)
        assert playing.returncode == 0, playing.stdout


class Observer(threading.Thread):
    """Observer of all QEMUs of this machine: which guests run on which hosts now. `twice` are what must never be."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(daemon=True)
        self._uuids, self._over = set(lab.uuids.values()), threading.Event()
        link = "nvl" + hashlib.sha256(str(lab.state).encode()).hexdigest()[:6]
        self._links = {host: pathlib.Path(f"/run/netns/{link}-{host}") for host in HOSTS}
        self.running: dict[str, set[str]] = {}
        self.twice: set[str] = set()
        self.looks = 0

    def run(self) -> None:
        while not self._over.wait(0.2):
            self.look()

    def end(self) -> None:
        self._over.set()
        self.join()

    def look(self) -> None:
        spaces = {path.stat().st_ino: host for host, path in self._links.items() if path.exists()}
        running, writers = collections.defaultdict(set), collections.defaultdict(set)
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"-uuid" not in words:
                    continue
                guest, host = words[words.index(b"-uuid") + 1].decode(), spaces.get((process / "ns/net").stat().st_ino)
                if guest in self._uuids and host is not None:
                    running[guest].add(host)
                    for disk in _written(process):
                        writers[disk].add((process.name, host))
        self.running, self.looks = dict(running), self.looks + 1
        self.twice |= {f"{guest} runs on {sorted(hosts)}" for guest, hosts in running.items() if len(hosts) > 1}
        self.twice |= {f"{disk} is written by {sorted(by)}" for disk, by in writers.items() if len(by) > 1}

    def host_of(self, guest: str) -> str | None:
        return next(iter(self.running.get(guest, ())), None)


def _written(process: pathlib.Path) -> t.Iterator[tuple[int, int]]:
    """Yield the disks that a QEMU has open for writing: each by its device and inode."""
    for link in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(link)
            flags = int((process / "fdinfo" / link.name).read_text().split("flags:")[1].split()[0], 8)
            if (
                flags & os.O_ACCMODE
                and target.startswith("/")
                and not target.startswith(("/dev/", "/memfd", "/run", "/var/log"))
            ):
                there = link.stat()
                yield there.st_dev, there.st_ino


class Watcher:
    """Controller that watches as a worker does, in a process of its own, until it is killed or ended."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.name, self._directory = name, lab.home / "controllers" / name
        self._directory.mkdir(parents=True)
        environment = {**os.environ, "ANSIBLE_LOG_PATH": str(self._directory / "log")}
        command = lab.command_of("watch.yml", novalite_watch_controller=name)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "--watch", str(self._directory), *command],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
        )

    def kill(self) -> None:
        """Kill all processes of the controller in the middle of whatever they do."""
        self._process.kill()
        supervisor.reap(chores.mark("watch", str(self._directory)))
        self.end()

    def end(self) -> None:
        self._process.communicate()


def watch(directory: str, *command: str) -> None:
    """Watch by a command, until the standard input ends."""
    chore = chores.Chore("watch", INTERVAL, command, os.environ, str(ROOT), chores.ROUND, leased=True, watches=True)
    at_work = chores.Chores([chore], directory, WatchLock(directory, os.environ["NOVALITE_LEDGER_URL"]))
    sys.stdin.read()
    at_work.stop()


@dataclasses.dataclass
class Played:
    """Death as it went: seconds until each guest ran elsewhere, and what was wrong."""

    death: Death
    host: str
    back: dict[str, float] = dataclasses.field(default_factory=dict)
    load: float = 0
    wrong: list[str] = dataclasses.field(default_factory=list)


class Stage:
    """Stage on which deaths are played."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.observer, self._controllers = lab, Observer(lab), 0
        self.observer.start()

    def watchers(self, count: int) -> list[Watcher]:
        self._controllers += count
        return [Watcher(self.lab, f"ctl{self._controllers - number}") for number in range(count)]

    def wait(self, until: t.Callable[[], bool], seconds: float = PATIENCE) -> bool:
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def well(self) -> bool:
        """Tell whether all hosts are up, and were looked at, with each guest running where it is recorded."""
        if self.lab.ask("SELECT host FROM host_watch WHERE answered_at = 0"):
            return False
        rows = self.lab.ask("SELECT uuid, host, task_state FROM instance WHERE deleted = 0")
        return all(self.lab.row(host) == ("up", []) for host in HOSTS) and all(
            self.observer.running.get(uuid) == {host} and not task for uuid, host, task in rows
        )

    def play(self, death: Death) -> Played:
        watchers = self.watchers(death.watchers)
        try:
            assert self.wait(self.well), f"not well: {[self.lab.row(host) for host in HOSTS]}, {self.observer.running}"
            host = self.observer.host_of(self.lab.uuids[death.of])
            assert host is not None
            played = Played(death, host)
            guests = {name for name, uuid in self.lab.uuids.items() if self.observer.host_of(uuid) == host}
            self.lab.bmc(host, death.fault)
            for command in death.commands:
                self.lab.command(command, host)
            began = time.monotonic()
            if death.stays:
                self._stays(played, guests)
            else:
                self._moves(played, guests, began, watchers)
            played.load = os.getloadavg()[0]
            self._return(played, guests)
            return played
        finally:
            for watcher in watchers:
                watcher.end()

    def _stays(self, played: Played, guests: set[str]) -> None:
        moved = self.wait(lambda: any(self._elsewhere(name, played.host) for name in guests), STAYS)
        state = self.lab.row(played.host)[0]
        if moved or state not in ("up", "suspect"):
            played.wrong.append(f"it was given up: {state}")

    def _elsewhere(self, name: str, host: str) -> bool:
        runs_on = self.observer.running.get(self.lab.uuids[name], set())
        return bool(runs_on - {host})

    def _moves(self, played: Played, guests: set[str], began: float, watchers: list[Watcher]) -> None:
        host, death, kill_in = played.host, played.death, played.death.killed
        confirm_at = began + PERSON if death.word else float("inf")
        while set(played.back) != guests:
            now = time.monotonic()
            if now > began + PATIENCE:
                played.wrong.append(f"not back: {sorted(guests - set(played.back))}, the host is {self.lab.row(host)}")
                return
            for name in guests - set(played.back):
                if self._elsewhere(name, host):
                    played.back[name] = now - began
            if kill_in and self.lab.row(host)[0] == kill_in:
                kill_in = ""
                ((owner,),) = self.lab.ask("SELECT controller FROM watch")
                next(watcher for watcher in watchers if watcher.name == owner).kill()
                if death.watchers == 1:
                    watchers += self.watchers(1)
            if now > confirm_at:
                confirm_at = float("inf")
                self.lab.play("ha.yml", ha_state="confirmed", host=host, confirmed_by="alice")
            time.sleep(0.1)

    def _return(self, played: Played, guests: set[str]) -> None:
        """Have the host come back, and see that it has nothing of what others got."""
        host = played.host
        self.lab.bmc(host, "")
        if played.death.stays:
            self.lab.command("thaw", host)
            if not self.lab.command("exec pgrep -c -x libvirtd", host).strip("0\n"):
                self.lab.command("exec libvirtd -d", host)
        else:
            self.lab.command("unplug", host)
            self.lab.boot(host)
        if not self.wait(self.well):
            played.wrong.append(f"{host} is not well again: {self.lab.row(host)}, {self.observer.running}")
            return
        left = {name for name in guests if self.lab.uuids[name] in self.lab.has(host)}
        if left and not played.death.stays:
            played.wrong.append(f"{host} has {sorted(left)} still")


def main(home: str, inventory: str, numbers: t.Sequence[str]) -> int:
    place = pathlib.Path(home)
    with postgresql.shared_server(place) as server:
        return play(Lab(place, pathlib.Path(inventory), server.create("deaths")), numbers)


def play(lab: Lab, numbers: t.Sequence[str]) -> int:
    stage = Stage(lab)
    deaths = [DEATHS[int(number) - 1] for number in numbers] if numbers else DEATHS
    lines, wrong = [], []
    for number, death in enumerate(deaths, 1):
        played = stage.play(death)
        wrong += [f"{number}: {words}" for words in played.wrong]
        back = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(played.back.items())) or "stayed"
        limit = LIMIT + (PERSON if death.word else 0)
        late = " LATE" if any(seconds > limit for seconds in played.back.values()) else ""
        lines.append(f"{number:2} {death.name:44} {played.host} {back:32} load {played.load:.1f}{late}")
        print(lines[-1], *played.wrong, sep="\n   ", flush=True)
    lab.play("terminate.yml", servers=[{"name": name} for name in lab.uuids])
    stage.observer.end()
    wrong += sorted(stage.observer.twice)
    print(
        f"seconds from death to QEMU elsewhere; {stage.observer.looks} looks at what runs, "
        f"twice: {stage.observer.twice or 'never'}"
    )
    print("\n".join([*lines, *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--watch":
        watch(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
