# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `ledger_rebuild`: bring the ledger up to date with what its hosts keep of it (slices.py): one that was lost
is made again, one that was restored from an older copy learns what came since.

Ids are what they were, since hosts know them: in the names of chains, domains and filters. The ledger's identity, too.
What hosts may tell is in drift/carried.py, what is written of it in drift/shared_rows.py and own_rows.py.

In a ledger that was restored, instances that moved since are where they are, with their claims, interfaces, addresses,
floating IPs, volumes and moves. A host is believed where it knows more than the ledger does, and has the guest or its
disk. What two of them claim is left as it was, and listed. Numbers and addresses that any host has are given to nobody
else. A host speaks for its own guests, and what these stand on; what else its files tell of is refused, and listed.
"""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._model import text_table
from ..._model.look import Kept
from ..._rules.build_states import OFFLOADED
from ..._rules.records import with_diff
from ..catalog import image_states
from ..catalog.kept_images import KeptImages
from ..db import behind, clock, tables
from ..db.ledger_identity import ledger_id, set_ledger_id
from ..drift.addresses_of_hosts import Addresses, raise_numbers
from ..drift.own_rows import OwnRows
from ..drift.shared_rows import Report, SharedRows
from ..drift.slices_on_hosts import Slice, SlicesOnHosts, judge
from ..jobs.overtaken import end_overtaken
from ..network import dns_names
from ..placement.compute_hosts import POLICY
from ..placement.machines import adopt_marks
from .ledger_heal import wrong_sums

ARGUMENT_SPEC = {
    # What each host keeps, as the step `host_record` reads it.
    "hosts": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            # For each instance, by its UUID, the text that is kept.
            "records": {"type": "dict", "required": True},
            # The text that is kept for the host.
            "host_record": {"type": "str"},
            # The marks that ledgers left on the host, as `host_mark` returns them.
            "marks": {"type": "dict"},
            # What carries novalite's names or metadata on the host.
            "found": {"type": "dict", "required": True},
        },
    },
    # Names of the hosts that did not answer.
    "silent": {"type": "list", "elements": "str", "default": []},
    # Hosts that answered and were not asked, since they are not the machines that the ledger has, and why.
    "refused": {"type": "dict"},
    # Whether to go on without hosts that did not answer, or that the ledger has and that nobody asked.
    "partial": {"type": "bool", "default": False},
    # The identity of the ledger that was lost. Needed if the hosts know several others than this one.
    "ledger": {"type": "str"},
}

LOST = (
    "users, their passwords and roles, application credentials and EC2 keys: users.yml, or record them again",
    "tokens: whoever is logged in logs in again",
    "images' files: seed.yml, or the module image; and images, flavors, groups, networks and volume types that no "
    "instance used: stack.yml, or by hand",
    "which hosts were closed (module compute_service), and what those offer that do not answer (compute_nodes.yml)",
    "the history of instances, jobs, and deleted instances",
    "what becomes of new servers of projects when their host dies (module project)",
    "the ledger's secret: new IPv6 addresses of networks with stable-privacy follow from another one",
)

_WORDS = {
    "servers": "recorded",
    "updated": "brought up to date",
    "gone": "no host has it any more",
    "disputed": "claimed by several, and left as it was",
    "reserved": "an address that nobody is given",
    "missing": "a host that was not asked",
    "lost": "no host can tell",
}


def ledger_rebuild(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `ledger`: the identity of the ledger, or null if no host knows one
    * `added`: how many rows were added to each table
    * `servers`, `updated`: the instances that were added, and those that are not as the ledger had them, with what
      changed; here and below one line each
    * `gone`: instances of which no host has anything, since they were deleted after the copy was made, and what others
      have of them by now. They stay until they are deleted
    * `disputed`: what several claim, which stays as it was
    * `reserved`: addresses that are kept from everybody, or are free again
    * `missing`: the hosts that were not asked
    * `lost`: what no host can tell
    * `table`: the same for people, as lines

    Raises ConflictError when hosts did not answer, unless `partial` says that they are gone, and when the ledger here
    has another project of the same name."""
    hosts: t.Sequence[Kept] = params["hosts"]
    now, report, identity = clock.seconds(connection), Report(), ledger_id(connection)
    findings = judge(hosts, now, params.get("ledger"), identity)
    if findings.ledger not in (None, identity):
        set_ledger_id(connection, str(findings.ledger))
        report.added["ledger_identity"] += 1
    silent = _silent(connection, hosts, params)
    before = _servers(connection)
    _record_hosts(connection, hosts, report)
    ghosts = {} if silent else _ghosts(connection, hosts, findings)
    shared = SharedRows(connection, report, KeptImages(connection, params.get("home")))
    addresses = Addresses(connection, ghosts, report, now)
    own = OwnRows(connection, shared, addresses, ghosts, report, now)
    slices = own.newer(findings.slices, findings.disputed)
    shared.add(slices)
    own.write(slices)
    dns_names.claim(connection)  # no host knows who was first: the one with the lower number
    addresses.keep_back(hosts, ledger_id(connection), complete=not silent)
    raise_numbers(connection, hosts, findings.slices, report)
    corrected = wrong_sums(connection)
    marks = {host["name"]: host.get("marks") or {} for host in hosts}
    adopted = adopt_marks(connection, ledger_id(connection), marks)
    was_behind = behind.end(connection)
    # of a ledger that is up to date, every open job is still to be done
    overtaken = end_overtaken(connection, {each.uuid for each in slices if each.uuid in before}) if was_behind else []
    after = _servers(connection)
    written = bool(report.added or report.updated or report.reserved or corrected)
    if written:
        report.dropped = [*LOST, *_withheld(slices), *_on_the_controller(connection), *report.dropped]
    result: JsonObject = {
        "changed": bool(written or was_behind or adopted),
        "ledger": findings.ledger,
        "added": dict(sorted(report.added.items())),
        "servers": [line for uuid, line in after.items() if uuid not in before],
        "updated": report.updated,
        "gone": [*report.gone, *(f"{line}: no host has anything of it" for line in ghosts.values())],
        "disputed": [*findings.disputed.values(), *report.disputed],
        "reserved": report.reserved,
        "missing": silent,
        "lost": [
            *overtaken,
            *report.dropped,
            *_not_told(findings),
            *_volumes(connection, hosts),
            *_images(connection, params.get("home")),
        ],
    }
    result["table"] = _table(result)
    sides = ({"servers": list(before.values())}, {"servers": list(after.values())})
    reported: JsonObject = {"updated": report.updated, "kept back": report.reserved}
    return with_diff(result, sides[0], {**sides[1], **{word: lines for word, lines in reported.items() if lines}})


