# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    used,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_snapshots,
    volumes,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes.volume_sources import worker
from tests.support.examples import part_of
from tests.support.rows import DEMO, GIB, OTHER, add_host, add_instance, add_project, an_image
from tests.unit._ledger.conftest import on_sqlite

IMAGE = an_image(virtual_size=2 * GIB + 1)


@pytest.fixture
def connection(ledger: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(ledger) as ledger_connection:
        add_project(ledger_connection, "other", OTHER)
        for name in ("hv1", "hv2"):
            add_host(ledger_connection, name)
        yield ledger_connection


def server(connection: sa.Connection, name: str = "web", host: str | None = "hv1", **columns: t.Any) -> str:
    return add_instance(connection, name, host=host, image=IMAGE, **columns)


def blank(connection: sa.Connection, size: int = 1, **params: t.Any) -> Volume:
    return volumes.create_volume(connection, DEMO, {"size_gb": size, **params})


def test_a_blank_volume_is_available_at_once_and_bound_to_the_host_of_its_first_instance(
    connection: sa.Connection,
) -> None:
    record = blank(connection, name="data")
    assert (record.status, record.host, record.type, record.format, record.attachments) == (
        "available",
        None,
        "file",
        "qcow2",
        [],
    )
    web = server(connection, host="hv2")
    made = volume_attachments.begin_attach(connection, record.id, web, project_id=DEMO)
    assert (made.device, made.attached_at) == ("/dev/vdb", None)
    now = volume_views.one_volume(connection, record.id)
    assert (now.status, now.host, now.made_at) == ("attaching", "hv2", None)
    assert [each for each in volumes_by(connection, hosts=["hv2"]) if each.made_at] == []

    assert volume_attachments.finish_attach(connection, made.id)
    now = volume_views.one_volume(connection, record.id)
    assert (now.status, now.host) == ("in-use", "hv2")
    assert now.attachments[0].attached_at is not None and now.attachments[0].host == "hv2"
    assert [each.id for each in volumes_by(connection, hosts=["hv2"]) if each.made_at] == [record.id]
    assert json.dumps(dataclasses.asdict(now))  # it goes through Ansible

    volume_attachments.begin_detach(connection, record.id, web, project_id=DEMO)
    assert volume_attachments.finish_detach(connection, made.id)
    now = volume_views.one_volume(connection, record.id)
    assert (now.status, now.host, now.attachments) == ("available", "hv2", [])  # its data is there
    with pytest.raises(ConflictError, match="compute host hv2, and the instance is on hv1"):
        volume_attachments.begin_attach(connection, record.id, server(connection, "other", host="hv1"))


def test_a_failure_to_attach_leaves_a_volume_of_which_nothing_was_made_to_any_host(connection: sa.Connection) -> None:
    record = blank(connection)
    web = server(connection)
    made = volume_attachments.begin_attach(connection, record.id, web)
    assert volume_attachments.finish_attach(connection, made.id, error="no\nroom")
    now = volume_views.one_volume(connection, record.id)
    assert (now.status, now.host, now.attachments, now.fault and now.fault["message"]) == (
        "available",
        None,
        [],
        "no room",
    )
    assert not volume_attachments.finish_attach(connection, made.id)  # it was said before


def test_a_volume_is_begun_once_only(connection: sa.Connection) -> None:
    record = blank(connection)
    web = server(connection)
    volume_attachments.begin_attach(connection, record.id, web)
    for begin in (
        lambda: volume_attachments.begin_attach(connection, record.id, server(connection, "two")),
        lambda: volumes.begin_delete(connection, record.id),
        lambda: volumes.begin_extend(connection, record.id, 3),
        lambda: volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": record.id}),
        lambda: volume_attachments.begin_detach(connection, record.id, web),
    ):
        with pytest.raises(ConflictError):
            begin()


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"vm_state": "error"}, "while it is in vm_state error"),
        ({"task_state": "rebooting"}, "while it is in task_state rebooting"),
        ({"locked": True}, "is locked"),
        ({"host": None}, "is not ready"),
    ],
)
@on_sqlite
def test_an_instance_in_a_wrong_state_gets_no_volume(
    connection: sa.Connection, columns: dict[str, t.Any], words: str
) -> None:
    record = blank(connection)
    web = server(connection, **columns)
    with pytest.raises(ConflictError, match=words):
        volume_attachments.begin_attach(connection, record.id, web)
    assert volume_views.one_volume(connection, record.id).status == "available"


def test_what_another_project_has_does_not_exist(connection: sa.Connection) -> None:
    record = blank(connection)
    for ask in (
        lambda: volume_views.one_volume(connection, record.id, OTHER),
        lambda: volumes.begin_delete(connection, record.id, project_id=OTHER),
        lambda: volumes.begin_extend(connection, record.id, 2, project_id=OTHER),
        lambda: volumes.create_volume(connection, OTHER, {"source_volume_id": record.id}),
        lambda: volume_snapshots.create_snapshot(connection, OTHER, {"volume_id": record.id}),
        lambda: volume_attachments.begin_attach(connection, record.id, server(connection), project_id=OTHER),
    ):
        with pytest.raises(NotFoundError):
            ask()
    foreign = volumes.create_volume(connection, OTHER, {"size_gb": 1})
    with pytest.raises(NotFoundError):
        volume_attachments.begin_attach(connection, foreign.id, server(connection, "web2"))


