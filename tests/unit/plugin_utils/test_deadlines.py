# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deadlines of steps: how long each may take, and what becomes of one that takes longer, on the host and here."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t
from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import command, deadlines, locks, waiting
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall, call_module
from ansible_collections.novalite.cloud.plugins.plugin_utils import _host_code, _patience, _step_actions, _trip
from ansible_collections.novalite.cloud.plugins.plugin_utils._image_push import ImageAction

MODULES = sorted(_host_code.modules_of_hosts() | _host_code.steps_of_hosts())
LISTS = (
    "images",
    "disks",
    "moves",
    "snapshots",
    "backups",
    "domains",
    "guests",
    "instances",
    "volumes",
    "attachments",
    "bridges",
    "copies",
)
UTILS = pathlib.Path(deadlines.__file__).parents[1]


def options(module: str) -> dict[str, t.Any]:
    spec: dict[str, t.Any] = importlib.import_module(f"{_host_code.NAME}.{_host_code.place_of(module)}").ARGUMENT_SPEC
    return spec


def arguments(module: str, **args: t.Any) -> dict[str, t.Any]:
    """The module's options with their defaults; a list that is required has nothing in it."""
    return {
        name: option.get("default", [] if option.get("type") == "list" else None)
        for name, option in options(module).items()
    } | args


def known_timeouts(module: str) -> dict[str, float]:
    """Constants called *_TIMEOUT in the rooms' files that the module's file imports from."""
    timeouts: dict[str, float] = {}
    path = _host_code.PLUGINS / f"{_host_code.place_of(module).replace('.', '/')}.py"
    for node in ast.walk(ast.parse(path.read_text())):
        room = (getattr(node, "module", None) or "").removeprefix("module_utils.")
        if not isinstance(node, ast.ImportFrom) or not room.startswith("_") or room == "__future__":
            continue
        base = UTILS / room.replace(".", "/")
        files = [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
        for file in filter(pathlib.Path.is_file, files):
            name = ".".join(file.relative_to(UTILS).with_suffix("").parts)
            values = vars(importlib.import_module(f"{_host_code.NAME}.module_utils.{name}"))
            timeouts |= {f"{name}.{key}": value for key, value in values.items() if key.endswith("_TIMEOUT")}
    if module == "volume_attach":
        del timeouts["_domain.volumes.COPY_TIMEOUT"]  # of copies of volumes that guests write to
    return timeouts


@pytest.mark.parametrize("module", MODULES)
def test_no_step_is_ended_before_what_it_waits_for_by_itself(module: str) -> None:
    """Be it with one thing to do: those that its own code bounds, and whoever calls it."""
    states = options(module).get("state", {}).get("choices") or [None]
    thing = dict.fromkeys(("size", "virtual_size", "virtual_size_gb"), 0)
    lists = {name: [thing] for name in LISTS if name in options(module)}
    limits = [deadlines.of_step(module, arguments(module, state=state, wipe="zero", **lists)) for state in states]
    assert max(limits) >= max([600.0, *known_timeouts(module).values()])
    assert min(limits) >= 600 + float(options(module).get("timeout", {}).get("default") or 0)


@given(
    module=st.sampled_from(MODULES),
    few=st.integers(0, 5),
    more=st.integers(0, 500),
    gib=st.integers(0, 5000),
    data=st.data(),
)
def test_more_and_larger_things_get_more_time(module: str, few: int, more: int, gib: int, data: st.DataObject) -> None:
    states = options(module).get("state", {}).get("choices") or [None]
    state = data.draw(st.sampled_from(states))

    def limit(count: int, size: int) -> float:
        thing = {"size": size << 30, "virtual_size": size << 30, "virtual_size_gb": size, "shutdown_timeout": None}
        lists = {name: [thing] * count for name in LISTS if name in options(module)}
        return deadlines.of_step(module, arguments(module, state=state, **lists))

    assert deadlines.DEFAULT <= limit(few, 0) <= limit(few + more, 0) <= limit(few + more, gib) < 10**10


def test_disks_get_time_by_their_size() -> None:
    def limit(gib: int) -> float:
        return deadlines.of_step("disk", {"disks": [{"virtual_size_gb": gib}], "state": "present", "wipe": "none"})

    assert limit(10) < 4000
    assert limit(2000) - limit(1000) == pytest.approx(1000 * 1024 / 20)


def test_a_trip_takes_what_its_steps_may_take() -> None:
    step = {"module": "console_output", "args": {"uuids": []}}
    wait = {"module": "server_wait", "args": {"guests": [{}], "timeout": 300}}
    longest = deadlines.of_trip([step, wait])
    assert longest == 2 * deadlines.DEFAULT + 300 + deadlines.UNDO + deadlines.ANSWER


class Undone(t.NamedTuple):
    """How hanging work was ended."""

    result: dict[str, t.Any]
    seconds: float
    undo: list[str]


def ended(work: t.Callable[[], object]) -> Undone:
    """What becomes of a step that does `work`, which does not end, with something to take back."""
    undo: list[str] = []

    def run(call: HostCall) -> dict[str, t.Any]:
        with contextlib.ExitStack() as stack:
            stack.callback(undo.append, "stack")
            try:
                work()
            except BaseException:
                undo.append("except")
                raise
        return {"changed": True}

    began = time.monotonic()
    result = call_module(run, HostCall({}), 0.2)
    return Undone(result, time.monotonic() - began, undo)


def sleeps() -> None:
    time.sleep(30)


def runs_a_command() -> None:
    command.run(["sleep", "30"])


def waits_for_a_lock(path: pathlib.Path) -> None:
    with locks.locked("held", directory=str(path)):
        sleeps()


def turns() -> None:
    while True:
        pass


def expects_errors() -> None:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(30)
            raise NovaliteError("no answer yet")


def polls() -> None:
    waiting.wait_until(lambda: False, 30, "never")


@pytest.mark.parametrize("work", [sleeps, runs_a_command, turns, expects_errors, polls])
def test_a_step_that_hangs_ends_with_a_sentence_and_takes_back_what_it_did(work: t.Callable[[], object]) -> None:
    done = ended(work)
    assert done.result["failed"] and not done.result["changed"]
    assert done.result["msg"].startswith("not done within 0 s, and stopped")
    assert done.undo == ["except", "stack"]
    assert done.seconds < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_step_that_hangs_gives_its_locks_back(tmp_path: pathlib.Path) -> None:
    ended(lambda: waits_for_a_lock(tmp_path))
    with locks.locked("held", timeout=0, directory=str(tmp_path)):
        pass


def test_a_step_in_time_is_left_alone() -> None:
    assert call_module(lambda call: {"seen": 1}, HostCall({}), 0.2) == {"changed": False, "seen": 1}
    time.sleep(0.3)


def test_an_alarm_that_is_set_already_rings_all_the_same() -> None:
    """Ansible's keyword `timeout` is one."""
    rung: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda signum, frame: rung.append("theirs"))
    try:
        for due, own in ((0.2, 5.0), (0.6, 0.2)):
            signal.setitimer(signal.ITIMER_REAL, due)
            with contextlib.suppress(deadlines.OverdueError), deadlines.limited(own, "late"):
                time.sleep(0.4)
            time.sleep(0.5)
        assert rung == ["theirs"] * 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def connection(transport: str) -> mock.MagicMock:
    made = mock.MagicMock(transport=transport)
    made.get_option.return_value = "-o User=deploy"
    return made


