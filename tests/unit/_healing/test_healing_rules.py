# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""States of a host, and the rules that need no story."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._healing import (
    actions,
    decide,
    evidence,
    nouns,
    recovery,
    states,
)

ARCHITECTURE = pathlib.Path(__file__).parents[3] / "docs/architecture.md"


def test_each_state_is_reached_and_left() -> None:
    assert {edge.target for edge in states.EDGES} == {edge.source for edge in states.EDGES} == set(states.STATES)


def test_an_event_leads_to_one_state() -> None:
    assert len({(edge.source, edge.event) for edge in states.EDGES}) == len(states.EDGES)


def test_an_evacuation_follows_a_proof() -> None:
    """Follow the ways to the proven states: they begin with a proof or a word, and in a new epoch."""
    ways_in = {edge for edge in states.EDGES if edge.target in states.PROVEN and edge.source not in states.PROVEN}
    assert {edge.event for edge in ways_in} == {"proof of death", "word of a person"}
    for edge in ways_in:
        raised = edge.raises or all(way.raises for way in states.EDGES if way.target == edge.source)
        assert raised, edge


def test_documentation_shows_the_table() -> None:
    assert states.table() in ARCHITECTURE.read_text()


def test_the_picture_shows_the_table() -> None:
    """`python -m tools.ha_picture` draws it anew."""
    drawn = (ARCHITECTURE.parent / "ha-states.svg").read_text()
    shown = set(re.findall(r"<title>(\w+)&#45;&gt;(\w+)</title>", drawn))
    assert shown == {(edge.source, edge.target) for edge in states.EDGES}
    words = " ".join(re.findall(r"<text [^>]*>([^<]*)</text>", drawn))
    assert all(edge.event in words for edge in states.EDGES)


@pytest.mark.parametrize(
    ("ha", "disk", "rebuild", "refused"),
    [
        (True, "local", False, True),
        (True, "local", True, False),
        (True, "locked", False, False),
        (True, "copied", False, False),
        (False, "local", False, False),
    ],
)
def test_ha_on_a_disk_that_dies_with_its_host_has_to_be_asked_for(
    ha: bool, disk: str, rebuild: bool, refused: bool
) -> None:
    assert bool(recovery.refused_when_asked(ha, disk, rebuild)) is refused


NOW = 1000.0
PROOF = nouns.Proof(nouns.AGENT, 3, NOW, "off")
ROW = nouns.HostRow("hv1", states.EVACUATING, epoch=3, proof=PROOF)
GUEST = nouns.Guest("web", "hv1")
PLACE = actions.Place("hv1", states.EVACUATING, 3, 7, NOW + 15, GUEST, ("hv2",))
RECORDED = actions.Recorded(nouns.Lease("c0", NOW + 30, 7), ROW, nouns.Wishes(), True, GUEST)


def test_act_is_carried_out_when_the_ledger_allows_it_still() -> None:
    assert actions.refusal(PLACE, RECORDED, nouns.Clock(NOW, "c0")) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lease": None}, "does not hold the lease"),
        ({"lease": nouns.Lease("c1", NOW + 30, 7)}, "does not hold the lease"),
        ({"lease": nouns.Lease("c0", NOW + 30, 8)}, "does not hold the lease"),
        ({"lease": nouns.Lease("c0", NOW, 7)}, "does not hold the lease"),
        ({"row": dataclasses.replace(ROW, state=states.BACK)}, "hv1 is back in epoch 3"),
        ({"row": dataclasses.replace(ROW, epoch=4)}, "in epoch 4"),
        ({"row": dataclasses.replace(ROW, proof=None)}, "is not proven for epoch 3"),
        ({"row": dataclasses.replace(ROW, proof=dataclasses.replace(PROOF, epoch=2))}, "is not proven for epoch 3"),
        ({"wishes": nouns.Wishes(armed=False)}, "disarmed"),
        ({"armed": False}, "disarmed"),
        ({"guest": dataclasses.replace(GUEST, host="hv3")}, "not recorded on hv1"),
        ({"guest": None}, "not recorded on hv1"),
    ],
)
def test_act_is_refused_when_the_ledger_has_changed(changes: dict[str, t.Any], says: str) -> None:
    refusal = actions.refusal(PLACE, dataclasses.replace(RECORDED, **changes), nouns.Clock(NOW, "c0"))
    assert says in refusal


def test_act_is_refused_when_it_is_late() -> None:
    assert "too old" in actions.refusal(PLACE, RECORDED, nouns.Clock(NOW + 16, "c0"))


