# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook itself, with our playbooks and what people get wrong."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from tests.support.rows import OTHER, add_host, add_image, add_instance, add_project
from tests.unit.playbooks.controller import ROOT, Controller

REACHABILITY = ("reachability.yml", "-e", "source=10.20.0.2", "-e", "destination=10.20.0.3")


@pytest.fixture
def with_hosts(cloud: Controller) -> t.Iterator[sa.Engine]:
    """The cloud's ledger, in which hv1 and hv2 are for as long as a test lasts."""
    engine = open_ledger(str(cloud.home))
    with transaction(engine) as connection:
        for name in ("hv1", "hv2"):
            add_host(connection, name)
    yield engine
    with transaction(engine) as connection:
        for table in (tables.instance, tables.compute_host):
            connection.execute(sa.delete(table))
        connection.execute(sa.delete(tables.project).where(tables.project.c.name == "other"))
    engine.dispose()


def test_what_is_wrong_is_said_before_any_host_is_asked(controller: Controller) -> None:
    done = controller.play(
        "launch.yml", "-e", "server=web coutn=3 count=three", "-e", "security_group=x flavour=m1.nano"
    )
    assert done.returncode == 4, done.stdout + done.stderr
    said = done.stdout + done.stderr
    for meant in ("count", "security_groups", "flavor"):
        assert f"did you mean '{meant}'?" in said
    assert "count='three' is not a whole number" in said
    assert "TASK" not in done.stdout and not controller.hosts_asked() and not list(controller.home.iterdir())


def test_explain_without_its_callback_ends_the_run(controller: Controller) -> None:
    done = controller.play("launch.yml", "-e", "server=web explain=true")
    assert done.returncode == 4
    assert "add it to callbacks_enabled in ansible.cfg, or to ANSIBLE_CALLBACKS_ENABLED" in done.stderr
    assert "TASK" not in done.stdout and not controller.hosts_asked()


def test_a_misspelt_variable_of_the_inventory_ends_the_run(controller: Controller) -> None:
    (controller.elsewhere / "group_vars/all.yml").write_text("novalite_hme: /srv\nown: 1\nnovalite_of_ours: 2\n")
    done = controller.play(*REACHABILITY)
    assert done.returncode == 4 and "novalite_hme is not one of novalite's: did you mean novalite_home?" in done.stderr


def test_a_misspelt_variable_of_a_host_ends_the_run(controller: Controller) -> None:
    """Of those that the run is about; what is an own variable there, the same file may say."""
    (controller.elsewhere / "host_vars").mkdir()
    zones = controller.elsewhere / "host_vars/hv2.yml"
    zones.write_text("compute_node_zones: a\n")
    (controller.elsewhere / "group_vars/compute.yml").write_text(
        "compute_node_cpu_ration: 2.0\nnovalite_extra_variables: [compute_node_cpu_r*]\n"
    )
    done = controller.play("compute_nodes.yml")
    assert done.returncode == 4
    assert "variable compute_node_zones of hv2 is not one of novalite's: did you mean compute_node_zone?" in done.stderr
    assert not controller.hosts_asked()
    (controller.elsewhere / "group_vars/compute.yml").write_text("compute_node_cpu_ration: 2.0\n")
    done = controller.play("compute_nodes.yml", "--limit", "hv1")
    assert done.returncode == 4 and "did you mean compute_node_cpu_ratio?" in done.stderr


