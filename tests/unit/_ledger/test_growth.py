# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an operation on one server, host or group reads does not grow with the cloud: counted in two clouds, of which
the larger one has six times as many instances, on as many hosts."""

from __future__ import annotations

import pathlib
import tempfile
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import steps, tasks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps import ledger_heal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import RECORDS, plain
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import directory_of, render
from tests.support.cloud import Cloud, size_of, sqlite
from tests.support.grown import FACTS, GUESTS, STATE_DIR, Call, Cost, Grown, compare, costs, grow

Result = dict[str, t.Any]
HOSTS, CROWD = 24, 160  # 17 hosts with 20 or 160 guests each, and 7 with 20; names are told among 16 hosts and fewer


class Sized(t.NamedTuple):
    cloud: Cloud
    grown: Grown


def heal(call: Call) -> Result:
    """What is done under the lock: everything was read before."""
    return call.operate("ledger_heal", suspects=SUSPECTS[call.grown.instances])


def group_ids(call: Call, *names: str) -> list[str]:
    """Return the UUIDs of these security groups."""
    c = tables.security_group.c
    return list(call.connection.execute(sa.select(c.uuid).where(c.name.in_(names))).scalars())


def way_in(call: Call, name: str) -> list[Result]:
    """Files of one server, whose alias the others of that name want; all is there but the guests' files."""
    uuid = call.grown.uuids[int(name[1:])]
    with tempfile.TemporaryDirectory() as home:
        path = pathlib.Path(home, "ssh_config")
        path.write_text(render({}, None, str(path)))
        done = call.operate("ssh_config", path=str(path), identity_file=None, servers=[], uuids=[uuid])
        return [done, *({file.name: file.read_text()} for file in pathlib.Path(directory_of(str(path))).iterdir())]


SUSPECTS: dict[int, Result] = {}
Case = t.Callable[[Call], t.Any]
HV0 = {"name": "hv0", "up": True, "vcpus": 8, "memory_mb": 4096, "disk_gb": 50, "traits": [], **FACTS}

# Operation -> what it does for one server, host, network or group
CASES: dict[str, Case] = {
    "aggregate": lambda call: call.task("aggregate", aggregates=[{"name": "ssd", "hosts": ["hv0"]}]),
    "capacity_info": lambda call: call.task("capacity_info", flavor="m1.tiny", image="ami-tiny"),
    "compute_host": lambda call: call.operate("compute_host", compute_hosts=[HV0]),
    "compute_service": lambda call: call.task("compute_service", hosts=["hv0"], enabled=False),
    "firewall_plan": lambda call: call.task("firewall_plan", hosts=["hv0"]),
    "fixed_ip": lambda call: call.operate("fixed_ip", instances=call.named("g1")),
    "flavor": lambda call: call.task("flavor", flavors=[{"name": "m2", "vcpus": 1, "memory_mb": 64, "root_gb": 1}]),
    "group_plan": lambda call: call.operate("group_plan", groups=group_ids(call, "sg1"), members=[call.grown.uuids[1]]),
    "host_drift": lambda call: compare(call, "host_drift"),
    "host_record": lambda call: call.operate("host_record", host="hv0"),
    "keypair": lambda call: call.task("keypair", keypairs=[{"name": "test"}], state="absent"),
    "launch_plan": lambda call: call.launch("sg0"),
    "launch_record": lambda call: call.launched("sg0"),
    "ledger_heal": heal,
    "network": lambda call: call.task("network", networks=[{"name": "net0", "dns": ["192.0.2.1"]}]),
    "orphans": lambda call: compare(call, "orphans"),
    "port_plan": lambda call: call.operate("port_plan", ports=[call.grown.uuids[1]], state_dir=STATE_DIR),
    "power_sync": lambda call: call.operate("power_sync", observed=[]),
    "project": lambda call: call.task("project", projects=[{"name": "demo", "quotas": {"volumes": 11}}]),
    "reachability": lambda call: call.task("reachability", source="g0", destination="g1", protocol="tcp", port=22),
    "scheduler": lambda call: call.operate("scheduler", instances=call.new("sg0"), service_down_time=10**10),
    "security_group": lambda call: call.task("security_group", security_groups=[{"name": "sg0", "rules": []}]),
    "server": lambda call: call.new("sg0"),
    "server_action": lambda call: call.task("server_action", action="reboot", servers=[{"name": "g1"}]),
    "server_group": lambda call: call.task("server_group", server_groups=[{"name": "apart", "policy": "affinity"}]),
    "server_ha": lambda call: call.task("server_ha", servers=["g1"], ha_priority=1),
    "server_info": lambda call: call.task("server_info", name="g1"),
    "server_plan": lambda call: call.plan(leaving=call.named("g1")),
    "server_security_groups": lambda call: call.task(
        "server_security_groups", servers=[{"name": "g1", "security_groups": ["sg1"]}]
    ),
    "server_state": lambda call: call.task(
        "server_state", outcomes=[{"uuids": [call.grown.uuids[1]], "state": "error", "reason": "it broke"}]
    ),
    "ssh_config": lambda call: way_in(call, "g1"),
    "whereabouts": lambda call: call.operate(
        "whereabouts", seen={"hv0": {"sights": {call.grown.uuids[1]: {"defined": True}}, "volumes": []}}
    ),
}
# Further ones, by the operation that they are about
MORE: dict[str, Case] = {
    "server_state: deleted": lambda call: call.deleted("g1"),
    "server: absent": lambda call: call.task("server", servers=[{"name": "g1"}], state="absent"),
    "server_plan: build": lambda call: call.plan(instances=call.named("g1")),
    "server_plan: a member of everybody leaves": lambda call: call.plan(leaving=call.named("g0")),
    "ssh_config: gone": lambda call: [call.deleted("g1"), way_in(call, "g1")],
    "server_info: host": lambda call: call.task("server_info", host="hv0"),
}
# Those that are about all there is, by what they are asked
ABOUT_ALL = {
    "backup_files": "one record",
    "backup_policy": "all policies, and what is due of all servers",
    "balance_plan": "moves between all hosts",
    "balance_turn": "the hosts that are watched",
    "call_diagram": "a picture of one launch, from its record",
    "cloud_info": "the whole cloud",
    "drift_report": "a report of a run over all hosts, with names",
    "floating_ip": "a pool, which does not grow with instances",
    "floating_pool": "likewise",
    "fence": "a host, without the ledger",
    "host_identity": "all machines of the inventory",
    "image": "one record, and a file",
    "ledger": "the ledger itself",
    "rolling": "the hosts of a maintenance",
    "ledger_rebuild": "what all hosts say",
    "reserve_info": "all hosts, one after the other",
    "security_group_info": "all groups of a project",
    "samples": "what all hosts say",
    "server_adopt": "what is found on a host",
    "server_cdrom": "see server_plan",
    "server_interface": "see server_plan",
    "server_migration": "see server_plan and scheduler",
    "server_replica": "what is due of all servers",
    "stack_plan": "a document for a whole cloud",
    "user": "one record",
    "volume": "one record",
    "volume_action": "one record",
    "watch": "all hosts, and the guests that are to run again",
}