def _table(result: JsonMapping) -> list[str]:
    words = {word: lines for word, lines in _WORDS.items() if word != "lost" or result["changed"]}
    rows = [[word, line] for field, word in words.items() for line in result[field]]
    return text_table.lined_up(rows or [["nothing to record: the ledger has all that the hosts keep"]])


ledger_rebuild.brings_up_to_date = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation


def _silent(connection: sa.Connection, hosts: t.Sequence[Kept], params: JsonMapping) -> list[str]:
    """The hosts that did not answer, or were not asked. Raises ConflictError unless they are gone for good; one that
    answered in the place of another is not, whatever a person says."""
    if refused := params.get("refused"):
        raise ConflictError(f"hosts that answer are not gone, and are to be asked first: {'; '.join(refused.values())}")
    reported = {host["name"] for host in hosts}
    recorded = set(connection.execute(sa.select(tables.compute_host.c.name)).scalars())
    silent = sorted({*(params.get("silent") or ()), *recorded} - reported)
    if silent and not params.get("partial"):
        raise ConflictError(
            f"these hosts do not say what they keep: {', '.join(silent)}. Numbers and addresses of their guests would "
            "be given out again. Bring them up, or, if they are gone for good, say -e partial=true"
        )
    return silent


def _record_hosts(connection: sa.Connection, hosts: t.Sequence[Kept], report: Report) -> None:
    """Record hosts that are not here yet, without what they have to give, which they say the next time that they are
    asked."""
    table = tables.compute_host
    known = set(connection.execute(sa.select(table.c.name)).scalars())
    for host in hosts:
        if host["name"] not in known:
            nothing = dict.fromkeys(("vcpus", "memory_mb", "disk_gb"), 0)
            row = {"name": host["name"], "up": False, "down_reason": "its ledger was lost", "last_seen_at": 0}
            connection.execute(sa.insert(table).values(**row, **nothing, **POLICY, traits=[], facts={}))
            report.added[table.name] += 1


