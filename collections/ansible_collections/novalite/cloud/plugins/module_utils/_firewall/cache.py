# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cache, in files, of novalite's part of a host's tables as the last run left it: the next need not read them all.

`iptables-save` takes 0.3 s with 5,000 instances, a change for one of them 0.02 s. What is kept here is good as long as
nobody else has written to the tables; whether somebody has is a question for fingerprint.py, and the answer is kept
here too. The files lie where a reboot takes them away, as it does the tables. Whatever is wrong with them, the tables
are read.

One family is a part of `head.json` and a file for the chains of each SHARD instances with neighbouring numbers, which
those of one request usually have; a change opens one or two.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import os
import typing as t

from .._host.own_directory import make_own
from .._json import JsonMapping, JsonObject
from .devices import OPEN, SIDES, TARGETS
from .fingerprint import Fingerprint
from .policy import INSTANCE, NEW, OUT_OF
from .present import Changes, Present, Scopes
from .rules import FAMILIES
from .ruleset import dispatches

DIRECTORY = "/run/novalite/firewall"
SHARD = 32
_VERSION = 9
_PREFIXES = (INSTANCE, NEW, OUT_OF, TARGETS, OPEN.target)

Shard = dict[str, t.Sequence[str]]


class Chains(t.Mapping[str, "tuple[str, ...]"]):
    """Novalite's chains but for those that dispatch, read from the files when they are asked for."""

    def __init__(self, directory: str, others: t.Mapping[str, t.Sequence[str]], files: t.Collection[int] = ()) -> None:
        self.directory = directory
        self.files = set(files)
        self.others = {name: tuple(rules) for name, rules in others.items()}
        self.shards: dict[int, Shard] = {}

    def shard(self, number: int) -> Shard:
        if number not in self.shards:
            there = number in self.files
            self.shards[number] = _load(os.path.join(self.directory, f"{number}.json")) if there else {}
        return self.shards[number]

    def _home(self, name: str) -> t.Mapping[str, t.Sequence[str]]:
        number = shard_of(name)
        return self.others if number is None else self.shard(number)

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return tuple(self._home(name)[name])

    def __contains__(self, name: object) -> bool:
        return name in self._home(str(name))

    def __iter__(self) -> t.Iterator[str]:
        yield from self.others
        for number in sorted(self.files):
            yield from self.shard(number)

    def __len__(self) -> int:
        return sum(1 for _name in self)


class Kept(t.NamedTuple):
    """The knowledge of the last run: by family, what is there; of each table of filters, the fingerprint after it."""

    families: dict[str, Present]
    fingerprint: Fingerprint
    facts: JsonObject  # whatever else the run that read the tables saw


@functools.lru_cache(maxsize=65536)
def shard_of(name: str) -> int | None:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return int(name[len(prefix) :].partition("+")[0]) // SHARD
    return None


def load(directory: str) -> Kept | None:
    """The notes of the last run, or None."""
    try:
        head = _load(os.path.join(directory, "head.json"))
        if head["version"] != _VERSION:
            return None
        families = {}
        for family in FAMILIES:
            kept = head["families"][family]
            families[family] = Present(
                _unpacked(kept["inbound"]),
                _unpacked(kept["outbound"]),
                kept["zones"],
                collections.Counter(kept["users"]),
                set(kept["sets"]),
                {side.root: _entries(kept["devices"][side.root]) for side in SIDES},
                Chains(os.path.join(directory, family), kept["chains"], kept["files"]),
                frozenset(kept["dropping"]),
            )
        return Kept(families, head["fingerprint"], head["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def forget(directory: str) -> None:
    """Forget the tables before anything is written to them: a run that is cut off leaves nothing to trust."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, "head.json"))


class Update:
    """The files after a change, made ready while iptables works, and put in place by `commit`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.files: dict[str, str] = {}
        self.families: dict[str, str] = {}

    def family(self, family: str, present: Present, changes: Changes) -> None:
        where = os.path.join(self.directory, family)
        kept = present.chains if isinstance(present.chains, Chains) else Chains(where, {})
        shards: dict[int, Shard] = {}
        others: dict[str, t.Sequence[str]] = dict(kept.others)

        def home(name: str) -> Shard:
            number = shard_of(name)
            if number is None:
                return others
            if number not in shards:
                shards[number] = dict(kept.shard(number))
            return shards[number]

        for name, rules in {**({} if kept is present.chains else present.chains), **changes.differing_chains}.items():
            home(name)[name] = rules
        for name in changes.gone:
            home(name).pop(name, None)
        self.files.update(
            (os.path.join(where, f"{number}.json"), json.dumps(shard) if shard else "")
            for number, shard in shards.items()
        )
        files = kept.files - shards.keys() | {number for number, shard in shards.items() if shard}
        self.families[family] = json.dumps(
            {
                "files": sorted(files),
                "chains": {name: rules for name, rules in others.items() if not dispatches(name)},
                "inbound": _packed(changes.inbound),
                "outbound": _packed(changes.outbound),
                "devices": _packed(changes.devices),
                "zones": changes.zones,
                "users": changes.users,
                "sets": sorted(changes.sets),
                "dropping": sorted(present.dropping),
            }
        )

    def commit(self, fingerprint: Fingerprint, facts: JsonMapping) -> None:
        for family in FAMILIES:
            make_own(os.path.join(self.directory, family))
        head = json.dumps({"version": _VERSION, "fingerprint": fingerprint, "facts": facts})
        families = ", ".join(f"{json.dumps(family)}: {text}" for family, text in self.families.items())
        for path, text in self.files.items():
            if text:
                _write(path, text)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        _write(os.path.join(self.directory, "head.json"), f'{head[:-1]}, "families": {{{families}}}}}')


def _packed(scopes: Scopes) -> dict[str, list[str]]:
    """Pack each scope into two texts: a parser of JSON takes several times as long for thousands of entries. Sorted,
    which the search for changes among them would have to do otherwise."""
    ordered = {scope: dict(sorted(entries.items())) for scope, entries in scopes.items()}
    return {scope: [" ".join(entries), " ".join(entries.values())] for scope, entries in ordered.items()}


def _unpacked(scopes: t.Mapping[str, t.Sequence[str]]) -> Scopes:
    return {scope: _entries(texts) for scope, texts in scopes.items()}


def _entries(texts: t.Sequence[str]) -> dict[str, str]:
    keys, whos = texts
    return dict(zip(keys.split(), whos.split()))


def _load(path: str) -> JsonObject:
    with open(path, encoding="ascii") as handle:
        return t.cast(JsonObject, json.load(handle))


def _write(path: str, text: str) -> None:
    # No fsync: a reboot takes the file away anyhow, and the tables with it.
    with open(f"{path}.new", "w", encoding="ascii") as handle:
        handle.write(text)
    os.replace(f"{path}.new", path)