def test_a_volume_of_an_image_is_made_on_the_emptiest_host(connection: sa.Connection) -> None:
    blank(connection, size=5, host="hv1")
    record = volumes.create_volume(connection, DEMO, {"image": IMAGE})
    assert (record.host, record.status, record.size_gb, record.bootable) == ("hv2", "creating", 3, True)
    assert volumes.finish_create(connection, record.id)
    assert volume_views.one_volume(connection, record.id).made_at is not None
    with pytest.raises(NovaliteError, match=r"2GB cannot be smaller .* 3GB"):
        volumes.create_volume(connection, DEMO, {"image": IMAGE, "size_gb": 2})


def test_only_the_hosts_of_a_limit_are_chosen(connection: sa.Connection) -> None:
    limited = {"size_gb": 4, "image": IMAGE, "limit_to": ["hv2"]}
    made = [volumes.create_volume(connection, DEMO, limited).host for _ in range(2)]
    assert made == ["hv2", "hv2"]
    with pytest.raises(ConflictError, match=r"has room for volumes of type .* among hv9"):
        volumes.create_volume(connection, DEMO, {**limited, "limit_to": ["hv9"]})
    of = blank(connection).id
    # of nothing yet: it is made by that
    volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": of, "limit_to": ["hv2"]})
    assert volumes_by(connection, ids=[of])[0].host == "hv2"
    shared = dataclasses.replace(blank(connection), type="shared", options={}, backend="nfs", host=None)
    assert [worker(connection, shared, limit) for limit in (None, ["hv2"])] == ["hv1", "hv2"]


def test_a_snapshot_and_what_is_made_of_it_are_beside_the_volume(connection: sa.Connection) -> None:
    record = blank(connection, size=2)
    snapshot = volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": record.id, "name": "s"})
    host = volume_views.one_volume(connection, record.id).host
    assert host is not None and snapshot.host == host
    with pytest.raises(ConflictError, match="snapshot status"):
        volumes.create_volume(connection, DEMO, {"snapshot_id": snapshot.id})
    assert volume_snapshots.finish_snapshot(connection, snapshot.id)
    copy = volumes.create_volume(connection, DEMO, {"snapshot_id": snapshot.id})
    assert (copy.host, copy.size_gb, copy.status) == (host, 2, "creating")
    with pytest.raises(ConflictError, match="a volume is being made of it"):
        volume_snapshots.begin_delete_snapshot(connection, snapshot.id)
    volumes.finish_create(connection, copy.id)
    with pytest.raises(ConflictError, match="dependent snapshots"):
        volumes.begin_delete(connection, record.id)
    volume_snapshots.begin_delete_snapshot(connection, snapshot.id)
    assert volume_snapshots.finish_delete_snapshot(connection, snapshot.id)
    volumes.begin_delete(connection, record.id)
    assert volumes.finish_delete(connection, record.id)
    assert [each.id for each in volumes_by(connection)] == [copy.id]


def test_a_volume_is_extended_where_it_is(connection: sa.Connection) -> None:
    record = blank(connection)
    assert volumes.begin_extend(connection, record.id, 2).status == "available"  # nothing is anywhere
    assert volume_views.one_volume(connection, record.id).size_gb == 2
    made = volume_attachments.begin_attach(connection, record.id, server(connection))
    volume_attachments.finish_attach(connection, made.id)
    now = volumes.begin_extend(connection, record.id, 4)
    assert (now.status, now.size_gb, now.new_size_gb) == ("extending", 2, 4)
    assert used(connection, DEMO)["gigabytes"] == 4
    volumes.finish_extend(connection, record.id)
    now = volume_views.one_volume(connection, record.id)
    assert (now.status, now.size_gb, now.new_size_gb) == ("in-use", 4, None)
    with pytest.raises(NovaliteError, match="must be greater"):
        volumes.begin_extend(connection, record.id, 4)


def test_what_a_dead_job_left_comes_to_an_end(connection: sa.Connection) -> None:
    first, second = blank(connection, host="hv1"), blank(connection)
    web = server(connection)
    made = volume_attachments.begin_attach(connection, second.id, web)
    assert volumes.settle(connection, [first.id, second.id], "its worker died") == [first.id]
    assert volume_views.one_volume(connection, first.id).status == "error"
    assert volume_attachments.settle(connection, [second.id], "its worker died") == [second.id]
    now = volume_views.one_volume(connection, second.id)
    assert (now.status, len(now.attachments)) == ("error_attaching", 1)
    # the guest may have it or not: to detach it is the way out
    volume_attachments.begin_detach(connection, second.id, web)
    volume_attachments.finish_detach(connection, made.id)
    assert volume_views.one_volume(connection, second.id).status == "available"


