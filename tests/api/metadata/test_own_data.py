# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is in the ledger, a guest reads its own instance's data and nothing of another's."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import typing as t

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import create_app
from api.settings import Settings
from tests.api.conftest import Cloud, Guest
from tests.support.examples import part_of

HOSTS = ("hv1", "hv2")
NETWORKS = ("a", "b", "c")  # two of them have the same addresses

# which guest is where: (host, network, address); the first one in a place has it
places = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(NETWORKS), st.integers(5, 8), st.booleans()),
    min_size=1,
    max_size=4,
    unique_by=lambda place: place[1:3],
)


@settings(max_examples=part_of(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=places)
def test_a_guest_sees_only_its_own(migrated: pathlib.Path, places: list[tuple[str, str, int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        cloud = Cloud(pathlib.Path(shutil.copytree(migrated, f"{directory}/home")))
        app = create_app(Settings(home=str(cloud.home)), ["metadata"])
        try:
            _check(cloud, Guest(app.test_client(), {}), places)
        finally:
            app.extensions["ledger"].close()
            cloud.engine.dispose()


def _check(cloud: Cloud, asker: Guest, places: t.Sequence[tuple[str, str, int, bool]]) -> None:
    for host in HOSTS:
        cloud.host(host)
    networks = {
        name: cloud.network(name, "10.9.0.0/24" if name != "c" else "10.8.0.0/24", isolated=name != "c")
        for name in NETWORKS
    }
    prefix = {name: network.cidr[:7] for name, network in networks.items()}
    marks = {}  # what only this instance is told
    for number, (host, network, last, gone) in enumerate(places):
        mark = f"mark{number}x"
        project = cloud.project(f"{mark}project")
        uuid = cloud.instance(
            project,
            f"{mark}name",
            host,
            [(networks[network], f"{prefix[network]}{last}")],
            user_data=f"{mark}user-data".encode(),
            files={f"/{mark}file": f"{mark}content".encode()},
            key_name=f"{mark}key",
            public_key=f"ssh-ed25519 {mark}public",
            metadata={f"{mark}name": f"{mark}value"},
        )
        marks[host, network, last] = None if gone else (mark, uuid, project)
        if gone:
            cloud.delete(uuid)
    everything = [mark for of_table in marks.values() if of_table for mark in of_table]
    for host in HOSTS:
        for network in NETWORKS:
            for last in range(4, 10):
                asker.headers = cloud.headers(host, networks[network], f"{prefix[network]}{last}")
                own = marks.get((host, network, last))
                if own is None:
                    assert asker.ask("/latest/meta-data/").status_code == 404
                    continue
                documents = asker.crawl()
                documents["content"] = asker.text("/openstack/content/0000")
                whole = "\n".join(documents.values())
                assert {mark for mark in everything if mark in whole} == set(own)
                for path in ("/latest/user-data", "/openstack/latest/user_data", "/1.0/user-data"):
                    assert documents[path] == f"{own[0]}user-data"
