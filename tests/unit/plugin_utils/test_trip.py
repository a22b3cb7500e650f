# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trips to a host: what is kept there, what is believed of it, and what becomes of the answer.

The host is this machine, and its end of a trip a process of its own, as over ssh.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import types
import typing as t
import zlib
from unittest import mock

import pytest
import yaml
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from ansible_collections.novalite.cloud.plugins.module_utils._drift.host_scan import HOST_ARGUMENTS
from ansible_collections.novalite.cloud.plugins.module_utils._host import trip as host_trip
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.modules import console_output, host_step
from ansible_collections.novalite.cloud.plugins.plugin_utils import _host_code, _trip

CODE, DIGEST = _host_code.archive()
NO_STEPS = '{"host": null, "steps": []}'
PLACE = "modules.console_output"
DESCRIBE = {"name": "Look", "module": "console_output", "place": PLACE, "paths": ["state_dir"], "may_fail": False}


class Host:
    """One that is reached by a pipe. `directory` is where it keeps the code."""

    def __init__(self, path: pathlib.Path) -> None:
        self.directory = path / "code"
        self.state = path / "state"
        path_of_log = self.state / "instances" / UUID / "console.log"
        path_of_log.parent.mkdir(parents=True)
        path_of_log.write_text("first\nsecond\n")

    def answers(self, *steps: dict[str, t.Any], code: bytes = b"", keep: str = "1", **request: t.Any) -> t.Any:
        """Return what a trip with `steps` prints after the mark: "none", or the list of how it went."""
        nothing = {"check_mode": False, "diff": False, "token": "", "again": False, "expected": None, "events": False}
        asked = json.dumps({"steps": steps, "state_dir": str(self.state), **nothing, **request}).encode()
        argv = [sys.executable, "-I", "-c", _host_code.BOOT, str(self.directory), DIGEST, keep]
        deflated = zlib.compress(code) if code else b""
        done = subprocess.run(
            argv,
            input=b"%d\n%s%s" % (len(deflated), deflated, asked),
            capture_output=True,
            check=False,
            env={**os.environ, "HOME": str(self.state.parent)},
        )
        lines = [line for line in done.stdout.decode().splitlines() if line.startswith(_host_code.MARK)]
        assert lines, done.stderr.decode()
        said = lines[-1].removeprefix(_host_code.MARK)
        return said if said == "none" else json.loads(said)["steps"]

    def tail(self, **args: t.Any) -> dict[str, t.Any]:
        """A step that reads an instance's console."""
        module_args = {"uuids": [UUID], "lines": 1, "max_bytes": 100, "state_dir": str(self.state), **args}
        return {**DESCRIBE, "args": module_args}

    def kept(self) -> list[pathlib.Path]:
        return sorted(self.directory.iterdir()) if self.directory.exists() else []


UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def visited(host: Host) -> Host:
    """One that has the code."""
    host.answers(host.tail(), code=CODE)
    return host


def test_code_travels_once(host: Host) -> None:
    assert host.answers(host.tail()) == "none"
    assert host.answers(host.tail(), code=CODE)[0]["result"]["console"] == {UUID: "second\n"}
    (kept,) = host.kept()
    assert kept.name.startswith(DIGEST)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert host.directory.stat().st_mode & 0o777 == 0o700
    assert host.answers(host.tail())[0]["result"]["console"] == {UUID: "second\n"}


def test_check_mode_leaves_no_code_behind(host: Host) -> None:
    assert host.answers(host.tail(), code=CODE, keep="0", check_mode=True)[0]["result"]["changed"] is False
    assert not host.kept()


def test_damaged_code_is_sent_again(visited: Host) -> None:
    (kept,) = visited.kept()
    kept.write_bytes(kept.read_bytes()[:-1] + b"!")
    assert visited.answers(visited.tail()) == "none"
    visited.answers(visited.tail(), code=CODE)
    assert visited.answers(visited.tail()) != "none"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_code_that_others_may_write_is_not_believed(visited: Host, mode: int) -> None:
    (kept,) = visited.kept()
    kept.chmod(mode)
    assert visited.answers(visited.tail()) == "none"


def test_a_directory_that_others_may_write_is_not_believed(visited: Host) -> None:
    visited.directory.chmod(0o770)
    assert visited.answers(visited.tail()) == "none"


