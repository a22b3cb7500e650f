# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes, what stays and what is not repaired: over all that a ledger may say and all that three hosts may have."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._drift import proofs
from ansible_collections.novalite.cloud.plugins.module_utils._drift.proofs import Evidence, Proof, Sight, Word

HOSTS = ("hv1", "hv2", "hv3")
NOTHING, DISK, OFF = Sight(), Sight(disk=True), Sight(defined=True, disk=True)
RUNS, DEFINED = Sight(runs=True, defined=True, disk=True), Sight(defined=True)
Truth = dict[str, Sight]


def truths() -> t.Iterator[tuple[Truth, Evidence]]:
    """All that three hosts may have of an instance, with what a run sees of it that asks all, or all but some."""
    for sights in itertools.product((NOTHING, DISK, OFF, RUNS, DEFINED), repeat=len(HOSTS)):
        truth = dict(zip(HOSTS, sights))
        for count in range(len(HOSTS)):
            for silent in itertools.combinations(HOSTS, count):
                seen = {host: sight for host, sight in truth.items() if host not in silent and sight != NOTHING}
                yield truth, Evidence(seen, frozenset(silent))


def departures() -> t.Iterator[dict[str, str]]:
    for reasons in itertools.product((None, "moved", "retried", "shelved"), repeat=len(HOSTS)):
        yield {host: reason for host, reason in zip(HOSTS, reasons) if reason is not None}


def after(word: Word, truth: Truth, evidence: Evidence) -> tuple[Truth, dict[str, Proof]]:
    """What hosts have after one reconciliation, and by which proof it went where."""
    gone = {}
    for host, sight in evidence.sights.items():
        if word.deleted or word.host != host:
            verdict = proofs.of_leftover(word, host, sight, evidence)
            assert (verdict.proof is None) or (verdict.ask is None)
            if verdict.proof is not None:
                gone[host] = verdict.proof
    return {host: NOTHING if host in gone else sight for host, sight in truth.items()}, gone


@pytest.mark.parametrize("home", HOSTS[1:])
def test_no_guest_and_no_last_disk_goes_of_an_instance_that_is_somewhere(home: str) -> None:
    removals = 0
    for left, (truth, evidence) in itertools.product(departures(), truths()):
        word = Word("u", "web", home, departures={host: why for host, why in left.items() if host != home})
        there, gone = after(word, truth, evidence)
        assert set(gone.values()) <= {Proof.ELSEWHERE}
        for quality in ("runs", "disk"):
            had = any(getattr(sight, quality) for sight in truth.values())
            assert not had or any(getattr(sight, quality) for sight in there.values()), (word, truth, evidence)
        for host in gone:
            removals += 1
            assert host in word.departures and home not in evidence.silent
            assert truth[home].disk and (truth[home].runs or not truth[host].runs), (word, truth, evidence)
    assert removals > 1000


def test_neither_proof_is_enough_alone() -> None:
    elsewhere = Evidence({"hv1": RUNS, "hv2": RUNS})
    never_left = Word("u", "web", "hv2")
    left = Word("u", "web", "hv2", departures={"hv1": "moved"})
    sentence = "runs on hv1, the ledger has it on hv2"
    assert proofs.of_leftover(never_left, "hv1", RUNS, elsewhere) == proofs.Verdict(None, sentence)
    assert proofs.of_leftover(left, "hv1", RUNS, Evidence({"hv1": RUNS})) == proofs.Verdict(None, sentence)
    not_asked = proofs.of_leftover(left, "hv1", RUNS, Evidence({"hv1": RUNS}, frozenset({"hv2"})))
    assert not_asked == proofs.Verdict(None, f"{sentence}; not known: hv2 was not asked", ask="hv2")
    assert proofs.of_leftover(left, "hv1", RUNS, elsewhere).proof is Proof.ELSEWHERE


def test_of_an_instance_on_no_host_goes_what_nobody_was_told_of_or_what_its_image_has() -> None:
    for launched, image_kept in itertools.product((False, True), repeat=2):
        for left, (truth, evidence) in itertools.product(departures(), truths()):
            word = Word("u", "web", None, launched=launched, image_kept=image_kept, departures=left)
            for host, proof in after(word, truth, evidence)[1].items():
                assert image_kept or not launched
                if left[host] == "shelved":
                    assert proof is Proof.SHELVED and image_kept and not truth[host].runs
                else:
                    assert proof is Proof.BUILD_FAILED and left[host] == "retried"


