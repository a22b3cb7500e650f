# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Named stories: the five patterns by which others' high availability failed, and what healing has to do in time."""

from __future__ import annotations

import typing as t

import pytest

from tests.unit._healing.code import REAL
from tests.unit._healing.story import Story
from tests.unit._healing.world import Host


def cloud(hosts: int = 5, disk: str = "block", means: tuple[str, ...] = ("agent",), **settings: t.Any) -> Story:
    """Return a cloud with one guest on each host that has been up for a minute."""
    return Story(
        [Host(f"h{number}", 16, means=means) for number in range(hosts)],
        [REAL.nouns.Guest(f"g{number}", f"h{number}", memory_mb=4, disk=disk) for number in range(hosts)],
        **settings,
    ).run(60)


def fencings(story: Story) -> int:
    return sum("switched off" in line for line in story.world.journal)


def places(story: Story, *names: str) -> list[tuple[str, str]]:
    return [(name, other) for name in names for other in story.world.hosts if name != other]


def test_guest_of_a_dead_host_is_back_within_a_minute() -> None:
    story = cloud()
    story.world.die("h1")
    story.run(60)
    assert len(story.running("g1")) == 1 and story.state("h1") in ("evacuating", "empty")
    story.run(20)
    assert story.state("h1") == "empty"


# - (1) not knowing is taken for death


def test_host_that_only_the_controllers_cannot_reach_is_left_alone() -> None:
    story = cloud()
    story.world.sever(("c0", "h1"), ("c1", "h1"))
    story.run(300)
    assert fencings(story) == 0 and story.running("g1") == ["h1"] and story.state("h1") == "suspect"
    assert "no proof of its death" in story.ledger.guests["g1"].listed


def test_host_that_its_peers_cannot_reach_is_left_alone() -> None:
    story = cloud()
    story.world.sever(*places(story, "h1"), *((other, "h1") for other in story.world.hosts))
    story.run(300)
    assert fencings(story) == 0 and story.state("h1") == "up"


def test_device_that_does_not_answer_proves_nothing() -> None:
    story = cloud()
    story.world.hosts["h1"].bmc = "gone"
    story.world.die("h1")
    story.run(300)
    assert story.state("h1") == "fencing" and story.running("g1") == []
    assert story.ledger.guests["g1"].listed == "the death of h1 is not proven yet"
    story.confirm_dead("h1")
    story.run(60)
    assert len(story.running("g1")) == 1 and "ada" in story.ledger.rows["h1"].proof.words


# - (2) it is fenced, and nothing starts again


@pytest.mark.parametrize("after", range(15, 60, 3))
def test_controller_that_is_killed_in_the_middle_does_not_end_the_recovery(after: int) -> None:
    story = cloud()
    story.world.die("h1")
    story.run(after)
    owner = next(controller for controller in story.controllers if controller.name == story.ledger.lease.owner)
    owner.kill()
    story.run(150)
    assert len(story.running("g1")) == 1


@pytest.mark.parametrize("after", range(1, 45, 2))
def test_controller_that_is_killed_costs_a_look_more_and_no_lease(after: int) -> None:
    story = cloud()
    story.world.die("h1")
    story.run(after)
    owner = next(controller for controller in story.controllers if controller.name == story.ledger.lease.owner)
    owner.kill()
    story.run(75 - after)
    assert len(story.running("g1")) == 1


def test_controller_that_loses_its_lock_and_lives_loses_its_lease_alone() -> None:
    story = cloud()
    owner = story.ledger.lease.owner
    next(controller for controller in story.controllers if controller.name == owner).lose_lock(5)
    story.run(20)
    assert (story.ledger.lease.owner != owner, story.ledger.lease.term) == (True, 2)
    assert fencings(story) == 0 and all(story.state(host) == "up" for host in story.world.hosts)


def test_guests_without_room_are_listed_and_started_once_there_is_some() -> None:
    hosts = [Host("h0", 4), Host("h1", 4), Host("h2", 4)]
    guests = [REAL.nouns.Guest(f"g{number}", f"h{number}", memory_mb=4, disk="block") for number in range(3)]
    story = Story(hosts, guests).run(60)
    story.world.die("h1")
    story.run(120)
    assert story.ledger.guests["g1"].listed == "no host has room" and story.state("h1") == "evacuating"
    hosts[2].memory_mb = 8
    story.run(30)
    assert story.running("g1") == ["h2"] and story.ledger.guests["g1"].listed == ""


# - (3) a clean stop is taken for a crash