def test_a_directory_that_others_may_replace_is_not_believed(visited: Host) -> None:
    visited.directory.parent.chmod(0o777)
    assert visited.answers(visited.tail()) == "none"


def test_a_link_is_not_believed(visited: Host) -> None:
    (kept,) = visited.kept()
    kept.rename(visited.directory.parent / "elsewhere")
    kept.symlink_to(visited.directory.parent / "elsewhere")
    assert visited.answers(visited.tail()) == "none"


def test_damaged_ones_go(visited: Host) -> None:
    (kept,) = visited.kept()
    kept.rename(kept.with_name(f"{0:064}.cpython-311.{0:064}.code"))
    visited.answers(visited.tail(), code=CODE)
    (sound,) = visited.kept()
    assert sound.name.startswith(DIGEST)


def test_few_old_ones_are_kept(visited: Host) -> None:
    nothing = hashlib.sha256(b"").hexdigest()
    for number in range(5):
        old = visited.directory / f"{number:064}.cpython-311.{nothing}.zip"
        old.touch()
        os.utime(old, (number, number))
    (visited.directory / "notes").touch()
    visited.answers(visited.tail(), code=CODE)
    names = [path.name for path in visited.kept()]
    assert len(names) == 4
    assert "notes" in names
    assert any(name.startswith(DIGEST) for name in names)


def test_a_host_that_cannot_keep_it_works(host: Host) -> None:
    host.directory.parent.joinpath("code").write_text("a file is in the way")
    assert host.answers(host.tail(), code=CODE)[0]["result"]["console"] == {UUID: "second\n"}
    assert host.answers(host.tail()) == "none"


def test_steps_end_with_the_first_that_fails(visited: Host) -> None:
    wrong = visited.tail(uuids=["../../etc"])
    results = visited.answers(visited.tail(), wrong, visited.tail())
    assert [result["result"].get("failed", False) for result in results] == [False, True]
    assert results[1]["result"]["msg"] == "'../../etc' is not a UUID"
    results = visited.answers({**wrong, "may_fail": True}, visited.tail())
    assert [result["result"].get("failed", False) for result in results] == [True, False]


def test_a_defect_is_told_of_with_its_step(visited: Host) -> None:
    (result,) = visited.answers({**visited.tail(), "args": {}})
    assert result["result"]["msg"].startswith("module console_output ended with KeyError")
    assert "Traceback" in result["result"]["exception"]


def test_a_path_means_what_it_means_on_the_host(visited: Host) -> None:
    (result,) = visited.answers(visited.tail(state_dir="~/state"))
    assert result["result"]["console"] == {UUID: "second\n"}


def test_the_archive_is_the_same_for_the_same_code() -> None:
    _host_code.archive.cache_clear()
    assert _host_code.archive() == (CODE, DIGEST)


def test_what_modules_of_hosts_import_comes_along() -> None:
    """Or is Python's own, or the libvirt binding that each host has; Ansible's code stays on the controller."""
    files = dict(_host_code._sources())
    root = _host_code.NAME.replace(".", "/")
    left = [name for name in files if name.startswith((f"{root}/modules/", f"{root}/module_utils/_steps/"))]
    assert len(left) == len(_host_code.modules_of_hosts()) + len(_host_code.steps_of_hosts())
    seen, missing = set(left), set()
    while left:
        name = left.pop()
        here = name.split("/")
        for node in ast.walk(ast.parse(files[name].read_text())):
            if isinstance(node, ast.Import):
                tops = {alias.name.split(".")[0] for alias in node.names}
                missing |= tops - {*sys.stdlib_module_names, "libvirt", "libvirt_qemu", "nbd", "pytsk3"}
            elif isinstance(node, ast.ImportFrom) and node.level:
                base = "/".join([*here[: -node.level], *(node.module or "").split(".")]).rstrip("/")
                targets = {f"{base}.py"} & set(files) or {f"{base}/{alias.name}.py" for alias in node.names}
                missing |= targets - set(files)
                left += sorted(targets & set(files) - seen)
                seen |= targets
    assert not missing