def _ghosts(connection: sa.Connection, hosts: t.Sequence[Kept], findings: SlicesOnHosts) -> dict[str, str]:
    """Instances (UUIDs) that the ledger has on these hosts, and of which no host has anything, as a person names them:
    they were deleted after what the ledger remembers."""
    i = tables.instance.c
    here = sa.select(i.uuid).where(i.host.in_([host["name"] for host in hosts]), i.vm_state != "building")
    uuids = set(connection.execute(here.where(i.deleted == 0)).scalars()) - findings.there
    return {uuid: line for uuid, line in _servers(connection).items() if uuid in uuids}


def _servers(connection: sa.Connection) -> dict[str, str]:
    i, p = tables.instance, tables.project
    columns = (i.c.uuid, i.c.name, i.c.host, i.c.vm_state, p.c.name.label("project"))
    rows = connection.execute(
        sa.select(*columns).join(p, p.c.id == i.c.project_id).where(i.c.deleted == 0).order_by(i.c.id)
    )
    return {row.uuid: f"{row.name} of {row.project} on {row.host or 'no host'}: {row.vm_state}" for row in rows}


def _on_the_controller(connection: sa.Connection) -> list[str]:
    """List the files of shelved instances' disks: no host has these."""
    i = tables.instance.c
    shelved = sa.select(i.name, i.disk_image).where(i.vm_state == OFFLOADED, i.host.is_(None), i.deleted == 0)
    return [
        f"the disk of {row.name}, which is shelved: {row.disk_image['source'] or 'its file is not in the store'}; "
        "without that file it can only be deleted"
        for row in connection.execute(shelved.order_by(i.id))
        if row.disk_image is not None
    ]


def _withheld(slices: t.Sequence[Slice]) -> list[str]:
    """List the instances' data that no host keeps."""
    words = {"user_data": "user data", "files": "injected files", "password_hash": "a password"}
    names = collections.defaultdict(list)
    for part in slices:
        for what in part.withheld if part.uuid else ():
            names[what].append(str(part.tables["instance"][0]["name"]))
    return [
        f"{words[what]} of {', '.join(sorted(names[what]))}: the guests have it, the ledger not any more"
        for what in sorted(names.keys() & words.keys())
    ]


def _not_told(findings: SlicesOnHosts) -> list[str]:
    return [
        *(f"what is on hosts of {server}: no record of it" for server in findings.unrecorded),
        *(f"the adopted {server}: its domain is gone, or carries no mark" for server in findings.unmarked),
        *findings.unreadable,
        *findings.refused,
    ]


def _images(connection: sa.Connection, home: str | None) -> list[str]:
    """List the files of uploaded images that came after the copy of a ledger that was restored."""
    return [
        f"the image whose data are {path}: record it with the module image, or remove the file"
        for path in image_states.unknown_files(connection, home)
    ]


def _volumes(connection: sa.Connection, hosts: t.Sequence[Kept]) -> list[str]:
    """List volumes that lie on hosts and that nothing tells of."""
    known = set(connection.execute(sa.select(tables.tables_volumes.volume.c.id)).scalars())
    return [
        f"the volume {volume} on {host['name']}: whose it is"
        for host in hosts
        for volume in host["found"]["volumes"]
        if volume not in known
    ]
