"""The ssh_config, read back by ssh itself."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _ssh
from ansible_collections.novalite.cloud.plugins.module_utils._relay import TO_ADDRESS
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import REACH, console_command
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.way_in import WayIn, way_in
from tests.support.patience import GENEROUS
from tests.support.ways_in import write_ways

REACH_FILE = pathlib.Path(next(iter(_ssh.__path__))).parents[2] / "roles/compute_node/files/novalite-reach"

HYPERVISORS = {
    "hv1": way_in(
        {
            "ansible_host": "192.0.2.11",
            "ansible_port": 2222,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": "/keys/lab",
            "ansible_ssh_common_args": "-o UserKnownHostsFile=/lab/known -oStrictHostKeyChecking=yes -o ControlPath=/x",
        }
    )
}


def guest(name: str, uuid: str, ip: str = "10.20.0.5", project: str = "demo") -> t.Any:
    nic = {"ip": ip, "network": {"bridge": "br100", "isolated": False}}
    about = {"id": int(uuid.partition("-")[2]), "project": {"name": project}, "image": {"properties": {}}}
    return {"name": name, "uuid": uuid, "host": "hv1", "nics": [nic], **about}


def effective(path: pathlib.Path, host: str) -> dict[str, str]:
    """Return what `ssh` itself makes of the file for `host`."""
    done = subprocess.run(["ssh", "-G", "-F", str(path), host], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("alias", ["web", "web.demo", "u-1", "10.20.0.5"])
def test_ssh_goes_through_the_compute_host_and_knows_the_guest_by_uuid(tmp_path: pathlib.Path, alias: str) -> None:
    path = tmp_path / "ssh_config"
    write_ways(path, [guest("web", "u-1")], HYPERVISORS, "/home with space/known_hosts", "/keys/test")
    options = effective(path, alias)
    assert options["hostname"] == "10.20.0.5"
    assert options["proxyjump"] == "hv1"
    assert options["hostkeyalias"] == "u-1"
    assert options["userknownhostsfile"] == "/home with space/known_hosts"
    assert options["identityfile"] == "/keys/test"
    assert options["user"] == "root"
    assert effective(path, "hv1")["port"] == "2222"


def test_one_tenants_user_name_leaves_the_others_their_ways_in(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ssh_config"
    hostile: t.Any = {**guest("evil", "u-2", "10.20.0.6"), "image": {"properties": {"os_admin_user": 'a"b'}}}
    text = write_ways(path, [hostile, guest("web", "u-1")], HYPERVISORS)
    assert effective(path, "web")["hostname"] == "10.20.0.5"
    assert "evil" not in text


def test_a_name_is_the_alias_of_the_server_that_had_it_first(tmp_path: pathlib.Path) -> None:
    """Another project takes no name away by calling its own servers the same, in full or not."""
    path = tmp_path / "ssh_config"
    first, twin = guest("web", "u-1"), guest("web", "u-2", "10.20.0.6", "alt")
    in_full = guest("web.demo", "u-3", "10.20.0.7", "alt")
    host = guest("hv1", "u-4", "10.20.0.8", "alt")
    text = write_ways(path, [in_full, twin, host, first], HYPERVISORS)
    assert sorted(write_ways(path, [first, host, twin, in_full], HYPERVISORS)) == sorted(text)
    for alias, address in (
        ("web", "10.20.0.5"),
        ("web.demo", "10.20.0.5"),
        ("web.alt", "10.20.0.6"),
        ("web.demo.alt", "10.20.0.7"),
        ("hv1", "192.0.2.11"),
        ("hv1.alt", "10.20.0.8"),
    ):
        assert effective(path, alias)["hostname"] == address


@pytest.mark.parametrize("project", ["*", "!demo", "a b", "a\nb", "?", '"', "\u6771"])
def test_a_projects_name_is_no_pattern_of_hosts(tmp_path: pathlib.Path, project: str) -> None:
    text = write_ways(tmp_path / "c", [guest("web", "u-1", project=project)], HYPERVISORS)
    assert "Host web u-1 10.20.0.5\n" in text and f"web.{project}" not in text


def test_an_instance_without_host_or_address_is_left_out(tmp_path: pathlib.Path) -> None:
    homeless: t.Any = {**guest("a", "u-1"), "host": None}
    bare: t.Any = {**guest("b", "u-2"), "nics": []}
    assert write_ways(tmp_path / "c", [homeless, bare], HYPERVISORS) == ""


@pytest.mark.parametrize("uid", [0, 2000])
def test_a_guest_of_an_isolated_network_is_reached_from_inside_it(tmp_path: pathlib.Path, uid: int) -> None:
    """Run what ssh would run, with stand-ins for ssh and what root alone may do: it carries both ways to the end."""
    path = tmp_path / "a path" / "ssh_config"
    path.parent.mkdir()
    web = guest("web", "u-1", "127.0.0.1")
    web["nics"][0]["network"] = {"bridge": "br10000", "isolated": True}
    write_ways(path, [web], HYPERVISORS)
    options = effective(path, "web")
    assert "proxyjump" not in options
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for name, text in (
        ("ssh", f'test "$1 $2 $3" = "-F {path} hv1" && exec sh -c "$4"'),
        ("id", f"echo {uid}"),
        ("ip", f'test {uid} = 0 && test "$1 $2 $3" = "netns exec nova-br10000" && shift 3 && exec "$@"'),
        ("sudo", f'test "$1 $2 $3" = "-n {REACH} nova-br10000" && exec python3 -c "{TO_ADDRESS}" "$4" "$5"'),
    ):
        (bin_dir / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_dir / name).chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = options["proxycommand"].replace("%h", "127.0.0.1").replace("%p", str(server.getsockname()[1]))
        relay = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"},
        )
        server.settimeout(10)
        connection, _address = server.accept()
        sent = bytes(range(256)) * 4096
        answer = sent[::-1]

        def serve() -> None:
            with connection, connection.makefile("rb") as stream:
                received.append(stream.read())
                connection.sendall(answer)

        received: list[bytes] = []
        thread = threading.Thread(target=serve)
        thread.start()
        out, _err = relay.communicate(sent, timeout=GENEROUS)
        thread.join()
    assert (received, out, relay.returncode) == ([sent], answer, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nova-br1", "10.20.0.5"],
        ["../../proc/1/ns/net", "10.20.0.5", "22"],
        ["default", "10.20.0.5", "22"],
        ["nova-br1", "example.org", "22"],
        ["nova-br1", "10.20.0.5", "ssh"],
        ["nova-br1", "10.20.0.5", "22", "more"],
    ],
)
def test_what_sudo_may_run_enters_nothing_but_guests_networks(arguments: list[str]) -> None:
    command = [sys.executable, "-IS", str(REACH_FILE), *arguments]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("novalite-reach: ") and refused.stderr.count("\n") == 1


def test_an_address_that_two_networks_use_is_no_alias(tmp_path: pathlib.Path) -> None:
    text = write_ways(tmp_path / "c", [guest("a", "u-1"), guest("b", "u-2")], HYPERVISORS)
    assert "Host a a.demo u-1\n" in text
    assert "Host b b.demo u-2\n" in text


@pytest.mark.parametrize(
    "directory", ["ws/feature%2Fvpn", "a b", 'say "hi"', "back\\slash", "100%", "%h", "#1", "it's", "[ab]*?", "$HOME"]
)
def test_ssh_finds_files_whatever_their_directory_is_called(tmp_path: pathlib.Path, directory: str) -> None:
    home = tmp_path / directory
    home.mkdir(parents=True)
    path = home / "ssh_config"
    write_ways(path, [guest("web", "u-1")], HYPERVISORS, str(home / "known_hosts"), str(home / "key"))
    options = effective(path, "web")  # as ssh reads the file, before it fills in its tokens
    assert options["userknownhostsfile"].replace("%%", "%") == str(home / "known_hosts")
    assert options["identityfile"].replace("%%", "%") == str(home / "key")
    # what ssh makes of them: a token that it does not know ends it
    done = subprocess.run(
        ["ssh", "-v", "-F", path, "-o", "ProxyJump=none", "-o", "ProxyCommand=false", "web"],
        capture_output=True,
        text=True,
        check=False,
    )
    shown = str(home / "key").replace("\\", "\\\\")  # in ssh's own log
    assert f"identity file {shown} type" in done.stderr and "unknown key" not in done.stderr


def test_a_host_without_ssh_is_no_jump(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ssh_config"
    write_ways(path, [guest("web", "u-1")], {"hv1": WayIn(local=True)})
    assert "proxyjump" not in effective(path, "web") and "proxycommand" not in effective(path, "web")
    assert "Host hv1" not in path.read_text()
    assert console_command("hv1", "instance-00000001", str(path), local=True).startswith("sh -c ")


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(
    "domain", ["db$(touch${IFS}pwned)", "a b", "--help", "`id`", "x;y", "it's", 'say "hi"', "\u6771"]
)
def test_the_name_of_an_adopted_domain_is_a_word_and_no_program(
    tmp_path: pathlib.Path, domain: str, local: bool
) -> None:
    for name, text in (
        ("virsh", 'printf "%s\\n" "$@" >"$LOG"'),
        ("sudo", 'exec "$@"'),
        ("ssh", 'for last; do :; done; exec sh -c "$last"'),  # as sshd has the login's shell run it
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    command = console_command("hv1", domain, "/home/ssh_config", local)
    subprocess.run(["sh", "-c", command], env=environment, cwd=tmp_path, check=True)
    assert (tmp_path / "log").read_text().splitlines()[-2:] == ["--", domain]
    assert not (tmp_path / "pwned").exists()