def test_a_launch_whose_images_are_there_imports_no_http_client() -> None:
    """It takes longer to import than half of the steps to do."""
    lists = yaml.safe_load((_host_code.PLUGINS.parent / "roles/spawn/vars/main.yml").read_text())
    modules = {step["module"] for name, steps in lists.items() if name.endswith("_steps") for step in steps}
    assert {"image_cache", "domain"} <= modules
    imports = "; ".join(f"import {_host_code.NAME}.{_host_code.place_of(name)}" for name in sorted(modules))
    root = str(_host_code.PLUGINS.parents[3])
    code = f"import sys; sys.path.insert(0, {root!r}); {imports}; print({{'ssl', 'http.client'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True) == "set()\n"


def test_every_step_is_named_by_the_module_that_takes_steps() -> None:
    assert set(host_step.STEPS) == _host_code.steps_of_hosts()
    assert not _host_code.steps_of_hosts() & {path.stem for path in (_host_code.PLUGINS / "modules").glob("*.py")}


def test_a_secret_of_a_step_is_in_no_log_of_the_host() -> None:
    """Where Ansible's own way takes a step, the module host_step would log its arguments. The ledger is opened on the
    controller."""
    assert "ledger_url" not in HOST_ARGUMENTS
    guest = {"uuid": "6f1b6a2c-3f0e-4b1d-9a57-000000000007", "name": "web", "user": "root", "password_hash": "$6$salt"}
    quiet = []
    for module, args in (
        ("domain_password", {"domains": [guest]}),
        ("server_backup", {"backups": [], "key": "ab" * 32}),
        ("domain_size", {"domains": []}),
    ):
        task = types.SimpleNamespace(no_log=False, async_val=0)
        action: t.Any = types.SimpleNamespace(_task=task)
        action._execute_module = lambda task=task, **_given: {"logged": not task.no_log}
        step = _trip._checked({"name": "Do it", "module": module, "args": args}, "/srv/nv")
        result = _trip.TripAction._module(action, step, {})["result"]
        quiet += [] if result["logged"] else [module]
        assert task.no_log is False  # what the step returns is shown
    assert quiet == ["domain_password", "server_backup"]


def test_the_arguments_of_a_step_are_checked_as_a_modules() -> None:
    def checked(name: str, **args: t.Any) -> t.Any:
        return _trip._checked({"name": "Do it", "module": name, "args": args}, "/srv/nv")

    with pytest.raises(AnsibleActionFail, match=r"Do it: Unsupported parameters for \(novalite.cloud.disk_move\) step"):
        checked("disk_move", state="closed", where="there")
    with pytest.raises(AnsibleActionFail, match="missing required arguments: state"):
        checked("disk_move")
    with pytest.raises(AnsibleActionFail, match="state is marked but all of the following are missing: mark"):
        checked("domain_adopt", domain="web", state="marked")
    step = checked("disk_move", state="closed")
    assert step["args"]["purpose"] == "files" and step["place"] == "module_utils._steps.disk_move"


def test_files_are_where_the_inventory_says_unless_the_task_says_it() -> None:
    step = {"name": "Look", "module": "console_output", "args": {"uuids": [UUID]}}
    assert _trip._checked(step, "/srv/nv")["args"]["state_dir"] == "/srv/nv"
    said = {**step, "args": {"uuids": [UUID], "state_dir": "/data"}}
    assert _trip._checked(said, "/srv/nv")["given"] == said["args"]
    bare = {"name": "Look", "module": "domain_info", "args": {"domains": []}}
    assert "state_dir" not in _trip._checked(bare, "/srv/nv")["args"]