def test_a_silent_hosts_ssh_is_ended_and_no_other_process() -> None:
    earlier = subprocess.Popen(["sleep", "30"])
    try:
        ssh = connection("ssh")
        lost = pytest.raises(AnsibleConnectionFailure, match="lost during the task: no answer within 0 s")
        with lost, _patience.limited(ssh, 0.3):
            waiting = subprocess.Popen(["sleep", "30"])
            waiting.wait()
        assert waiting.wait(5) == -signal.SIGTERM
        assert earlier.poll() is None
        ssh.reset.assert_called_once_with()
    finally:
        earlier.kill()
        earlier.wait()


def test_where_the_host_is_this_machine_its_steps_end_by_themselves() -> None:
    with _patience.limited(connection("local"), 0.1):
        time.sleep(0.3)


@pytest.mark.parametrize("way", ["push", "fetch"])
def test_a_file_on_its_way_is_waited_for_no_longer(tmp_path: pathlib.Path, way: str) -> None:
    (tmp_path / "image").touch()
    action = mock.MagicMock(_args={"images": [{"checksum": "c"}]})
    action._connection = connection("ssh")
    action._connection.become = None
    action._transfer_file.side_effect = action._connection.fetch_file.side_effect = lambda *_words: time.sleep(30)
    began = time.monotonic()
    lost = pytest.raises(AnsibleConnectionFailure, match="no answer within")
    with mock.patch.object(deadlines, "of_file", lambda size: 0.2), lost:
        if way == "push":
            ImageAction._push(action, {}, {"c": "/there"}, {"c": str(tmp_path / "image")}, None)
        else:
            _step_actions.DiskSnapshot._fetched(action, {"path": "/there", "size": 1}, "/here")
    assert time.monotonic() - began < 5


def test_a_file_gets_time_by_its_size() -> None:
    assert deadlines.of_file(0) == deadlines.DEFAULT
    assert deadlines.of_file(1 << 30) - deadlines.of_file(0) == 1024


def test_keep_alive_is_added_once_behind_what_the_user_says() -> None:
    ssh, other = connection("ssh"), connection("paramiko")
    _patience.keep_alive(ssh)
    ((_name, arguments_of_ssh), _keywords) = ssh.set_option.call_args
    assert arguments_of_ssh == "-o User=deploy -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
    ssh.get_option.return_value = arguments_of_ssh
    _patience.keep_alive(ssh)
    _patience.keep_alive(other)
    assert ssh.set_option.call_count == 1 and not other.set_option.called


@pytest.mark.skipif(not os.path.exists("/usr/bin/timeout"), reason="coreutils")
def test_a_process_that_hears_no_alarm_is_killed(tmp_path: pathlib.Path) -> None:
    """One that is in a call into C, as libvirt's: the command of a trip has an end of its own."""
    action = mock.MagicMock()
    action._task = mock.MagicMock(check_mode=False)
    action._seconds = deadlines.ANSWER + 1
    action._compute_environment_string.return_value = ""
    action._templar.template.side_effect = lambda value: value
    action.state_dir.return_value = str(tmp_path)
    deaf = "import signal,time; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); time.sleep(30)"
    commands: list[str] = []

    def execute(command: str, in_data: bytes) -> dict[str, t.Any]:
        commands.append(command)
        done = subprocess.run(["/bin/sh", "-c", command], input=in_data, capture_output=True, check=False, timeout=20)
        return {
            "stdout_lines": done.stdout.decode().splitlines(),
            "stderr": done.stderr.decode(),
            "rc": done.returncode,
        }

    action._low_level_execute_command.side_effect = execute
    began = time.monotonic()
    killed = pytest.raises(_trip.AnsibleActionFail, match="ended by signal 9")
    with mock.patch.object(_trip, "BOOT", deaf), mock.patch.object(_trip, "PYTHON", sys.executable), killed:
        _trip.TripAction._send(action, b"", b"{}", {})
    assert time.monotonic() - began < 10
    assert commands[0].startswith("timeout -s KILL 1 ")