def test_host_that_was_shut_down_is_not_fenced() -> None:
    story = cloud()
    story.world.shut_down("h1")
    story.run(300)
    assert fencings(story) == 0 and story.ledger.guests["g1"].listed == "h1 was shut down"


def test_host_in_maintenance_is_not_fenced() -> None:
    story = cloud()
    story.ledger.wish("h1", maintenance=True)
    story.world.die("h1")
    story.run(200)
    assert fencings(story) == 0 and story.ledger.guests["g1"].listed == "h1 is in maintenance"


def test_empty_host_is_not_fenced() -> None:
    story = cloud()
    del story.ledger.guests["g1"], story.world.disks["g1"]
    story.world.die("h1")
    story.run(200)
    assert fencings(story) == 0


def test_disarmed_watcher_does_nothing() -> None:
    story = cloud(armed=False)
    story.world.die("h1")
    story.run(200)
    assert fencings(story) == 0 and "disarmed" in story.ledger.guests["g1"].listed


# - (4) the recovery touches the dead host, or trusts it when it is back


def test_host_that_is_back_gives_up_what_was_moved_before_it_is_up() -> None:
    story = cloud()
    story.world.die("h1")
    story.run(100)
    story.world.hosts["h1"].libvirt = True
    story.world.boot("h1")
    story.run(60)
    assert story.state("h1") == "up" and story.world.hosts["h1"].guests == set()
    assert len(story.running("g1")) == 1 and story.running("g1") != ["h1"]


def test_controller_that_slept_through_a_fencing_starts_nothing() -> None:
    """Stall the controller between the record of a place and the start there."""
    story = cloud()
    story.world.die("h1")
    while not story.ledger.guests["g1"].moving:
        story.run(0.1)
    story.run(6.5)
    story.controllers[0].stall(90)
    story.run(150)
    assert len(story.running("g1")) == 1


# - (5) all fence all when the network goes


@pytest.mark.parametrize("hosts", [1, 2, 3, 5, 12])
def test_nobody_is_fenced_when_all_are_silent(hosts: int) -> None:
    story = cloud(hosts)
    names = [*story.world.hosts, "c0", "c1"]
    cut = [(name, other) for name in names for other in names if name != other]
    story.world.sever(*cut)
    story.run(600)
    assert fencings(story) == 0
    story.world.mend(*cut)
    story.run(60)
    assert all(story.state(host) == "up" for host in story.world.hosts)


@pytest.mark.parametrize(("hosts", "dead", "fenced"), [(5, 1, 1), (5, 2, 0), (12, 2, 2), (12, 3, 0)])
def test_more_than_a_fifth_that_fall_together_are_left_alone(hosts: int, dead: int, fenced: int) -> None:
    story = cloud(hosts)
    for number in range(dead):
        story.world.die(f"h{number + 1}")
    story.run(400)
    assert fencings(story) == fenced
    if not fenced:
        assert any("says: nobody is fenced" in line for line in story.world.journal)


# - proofs


def test_dead_mans_switch_proves_nothing_of_a_frozen_host_but_locks_do() -> None:
    story = cloud(means=("switch",), disk="locked")
    story.world.freeze("h1")
    story.run(260)
    assert story.state("h1") == "empty" and len(story.running("g1")) == 1
    story.world.thaw("h1")
    story.run(120)
    assert len(story.running("g1")) == 1


def test_dead_mans_switch_is_not_enough_for_a_disk_without_locks() -> None:
    story = cloud(means=("switch",), disk="block")
    story.world.freeze("h1")
    story.run(260)
    assert story.running("g1") == [] and "proves nothing of a host that is frozen" in story.ledger.guests["g1"].listed


def test_nothing_that_fences_means_that_nobody_acts() -> None:
    story = cloud(means=())
    story.world.die("h1")
    story.run(300)
    assert story.state("h1") == "suspect" and "novalite host confirm-dead h1" in story.ledger.guests["g1"].listed


def test_disk_of_a_dead_host_alone_is_not_built_anew_unasked() -> None:
    story = cloud(disk="local")
    story.world.die("h1")
    story.run(200)
    assert story.running("g1") == [] and "ha_rebuild" in story.ledger.guests["g1"].listed


def test_guests_come_back_by_their_priority() -> None:
    hosts = [Host("h0", 8), Host("h1", 16), Host("h2", 4)]
    guests = [
        REAL.nouns.Guest(f"g{number}", "h1", priority=number % 3, memory_mb=4, disk="block") for number in range(4)
    ]
    story = Story(hosts, guests).run(60)
    story.world.die("h1")
    story.run(100)
    assert [guest.uuid for guest in guests if not story.running(guest.uuid)] == ["g3"]
