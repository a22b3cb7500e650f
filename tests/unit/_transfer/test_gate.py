"""The gate of a move: a real sshd behind a real socket. What the host's own sshd runs for the login is run here as that
user, without the ssh session around it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _relay
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import authorized_keys
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, gate
from tests.support.patience import GENEROUS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and other users")
MOVE = "0d2f9a3e-7a39-4f57-9a43-1f0a3c1f6a55"
UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
LOGIN, STRANGER = "nobody", "daemon"


def _greet(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # nobody came
        connection, _address = listener.accept()
        with connection:
            connection.sendall(b"hello")


class Host:
    """A host with a host key and a key of a move's source, in a directory that everybody may pass through."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.gate = directory / "gate"
        self.staging = directory / "staging"
        self.staging.mkdir(mode=0o700)
        for name in ("host", "key", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)

    def open(self, options: str, sockets: bool = False) -> None:
        key = " ".join((self.directory / "key.pub").read_text().split()[:2])
        gate.open_gate(str(self.gate), LOGIN, f"{options} {key} mark", sockets, [str(self.directory / "host")])

    def command(self, *arguments: str, user: str = LOGIN, key: str = "key") -> list[str]:
        relay = ["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", "-IS", "-c", _relay.TO_PATH]
        proxy = " ".join(f"'{word}'" for word in [*relay, gate.path_of(str(self.gate))])
        return [
            "ssh",
            "-F",
            "/dev/null",
            "-T",
            "-i",
            str(self.directory / key),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "IdentityAgent=none",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
            "-o",
            f"ProxyCommand={proxy}",
            "-o",
            "ExitOnForwardFailure=yes",
            "-l",
            "root",
            *arguments,
        ]

    def run(self, *arguments: str, stdin: bytes = b"", **who: str) -> subprocess.CompletedProcess[bytes]:
        command = self.command(*arguments, **who)
        return subprocess.run(command, input=stdin, capture_output=True, timeout=GENEROUS, check=False)

    def reach(self, tmp_path: pathlib.Path) -> bytes:
        """Return what a socket of the host has to say through the gate, if it is reached."""
        there, here = str(self.directory / "there"), str(tmp_path / "here")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(there)
            listener.listen()
            threading.Thread(target=_greet, args=[listener], daemon=True).start()
            with subprocess.Popen(self.command("-N", "-L", f"{here}:{there}", "destination")) as tunnel:
                deadline = time.monotonic() + GENEROUS
                while not os.path.exists(here) and time.monotonic() < deadline:
                    time.sleep(0.05)
                try:
                    with socket.socket(socket.AF_UNIX) as client:
                        client.settimeout(30)
                        client.connect(here)
                        return client.recv(5)
                finally:
                    tunnel.kill()
                    listener.shutdown(socket.SHUT_RDWR)

    def processes(self, name: str) -> list[str]:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if str(self.directory) in line and name in line]


@pytest.fixture
def host() -> t.Iterator[Host]:
    os.makedirs("/run/sshd", exist_ok=True)  # where sshd wants it, on a machine that has not started it
    directory = pathlib.Path(tempfile.mkdtemp(prefix="novalite-gate-", dir="/run"))
    directory.chmod(0o711)
    made = Host(directory)
    try:
        yield made
    finally:
        gate.close_gate(str(made.gate))
        shutil.rmtree(directory)


def archive(tmp_path: pathlib.Path) -> bytes:
    (tmp_path / "disk").write_text("what the guest wrote")
    tar = ["tar", "--create", "--file=-", f"--directory={tmp_path}", "disk"]
    return subprocess.run(tar, capture_output=True, check=True).stdout


def test_files_come_in_and_nothing_else_is_run(host: Host, tmp_path: pathlib.Path) -> None:
    host.open(f'restrict,command="tar --extract --file=- --directory={host.staging}"')
    sent = host.run("destination", "touch", str(host.directory / "elsewhere"), stdin=archive(tmp_path))
    assert (sent.returncode, sent.stderr) == (0, b"")
    assert (host.staging / "disk").read_text() == "what the guest wrote"
    assert not (host.directory / "elsewhere").exists()
    assert host.reach(tmp_path) == b""


def test_nobody_else_comes_in(host: Host) -> None:
    host.open('restrict,command="echo in"')
    assert host.run("destination").stdout == b"in\n"
    assert host.run("destination", key="other").returncode == 255
    assert host.run("destination", user=STRANGER).returncode == 255
    assert host.run("destination", user="root").returncode == 255, "whom the socket's mode does not keep out"
    mine = [path.name for path in host.gate.iterdir() if path.stat().st_uid != 0]
    assert mine == ["socket"]
    modes = {path.name: path.stat().st_mode & 0o777 for path in host.gate.iterdir()}
    assert set(modes.values()) == {0o600}, modes


