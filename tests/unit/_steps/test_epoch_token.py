# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens that a host keeps and compares: only rising, gone with a boot, and first of all in a trip that carries one."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import types
import typing as t

import pytest
from ansible.errors import AnsibleActionFail
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import small_records
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall, HostModuleError, call_module
from ansible_collections.novalite.cloud.plugins.module_utils._steps import epoch_token
from ansible_collections.novalite.cloud.plugins.plugin_utils import _handshake, _trip
from tests.support.examples import part_of

Token = tuple[int, int]
TOKENS = st.tuples(st.integers(0, 5), st.integers(0, 5))


@pytest.fixture
def run_dir(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Make a directory in place of /run/novalite, without anything in it: a host that has just booted."""
    directory = tmp_path / "novalite"
    monkeypatch.setattr(small_records, "RUN_DIR", str(directory))
    return directory


def hear(token: Token, state: str = "kept", check_mode: bool = False) -> dict[str, t.Any]:
    """Have the host take the step with a token; return its result, failed or not."""
    call = HostCall({"epoch": token[0], "term": token[1], "state": state}, check_mode)
    return call_module(epoch_token.run, call, 60)


def test_a_host_that_was_told_nothing_refuses_each_token(run_dir: pathlib.Path) -> None:
    result = hear((0, 0), "checked")
    assert (result["failed"], result["refused"], result["kept"]) == (True, "unset", None)
    assert not run_dir.exists()


def test_an_older_token_is_refused_and_a_newer_one_taken(run_dir: pathlib.Path) -> None:
    assert hear((3, 7))["changed"]
    assert not hear((3, 7))["changed"]
    for token in ((3, 7), (4, 7), (3, 8)):
        assert "failed" not in hear(token, "checked")
    for token in ((2, 7), (3, 6), (2, 9), (9, 6)):
        result = hear(token, "checked")
        assert (result["failed"], result["refused"]) == (True, "older")
        assert result["kept"] == {"epoch": 3, "term": 7}
    assert hear((3, 7), "checked")["kept"] == {"epoch": 3, "term": 7}  # to be refused or taken raises nothing


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=part_of(60))
@given(st.lists(st.tuples(TOKENS, st.booleans()), min_size=1, max_size=12))
def test_what_is_kept_only_rises(run_dir: pathlib.Path, history: list[tuple[Token, bool]]) -> None:
    (run_dir / "epoch").unlink(missing_ok=True)
    epoch = term = -1
    for token, keeps in history:
        result = hear(token, "kept" if keeps else "checked")
        if keeps:
            epoch, term = max(epoch, token[0]), max(term, token[1])
            assert result["kept"] == {"epoch": epoch, "term": term}
        else:
            assert ("failed" not in result) == (epoch >= 0 and token[0] >= epoch and token[1] >= term)


def test_those_who_raise_it_at_once_lose_nothing(run_dir: pathlib.Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        tokens = [(number, 40 - number) for number in range(40)]
        list(
            pool.map(
                lambda token: epoch_token.run(HostCall({"epoch": token[0], "term": token[1], "state": "kept"})), tokens
            )
        )
    assert small_records.read("epoch") == {"epoch": 39, "term": 40}
    assert [path.name for path in run_dir.iterdir()] == ["epoch"]
    assert (run_dir / "epoch").stat().st_mode & 0o777 == 0o600


def test_check_mode_keeps_nothing(run_dir: pathlib.Path) -> None:
    assert hear((1, 1), check_mode=True) == {"changed": True, "kept": {"epoch": 1, "term": 1}}
    assert not run_dir.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epoch": "3", "term": 1}', '{"epoch": 3}'])
def test_a_damaged_record_refuses_all_and_says_where_it_is(run_dir: pathlib.Path, text: str) -> None:
    hear((1, 1))
    (run_dir / "epoch").write_text(text)
    for state in ("checked", "kept"):
        assert "is damaged: remove it" in hear((5, 5), state)["msg"]
    assert (run_dir / "epoch").read_text() == text


def test_a_link_in_its_place_is_not_followed(run_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hear((1, 1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"epoch": 0, "term": 0}')
    (run_dir / "epoch").unlink()
    (run_dir / "epoch").symlink_to(elsewhere)
    assert "is a link" in hear((5, 5))["msg"]
    assert "is a link" in hear((5, 5), "checked")["msg"]
    assert elsewhere.read_text() == '{"epoch": 0, "term": 0}'


def test_numbers_below_zero_are_no_token() -> None:
    with pytest.raises(NovaliteError, match="epoch -1, term 2: neither is less than 0"):
        epoch_token.run(HostCall({"epoch": -1, "term": 2, "state": "kept"}))


def checked(module: str, **args: t.Any) -> dict[str, t.Any]:
    return _trip._checked({"name": "Do it", "module": module, "args": args}, "/srv/nv")


GUEST = {"uuid": "6f1b6a2c-3f0e-4b1d-9a57-000000000007", "name": "instance-00000007"}
TEMPLAR: t.Any = types.SimpleNamespace(template=lambda value: value)


@pytest.mark.parametrize(
    ("step", "is_order"),
    [
        (checked("domain", domains=[GUEST]), True),
        (checked("domain", domains=[GUEST], state="absent"), True),
        (checked("domain_power", domains=[GUEST]), True),
        (checked("domain_power", domains=[GUEST], state="stopped"), False),
        (checked("disk", disks=[{"uuid": GUEST["uuid"]}]), True),
        (checked("disk", disks=[], state="emptied"), False),
        (checked("live_migration", moves=[], domains=[], daemons={}), True),
        (checked("disk_move", state="accepted"), True),
        (checked("disk_move", state="closed"), False),
        (checked("host_look", host="hv1"), False),
        (checked("epoch_token", epoch=1, term=1), False),
        (checked("domain_info", domains=[]), False),
    ],
)
def test_orders_are_what_builds_starts_moves_or_removes(step: dict[str, t.Any], is_order: bool) -> None:
    assert _handshake.is_order(step) is is_order
    guard = _handshake.guard_of([step], {"novalite_token": {"epoch": 3, "term": 7}}, TEMPLAR)
    expected = {"epoch": 3, "term": 7, "state": "checked"}
    assert (guard and (guard["module"], guard["args"])) == (("epoch_token", expected) if is_order else None)
    assert _handshake.guard_of([step], {}, TEMPLAR) is None


def test_an_order_without_a_token_carries_what_the_ledger_has_and_an_old_controllers_is_refused(
    run_dir: pathlib.Path,
) -> None:
    launch = [checked("disk", disks=[{"uuid": GUEST["uuid"]}]), checked("domain", domains=[GUEST])]

    def arrives(epoch: int, booted: bool = False) -> dict[str, t.Any]:
        age = {"epoch": epoch, "term": 7, "booted": booted}
        guard = _handshake.guard_of(launch, {}, TEMPLAR, lambda: age)
        assert guard is not None and guard["args"] == {**age, "state": "checked"}
        assert _handshake.guard_of(launch, {"novalite_token": {"epoch": 9, "term": 9}}, TEMPLAR, lambda: age) != guard
        return call_module(epoch_token.run, HostCall(_trip._checked(guard, "/srv/nv")["args"]), 60)

    assert arrives(2)["refused"] == "unset"  # it has just booted, and the watcher will tell it
    assert "failed" not in arrives(2, booted=True)  # nobody watches
    hear((3, 7))  # it was fenced, and returned
    assert [arrives(2, booted)["refused"] for booted in (False, True)] == ["older", "older"]
    assert "failed" not in arrives(3)
    assert _handshake.guard_of(launch, {}, TEMPLAR, lambda: None) is None  # healing is not armed


@pytest.mark.parametrize("token", ["3", {"epoch": 3}, {"epoch": 3, "term": 7, "host": "hv1"}, [3, 7]])
def test_a_token_that_makes_no_sense_ends_the_task(token: t.Any) -> None:
    with pytest.raises(AnsibleActionFail, match="is not a token: it has an epoch and a term"):
        _handshake.guard_of([checked("domain", domains=[GUEST])], {"novalite_token": token}, TEMPLAR)


def test_each_state_of_an_order_is_one_of_its_modules() -> None:
    """Or the module has another name for it now, and its trips are not compared any more."""
    for module, states in _handshake.ORDERS.items():
        spec = _trip.importlib.import_module(f"{_trip.NAME}.{_trip.place_of(module)}").ARGUMENT_SPEC
        assert states is None or set(states) <= set(spec["state"]["choices"])


class Action(_trip.TripAction):
    """Trips of this process to itself: `take` with what lies between it and the host left out."""

    def __init__(self, task_vars: dict[str, t.Any]) -> None:
        self._task: t.Any = types.SimpleNamespace(args={}, delegate_to=None, check_mode=False)
        self._templar, self._connection = TEMPLAR, t.cast(t.Any, None)
        self.task_vars = task_vars
        self.sent: list[str] = []

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        raise NotImplementedError

    def _marks(self, *_args: t.Any) -> None:
        return None

    def _go(self, steps: list[t.Any], _expected: t.Any, _task_vars: t.Any) -> tuple[t.Any, list[t.Any]]:
        self.sent = [step["module"] for step in steps]
        results = []
        for step in steps:
            run = epoch_token.run if step["module"] == "epoch_token" else lambda _call: {"changed": True}
            result = call_module(run, HostCall(step["args"]), 60)
            results.append({"name": step["name"], "module": step["module"], "seconds": 0.0, "result": result})
            if result.get("failed"):
                break
        return _trip.NOT_MET, results


@pytest.fixture
def trip_with(run_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    monkeypatch.setattr(_trip._patience, "keep_alive", lambda _connection: None)
    monkeypatch.setattr(_trip._patience, "limited", lambda *_args: _trip.contextlib.nullcontext())

    def trip(token: t.Any = None, module: str = "domain") -> t.Any:
        action = Action({"novalite_token": token} if token else {})
        step = {"name": "Start it", "module": module, "args": {"domains": [GUEST]}}
        return action.take([step], action.task_vars), action.sent

    return trip


def test_a_trip_with_a_token_is_compared_before_anything_is_done(trip_with: t.Callable[..., t.Any]) -> None:
    order = {"epoch": 3, "term": 7}
    with pytest.raises(AnsibleActionFail, match="not told of any epoch since it booted") as unset:
        trip_with(order)
    assert unset.value.result["refused_token"] == {"refused": "unset", "kept": None}
    hear((3, 7))
    results, sent = trip_with(order)
    assert sent == ["epoch_token", "domain"]
    assert [result["module"] for result in results] == ["domain"]  # whoever asked hears of its own steps alone
    hear((4, 7))
    with pytest.raises(AnsibleActionFail, match="this host has heard of epoch 4 and term 7 since") as older:
        trip_with(order)
    assert older.value.result["refused_token"] == {"refused": "older", "kept": {"epoch": 4, "term": 7}}


def test_a_trip_without_a_token_goes_as_before(trip_with: t.Callable[..., t.Any]) -> None:
    hear((4, 7))
    assert trip_with()[1] == ["domain"]
    assert trip_with({"epoch": 0, "term": 0}, "domain_info")[1] == ["domain_info"]


def test_an_error_of_the_module_has_what_a_playbook_decides_on(run_dir: pathlib.Path) -> None:
    with pytest.raises(HostModuleError) as refused:
        epoch_token.run(HostCall({"epoch": 1, "term": 1, "state": "checked"}))
    assert refused.value.result == {"kept": None, "refused": "unset"}
    assert os.geteuid() == 0 or not run_dir.exists()
