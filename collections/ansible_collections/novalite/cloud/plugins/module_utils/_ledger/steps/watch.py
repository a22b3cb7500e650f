# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `watch`: one round of the watch over the compute hosts, from the lease to the record of what was started. Beside
it, what people decide of healing."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import socket
import time
import typing as t
from uuid import uuid4

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._healing import balancing
from ..._healing.nouns import Clock, HostRow, Lease, Settings, Token
from ..._host.files import read_text, write_atomically
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.engine import open_ledger, place_of, reading, transaction
from ..healing import acts, balance_turns, rounds, watch_lock, watch_rows
from ..operations import healing
from ..operations.call import by_playbook

FRAGMENTS = ("state_dir",)
ARGUMENT_SPEC = {
    # `begin` takes the lease and says whom to look at, `peers` who is to look for those that are silent, `decide` what
    # is to be done, `permit` whether a host may be switched off still, `fenced` records what its fence agent answered,
    # `started` how guests were started, and `end` ends the round. Of the run that recovers beside the rounds:
    # `recovery` says whom it is to look at, `recover` what is to be started. Of people: `armed` and `disarmed`, for all
    # hosts or `host`; `confirmed`: somebody saw that `host` is dead. `testable` fails unless a test may switch it off.
    "state": {
        "type": "str",
        "required": True,
        "choices": [
            *("begin", "peers", "decide", "permit", "fenced", "started", "end", "recovery", "recover"),
            *("armed", "disarmed", "confirmed", "testable"),
        ],
    },
    "host": {"type": "str"},
    # Who decides, by name.
    "by": {"type": "str", "default": "a person"},
    # The round, as `begin` returned it; a second look of a round begins with it.
    "round": {"type": "str"},
    # Name of the controller, if it is not that of its machine.
    "controller": {"type": "str"},
    # The hosts that are watched.
    "hosts": {"type": "list", "elements": "str", "default": []},
    # By host: its fence agent, the seconds of its dead-man's switch, and where its ssh daemon is reached.
    "agents": {"type": "dict", "default": {}},
    "switches": {"type": "dict", "default": {}},
    "addresses": {"type": "dict", "default": {}},
    "ports": {"type": "dict", "default": {}},
    # Time at which the looks began, as `begin` returned it.
    "at": {"type": "float"},
    # What the step `host_look` returned of each host that answered, {} of one whose trip failed otherwise.
    "looks": {"type": "dict", "default": {}},
    # What the step `peer_look` returned, by peer: a list of `host` and `reached`.
    "words": {"type": "dict", "default": {}},
    # An item of `off`, with `permit`, or what the module `fence` returned, with `fenced`.
    "order": {"type": "dict"},
    # Outcomes of the starts of moved guests, as hosts told them: `host` and `error`.
    "outcomes": {"type": "list", "elements": "dict", "default": []},
    # UUIDs of the moved guests that were started, by the host that they were started on.
    "starting": {"type": "dict", "default": {}},
    # Numbers of the watch that are not the usual ones, see docs/ha.md.
    "settings": {"type": "dict", "default": {}},
    # What is done about the balance of the hosts, with `end`; see the step `balance_turn`.
    "balance": {"type": "str", "choices": list(balancing.MODES), "default": balancing.OFF},
    # Whether the round starts guests, and has hosts give up what others got, with `decide`; else another run does.
    "recovers": {"type": "bool", "default": True},
    # Options of the scheduler, as `scheduler` takes them.
    "options": {"type": "dict", "default": {}},
}
SPEC_RULES = {
    "required_if": [
        ("state", "peers", ["at"]),
        ("state", "decide", ["at"]),
        ("state", "recover", ["at"]),
        ("state", "end", ["round"]),
        ("state", "confirmed", ["host"]),
        ("state", "testable", ["host"]),
        ("state", "permit", ["order"]),
        ("state", "fenced", ["order"]),
    ]
}
NO_AGENT = "none"
_NOBODY: JsonObject = {"watching": False, "hosts": [], "tokens": {}, "readings": {}, "asked": {}}
SSH = 22
_BOOT = "/proc/sys/kernel/random/boot_id"


