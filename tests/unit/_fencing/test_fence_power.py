# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power by fence agents: Debian's real fence_redfish against a Redfish service with faults, and agents of the tests'
own where it is about what an agent may do wrong."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._fencing import power
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fence import fence
from tests.support import redfish

ROOT = pathlib.Path(__file__).parents[3]
FENCE = """
import json, sys
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fence import fence
try:
    print(json.dumps(fence(json.load(sys.stdin), False)))
except NovaliteError as error:
    print(json.dumps({"error": str(error)}))
"""
OURS = {"ip": "192.0.2.1", "username": "fencing", "password": "hunter2"}


def by_redfish(action: str, parameters: dict[str, t.Any], timeout: int = 30, agent: str = "fence_redfish") -> t.Any:
    """Run the operation where the agents are installed."""
    params = {"host": "hv3", "agent": agent, "parameters": parameters, "action": action, "epoch": 4}
    done = subprocess.run(
        [ROOT / "tests/support/with-fence-agents", sys.executable, "-c", FENCE],
        input=json.dumps({**params, "timeout": timeout}),
        env={**os.environ, "PYTHONPATH": f"{ROOT}/collections"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert redfish.PASSWORD not in done.stdout + done.stderr
    return json.loads(done.stdout)


class Bench:
    """Redfish service for the machines hv1 and hv3; `faults` are those of each."""

    def __init__(self, service: redfish.Service, faults: dict[str, str]) -> None:
        self.service, self.faults = service, faults

    def act(self, action: str, timeout: int = 30, **parameters: t.Any) -> t.Any:
        return by_redfish(action, {**self.service.parameters("hv3"), **parameters}, timeout)

    def runs(self) -> dict[str, bool]:
        return {name: machine.runs for name, machine in self.service.machines.items()}


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> t.Iterator[Bench]:
    faults: dict[str, str] = {}
    machines = {"hv1": redfish.Machine(), "hv3": redfish.Machine()}
    with redfish.Service(tmp_path, machines, lambda name: faults.get(name, "")) as service:
        yield Bench(service, faults)


needs_namespaces = pytest.mark.root


@needs_namespaces
def test_a_host_is_switched_off_and_its_status_asked_for_after_that(bench: Bench) -> None:
    on = bench.act("validate")
    assert (on["off"], on["status"], on["changed"]) == (False, "on", False)
    assert bench.service.orders == []  # which harms nothing
    done = bench.act("off")
    assert done == {
        "changed": True,
        "host": "hv3",
        "epoch": 4,
        "off": True,
        "status": "off",
        "words": "fence_redfish switched it off, and its status says off",
    }
    assert bench.service.orders == [("hv3", "ForceOff")] and bench.runs() == {"hv1": True, "hv3": False}


@pytest.mark.thorough  # an agent takes 0.6 s of a processor each time
@needs_namespaces
def test_a_device_that_fails_switches_nothing_off(bench: Bench) -> None:
    for fault in (redfish.REFUSES, redfish.STAYS):
        bench.faults["hv3"] = fault
        done = bench.act("off", power_timeout=2)
        assert (done["off"], done["status"]) == (False, "on" if fault == redfish.STAYS else "unknown")
        assert "did not switch it off" in done["words"]
    assert bench.act("status", password="wrong")["status"] == "unknown"
    assert bench.runs() == {"hv1": True, "hv3": True}


@pytest.mark.thorough  # an agent takes 0.6 s of a processor each time
@needs_namespaces
def test_a_device_that_is_slow_is_waited_for(bench: Bench) -> None:
    bench.faults["hv3"] = redfish.SLOW
    done = bench.act("off", power_timeout=20)
    assert (done["off"], done["status"], bench.runs()["hv3"]) == (True, "off", False)


@pytest.mark.thorough  # an agent takes 0.6 s of a processor each time
@needs_namespaces
def test_a_device_that_lies_is_believed_and_the_watchers_other_evidence_is_not(bench: Bench) -> None:
    """No agent can tell. That the host answers somebody is what keeps its guests from a second start."""
    bench.faults["hv3"] = redfish.LIES
    done = bench.act("off")
    assert (done["off"], done["status"], bench.runs()["hv3"]) == (True, "off", True)


@pytest.mark.thorough  # an agent takes 0.6 s of a processor each time
@needs_namespaces
def test_a_device_that_is_gone_is_given_up(bench: Bench) -> None:
    bench.faults["hv3"] = redfish.GONE
    began = time.monotonic()
    done = bench.act("off", timeout=5)
    assert (done["off"], done["status"]) == (False, "unknown")
    assert done["words"] == "fence_redfish did not switch it off: no answer within 5 s"
    assert time.monotonic() - began < 60


@needs_namespaces
def test_parameters_are_compared_with_the_real_metadata(bench: Bench) -> None:
    done = bench.act("off", usrname="fencing", metho="cycle")
    assert "fence_redfish does not take usrname: did you mean username?" in done["error"]
    words = by_redfish("off", {"password": redfish.PASSWORD})["error"]
    assert "needs ip" in words and "needs username" in words


@pytest.fixture
def agent(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], pathlib.Path]:
    """Install fence_own, an agent of the test's own, which does `script` for what it reads in $action."""
    monkeypatch.setattr(power, "DIRECTORY", str(tmp_path))

    def install(script: str) -> pathlib.Path:
        path = tmp_path / "fence_own"
        names = "".join(f'<parameter name="{name}"><content type="string"/></parameter>' for name in OURS)
        actions = "".join(f'<action name="{name}"/>' for name in ("off", "status", "monitor"))
        metadata = f"<resource-agent><parameters>{names}</parameters><actions>{actions}</actions></resource-agent>"
        path.write_text(
            f"#!/bin/bash\n[[ $1 != -o ]] || {{ echo '{metadata}'; exit; }}\necho \"$*\" >>{tmp_path}/argv\n"
            f"env >{tmp_path}/environment\naction=$(sed -n s/^action=//p)\necho $action >>{tmp_path}/actions\n"
            f"{script}\n"
        )
        path.chmod(0o755)
        return tmp_path

    return install


def act(action: str = "off", check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    defaults = {"host": "hv3", "agent": "fence_own", "parameters": OURS, "epoch": 4, "timeout": 5}
    return fence({**defaults, "action": action, **params}, check_mode)


OFF = "[[ $action != status ]] || { echo Status: OFF; exit 2; }"


def test_secrets_are_neither_in_arguments_nor_in_the_environment(
    agent: t.Callable[[str], pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOVALITE_LEDGER_URL", "postgresql://novalite:hunter2@db/novalite")
    place = agent(OFF)
    assert act()["status"] == "off"
    assert (place / "argv").read_text().split() == []
    assert "hunter2" not in (place / "environment").read_text()
    assert (place / "actions").read_text().split() == ["off", "status"]


def test_an_agent_that_repeats_a_secret_is_not_quoted(agent: t.Callable[[str], pathlib.Path]) -> None:
    agent("echo 'fencing cannot log in with hunter2' >&2; exit 1")
    words = act()["words"]
    assert words == "fence_own did not switch it off: fencing cannot log in with ***"


@pytest.mark.parametrize("status", ["exit 2", "echo 'no file' >&2; exit 2", "echo Status: OFF; exit 1"])
def test_only_a_status_that_says_off_is_off(agent: t.Callable[[str], pathlib.Path], status: str) -> None:
    """Python, too, ends with 2 when it does not find the agent's script."""
    agent(f"[[ $action != status ]] || {{ {status}; }}")
    done = act()
    assert (done["off"], done["status"]) == (True, "unknown")


def test_what_an_agent_started_ends_with_its_time(agent: t.Callable[[str], pathlib.Path]) -> None:
    place = agent('(sleep 7; touch "$(dirname "$0")/later") & sleep 600')
    began = time.monotonic()
    done = act()
    assert (done["off"], done["status"]) == (False, "unknown")
    assert time.monotonic() - began < 14
    time.sleep(3)
    assert not (place / "later").exists()


def test_check_mode_switches_nothing_off(agent: t.Callable[[str], pathlib.Path]) -> None:
    place = agent("[[ $action != status ]] || echo Status: ON")
    done = act(check_mode=True)
    assert (done["changed"], done["off"], done["status"]) == (False, False, "on")
    assert (place / "actions").read_text().split() == ["monitor", "status"]


def test_an_agent_that_others_may_write_to_is_not_run(agent: t.Callable[[str], pathlib.Path]) -> None:
    place = agent(OFF)
    (place / "fence_own").chmod(0o775)
    with pytest.raises(NovaliteError, match="is not a program that root alone may write to"):
        act()
    (place / "fence_own").unlink()
    with pytest.raises(NovaliteError, match="fence_own is not installed on the controller"):
        act()
    assert not (place / "actions").exists()


def test_none_refuses_to_act() -> None:
    with pytest.raises(NovaliteError, match="hv3 has no fence agent"):
        act(agent="none", parameters={})


@pytest.mark.parametrize("timeout", [0, 4, 301])
def test_a_time_is_one_that_a_watcher_can_wait_for(timeout: int) -> None:
    with pytest.raises(NovaliteError, match="choose 5 to 300 seconds"):
        act(timeout=timeout)
