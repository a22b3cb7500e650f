# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ssh.inventory import (
    GROUPED_BY,
    Way,
    connection,
    groups,
    guest,
    names,
    safe,
    variables,
)

UUID = "6f2e0c0e-51c0-4d9e-8a3d-6a2f6f1f8a11"


def nic(**changes: t.Any) -> t.Any:
    network = {"name": "private", "bridge": "br100", "isolated": False}
    own: dict[str, t.Any] = {"ip": "10.20.0.5", "ipv6": None, "mac": "fa:16:3e:00:00:01", "floating_ips": []}
    return {**own, "network": network, **changes}


def instance(**changes: t.Any) -> t.Any:
    return {
        "uuid": UUID,
        "name": "web",
        "hostname": "web",
        "domain_name": "instance-00000001",
        "project": {"id": "d" * 32, "name": "demo"},
        "host": "hv1",
        "vm_state": "active",
        "task_state": None,
        "flavor": {"name": "m1.nano", "vcpus": 1, "memory_mb": 96, "root_gb": 0, "extra_specs": {}},
        "image": {"id": "i", "name": "ami", "source": "http://user:s3cret@images/ami", "properties": {}},
        "key": {"name": "test", "public_key": "ssh-ed25519 AAAA"},
        "metadata": {"role": "web"},
        "security_groups": [{"id": 1, "name": "default", "rules": []}],
        "nics": [nic()],
        "created_at": 1,
        "launched_at": 2,
        **changes,
    }


def listed(**changes: t.Any) -> dict[str, t.Any]:
    return guest(instance(**changes), "nova")


def test_nothing_secret_becomes_a_variable() -> None:
    record: t.Any = {**instance(), "user_data": "s3cret", "password_hash": "s3cret", "files": ["s3cret"]}
    hostvars = variables(guest(record, "nova"))
    assert "s3cret" not in repr(hostvars)
    assert "AAAA" not in repr(hostvars)


def test_groups_are_named_after_what_they_hold() -> None:
    assert groups(listed(metadata={"role": "web", "a b": "c-d"}), GROUPED_BY) == [
        "project_demo",
        "zone_nova",
        "host_hv1",
        "metadata_a_b_c_d",
        "metadata_role_web",
        "security_group_default",
        "network_private",
    ]
    assert groups(listed(host=None, metadata={}, nics=[], security_groups=[]), ["host", "network"]) == []


@given(st.text())
def test_a_groups_name_is_safe_whatever_it_comes_from(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]*", safe(text))
    assert len(safe(text)) == len(text)


@pytest.mark.parametrize("name", ["localhost", "all", "ungrouped", "hv1", "u-2"])
def test_a_guest_takes_nobody_elses_name(name: str) -> None:
    both = [listed(name=name, uuid="u-1"), listed(name="web", uuid="u-2")]
    assert names(both, {"hv1"}) == ["u-1", "web"]


def test_of_two_with_one_name_neither_has_it() -> None:
    three = [listed(uuid="u-1"), listed(uuid="u-2"), listed(uuid="u-3", name="db")]
    assert names(three, ()) == ["u-1", "u-2", "db"]
    assert names(three, (), "uuid") == ["u-1", "u-2", "u-3"]


def test_a_fixed_address_is_reached_by_the_ssh_config_of_the_launch() -> None:
    connection_vars = connection(listed(), Way(ssh_config="/home with space/ssh_config"))
    assert connection_vars["ansible_host"] == "10.20.0.5"
    assert connection_vars["ansible_ssh_common_args"] == "-F '/home with space/ssh_config'"
    assert connection_vars["ansible_user"] == "root"


def test_without_that_file_the_jump_is_left_to_the_users_ssh() -> None:
    assert connection(listed(), Way())["ansible_ssh_common_args"] == "-o ProxyJump=hv1"
    assert "ansible_ssh_common_args" not in connection(listed(host=None), Way())
    assert "ansible_ssh_common_args" not in connection(listed(), Way(jump=False, ssh_config="/x"))


def test_an_address_that_several_have_is_looked_up_by_uuid() -> None:
    assert connection(listed(), Way(ssh_config="/x"), {"10.20.0.5"})["ansible_host"] == UUID
    assert connection(listed(), Way(ssh_config="/x"), {"10.20.0.6"})["ansible_host"] == "10.20.0.5"


def test_a_floating_ip_is_reached_directly_and_only_if_asked_for() -> None:
    server = listed(nics=[nic(floating_ips=[{"address": "192.0.2.7", "interface": "eth0"}])])
    connection_vars = connection(server, Way(floating=True, ssh_config="/x"))
    assert connection_vars["ansible_host"] == "192.0.2.7"
    assert "ansible_ssh_common_args" not in connection_vars
    assert connection(server, Way(ssh_config="/x"))["ansible_host"] == "10.20.0.5"
    assert connection(listed(), Way(floating=True, ssh_config="/x"))["ansible_host"] == "10.20.0.5"


def test_a_guest_without_an_address_is_not_looked_for_by_its_name() -> None:
    assert connection(listed(nics=[]), Way())["ansible_host"] == UUID
    assert connection(listed(nics=[nic(ip=None)]), Way())["ansible_host"] == UUID


def test_a_guest_with_an_agent_is_reached_through_it_where_that_is_asked_for() -> None:
    image = {"id": "i", "name": "ami", "properties": {"hw_qemu_guest_agent": "yes"}}
    way = Way(agent="unaddressed", agent_uri="qemu+ssh://ops@{host}.example.org:2222/system")
    assert connection(listed(image=image, nics=[]), way) == {
        "ansible_connection": "community.libvirt.libvirt_qemu",
        "ansible_libvirt_uri": "qemu+ssh://ops@hv1.example.org:2222/system",
        "ansible_host": "instance-00000001",
    }
    assert connection(listed(image=image), Way(agent="always"))["ansible_libvirt_uri"] == "qemu+ssh://root@hv1/system"
    for guest_, by in [
        (listed(image=image), way),  # has an address
        (listed(image=image, nics=[]), Way()),  # not asked for
        (listed(nics=[]), way),  # has no agent
        (listed(image=image, nics=[], host=None), way),  # is nowhere
    ]:
        assert "ansible_connection" not in connection(guest_, by)


def test_the_image_says_who_logs_in() -> None:
    image = {"id": "i", "name": "ami", "properties": {"os_admin_user": "debian"}}
    connection_vars = connection(listed(image=image), Way(user="nobody", identity_file="/keys/test"))
    assert connection_vars["ansible_user"] == "debian"
    assert connection_vars["ansible_ssh_private_key_file"] == "/keys/test"
    assert connection(listed(), Way(user="nobody"))["ansible_user"] == "nobody"


def test_a_kept_connection_is_one_guests_and_one_users() -> None:
    paths = {connection(listed(uuid=uuid), Way())["ansible_control_path"] for uuid in (UUID, UUID.replace("6f", "70"))}
    assert len(paths) == 2
    # as Ansible reads it: %r and %p are then ssh's own, for the user and the port
    assert all((path % {"directory": "/cp"}).endswith("-%r-%p") for path in paths)