def test_an_instance_takes_only_those_volumes_with_it_that_it_was_told_to(connection: sa.Connection) -> None:
    web = server(connection)
    kept, gone, snapped = (blank(connection) for _each in range(3))
    for record, with_server in ((kept, False), (gone, True), (snapped, True)):
        made = volume_attachments.begin_attach(connection, record.id, web, delete_on_termination=with_server)
        volume_attachments.finish_attach(connection, made.id)
    volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": snapped.id, "force": True})
    assert [record.id for record in volume_attachments.leaving_with(connection, [web])] == [gone.id]
    volume_attachments.release(connection, [web])
    left = volumes_by(connection, project_id=DEMO)
    assert {(record.id, record.status, len(record.attachments)) for record in left} == {
        (kept.id, "available", 0),
        (snapped.id, "available", 0),
    }


def test_the_default_type_is_there_before_anything_was_written(connection: sa.Connection) -> None:
    assert [volume_type.name for volume_type in volume_type_records.types_by(connection)] == ["file"]
    assert volume_type_records.type_of(connection, None).id == volume_type_records.DEFAULT_ID
    made = volume_types.create_type(
        connection, {"name": "fast", "backend": "lvm", "options": {"volume_group": "vg0", "hosts": ["hv2"]}}
    )
    record = volumes.create_volume(connection, DEMO, {"image": IMAGE, "type": "fast"})
    assert (record.host, record.format) == ("hv2", "raw")
    with pytest.raises(ConflictError, match="only on hv2"):
        blank(connection, type="fast", host="hv1")
    with pytest.raises(ConflictError, match="with volumes present"):
        volume_types.delete_type(connection, made.id)
    with pytest.raises(ConflictError):
        volume_types.delete_type(connection, volume_type_records.DEFAULT_ID)


@pytest.mark.parametrize(
    "backend, options",
    [
        ("lvm", {}),
        ("lvm", {"volume_group": "../etc"}),
        ("lvm", {"volume_group": "-f"}),
        ("nfs", {"share": "a/b"}),
        ("file", {"share": "x"}),
        ("file", {"format": "vmdk"}),
        ("tape", {}),
        ("nfs", {"share": "x", "hosts": "hv1"}),
    ],
)
@on_sqlite
def test_a_type_that_makes_no_sense_is_refused(
    connection: sa.Connection, backend: str, options: dict[str, t.Any]
) -> None:
    with pytest.raises(NovaliteError):
        volume_types.create_type(connection, {"name": "x", "backend": backend, "options": options})


@pytest.mark.both_databases
@on_sqlite
@settings(max_examples=part_of(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limits=st.fixed_dictionaries(
        {
            "volumes": st.integers(-1, 4),
            "gigabytes": st.integers(-1, 12),
            "snapshots": st.integers(-1, 3),
            "per_volume_gigabytes": st.integers(-1, 5),
        }
    ),
    steps=st.lists(
        st.tuples(st.sampled_from(["create", "extend", "snapshot", "delete"]), st.integers(1, 6)), max_size=12
    ),
)
def test_no_order_of_requests_exceeds_a_quota(
    connection: sa.Connection, limits: dict[str, int], steps: list[tuple[str, int]]
) -> None:
    outer = connection.begin_nested()
    quotas.write_quotas(connection, DEMO, limits)
    largest = 0
    for what, size in steps:
        before = used(connection, DEMO)
        there = volumes_by(connection, project_id=DEMO)
        savepoint = connection.begin_nested()
        try:
            if what == "create":
                blank(connection, size=size)
                largest = max(largest, size)
            elif there and what == "extend":
                volumes.begin_extend(connection, there[0].id, size)
                largest = max(largest, size)
            elif there and what == "snapshot":
                made = volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": there[-1].id})
                volume_snapshots.finish_snapshot(connection, made.id)
            elif there:
                volumes.begin_delete(connection, there[0].id)
                volumes.finish_delete(connection, there[0].id)
            savepoint.commit()
        except NovaliteError as error:
            savepoint.rollback()
            assert used(connection, DEMO) == before
            if isinstance(error, QuotaError):
                room = {name: limits[name] - before[name] for name in before if limits[name] >= 0}
                room["per_volume_gigabytes"] = limits["per_volume_gigabytes"]
                assert min(room.values()) < size or room.get("snapshots", 1) <= 0 or there[-1:][0].size_gb > 0
        now = used(connection, DEMO)
        assert all(limits[name] < 0 or now[name] <= limits[name] for name in now)
        assert limits["per_volume_gigabytes"] < 0 or largest <= limits["per_volume_gigabytes"]
    outer.rollback()


def test_two_volumes_of_one_name_have_two_handles(connection: sa.Connection) -> None:
    first, second = blank(connection, name="data"), blank(connection, name="data")
    assert first.display_name == second.display_name == "data"
    assert first.name == "data" and second.name != "data"
    with pytest.raises(ConflictError, match="already"):
        blank(connection, handle="data")
    assert connection.execute(sa.select(sa.func.count()).select_from(volume)).scalar() == 2