@pytest.fixture(scope="module")
def clouds(migrated: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[Sized, Sized]]:
    made = []
    for crowd in (GUESTS, CROWD):
        cloud = Cloud(sqlite(tmp_path_factory.mktemp("grown")))
        made.append(Sized(cloud, grow(cloud.engine, HOSTS, crowd, prefix=20)))
        SUSPECTS[made[-1].grown.instances] = ledger_heal.prepare_ledger_heal(cloud.engine, {})["suspects"]
    small, large = made
    assert large.grown.instances > 5.9 * small.grown.instances
    yield small, large
    for sized in made:
        sized.cloud.close()


def measured(sized: Sized, case: Case, by_statement: dict[str, int] | None = None) -> Cost:
    with (
        transaction(sized.cloud.engine, check_mode=True) as connection,
        costs(sized.cloud.engine, by_statement) as cost,
    ):
        cost.size = size_of(plain({"answer": case(Call(connection, sized.grown))}))
    return cost


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_what_is_asked_of_one_reads_its_own_rows(clouds: tuple[Sized, Sized], name: str) -> None:
    case = {**CASES, **MORE}[name]
    steps: tuple[dict[str, int], dict[str, int]] = ({}, {})
    small, large = (measured(sized, case, by) for sized, by in zip(clouds, steps))
    grew = {
        statement: (steps[0].get(statement, 0), count)
        for statement, count in steps[1].items()
        if count > 2 * steps[0].get(statement, 0) + 200
    }
    assert not grew, "\n".join(f"{before} -> {now} steps: {statement}" for statement, (before, now) in grew.items())
    assert large.statements <= small.statements + 5, (small, large)
    assert large.rows <= 1.2 * small.rows + 10 and large.size <= 1.2 * small.size + 500, (small, large)


def test_each_operation_is_measured_or_about_all() -> None:
    files = [path for room in (tasks, steps) for path in pathlib.Path(*room.__path__).glob("[a-z]*.py")]
    names = {path.stem for path in files} - {"records"} | {*RECORDS}
    assert names == CASES.keys() | ABOUT_ALL.keys() and not CASES.keys() & ABOUT_ALL.keys()
    assert {name.partition(":")[0] for name in MORE} <= CASES.keys()


def test_a_scan_is_noticed(clouds: tuple[Sized, Sized]) -> None:
    """What this test stands on: a look at each instance shows, whether rows come back or not."""

    def scanning(call: Call) -> Result:
        return {"rows": len(call.connection.exec_driver_sql("SELECT id FROM instance WHERE locked_reason = 'x'").all())}

    small, large = (measured(sized, scanning) for sized in clouds)
    assert large.steps > 5 * small.steps and large.rows == small.rows == 0
