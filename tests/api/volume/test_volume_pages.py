# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of volumes, snapshots and attachments: what the database chooses is what a look at all of them would."""

from __future__ import annotations

import functools
import json
import pathlib
import random
import typing as t
import urllib.parse
import uuid

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from tests.api import applications
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.examples import part_of

Body = dict[str, t.Any]
COUNT = 40
NAMES = ("a", "b", "data", "True", "\u6771\u4eac", "it's", "100%", "")


def fill(connection: sa.Connection, project: str, count: int = COUNT) -> None:
    """Volumes, each with a snapshot, some of them reserved; many are alike in what lists are sorted by."""
    chance = random.Random(7)
    volume_types.ensure_default(connection)
    for number in range(count):
        name = chance.choice(NAMES)
        own = {
            **{"id": str(uuid.UUID(int=chance.getrandbits(128), version=4)), "project_id": project},
            **{"name": f"v{number}", "display_name": name, "description": chance.choice(["d", None])},
            **{"size_gb": chance.choice([1, 2, 10]), "metadata": {"k": chance.choice("ab"), 'q"': "x"}},
            **{"created_at": 1000 + number // 3, "updated_at": 1000 + number % 4},
        }
        status = chance.choice(["available", "reserved", "error"])
        rest = {"type_id": volume_type_records.DEFAULT_ID, "format": "raw", "bootable": chance.random() < 0.5}
        zone = chance.choice([None, "east"])
        connection.execute(
            sa.insert(tables_volumes.volume).values(**own, **rest, status=status, availability_zone=zone)
        )
        of = {"id": str(uuid.UUID(int=chance.getrandbits(128), version=4)), "volume_id": own["id"]}
        connection.execute(sa.insert(tables_volumes.volume_snapshot).values(**{**own, **of}, status="available"))
        if status == "reserved":
            held = {**of, "id": str(uuid.UUID(int=chance.getrandbits(128), version=4))}
            connection.execute(
                sa.insert(tables_volumes.volume_reservation).values(**held, status=status, created_at=1000)
            )


@pytest.fixture(scope="module")
def doors(migrated: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Doors]:
    cloud = Cloud(tmp_path_factory.mktemp("pages"))
    with applications.application(cloud.home) as app:
        opened = Doors(cloud, "/volume/v3", app)
        for user in (opened.member, opened.stranger):
            user.base = f"/volume/v3/{user.project}"
        with transaction(cloud.engine) as connection:
            fill(connection, opened.project)
        yield opened


KINDS = {
    "volumes": ("id", "name", "status", "size", "bootable", "availability_zone", "description", "volume_type"),
    "snapshots": ("id", "name", "status", "size", "volume_id", "description"),
    "attachments": ("id", "status", "volume_id"),
}


def listed(doors: Doors, kind: str, **query: t.Any) -> Body:
    headers = {**doors.member.headers, "OpenStack-API-Version": "volume 3.71"}
    path = f"{doors.member.base}/{kind}/detail?{urllib.parse.urlencode(query)}"
    answer = doors.client.get(path, headers=headers)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return t.cast(Body, answer.get_json())


def text(value: t.Any) -> str:
    return "" if value is None else str(value)


def place(key: str, row: Body) -> t.Any:
    return row[key] if key == "size" else text(row[key])


QUERY = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.integers(1, 9),
        "offset": st.integers(0, 5),
        "equal": st.integers(0, 99),
        "part": st.integers(0, 99),
        "metadata": st.sampled_from([{}, {"k": "a"}, {"k": "b", 'q"': "x"}, {"k": "z"}]),
        "sort": st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["asc", "desc"])), min_size=1, max_size=3),
        "marker": st.integers(0, COUNT - 1),
    },
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=part_of(60), deadline=None)
@given(query=QUERY, value=st.integers(0, COUNT - 1))
def test_a_page_is_what_all_of_them_make(doors: Doors, kind: str, query: Body, value: int) -> None:
    every, fields, asked = listed(doors, kind)[kind], KINDS[kind], {}
    assert len(every) > 5
    expected = list(every)
    if "sort" in query:
        keys = list(dict.fromkeys(fields[number % len(fields)] for number, _direction in query["sort"]))
        directions = [direction for _number, direction in query["sort"]]
        order = list(zip(keys, directions))
        asked["sort"] = ",".join(f"{key}:{direction}" for key, direction in order)
        for key, direction in reversed(order):
            expected.sort(key=functools.partial(place, key), reverse=direction == "desc")
    ids = [row["id"] for row in expected]
    marker = ids[query["marker"] % len(ids)] if "marker" in query else None
    if marker is not None:
        asked["marker"] = marker
        expected = expected[ids.index(marker) + 1 :]
    sample = every[value % len(every)]
    counted = list(every)
    conditions: list[t.Callable[[Body], bool]] = []
    if "equal" in query:
        field = fields[query["equal"] % len(fields)]
        asked[field] = text(sample[field])
        conditions.append(lambda row: text(row[field]) == text(sample[field]))
    if "part" in query:
        part_field = fields[query["part"] % len(fields)]
        part = text(sample[part_field])[1:3]
        asked[f"{part_field}~"] = part
        conditions.append(lambda row: part in text(row[part_field]))
    if "metadata" in query and kind != "attachments":
        asked["metadata"] = json.dumps(query["metadata"])
        conditions.append(lambda row: query["metadata"].items() <= row["metadata"].items())
    expected = [row for row in expected if all(meets(row) for meets in conditions)]
    counted = [row for row in counted if all(meets(row) for meets in conditions)]
    asked |= {name: query[name] for name in ("limit", "offset") if name in query}
    page = expected[query.get("offset", 0) :][: query.get("limit")]
    answer = listed(doors, kind, with_count="true", **asked)
    assert [row["id"] for row in answer[kind]] == [row["id"] for row in page], asked
    assert answer["count"] == len(counted)
    assert (f"{kind}_links" in answer) == (len(page) == query.get("limit"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_marker_of_another_project_is_none(doors: Doors, kind: str) -> None:
    marker = listed(doors, kind)[kind][0]["id"]
    headers = {**doors.stranger.headers, "OpenStack-API-Version": "volume 3.71"}
    for path, status in ((f"{kind}?marker={marker}", 404), (f"{kind}?limit=0", 200), (kind, 200)):
        assert doors.client.get(f"{doors.stranger.base}/{path}", headers=headers).status_code == status
