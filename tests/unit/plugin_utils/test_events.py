# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of a trip while they happen: what a host writes, how it comes to the controller, and how it is shown."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._host import events as host_events
from ansible_collections.novalite.cloud.plugins.module_utils._host.waiting import wait_until
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import instance
from ansible_collections.novalite.cloud.plugins.plugin_utils import _events
from ansible_collections.novalite.cloud.plugins.plugin_utils._events import Event
from ansible_collections.novalite.cloud.plugins.plugin_utils._progress import Progress, StepNow
from tests.support.cloud import Cloud, sqlite
from tests.support.patience import GENEROUS
from tests.unit._ledger.servers.conftest import seed

ROOT = pathlib.Path(__file__).parents[3]
GIB, MIB = 1 << 30, 1 << 20
SECRET = "hush-hush"
STEPS = [{"name": "Look", "module": "host_files"}, {"name": "Put the image into the cache", "module": "image_cache"}]
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Build
      ACTION:
        steps:
          - {name: Look, module: host_files, args: {files: []}}
          - {name: Wait, module: server_wait, may_fail: true, args: {guests: [GUEST], timeout: 3}}
          - {name: Wait again, module: server_wait, may_fail: true, args: {guests: [GUEST], timeout: 2}}
""".replace("GUEST", f"{{name: {SECRET}, address: 198.51.100.9}}")
# host_steps whose questions go wrong
BROKEN = """
from ansible_collections.novalite.cloud.plugins.action.host_steps import ActionModule as HostSteps
from ansible_collections.novalite.cloud.plugins.plugin_utils import _follow

class ActionModule(HostSteps):
    def run(self, tmp=None, task_vars=None):
        BREAK
        return super().run(tmp, task_vars)
"""


def played(
    path: pathlib.Path, action: str = "novalite.cloud.host_steps", play: str = PLAY, **more: str
) -> tuple[str, list[dict[str, t.Any]]]:
    """Run a play on this machine, which must succeed; return its output, and the events that were heard. `more` goes to
    the environment."""
    (path / "play.yml").write_text(play.replace("ACTION", action))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NOVALITE_"))}
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections:{ROOT}/.cache/collections",
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/support/callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "record_events",
        "ANSIBLE_PIPELINING": "True",
        "NOVALITE_HOME": str(path / "home"),
        "RECORD_EVENTS": str(path / "events"),
        **more,
    }
    variables = {"ansible_python_interpreter": "/usr/bin/python3", "compute_node_state_dir": str(path / "state")}
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-ihv1,", "-clocal", "-e", json.dumps(variables), "play.yml"],
        cwd=path,
        env={**kept, **{name: value for name, value in environment.items() if value}},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = path / "events"
    return done.stdout + done.stderr, lines_of(recorded) if recorded.exists() else []


def lines_of(path: pathlib.Path) -> list[dict[str, t.Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="/run is root's")


@needs_root
def test_each_step_is_heard_of_within_a_second(tmp_path: pathlib.Path) -> None:
    _output, heard = played(tmp_path)
    begun = {event["step"]: event for event in heard if event["kind"] == "begin"}
    assert list(begun) == ["Look", "Wait", "Wait again"]
    assert {event["host"] for event in heard} == {"hv1"}
    began = time.monotonic()
    subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", "pass"], check=True)
    slow = 10 * (time.monotonic() - began)  # of this machine, now
    late = {name: round(event["heard"] - event["at"], 2) for name, event in begun.items()}
    assert max(late.values()) < 1.0 + slow, late
    assert begun["Wait again"]["at"] - begun["Wait"]["at"] > 2.5  # the step waits for three seconds
    (ended,) = [event for event in heard if event["kind"] == "end" and event["step"] == "Wait"]
    assert ended["failed"] and not ended["changed"]
    assert SECRET not in (tmp_path / "events").read_text()


@needs_root
@pytest.mark.parametrize("pipelining", ["True", "False"])
def test_who_started_the_run_hears_each_end_once(tmp_path: pathlib.Path, pipelining: str) -> None:
    """Also of steps that had ended before anybody asked, and by Ansible's own way."""
    os.mkfifo(tmp_path / "steps")
    fd = os.open(tmp_path / "steps", os.O_RDWR)
    nobody = {"ANSIBLE_CALLBACKS_ENABLED": "", "ANSIBLE_PIPELINING": pipelining}
    played(tmp_path, play=PLAY.replace("timeout: 2", "timeout: 1"), NOVALITE_STEPS=str(tmp_path / "steps"), **nobody)
    events = [Event.of_line(line) for line in os.read(fd, 1 << 16).splitlines()]
    os.close(fd)
    ended = [event for event in events if event.kind == "end"]
    assert [event.step for event in ended] == ["Look", "Wait", "Wait again"]
    assert [(event.failed, event.may_fail) for event in ended] == [(False, False), (True, True), (True, True)]
    assert ended[1].seconds > 2.5


