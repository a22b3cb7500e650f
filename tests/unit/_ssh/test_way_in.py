# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way in to a compute host is the one that Ansible takes: ssh itself is asked what it makes of both."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
import yaml
from ansible.playbook.play_context import PlayContext
from ansible.plugins.connection import paramiko_ssh
from ansible.plugins.loader import connection_loader
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.way_in import VARIABLES as NAMES
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.way_in import WITHOUT_OPTION, WayIn, way_in
from tests.support.examples import part_of

# What Ansible adds for its own runs, or shares between them
ITS_OWN = (
    "control",
    "kbdinteractive",
    "preferredauthentications",
    "passwordauthentication",
    "numberofpassword",
    "connecttimeout",
)
ARGUMENTS = st.lists(
    st.sampled_from(
        [
            "-J jump",
            "-o ProxyJump=jump:2200",
            "-oProxyJump=user@jump",
            "-o 'ProxyJump jump'",
            "-o 'ProxyCommand=ssh -W %h:%p -q jump'",
            '-o ProxyCommand="nc -X connect -x proxy:3128 %h %p"',
            "-o StrictHostKeyChecking=no",
            "-o UserKnownHostsFile=/dev/null",
            "-o 'UserKnownHostsFile /lab/a /lab/b'",
            "-C",
            "-4",
            "-6C",
            "-i /etc/hostname",  # ssh leaves out a file that is not there
            "-l deploy",
            "-p2222",
            "-p 2223",
            "-q",
            "-vvv",
            "-A",
            "-b 127.0.0.1",
            "-o ServerAliveInterval=15",
            "-o ControlPath=/run/x -o ControlMaster=auto",
            "-o SendEnv=LANG",
            "-F /dev/null",
            "-F none",
        ]
    ),
    max_size=4,
).map(" ".join)
PATHS = st.sampled_from(["/keys/lab", "/a b/key", "~/key", "/ws/feature%%2Fvpn/key", "/it's/key"])
VARIABLES = st.fixed_dictionaries(
    {"ansible_host": st.sampled_from(["192.0.2.11", "2001:db8::11", "kvm.example.com", "fe80::1%eth0"])},
    optional={
        "ansible_port": st.sampled_from([22, 2222, "2201"]),
        "ansible_ssh_port": st.just(2202),
        "ansible_user": st.sampled_from(["root", "deploy", "domain\\\\user"]),
        "ansible_ssh_user": st.just("other"),
        "ansible_private_key_file": PATHS,
        "ansible_ssh_private_key_file": PATHS,
        "ansible_host_key_checking": st.sampled_from([True, False, "no"]),
        "ansible_ssh_args": ARGUMENTS,
        "ansible_ssh_common_args": ARGUMENTS,
        "ansible_ssh_extra_args": ARGUMENTS,
    },
)