def test_what_its_owner_deleted_goes_from_everywhere() -> None:
    word = Word("u", "web", "hv2", deleted=True)
    for truth, evidence in truths():
        assert after(word, truth, evidence)[1] == dict.fromkeys(evidence.sights, Proof.DELETED)


def test_an_instance_of_a_volume_is_where_its_domain_is() -> None:
    word = Word("u", "web", "hv2", own_disk=False, departures={"hv1": "moved"})
    runs = Sight(runs=True, defined=True)
    assert proofs.of_leftover(word, "hv1", runs, Evidence({"hv1": runs, "hv2": runs})).proof is Proof.ELSEWHERE
    assert proofs.of_leftover(word, "hv1", runs, Evidence({"hv1": runs, "hv2": DEFINED})).proof is None
    assert proofs.of_leftover(word, "hv1", DEFINED, Evidence({"hv1": DEFINED, "hv2": DEFINED})).proof is Proof.ELSEWHERE
    assert proofs.obstacle(word, "hv2", DEFINED, Evidence({"hv2": DEFINED})) is None


def test_nothing_is_repaired_where_another_host_may_have_the_guest() -> None:
    for left, (truth, evidence) in itertools.product(departures(), truths()):
        word = Word("u", "web", "hv2", departures={host: why for host, why in left.items() if host != "hv2"})
        here, others = truth["hv2"], {host: sight for host, sight in evidence.sights.items() if host != "hv2"}
        if "hv2" in evidence.silent:
            continue
        free = proofs.obstacle(word, "hv2", here, evidence) is None
        if here.runs:
            assert free
        elif any(sight.runs for sight in others.values()):
            assert not free  # a second guest on old disks
        elif not here.disk:
            assert free == (
                not evidence.silent and not any(sight.disk for sight in others.values()) and not _new(word, others)
            )
        else:
            assert free == (not _new(word, others) and (here.defined or not evidence.silent))


def _new(word: Word, others: Truth) -> bool:
    """Tell whether another host has something of the instance that the ledger does not know for a leftover."""
    return any((sight.disk or sight.defined) and host not in word.departures for host, sight in others.items())


def test_the_reasons_name_hosts() -> None:
    word = Word("u", "a2", "hv2")
    assert proofs.obstacle(word, "hv2", NOTHING, Evidence({"hv1": RUNS})) == "runs on hv1, the ledger has it on hv2"
    assert proofs.obstacle(word, "hv2", OFF, Evidence({"hv1": DISK})) == "its disk is on hv1, the ledger has it on hv2"
    assert proofs.obstacle(word, "hv2", NOTHING, Evidence({}, frozenset({"hv3"}))) == "not known: hv3 was not asked"
    many = frozenset(f"hv{number}" for number in range(3, 8))
    assert (
        proofs.obstacle(word, "hv2", NOTHING, Evidence({}, many))
        == "not known: hv3, hv4, hv5 and 2 more were not asked"
    )


def test_the_ledger_follows_a_guest_only_to_where_it_is_alone() -> None:
    word = Word("u", "web", "hv2")
    accepted = 0
    for truth, evidence in truths():
        here = evidence.sights.get("hv1")
        if here is None or proofs.refusal(word, "hv1", here, evidence) is not None:
            continue
        accepted += 1
        assert "hv2" not in evidence.silent
        others = [sight for host, sight in evidence.sights.items() if host != "hv1"]
        assert not any(sight.runs for sight in others)
        if not here.runs:  # then no other host has any disk, asked or not
            assert here.disk and not any(truth[host].disk for host in HOSTS[1:])
    assert accepted > 20


@pytest.mark.parametrize(
    ("files", "has_disk"),
    [
        (["disk", "disk.info"], True),
        (["disk.eph0"], True),
        (["disk.resize"], True),
        (["disk.info", "disk.config", "console.log"], False),
        ([], False),
    ],
)
def test_a_disk_is_what_a_guest_writes_to(files: list[str], has_disk: bool) -> None:
    look: t.Any = {"domains": [{"uuid": "u", "state": "saved"}], "disks": ["u"], "files": {"u": files}}
    assert proofs.sights_of(look) == {"u": Sight(runs=False, defined=True, disk=has_disk)}