def watch(params: JsonMapping, check_mode: bool) -> JsonObject:
    """Return `changed` and `in_words`, and
    * `watching`: whether this controller watches; `hosts`, `at`, `round` and, by host, `tokens` and `readings` (of
      their clocks, for the step `host_look`; with `begin`, and with `recovery`, which has no round)
    * `asked`: which hosts each peer is to look for, by peer, as the step `peer_look` takes them: those that were silent
      before, together with the look at the peer (with `begin`), and those of which nothing was said yet (with `peers`)
    * `off`: the hosts that are to be switched off
    * `move`: what is to be started where, as the step `server_migration` returns it, and `starting`, by host the UUIDs
    * `restarted`: UUIDs of guests that a `reboot` is under way on, for the step `server_action`
    * `give_up`: by host, what it gives up, as the role `reclaim` takes it; `tokens` of all of these (with `decide`, and
      with `recover`)
    * `balances`: whether the balance of the hosts is to be looked at (with `end`)
    * `permitted`: whether the host may be switched off (with `permit`)

    It changes nothing in check mode.
    """
    if check_mode:
        return {"changed": False, "in_words": "nobody watches in check mode", "watching": False, "hosts": []}
    engine = open_ledger(params.get("home"), params.get("ledger_url"))
    try:
        return {"changed": False, "in_words": "", **_STATES[params["state"]](engine, params, _watcher(params))}
    finally:
        engine.dispose()


watch.opens_by_itself = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation


def _watcher(params: JsonMapping) -> rounds.Watcher:
    numbers, hosts = params.get("settings") or {}, len(params["hosts"])
    unknown = sorted(set(numbers) - {field.name for field in dataclasses.fields(Settings)} | {"armed"} & set(numbers))
    if unknown:
        raise NovaliteError(f"'{unknown[0]}' is not a number of the watch: docs/ha.md lists them")
    controller = params.get("controller") or socket.gethostname()
    boot = (read_text(_BOOT) or "").strip() or str(os.getpid())
    lock = os.environ.get(watch_lock.VARIABLE)
    return rounds.Watcher(
        controller, time.monotonic(), boot, rounds.settings_of(numbers, hosts), int(lock) if lock else None
    )