def test_sockets_are_reached(host: Host, tmp_path: pathlib.Path) -> None:
    host.open('restrict,command="false"')
    host.open('restrict,port-forwarding,permitlisten="127.0.0.1:1",command="/bin/false"', sockets=True)
    assert host.reach(tmp_path) == b"hello"


def test_nothing_is_left_when_it_closes_under_a_session(host: Host) -> None:
    host.open(f'restrict,command="tar --extract --file=- --directory={host.staging}"')
    with subprocess.Popen(host.command("destination"), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        deadline = time.monotonic() + GENEROUS
        while not host.processes("tar") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert host.processes("tar")
        assert gate.close_gate(str(host.gate))
        assert session.wait(GENEROUS) == 255
    deadline = time.monotonic() + GENEROUS
    while host.processes("tar") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert host.processes("") == []
    assert [path.name for path in host.directory.iterdir() if "gate" in path.name] == []
    assert not gate.close_gate(str(host.gate))


def test_a_gate_that_nobody_closes_goes_by_itself(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "IDLE", 0.5)
    host.open('restrict,command="echo in"')
    deadline = time.monotonic() + GENEROUS
    while host.gate.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not host.gate.exists()


def test_a_home_leads_root_nowhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = authorized_keys.account(LOGIN)
    home = pathlib.Path(tempfile.mkdtemp(prefix="novalite-home-", dir="/run"))
    roots = pathlib.Path(tempfile.mkdtemp(prefix="novalite-root-", dir="/run"))
    try:
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        entry = type(nobody)((*nobody[:5], str(home), nobody.pw_shell))
        monkeypatch.setattr(authorized_keys, "account", lambda name: entry)
        assert authorized_keys.change(LOGIN, lambda lines: [*lines, "mine"])
        path = home / ".ssh" / "authorized_keys"
        assert (path.read_text(), path.stat().st_uid, path.stat().st_mode & 0o777) == ("mine\n", nobody.pw_uid, 0o600)
        assert not authorized_keys.change(LOGIN, lambda lines: lines)
        kept = home / "keys of all hosts"
        kept.write_text("others\n")
        os.chown(kept, nobody.pw_uid, nobody.pw_gid)
        os.chmod(kept, 0o640)
        path.unlink()
        path.symlink_to(kept)
        assert authorized_keys.change(LOGIN, lambda lines: [*lines, "mine"])
        assert path.is_symlink() and (kept.read_text(), kept.stat().st_mode & 0o777) == ("others\nmine\n", 0o640)
        assert authorized_keys.change(LOGIN, lambda lines: lines[:1])
        others = roots / "keys"  # in a directory that the user may not write to
        others.write_text("others\n")
        path.unlink()
        path.symlink_to(others)
        with pytest.raises(NovaliteError, match="Permission denied"):
            authorized_keys.change(LOGIN, lambda lines: [*lines, "mine"])
        assert path.is_symlink() and others.read_text() == "others\n" and others.stat().st_uid == 0
        others.unlink()
        path.unlink()
        path.write_text("others\n")  # root's, as `sudo cp` leaves it: the user may write here, and give root nothing
        assert authorized_keys.change(LOGIN, lambda lines: [*lines, "mine"])
        assert (path.read_text(), path.stat().st_uid) == ("others\nmine\n", nobody.pw_uid)
        shutil.rmtree(home / ".ssh")
        (home / ".ssh").symlink_to(roots)
        with pytest.raises(NovaliteError, match="Permission denied"):
            authorized_keys.change(LOGIN, lambda lines: [*lines, "mine"])
        assert list(roots.iterdir()) == []
    finally:
        shutil.rmtree(home)
        shutil.rmtree(roots)


def test_the_source_goes_through_the_login_where_it_is_not_root(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "RUN_DIR", str(tmp_path))
    os.mkdir(tmp_path / MOVE)
    keys = (f"ssh-ed25519 {'A' * 68}",)
    assert channel.ssh(MOVE, channel.Door("192.0.2.12", keys))[-5:] == ["-p", "22", "-l", "root", "192.0.2.12"]
    through = channel.ssh(MOVE, channel.Door("192.0.2.12", keys, "deploy"))
    assert through[-3:] == ["-l", "root", "destination"]
    assert next(word for word in through if word.startswith("ProxyCommand=")).endswith(" -l deploy 192.0.2.12")
    with pytest.raises(NovaliteError, match="is not a user's name"):
        channel.ssh(MOVE, channel.Door("192.0.2.12", keys, "-oProxyCommand=x"))
    with pytest.raises(NovaliteError, match="has let nobody in"):
        channel.doors([{"id": MOVE, "uuid": UUID, "to_host": "hv2", "to_address": "192.0.2.12"}], {})