@pytest.mark.parametrize(
    ("rc", "error"), [(137, AnsibleActionFail), (255, AnsibleConnectionFailure), (-13, AnsibleConnectionFailure)]
)
def test_what_may_have_begun_is_not_done_again(rc: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        ended_with(rc)


def test_a_trip_begins_once(tmp_path: pathlib.Path) -> None:
    """Whichever of two comes first: the controller sends one again that it has lost sight of."""
    directory = str(tmp_path / "trips")
    assert host_trip.may_begin("first", False, directory)
    assert not host_trip.may_begin("first", True, directory)
    assert host_trip.may_begin("second", True, directory)
    assert not host_trip.may_begin("second", False, directory)


def test_a_trip_is_not_begun_again_where_nobody_can_say() -> None:
    nowhere = "/proc/novalite/trips"
    assert host_trip.may_begin("first", False, nowhere)
    assert not host_trip.may_begin("first", True, nowhere)


def test_old_tokens_go(tmp_path: pathlib.Path) -> None:
    assert host_trip.may_begin("first", False, str(tmp_path))
    os.utime(tmp_path / "first", (1, 1))
    assert host_trip.may_begin("second", False, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["second"]


@pytest.mark.parametrize(
    ("answers", "steps"),
    [
        pytest.param([-13, NO_STEPS], [], id="had not begun"),
        pytest.param([-13, "none", NO_STEPS], [], id="had no code"),
        pytest.param([-9, "begun"], None, id="had begun"),
        pytest.param([-13, -13], None, id="lost again"),
        pytest.param([255, NO_STEPS], None, id="unreachable"),
    ],
)
def test_a_trip_that_ssh_lost_is_sent_again(answers: list[int | str], steps: list[t.Any] | None) -> None:
    """Once, with the same token, and never to a host that cannot be reached."""
    action = action_on_a_host(answers)
    action._ask.side_effect = functools.partial(_trip.TripAction._ask, action)
    action._send.side_effect = functools.partial(_trip.TripAction._send, action)
    if steps is None:
        with pytest.raises(AnsibleConnectionFailure):
            _trip.TripAction._trip(action, [], None, {})
    else:
        assert _trip.TripAction._trip(action, [], None, {}) == (_trip.NOT_MET, steps)
        assert action._low_level_execute_command.call_count == len(answers)
    requests = [
        json.loads(call.kwargs["in_data"][call.kwargs["in_data"].rindex(b'{"steps"') :])
        for call in action._low_level_execute_command.call_args_list
    ]
    assert len({request["token"] for request in requests}) == 1
    assert [request["again"] for request in requests][:2] == [False, True][: len(requests)]


def test_a_host_without_python_is_left_to_ansible() -> None:
    assert ended_with(127) is None


def ended_with(rc: int) -> str | None:
    """What a trip's end makes of a command on the host that said nothing and ended with `rc`."""
    return _trip.TripAction._send(action_on_a_host([rc]), b"", b"{}", {})


def action_on_a_host(answers: list[int | str]) -> mock.MagicMock:
    """Ansible's side of trips whose commands end, in turn, with an rc and no answer, or with an answer."""
    action = mock.MagicMock()  # a connection, which nothing here has
    action._task = mock.MagicMock(check_mode=False, diff=False)
    action.diffs = False
    action._seconds = 0.0
    action._low_level_execute_command.side_effect = [
        {"stdout_lines": [f"{_host_code.MARK}{answer}"], "stderr": "", "rc": 0}
        if isinstance(answer, str)
        else {"stdout_lines": [], "stderr": "", "rc": answer}
        for answer in answers
    ]
    action._compute_environment_string.return_value = ""
    action._templar.template.side_effect = lambda value: value
    action.state_dir.return_value = "/var/lib/novalite"
    return action


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_trip_leaves_a_mark_unless_it_changes_nothing(check_mode: bool) -> None:
    task = types.SimpleNamespace(check_mode=check_mode, delegate_to=None)
    action: t.Any = types.SimpleNamespace(_task=task, host_name=lambda _task_vars: "hv1")
    errand = _trip.TripAction.errand(action, [{"module": "disk", "args": {}}], {})
    assert (errand.check_mode, errand.leaves, errand.any_mark) == (check_mode, not check_mode, False)


@pytest.mark.parametrize("goes", [False, True])
def test_no_step_begins_when_nobody_waits_for_the_trip_any_more(
    host: Host, caller: t.Callable[[], None], monkeypatch: pytest.MonkeyPatch, goes: bool
) -> None:
    """The controller was killed: what it would do next is reconcile.yml's by now, or another run's."""
    run = console_output.run

    def first(call: HostCall) -> object:
        if goes:
            caller()
        return run(call)

    monkeypatch.setattr(console_output, "run", first)
    whole: host_trip.Request = {
        "steps": [t.cast(host_trip.Step, host.tail())] * 2,
        "expected": None,
        "state_dir": str(host.state),
        "check_mode": False,
        "diff": False,
        "token": "",
        "again": False,
        "events": False,
    }
    assert len(host_trip.take(whole)["steps"]) == (1 if goes else 2)