def _begin(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    hosts, number = params["hosts"], params.get("round") or str(uuid4())
    agents, means = params["agents"], {}
    switches = {host: float(params["switches"].get(host) or 0) for host in hosts}
    for host in hosts:
        agent = agents.get(host) or NO_AGENT
        means[host] = rounds.means_of(None if agent == NO_AGENT else agent, switches[host])
    held = rounds.begin(engine, watcher, number, means, switches)
    with reading(engine) as connection:
        if held is None:
            other = watch_rows.lease(connection)
            name = other.owner if other is not None else "nobody"
            same = name == watcher.controller
            words = "another round is under way here" if same else f"{name} watches the hosts"
            return {**_NOBODY, "in_words": words}
        rows = watch_rows.rows(connection, hosts)
        sent = _sent(rows, held)
        at = clock.now(connection)
    expected = {host: None if row.missed else host for host, row in rows.items()}
    asked = {
        peer: places
        for peer, others in rounds.peers_of(expected, watcher.settings.peers).items()
        # a name that a peer does not know fails its trip, and with that the look at the peer
        if (places := [place for place in (_place(params, host) for host in others) if _is_address(place["address"])])
    }
    return {"watching": True, "at": at, "round": number, **sent, "asked": asked}


def _sent(rows: t.Mapping[str, HostRow], held: Lease) -> JsonObject:
    """Return the hosts, and what a look brings to each of them."""
    return {
        "hosts": sorted(rows),
        "tokens": {host: dataclasses.asdict(Token(row.epoch, held.term)) for host, row in rows.items()},
        "readings": {host: dataclasses.asdict(row.reading) for host, row in rows.items() if row.reading is not None},
    }


def _begin_recovery(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    """Tell whom to look at before anything is started. What rounds find from now on is for the run after this one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_recover_file(params))
    with reading(engine) as connection:
        held = rounds.lease_of(connection, watcher)
        if held is None:
            words = f"{watcher.controller} does not watch the hosts: whoever does recovers"
            return {**_NOBODY, "in_words": words}
        sent = _sent(rounds.up_or_back(connection, params["hosts"]), held)
        at = clock.now(connection)
    return {"watching": True, "at": at, **sent, "asked": {}}


def _recover_file(params: JsonMapping) -> str:
    return os.path.join(place_of(params.get("home"), params.get("ledger_url")).home, rounds.RECOVER)


def _seen(params: JsonMapping) -> rounds.Seen:
    looks = {host: params["looks"].get(host) for host in params["hosts"]}
    words = [{**word, "peer": peer} for peer, said in params["words"].items() for word in said]
    return rounds.Seen(params["at"], looks, words)


def _peers(_engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    seen = _seen(params)
    said = {(word["peer"], word["host"]) for word in seen.words}
    asked = rounds.peers_of(seen.looks, watcher.settings.peers)
    left = {peer: [host for host in hosts if (peer, host) not in said] for peer, hosts in asked.items()}
    return {"asked": {peer: [_place(params, host) for host in hosts] for peer, hosts in left.items() if hosts}}


def _place(params: JsonMapping, host: str) -> JsonObject:
    """Return where the ssh daemon of a host is reached, as the step `peer_look` takes it."""
    address, port = params["addresses"].get(host), params["ports"].get(host)
    return {"name": host, "address": address or host, "port": int(port or SSH)}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _decide(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    orders = rounds.decide_and_act(engine, watcher, _seen(params), params["options"], params["recovers"])
    if orders.left:
        write_atomically(_recover_file(params), "", 0o600)
    return _orders(engine, params, orders)


def _recover(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    return _orders(engine, params, rounds.recover(engine, watcher, _seen(params)))


def _orders(engine: sa.Engine, params: JsonMapping, orders: rounds.Orders) -> JsonObject:
    alive = {host for host, look in params["looks"].items() if look is not None}
    moved = [uuid for uuid, start in orders.starts.items() if start.guest.moving]
    restarted = [uuid for uuid, start in orders.starts.items() if not start.guest.moving]
    give_up = {host: act.guests for host, act in orders.give_up.items()}
    with transaction(engine) as connection:
        move = acts.plan_of_moved(connection, params["state_dir"], moved, alive)
        leave = acts.plan_to_give_up(connection, params["state_dir"], give_up)
    starting: dict[str, list[str]] = {}
    for planned in move["moves"]:
        starting.setdefault(planned["to_host"], []).append(planned["uuid"])
    return {
        "changed": bool(orders.lines or orders.starts or orders.off or leave),
        "in_words": "; ".join(orders.lines),
        "off": [dataclasses.asdict(act) for act in orders.off.values()],
        "move": move,
        "secret": bool(move["secret"]),
        "starting": starting,
        "restarted": restarted,
        "give_up": leave,
        "tokens": {start.host: dataclasses.asdict(start.token) for start in orders.starts.values()}
        | {host: dataclasses.asdict(act.token) for host, act in orders.give_up.items()},
    }


def _permit(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    why_not = rounds.permit_off(engine, watcher, params["order"])
    return {"permitted": not why_not, "in_words": why_not}


def _fenced(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    rounds.record_fence(engine, watcher, params["order"])
    return {"changed": True}


def _started(engine: sa.Engine, params: JsonMapping, _watcher: rounds.Watcher) -> JsonObject:
    outcomes = {outcome["host"]: outcome for outcome in params["outcomes"]}
    with transaction(engine) as connection:
        for host, uuids in params["starting"].items():
            outcome: t.Mapping[str, t.Any] = outcomes.get(host) or {"error": f"host {host} did not answer"}
            error = outcome.get("error")
            acts.ended(connection, uuids, dict.fromkeys(uuids, str(error)) if error else {})
    return {"changed": bool(params["starting"])}


def _end(engine: sa.Engine, params: JsonMapping, watcher: rounds.Watcher) -> JsonObject:
    with transaction(engine) as connection:
        watch_rows.end_round(connection, params["round"])
        situation = balance_turns.situation(connection)
        now = Clock(clock.now(connection), watcher.controller)
    return {"balances": balancing.is_for_watch(params["balance"], situation, now)}


def _arm(engine: sa.Engine, params: JsonMapping, _watcher: rounds.Watcher) -> JsonObject:
    state, host = params["state"], params.get("host")
    with transaction(engine) as connection:
        changed = healing.arm(by_playbook(connection), state == "armed", host, params["by"])
    return {"changed": changed, "in_words": f"healing of {host or 'all hosts'} is {state}"}


def _confirm(engine: sa.Engine, params: JsonMapping, _watcher: rounds.Watcher) -> JsonObject:
    host, by = params["host"], params["by"]
    with transaction(engine) as connection:
        changed = healing.confirm_dead(by_playbook(connection), host, by)
    return {"changed": changed, "in_words": f"{by} confirmed that {host} is dead: the next round of the watch acts"}


def _check_testable(engine: sa.Engine, params: JsonMapping, _watcher: rounds.Watcher) -> JsonObject:
    with reading(engine) as connection:
        healing.check_testable(connection, params["host"])
    return {"in_words": f"{params['host']} is disabled, and bears no server"}


_STATES: t.Mapping[str, t.Callable[[sa.Engine, JsonMapping, rounds.Watcher], JsonObject]] = {
    "begin": _begin,
    "peers": _peers,
    "decide": _decide,
    "permit": _permit,
    "fenced": _fenced,
    "started": _started,
    "end": _end,
    "recovery": _begin_recovery,
    "recover": _recover,
    "armed": _arm,
    "disarmed": _arm,
    "confirmed": _confirm,
    "testable": _check_testable,
}