def test_own_variables_are_let_through(cloud: Controller) -> None:
    done = cloud.play(
        *REACHABILITY, "-e", "vault_token=1 site_name=x", "-e", "novalite_extra_variables=vault_*,site_name"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_playbook_of_somebody_elses_keeps_its_own_variables(cloud: Controller) -> None:
    ours = ROOT / "playbooks/reachability.yml"
    theirs = cloud.elsewhere / "./theirs.yml"
    theirs.write_text(f"- import_playbook: {ours}\n  vars: {{source: 10.20.0.2, destination: 10.20.0.3}}\n")
    done = cloud.play("./theirs.yml", "-e", "colour=red", "--limit", "hv1")
    assert done.returncode == 0 and "msg" in done.stdout, done.stdout + done.stderr


def test_false_is_false(cloud: Controller) -> None:
    """Of a role's variable, which no module converts."""
    book = cloud.elsewhere / "false.yml"
    parts = ROOT / "playbooks/parts/check.yml"
    book.write_text(
        f"- import_playbook: {parts}\n  vars: {{novalite_playbook: launch, servers: []}}\n"
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.debug: {msg: taken}\n      when: move_auto_converge or takeover or all_or_nothing\n"
    )
    done = cloud.play("./false.yml", "-e", "move_auto_converge=false takeover=no", "-e", "all_or_nothing=0")
    assert done.returncode == 0 and "taken" not in done.stdout, done.stdout + done.stderr


def test_an_old_word_is_taken_for_the_new_one(cloud: Controller) -> None:
    new, old = cloud.play(*REACHABILITY), cloud.play("reachability.yml", "-e", "from=10.20.0.2 to=10.20.0.3")
    assert new.returncode == old.returncode == 0
    assert new.stdout == old.stdout and "10.20.0.2" in new.stdout
    assert not new.stderr


def test_a_hostname_is_what_is_recorded(cloud: Controller) -> None:
    """The request's part of launch.yml alone: it records the instance, and no host has to answer."""
    book = cloud.elsewhere / "request.yml"
    book.write_text(
        f"- import_playbook: {ROOT}/playbooks/parts/check.yml\n  vars: {{novalite_playbook: launch}}\n"
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        f"    - import_tasks: {ROOT}/playbooks/tasks/create_servers.yml\n"
    )
    engine, table = open_ledger(str(cloud.home)), tables.instance
    with transaction(engine) as connection:
        add_image(connection, "tiny")
    server = ("-e", "server=web flavor=m1.nano image=tiny")
    refused = cloud.play("./request.yml", *server, "-e", "hostname=not_a_name")
    assert refused.returncode == 2 and "hostname of 'web'" in refused.stdout, refused.stdout + refused.stderr
    done = cloud.play("./request.yml", *server, "-e", "hostname=front")
    assert done.returncode == 0, done.stdout + done.stderr
    with transaction(engine) as connection:
        assert connection.execute(sa.select(table.c.name, table.c.hostname)).all() == [("web", "front")]
        for emptied in (table, tables.image):
            connection.execute(sa.delete(emptied))


def test_the_limit_is_the_hosts_that_may_be_chosen(cloud: Controller) -> None:
    cloud.asked.unlink(missing_ok=True)
    done = cloud.play("compute_nodes.yml", "--limit", "hv2")
    assert cloud.hosts_asked() == {"hv2"}, done.stdout + done.stderr
    cloud.asked.unlink()
    done = cloud.play(*REACHABILITY, "--limit", "hv1")
    assert done.returncode == 0 and "msg" in done.stdout and not cloud.hosts_asked()


def test_a_volume_for_a_host_that_the_limit_leaves_out_is_not_even_recorded(
    cloud: Controller, with_hosts: sa.Engine
) -> None:
    done = cloud.play("volumes.yml", "-e", "volume=data volume_size=1 host=hv1", "--limit", "hv2")
    assert done.returncode == 2 and "--limit leaves out hv1, which has to take part" in done.stdout
    with transaction(with_hosts) as connection:
        assert connection.execute(sa.select(volume.c.name)).all() == []


def test_a_host_is_emptied_of_what_any_project_has_there(cloud: Controller, with_hosts: sa.Engine) -> None:
    """Here nothing can leave it, for no host answers."""
    with transaction(with_hosts) as connection:
        add_project(connection, "other", OTHER)
        add_instance(connection, "theirs", vm_state="stopped", host="hv1", project_id=OTHER)

    table = tables.compute_host.c
    service = sa.select(table.enabled, table.disabled_reason).where(table.name == "hv1")
    done = cloud.play("host_evacuate.yml", "-e", "host=hv1", "-e", "reason=memory")
    assert done.returncode == 2 and "hv1 still has theirs." in done.stdout, done.stdout + done.stderr
    with transaction(with_hosts) as connection:
        assert tuple(connection.execute(service).one()) == (False, "memory")
    done = cloud.play("host_restore.yml", "-e", "host=hv1")
    assert done.returncode == 0, done.stdout + done.stderr
    with transaction(with_hosts) as connection:
        assert tuple(connection.execute(service).one()) == (True, None)


def test_a_limit_that_leaves_nothing_fails(controller: Controller) -> None:
    """The group is the inventory's."""
    hosts, variables = controller.elsewhere / "hosts.ini", controller.elsewhere / "group_vars/all.yml"
    hosts.write_text("web\n" + hosts.read_text().replace("[compute", "[kvm"))
    variables.write_text("novalite_compute_group: kvm\n")
    done = controller.play("compute_nodes.yml", "--limit", "web")
    assert done.returncode == 4
    assert "--limit web leaves no compute host: the group 'kvm' has hv1, hv2" in done.stderr


def test_an_inventory_is_named_once_for_all_commands(controller: Controller) -> None:
    """As the chapters print them, without -i; who forgets it is told how."""
    command = ("novalite.cloud.compute_nodes", "--limit", "hv1")
    forgotten = controller.run(*command[:1])
    assert forgotten.returncode == 4 and not controller.hosts_asked()
    assert "no inventory with hosts was named: give -i, or export ANSIBLE_INVENTORY" in forgotten.stderr
    exported = controller.run(*command, ANSIBLE_INVENTORY="hosts.ini")
    assert "WARNING" not in exported.stdout + exported.stderr and controller.hosts_asked() == {"hv1"}


def test_a_machine_to_set_up_is_one_of_its_group(controller: Controller) -> None:
    """Compute hosts are of no use to it."""
    done = controller.play("controller.yml")
    assert done.returncode == 4
    assert "controller.yml: the inventory has no controller: put hosts into its group 'controller'" in done.stderr
    hosts = controller.elsewhere / "hosts.ini"
    hosts.write_text(hosts.read_text() + "[controller]\nhv2\n")
    done = controller.play("controller.yml", "--limit", "hv1")
    assert done.returncode == 4 and "--limit hv1 leaves no controller: the group 'controller' has hv2" in done.stderr


@pytest.mark.parametrize("said", ["environment", "inventory"])
def test_stack_and_pictures_use_the_ledger_that_is_named(controller: Controller, said: str) -> None:
    """Also where there is a home; what launch.yml reads is what stack.yml writes."""
    other = controller.elsewhere / "other.sqlite"
    (controller.elsewhere / "cloud.yml").write_text(
        "name: s\nproject: {name: demo}\nflavors: [{name: f, vcpus: 1, memory_mb: 64}]\n"
        "networks: [{name: front, cidr: 10.60.0.0/24, manager: vxlan}]\nsecurity_groups: [{name: staff, rules: []}]\n"
    )
    variables = f"novalite_home: {controller.home}\n"
    environment = {}
    if said == "environment":
        environment["NOVALITE_LEDGER_URL"] = f"sqlite:///{other}"
    else:
        variables += f"novalite_ledger_url: sqlite:///{other}\n"
        environment["NOVALITE_LEDGER_URL"] = "sqlite:////nowhere/at/all.sqlite"
    (controller.elsewhere / "group_vars/all.yml").write_text(variables)
    done = controller.play("stack.yml", "-e", "stack=cloud.yml", **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    topology = ("topology.yml", "-e", "picture=cloud.svg project=demo")
    groups = ("security_group_graph.yml", "-e", "picture=groups.svg project=demo")
    for command in (REACHABILITY, topology, groups):  # know the project
        done = controller.play(*command, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
    for name, drawn in (("cloud.svg", "front"), ("groups.svg", "staff")):  # where the command is run
        assert drawn in (controller.elsewhere / name).read_text()
    assert other.exists() and not (controller.home / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tags", "mine"), "has no tag mine, and would do nothing: add --tags all"),
        (("--skip-tags", "untagged"), "no --skip-tags, nor [tags] skip in ansible.cfg, may name untagged"),
        (("--start-at-task", "Write the ways in"), "is run whole: leave out --start-at-task 'Write the ways in'"),
    ],
)
def test_a_run_that_would_leave_tasks_out_is_no_success(cloud: Controller, words: tuple[str, str], says: str) -> None:
    done = cloud.play("terminate.yml", "-e", "server=nosuch", *words)
    assert done.returncode == 4 and says in done.stderr and "TASK" not in done.stdout


def test_tags_of_other_playbooks_are_left_to_them(cloud: Controller) -> None:
    """In an ansible.cfg, which `--tags all` outdoes; and where a playbook tags what it imports of ours."""
    (cloud.elsewhere / "tags.cfg").write_text("[tags]\nrun = mine\nskip = slow\n")
    configured = {"ANSIBLE_CONFIG": str(cloud.elsewhere / "tags.cfg")}
    terminate = ("terminate.yml", "-e", "server=nosuch")
    assert cloud.play(*terminate, **configured).returncode == 4
    (cloud.elsewhere / "theirs.yml").write_text(
        f"- import_playbook: {ROOT}/playbooks/terminate.yml\n  tags: mine\n  vars: {{server: nosuch}}\n"
    )
    for done in (cloud.play(*terminate, "--tags", "all", **configured), cloud.play("./theirs.yml", **configured)):
        assert done.returncode == 0 and "Mark the instances as going" in done.stdout, done.stdout + done.stderr
