# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults that are planted into the code that decides, each with the mistake of an operator that shows what it does."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
import unittest.mock

from ansible_collections.novalite.cloud.plugins.module_utils._drift import proofs
from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, clock, known
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.migration import outcomes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import departures, host_marks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps import host_drift, ledger_rebuild
from ansible_collections.novalite.cloud.plugins.plugin_utils import _handshake
from tests.unit._ledger.histories import mistakes

Any = t.Any
EVERYTHING = proofs.Sight(runs=True, defined=True, disk=True)


@dataclasses.dataclass(frozen=True)
class Fault:
    """In `owner`, `name` becomes what `wrong` makes of the right function; `mistake` shows what that does."""

    words: str
    mistake: mistakes.Mistake
    owner: Any
    name: str
    wrong: t.Callable[[t.Callable[..., Any]], t.Callable[..., Any]]

    @contextlib.contextmanager
    def planted(self) -> t.Iterator[None]:
        right = getattr(self.owner, self.name)
        with unittest.mock.patch.object(self.owner, self.name, self.wrong(right)):
            yield


def _says(answer: Any) -> t.Callable[[t.Callable[..., Any]], t.Callable[..., Any]]:
    return lambda right: lambda *args, **kwargs: answer


def _word_is_enough(right: Any) -> Any:
    def of_leftover(word: Any, host: str, here: Any, evidence: Any) -> Any:
        verdict = right(word, host, here, evidence)
        return dataclasses.replace(verdict, proof=verdict.proof or proofs.Proof.ELSEWHERE)

    return of_leftover


def _it_must_have_left(right: Any) -> Any:
    def of_leftover(word: Any, host: str, here: Any, evidence: Any) -> Any:
        return right(dataclasses.replace(word, departures={host: departures.MOVED}), host, here, evidence)

    return of_leftover


def _it_must_be_there(right: Any) -> Any:
    def of_leftover(word: Any, host: str, here: Any, evidence: Any) -> Any:
        return right(word, host, here, proofs.Evidence({**evidence.sights, word.host or "": EVERYTHING}))

    return of_leftover


def _silence_is_consent(right: Any) -> Any:
    def of_leftover(word: Any, host: str, here: Any, evidence: Any) -> Any:
        believed = dict.fromkeys(evidence.silent, EVERYTHING)
        return right(word, host, here, proofs.Evidence({**evidence.sights, **believed}))

    return of_leftover


def _without_bin(right: Any) -> Any:
    def compared(connection: Any, params: Any) -> Any:
        result = right(connection, params)
        for disk in result["plan"]["disks"]:
            disk["to_bin"] = False
        return result

    return compared


def _any_machine(right: Any) -> Any:
    return lambda expected, identity, mark: right(dataclasses.replace(expected, identity=None), identity, mark)


def _any_name(right: Any) -> Any:
    def refusal(expected: Any, identity: Any, mark: Any) -> Any:
        return right(expected, identity, mark and dataclasses.replace(mark, host=expected.host))

    return refusal


def _any_mark(right: Any) -> Any:
    return lambda expected, identity, mark: right(dataclasses.replace(expected, marks=None), identity, mark)


def _as_it_says(right: Any) -> Any:
    return lambda connection, age: clock.now(connection) - age


def _all_went_well(right: Any) -> Any:
    return lambda params, going: dict.fromkeys((move["uuid"] for move in going), None)


def _none_was_refused(right: Any) -> Any:
    return lambda connection, hosts, params: right(connection, hosts, {**params, "refused": None})


FAULTS = (
    Fault("nothing is compared before a trip", mistakes.two_hosts_swapped, _handshake.Handshake, "begin", _says(None)),
    Fault("any machine will do", mistakes.a_clone_in_the_place_of_a_host, mark, "_refusal", _any_machine),
    Fault("a host's name for a ledger is not read", mistakes.a_clone_beside_its_host, mark, "_refusal", _any_name),
    Fault("any mark will do", mistakes.a_ledger_put_back_and_a_launch, mark, "_refusal", _any_mark),
    Fault(
        "a ledger that meets a newer one goes on",
        mistakes.a_ledger_put_back_and_a_launch,
        host_marks.HostMarks,
        "fall_behind",
        _says(None),
    ),
    Fault("a restored ledger goes on", mistakes.a_restored_ledger_of_before_a_new_name, behind, "begin", _says(None)),
    Fault("a lost ledger is made anew", mistakes.a_ledger_deleted_under_a_launch, known, "check", _says(None)),
    Fault(
        "a host that answers for another is gone",
        mistakes.a_restored_ledger_of_before_a_new_name,
        ledger_rebuild,
        "_silent",
        _none_was_refused,
    ),
    Fault(
        "a rebuild leaves numbers as they were",
        mistakes.a_restored_ledger_and_hosts_without_records,
        ledger_rebuild,
        "raise_numbers",
        _says(None),
    ),
    Fault(
        "the ledger's word is enough",
        mistakes.a_ledger_put_back_and_hosts_without_marks,
        proofs,
        "of_leftover",
        _word_is_enough,
    ),
    Fault(
        "whether it left is not asked",
        mistakes.a_clone_that_is_a_host_of_its_own,
        proofs,
        "of_leftover",
        _it_must_have_left,
    ),
    Fault(
        "whether it is elsewhere is not asked",
        mistakes.a_host_that_is_back_after_the_other_one_lost_the_guest,
        proofs,
        "of_leftover",
        _it_must_be_there,
    ),
    Fault(
        "a host that was not asked has all",
        mistakes.a_host_that_is_back_while_the_other_one_is_silent,
        proofs,
        "of_leftover",
        _silence_is_consent,
    ),
    Fault(
        "a disk is removed for good",
        mistakes.a_host_that_is_back_after_an_evacuation,
        host_drift,
        "orphans",
        _without_bin,
    ),
    Fault("the clock is believed after it was set", mistakes.a_clock_six_hours_ahead, clock, "before", _as_it_says),
    Fault(
        "a silent host of a move did its part",
        mistakes.a_destination_that_falls_silent_in_a_move,
        outcomes,
        "_error_by_uuid",
        _all_went_well,
    ),
)
