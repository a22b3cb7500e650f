# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that are to run again when their host dies: who says so, and what disks do not allow it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, StateError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.support.cloud import Cloud, checked

ASK = {"flavor": "m1.tiny", "image": "ami-tiny"}


def made(cloud: Cloud, **said: t.Any) -> tuple[bool, int, bool]:
    cloud.operate("server", **checked("server", servers=[{"name": "web", **ASK, **said}]))
    columns = tables.instance.c
    ((*wishes,),) = cloud.rows(sa.select(columns.ha, columns.ha_priority, columns.ha_rebuild))
    return t.cast("tuple[bool, int, bool]", tuple(wishes))


def specs(cloud: Cloud, **words: str) -> None:
    values = {f"novalite:{name}": word for name, word in words.items()}
    cloud.write(sa.update(tables.flavor).where(tables.flavor.c.name == "m1.tiny").values(extra_specs=values))


def test_a_server_says_it_then_its_flavor_then_its_project(cloud: Cloud) -> None:
    cloud.task("project", projects=[{"name": "demo", "ha": True, "ha_priority": 1, "ha_rebuild": True}])
    specs(cloud, ha_priority="2")
    assert made(cloud, ha_priority=3) == (True, 3, True)


def test_a_flavor_goes_before_the_project(cloud: Cloud) -> None:
    cloud.task("project", projects=[{"name": "demo", "ha": True, "ha_rebuild": True}])
    specs(cloud, ha="false", ha_priority="7")
    assert made(cloud) == (False, 7, True)


def test_nobody_says_it(cloud: Cloud) -> None:
    assert made(cloud) == (False, 0, False)


def test_a_local_disk_needs_a_word_that_a_new_one_will_do(cloud: Cloud) -> None:
    with pytest.raises(NovaliteError, match=r"'web': ha: true needs a disk on shared storage.*ha_rebuild: true"):
        made(cloud, ha=True)
    assert made(cloud, ha=True, ha_rebuild=True) == (True, 0, True)


@pytest.mark.parametrize("word", ["maybe", "1.5"])
def test_extra_specs_that_are_no_wishes_are_refused(cloud: Cloud, word: str) -> None:
    specs(cloud, ha_priority=word)
    with pytest.raises(NovaliteError, match=r"ha_priority of 'm1\.tiny'"):
        made(cloud)
    specs(cloud, ha=word)
    with pytest.raises(NovaliteError, match=f"novalite:ha={word} of flavor"):
        made(cloud)


def test_a_project_shows_what_it_wishes(cloud: Cloud) -> None:
    result = cloud.task("project", projects=[{"name": "demo", "ha": True, "ha_rebuild": True}])
    assert result["changed"] and (result["projects"][0]["ha"], result["projects"][0]["ha_rebuild"]) == (True, True)
    assert not cloud.task("project", projects=[{"name": "demo"}])["changed"]


def asked(cloud: Cloud, **words: t.Any) -> bool:
    return bool(cloud.task("server_ha", servers=["web"], **words)["changed"])


def recorded(cloud: Cloud) -> tuple[t.Any, ...]:
    columns = tables.instance.c
    ((*wishes,),) = cloud.rows(sa.select(columns.ha, columns.ha_priority, columns.ha_rebuild, columns.ha_reason))
    return tuple(wishes)


def test_a_server_that_exists_is_given_other_wishes(cloud: Cloud) -> None:
    made(cloud)
    assert asked(cloud, ha=True, ha_rebuild=True, ha_priority=5)
    assert recorded(cloud) == (True, 5, True, None)
    assert not asked(cloud, ha=True, ha_priority=5)
    cloud.write(sa.update(tables.instance).values(ha_reason="its disk is on hv1 alone"))
    assert asked(cloud, ha_priority=-3)
    assert recorded(cloud) == (True, -3, True, None)
    assert asked(cloud, ha=False)
    assert asked(cloud, ha_rebuild=False)
    assert recorded(cloud) == (False, -3, False, None)
    names = cloud.rows(sa.select(tables.instance_action.c.action).where(tables.instance_action.c.action == "change_ha"))
    assert len(names) == 4


def test_each_server_of_a_list_has_its_own_words(cloud: Cloud) -> None:
    made(cloud)
    entry = {"name": "web", "ha_priority": 7}
    result = cloud.task("server_ha", servers=[entry], ha_priority=1, ha_rebuild=True)
    assert result["servers"] == [{"name": "web", "ha": False, "ha_priority": 7, "ha_rebuild": True}]
    assert result["diff"]["before"] == {"web": {"ha": False, "ha_priority": 0, "ha_rebuild": False}}
    with pytest.raises(NovaliteError, match="say what is to change"):
        cloud.task("server_ha", servers=["web"])


def test_what_its_disks_cannot_keep_is_refused_as_at_its_launch(cloud: Cloud) -> None:
    made(cloud, ha=True, ha_rebuild=True)
    for words in ({"ha_rebuild": False}, {"ha": True, "ha_rebuild": False}):
        with pytest.raises(NovaliteError, match=r"'web': ha: true needs a disk on shared storage.*ha_rebuild: true"):
            asked(cloud, **words)
    with pytest.raises(NovaliteError, match="101 is not a whole number from -100 to 100"):
        asked(cloud, ha_priority=101)
    assert recorded(cloud) == (True, 0, True, None)


def test_nothing_is_changed_in_check_mode(cloud: Cloud) -> None:
    made(cloud)
    assert cloud.task("server_ha", check_mode=True, servers=["web"], ha_priority=5)["changed"]
    assert recorded(cloud)[1] == 0


@pytest.mark.parametrize(
    ("columns", "words"), [({"task_state": "deleting"}, "task_state deleting"), ({"locked": True}, "is locked")]
)
def test_a_server_that_goes_or_is_locked_is_left_alone(cloud: Cloud, columns: dict[str, t.Any], words: str) -> None:
    made(cloud)
    cloud.write(sa.update(tables.instance).values(**columns))
    with pytest.raises(StateError, match=words):
        asked(cloud, ha_priority=5)