@pytest.mark.parametrize("kind", ["link", "file", "missing", "nobody reads", "full"])
def test_a_wrong_place_for_events_costs_nothing_but_them(
    tmp_path: pathlib.Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, target = tmp_path / "steps", tmp_path / "target"
    os.mkfifo(target)
    fd = os.open(target, os.O_RDWR | os.O_NONBLOCK)
    if kind == "link":
        place.symlink_to(target)
    elif kind == "file":
        place.touch()
    elif kind == "nobody reads":
        os.mkfifo(place)
    elif kind == "full":
        place = target
        with pytest.raises(BlockingIOError):
            while True:
                os.write(fd, b"x" * _events.MOST)
    monkeypatch.setenv("NOVALITE_STEPS", str(place))
    _events.tell(moving(1.0, 1), str(tmp_path))
    if kind != "full":
        with pytest.raises(BlockingIOError):
            os.read(fd, 1)
    assert kind != "file" or place.read_bytes() == b""
    os.close(fd)


@needs_root
@pytest.mark.parametrize("broken", ["_ASK = 'raise SystemExit(3)'", "_ASK = 'print(1)'", "_apart = None"])
def test_a_trip_goes_on_without_its_channel(tmp_path: pathlib.Path, broken: str) -> None:
    """The answer says then what its steps were."""
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins/broken.py").write_text(BROKEN.replace("BREAK", f"_follow.{broken}"))
    output, heard = played(tmp_path, "broken", re.sub("timeout: [23]", "timeout: 1", PLAY))
    assert [(event["step"], event["kind"]) for event in heard] == [
        ("Look", "end"),
        ("Wait", "end"),
        ("Wait again", "end"),
    ]
    assert "ok=1" in output and "Traceback" not in output, output


def test_a_host_writes_numbers_only_and_clears_up(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_events, "EVERY", 0.01)
    token, copied = tmp_path / "token", tmp_path / SECRET
    token.touch(0o600)
    copied.write_bytes(b"x" * MIB)
    with host_events.kept(str(tmp_path), "token"):
        host_events.begun(3)
        with host_events.growing(str(copied), GIB), host_events.growing(str(tmp_path / "not-there-yet"), MIB):
            wait_until(lambda: len(lines_of(token)) > 1, GENEROUS, "no bytes were told")
        host_events.ended(changed=True, failed=False)
        lines = lines_of(token)
        assert lines[0]["event"] == "begin" and lines[0]["step"] == 3
        assert (lines[1]["done"], lines[1]["total"]) == (copied.stat().st_blocks * 512, GIB)
        assert lines[-1]["event"] == "end" and lines[-1]["changed"]
        words = {value for line in lines for value in line.values() if isinstance(value, str)}
        assert words == {"begin", "end"}
    assert token.read_bytes() == host_events.OVER
    host_events.begun(4)
    assert token.read_bytes() == host_events.OVER


@pytest.mark.parametrize("kind", ["link", "missing", "others"])
def test_events_are_written_to_the_trips_own_file_alone(tmp_path: pathlib.Path, kind: str) -> None:
    """And a trip goes on where that cannot be."""
    elsewhere, token = tmp_path / "elsewhere", tmp_path / "token"
    elsewhere.touch(0o600)
    if kind == "link":
        token.symlink_to(elsewhere)
    elif kind == "others":
        token.touch()
        token.chmod(0o666)
    with host_events.kept(str(tmp_path), "token"):
        host_events.begun(0)
    assert elsewhere.read_bytes() == b"" and (kind != "others" or token.read_bytes() == b"")


@pytest.mark.parametrize(
    "said", [{"step": 2, "at": 1}, {"step": -1, "at": 1}, {"step": 0}, {"step": "x", "at": 1}, {"step": 0, "at": "y"}]
)
def test_what_no_host_says_is_refused(said: dict[str, t.Any]) -> None:
    with pytest.raises((LookupError, ValueError)):
        Event.of_host("hv1", STEPS, said, 0.0)


def test_a_hosts_time_becomes_the_controllers() -> None:
    event = Event.of_host("hv1", STEPS, {"step": 1, "at": 1000.5, "done": 3, "total": 4, "name": SECRET}, -900.0)
    assert event == Event("hv1", "Put the image into the cache", "image_cache", "moving", 100.5, 3, 4)


def moving(at: float, done: int, total: int = 4 * GIB) -> Event:
    return Event("hv1", "Put the image into the cache", "image_cache", "moving", at, done, total)


@pytest.mark.parametrize(
    ("counts", "total", "room", "words"),
    [
        ([], 0, 40, ""),
        ([512], 0, 40, "512 B"),
        ([1200 * MIB], 4 * GIB, 40, "1.2 of 4.0 GiB"),
        ([1000 * MIB, 1100 * MIB], 4 * GIB, 40, "1.1 of 4.0 GiB, 100 MiB/s, 0:30"),
        ([1000 * MIB, 1100 * MIB], 4 * GIB, 30, "1.1 of 4.0 GiB, 100 MiB/s"),
        ([1000 * MIB, 1100 * MIB], 4 * GIB, 10, ""),
        ([0, MIB], 4 * GIB, 40, "0.0 of 4.0 GiB, 1.0 MiB/s, 1:08:15"),
        ([0, 10 * MIB], MIB, 40, "10.0 MiB, 10.0 MiB/s"),  # more than was thought
        ([10 * MIB, MIB], 4 * MIB, 40, "1.0 of 4.0 MiB"),  # the next file
    ],
)
def test_bytes_are_told_with_their_rate_and_rest(counts: list[int], total: int, room: int, words: str) -> None:
    step = StepNow("Put it there", 0.0)
    for at, done in enumerate(counts):
        step.moved(moving(float(at), done, total))
    assert step.words(room) == words


def test_the_table_shows_the_step_of_a_trip() -> None:
    progress = Progress(0)
    progress.learned("server", {"to_build": [{"uuid": "u", "name": "web-1", "host": "hv1"}]}, 1)
    progress.started("hv1", "Build", 10)
    progress.heard(moving(9.0, MIB))  # the trip before
    assert progress.table(80, 24, 12)[2][0].split()[2:4] == ["Build", "2.0"]
    progress.heard(Event("hv1", "Put the image into the cache", "image_cache", "begin", 11.0))
    progress.heard(moving(12.0, 1000 * MIB))
    progress.heard(moving(13.0, 1100 * MIB))
    (line,) = [text for text, kind in progress.table(80, 24, 14) if kind == "running"]
    assert line == "  web-1     hv1   Put the imag…  1.1 of 4.0 GiB, 100 MiB/s, 0:30     3.0    13.0"
    assert len(line) <= 80
    progress.ended("hv1", "Build", 15)
    progress.heard(moving(14.0, 1200 * MIB))
    assert not progress.parts()


def test_a_listener_that_fails_ends_no_others(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_events, "_listeners", [])
    monkeypatch.setattr(_events, "_writers", [])
    _events.tell(moving(1.0, 1), str(tmp_path))  # nobody listens
    heard: list[Event] = []

    def fails(_events: t.Sequence[Event]) -> None:
        raise KeyError("a mistake")

    _events.listen(fails)
    _events.listen(heard.extend)
    for number in range(3):
        _events.tell(moving(2.0, number), str(tmp_path))
    wait_until(lambda: len(heard) == 3, GENEROUS, "events were not heard")
    assert heard == [moving(2.0, number) for number in range(3)]


# Signs of life that a test can wait for
SOON = """
import time
from ansible_collections.novalite.cloud.plugins.action.WHICH import ActionModule as Shipped
from ansible_collections.novalite.cloud.plugins.plugin_utils import _follow

class ActionModule(Shipped):
    def run(self, tmp=None, task_vars=None):
        _follow.ALIVE_AFTER = 0.2
        return super().run(tmp, task_vars)

    def _brought(self, args, result, task_vars):
        time.sleep(2)
        return result
"""
WAITS = (
    "{name: Wait, module: server_wait, may_fail: true, args: {guests: [{name: g, address: 198.51.100.9}], timeout: 2}}"
)
LONG = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ACTION: WORK
      vars: {move_plan: {build: {disks: [{uuid: UUID}]}, peers: {uuids: [OTHER]}}}
"""
STEP = f"{{steps: [{{name: Work, module: MODULE, args: {{ARGS}}}}, {WAITS}]}}"
NO_IMAGES = "{images: []}"


@needs_root
@pytest.mark.parametrize(
    ("action", "work", "signs"),
    [
        ("host_steps", STEP.replace("MODULE", "disk").replace("ARGS", "disks: [{uuid: UUID}], state: absent"), True),
        # a look, which names all there are
        ("host_steps", STEP.replace("MODULE", "console_output").replace("ARGS", "uuids: [UUID]"), False),
        ("image_cache", NO_IMAGES, True),
    ],
)
def test_the_ledger_hears_that_a_run_is_alive_while_a_host_works(
    tmp_path: pathlib.Path, action: str, work: str, signs: bool
) -> None:
    (tmp_path / "home").mkdir()
    cloud = Cloud(sqlite(tmp_path / "home"))
    seed(cloud)
    mine, other = (cloud.server({"name": name, "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"] for name in "ab")
    cloud.write(sa.update(instance).values(updated_at=1))
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "soon.py").write_text(SOON.replace("WHICH", action))
    play = LONG.replace("WORK", work).replace("UUID", mine[0]["uuid"]).replace("OTHER", other[0]["uuid"])
    played(tmp_path, "soon", play, ANSIBLE_ACTION_PLUGINS=str(tmp_path / "action_plugins"))
    at = {row.uuid: row.updated_at for row in cloud.rows(sa.select(instance))}
    assert (at[mine[0]["uuid"]] > 1, at[other[0]["uuid"]]) == (signs, 1)
    cloud.close()