@pytest.mark.parametrize(("ticks", "seconds", "proven"), [(80, 80, True), (80, 60, False), (60, 80, False)])
def test_dead_mans_switch_proves_by_two_clocks(ticks: float, seconds: float, proven: bool) -> None:
    row = nouns.HostRow("hv1", states.FENCING, 1, missed=9, answered_at=NOW - seconds, switch_armed=True, switch_s=60)
    facts = nouns.Facts(None, {"hv1": nouns.Look("hv1", NOW, False, silent_ticks=ticks)}, {})
    wishes, clock = nouns.Wishes(means=(nouns.SWITCH,)), nouns.Clock(NOW, "c0")
    assert bool(evidence.proof(row, wishes, facts, clock, nouns.Settings())) is proven


def test_only_an_answer_gives_the_reading_by_which_the_switch_is_set() -> None:
    reading, facts = nouns.Reading("a boot", 100.0), nouns.Facts(nouns.Lease("c0", NOW + 30, 1), {}, {})
    row = nouns.HostRow("hv1", answered_at=NOW - 10, looked_at=NOW - 10, reading=reading)
    for look, expected in (
        (nouns.Look("hv1", NOW, False), reading),
        (nouns.Look("hv1", NOW, True, reading=nouns.Reading("a boot", 110.0)), nouns.Reading("a boot", 110.0)),
        (nouns.Look("hv1", NOW, True, libvirt=False), reading),  # a host that answers, and whose look failed
    ):
        seen = dataclasses.replace(facts, looks={"hv1": look})
        decided = decide.decide(seen, {"hv1": row}, nouns.Clock(NOW, "c0"), nouns.Settings())
        (written,) = [action for action in decided if isinstance(action, actions.Write)]
        assert written.after.reading == expected


@pytest.mark.parametrize(
    ("owner", "expires", "gone", "taken"),
    [
        ("c1", NOW + 20, False, False),
        ("c1", NOW + 20, True, True),
        ("c1", NOW - 1, False, True),
        ("c0", NOW + 20, True, True),  # by the processes that follow those of the same controller
    ],
)
def test_lease_is_taken_once_it_has_expired_or_its_owner_is_gone(
    owner: str, expires: float, gone: bool, taken: bool
) -> None:
    lease = nouns.Lease(owner, expires, 7)
    facts = nouns.Facts(lease, {}, {}, owner_gone=gone)
    decided = decide.decide(facts, {}, nouns.Clock(NOW, "c0"), nouns.Settings())
    assert decided == ((actions.Hold(lease, nouns.Lease("c0", NOW + 30, 8)),) if taken else ())


@pytest.mark.parametrize(
    ("ago", "other_missed", "answered", "missed"),
    [
        (25, 0, False, 3),
        (35, 0, False, 1),  # nobody looked for longer than a lease
        (25, 2, False, 1),  # nobody answered the other controller: it may have been cut off
        (25, 0, True, 0),
    ],
)
def test_misses_of_another_controller_count_if_it_saw_others_just_now(
    ago: float, other_missed: int, answered: bool, missed: int
) -> None:
    before = NOW - ago
    rows = {
        "hv1": nouns.HostRow("hv1", states.SUSPECT, missed=2, missed_in_term=6, silent_since=before, looked_at=before),
        "hv2": nouns.HostRow("hv2", missed=other_missed, looked_at=before, answered_at=before - 60 * other_missed),
    }
    looks = {"hv1": nouns.Look("hv1", NOW, answered), "hv2": nouns.Look("hv2", NOW, True)}
    facts = nouns.Facts(nouns.Lease("c0", NOW + 30, 7), looks, {})
    decided = decide.decide(facts, rows, nouns.Clock(NOW, "c0"), nouns.Settings())
    (write,) = (action for action in decided if isinstance(action, actions.Write) and action.host == "hv1")
    assert write.after.missed == missed


@pytest.mark.parametrize(
    ("kept", "token", "taken"),
    [
        (None, (1, 1), False),
        ((1, 1), (1, 1), True),
        ((2, 1), (1, 2), False),
        ((1, 2), (2, 1), False),
        ((1, 1), (2, 2), True),
    ],
)
def test_host_refuses_what_is_older_than_it_has_heard(
    kept: tuple[int, int] | None, token: tuple[int, int], taken: bool
) -> None:
    assert actions.accepted(None if kept is None else nouns.Token(*kept), nouns.Token(*token)) is taken
