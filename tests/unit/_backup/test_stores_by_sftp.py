# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores on another host: how restic reaches them, and that nobody waits for one that fell silent."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup.store import Restic, ssh_to
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.command import CommandError

SFTP_SERVER = "/usr/lib/openssh/sftp-server"
AS_SSH_READS = {
    "sftp:backup@vault.example.org:/srv/store": ("backup", "vault.example.org", "22"),
    "sftp:Vault:store": ("root", "vault", "22"),
    "sftp://backup@vault:2222//srv/store": ("backup", "vault", "2222"),
    "sftp://vault/srv/store": ("root", "vault", "22"),
    "sftp://backup@[fd20::7]:2222//srv/store": ("backup", "fd20::7", "2222"),
    "sftp://backup@[fd20::7]//srv/store": ("backup", "fd20::7", "22"),
}


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs ssh")
@pytest.mark.parametrize("place", AS_SSH_READS)
def test_ssh_reads_who_logs_in_where_and_ends_with_a_silent_host(place: str) -> None:
    ssh, *words = ssh_to(place)
    command = [ssh, "-F", "none", "-G", *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    options = dict(line.split(" ", 1) for line in said)
    assert (options["user"], options["hostname"], options["port"]) == AS_SSH_READS[place]
    assert int(options["serveraliveinterval"]) * int(options["serveralivecountmax"]) == 60
    assert words[-1] == "sftp" and "-s" in words


def test_a_place_gives_ssh_no_options() -> None:
    assert ssh_to("sftp:-oProxyCommand=id:/srv/store")[-3:] == ["--", "-oProxyCommand=id", "sftp"]


@pytest.mark.skipif(
    shutil.which("restic") is None or not os.path.exists(SFTP_SERVER), reason="needs restic and openssh-sftp-server"
)
def test_restic_goes_by_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh, words = tmp_path / "bin/ssh", tmp_path / "words"  # instead of ssh: the other host's end of it
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{words}\nexec {SFTP_SERVER}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    place = f"sftp://backup@vault:2222/{tmp_path / 'far'}"
    store = Restic(place, "key", str(tmp_path / "cache"))
    store.prepare()
    name = store.put({"disk": "vda"}, lambda out: out.write(b"block"))
    with store.get(name) as stream:
        assert stream.read() == b"block"
    assert words.read_text().splitlines() == ssh_to(place)[1:]
    ssh.write_text("#!/bin/sh\necho no route to vault >&2\nexit 255\n")
    with pytest.raises((CommandError, NovaliteError)):
        store.list()