def read_by_ssh(argv: list[str]) -> list[str]:
    done = subprocess.run(["ssh", "-G", *argv], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return sorted(line for line in done.stdout.splitlines() if not line.startswith((*ITS_OWN, "host ", "loglevel ")))


def as_ansible(variables: JsonObject) -> list[str]:
    connection = connection_loader.get("ssh", PlayContext())
    connection.set_options(var_options=variables)
    words = [os.fsdecode(word) for word in connection._build_command("ssh", "ssh")]
    return read_by_ssh(["-F", "/dev/null", *words[1:], str(variables["ansible_host"])])


def as_config(way: WayIn, path: pathlib.Path) -> list[str]:
    path.write_text("\n".join(["Host hv1", *(f"    {name} {value}" for name, value in way.options)]) + "\n")
    return read_by_ssh(["-F", str(path), "hv1"])


@settings(max_examples=part_of(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(VARIABLES)
def test_ssh_reads_the_file_as_ansibles_command(tmp_path: pathlib.Path, variables: JsonObject) -> None:
    variables.setdefault("ansible_ssh_args", "-C")  # the configuration's, which the action adds
    try:
        expected = as_ansible(variables)
    except subprocess.CalledProcessError:
        assume(False)  # ssh itself refuses two ways at once, and neither does Ansible get in
    assert as_config(way_in(variables), tmp_path / "config") == expected


# What paramiko's plug-in is told by variables, in ssh's words; the command of the proxy with ssh's tokens in it
PARAMIKO = {
    "remote_addr": "hostname",
    "port": "port",
    "remote_user": "user",
    "private_key_file": "identityfile",
    "host_key_checking": "stricthostkeychecking",
    "proxy_command": "proxycommand",
}
NOT_THE_WAY = ("inventory_hostname", "ansible_ssh_timeout", "ansible_paramiko_timeout")  # Ansible's own runs
BY_PARAMIKO: JsonObject = yaml.safe_load(paramiko_ssh.DOCUMENTATION)["options"]
VALUES = {
    "remote_addr": st.sampled_from(["192.0.2.11", "2001:db8::11", "kvm.example.com"]),
    "port": st.sampled_from([22, 2222]),
    "remote_user": st.sampled_from(["root", "deploy"]),
    "private_key_file": st.sampled_from(["/keys/lab", "/a b/key"]),
    "host_key_checking": st.booleans(),
    "proxy_command": st.sampled_from(["ssh -W %h:%p jump", "nc -X connect -x proxy:3128 %h %p", "x --at 5%x %h"]),
}
SPELLED = {entry["name"]: VALUES[name] for name in PARAMIKO for entry in BY_PARAMIKO[name]["vars"]}


@settings(max_examples=part_of(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.fixed_dictionaries(
        {"ansible_host": VALUES["remote_addr"]},
        optional={name: values for name, values in SPELLED.items() if name not in ("ansible_host", *NOT_THE_WAY)},
    ),
    st.sampled_from(["paramiko", "paramiko_ssh", "ansible.builtin.paramiko_ssh"]),
)
def test_ssh_reads_the_file_as_paramiko_is_told(tmp_path: pathlib.Path, variables: JsonObject, connection: str) -> None:
    plugin = connection_loader.get("paramiko_ssh", PlayContext())
    plugin.set_options(var_options=variables)
    way = way_in({**variables, "ansible_connection": connection})
    assert way.dropped == ()
    read = dict(line.split(" ", 1) for line in as_config(way, tmp_path / "config"))
    for option, word in PARAMIKO.items():
        value = plugin.get_option(option)
        if word == "stricthostkeychecking":
            assert (read[word] == "false") == (not value)
        elif value not in (None, ""):
            assert read[word].replace("%%", "%") == str(value)


@pytest.mark.parametrize(
    "name", sorted({entry["name"] for option in BY_PARAMIKO.values() for entry in option.get("vars", ())})
)
def test_no_variable_of_paramikos_is_lost(name: str) -> None:
    """Each is carried over, or named as one that is not."""
    value = "2222" if name.endswith("port") else "no" if name.endswith(("checking", "algorithms")) else "x"
    way = way_in({"ansible_connection": "paramiko", name: value})
    assert (way != way_in({"ansible_connection": "paramiko"})) == (name not in NOT_THE_WAY)


def test_a_file_that_ansible_names_is_included(tmp_path: pathlib.Path) -> None:
    site = tmp_path / "site config"
    site.write_text("Host 192.0.2.*\n    User site\nHost *\n    Port 2244\n")
    way = way_in({"ansible_host": "192.0.2.11", "ansible_ssh_common_args": f"-F '{site}'"})
    assert "port 2244" in as_config(way, tmp_path / "config")


@pytest.mark.parametrize("mode", [0o666, 0o602])
def test_a_file_that_others_may_write_to_is_named(tmp_path: pathlib.Path, mode: int) -> None:
    """Ansible's command takes it; a file that includes it says nothing about any host."""
    site = tmp_path / "site"
    site.write_text("Host *\n    Port 2244\n")
    site.chmod(mode)
    way = way_in({"ansible_host": "192.0.2.11", "ansible_ssh_common_args": f"-F {site} -p 2245"})
    assert way.dropped == (f"-F {site} (another user may write to it)",)
    assert "port 2245" in as_config(way, tmp_path / "config")


@pytest.mark.parametrize("directory", ["keys", "feature%2Fvpn", "a b", "it's"])
@pytest.mark.parametrize(
    "variables",
    [
        {"ansible_private_key_file": "lab/key"},
        {"ansible_ssh_private_key_file": "./lab/key"},
        {"ansible_ssh_common_args": "-i lab/key"},
        {"ansible_ssh_extra_args": "-o IdentityFile=lab/key"},
        {"ansible_ssh_args": "-o 'IdentityFile \"lab/key\"'"},
    ],
)
def test_a_file_is_found_from_every_directory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, directory: str, variables: JsonObject
) -> None:
    key = tmp_path / directory / "lab" / "key"
    key.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / directory)
    way = way_in({"ansible_host": "192.0.2.11", **variables})
    (line,) = [line for line in as_config(way, tmp_path / "config") if line.startswith("identityfile")]
    assert os.path.normpath(line.partition(" ")[2].replace("%%", "%")) == str(key)


@pytest.mark.parametrize("flag", ["-L 1:h:2", "-D 1080", "-R 1:h:2", "-W h:1", "-S /run/x", "-E /log", "-w 0"])
def test_what_cannot_be_carried_over_is_named(flag: str) -> None:
    assert way_in({"ansible_ssh_common_args": f"-4 {flag}"}).dropped == (flag,)


def test_a_provider_of_keys_is_carried_over(tmp_path: pathlib.Path) -> None:
    """Ansible gives it to ssh where sshpass asks for its PIN, so that its command cannot be compared."""
    way = way_in({"ansible_ssh_pkcs11_provider": "/usr/lib/my tokens/p.so"})
    assert "pkcs11provider /usr/lib/my tokens/p.so" in as_config(way, tmp_path / "config")


@pytest.mark.parametrize("name", WITHOUT_OPTION)
def test_secrets_are_named_and_not_carried_over(name: str) -> None:
    assert way_in({"ansible_host": "192.0.2.11", name: "secret"}) == WayIn(
        (("HostName", "192.0.2.11"),), dropped=(name,)
    )


@pytest.mark.parametrize("connection", ["ssh", "smart", "ansible.builtin.ssh", "ansible.legacy.ssh", "paramiko"])
def test_connections_by_ssh_are_ssh(connection: str) -> None:
    assert way_in({"ansible_connection": connection}) == WayIn()


def test_a_connection_that_is_not_ssh_is_named() -> None:
    way = way_in({"ansible_connection": "community.docker.docker", "ansible_host": "hv1"})
    assert way.dropped == ("ansible_connection=community.docker.docker",)


@pytest.mark.parametrize("connection", ["local", "ansible.builtin.local", "ansible.legacy.local"])
def test_a_local_host_has_no_options(connection: str) -> None:
    assert way_in({"ansible_connection": connection, "ansible_host": "192.0.2.1"}) == WayIn(local=True)


@settings(max_examples=part_of(60))
@given(
    name=st.sampled_from(sorted(set(NAMES) - {"ansible_connection"})),
    text=st.lists(st.sampled_from(["a", " ", *"'\"\\%=\n\r\x85", "-o ", "X=", "Host *", "Match all"])).map("".join),
)
def test_no_value_of_one_host_is_about_others(name: str, text: str) -> None:
    """Neither a line of its own, nor an error that leaves all hosts without a file: what is left out is named."""
    way = way_in({"ansible_host": "192.0.2.11", name: text})
    for option, value in way.options:
        assert len(f"{option} {value}".splitlines()) == 1
        assert option.lower() not in ("host", "match")


def test_arguments_that_ansible_cannot_split_are_named() -> None:
    way = way_in({"ansible_host": "192.0.2.11", "ansible_ssh_common_args": "-o 'ProxyJump=a"})
    assert way == WayIn((("HostName", "192.0.2.11"),), dropped=("ansible_ssh_common_args (No closing quotation)",))
