# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import pathlib
import struct
import subprocess
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._rules.public_keys import parse_public_key

if t.TYPE_CHECKING:
    from .conftest import Run


def line(kind: str, *fields: bytes, inner: str | None = None, comment: str = "") -> str:
    blob = b"".join(struct.pack(">I", len(field)) + field for field in ((inner or kind).encode(), *fields))
    return f"{kind} {base64.b64encode(blob).decode()} {comment}".strip()


POINT = b"\x04" + b"p" * 64
MODULUS = b"\0" + b"\xff" * 256
ED25519 = line("ssh-ed25519", b"k" * 32, comment="me@example")
GOOD = [
    ED25519,
    line("ssh-rsa", b"\1\0\1", MODULUS),
    line("ecdsa-sha2-nistp256", b"nistp256", POINT),
    line("ecdsa-sha2-nistp521", b"nistp521", b"\x04" + b"p" * 132),
    line("sk-ssh-ed25519@openssh.com", b"k" * 32, b"ssh:"),
    line("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", POINT, b"ssh:"),
]
BAD = {
    "two keys": (f"{ED25519}\n{ED25519}", "more than one line"),
    "a return": (f"{ED25519}\r{ED25519}", "more than one line"),
    "a null": (f"{ED25519}\0", "UTF-16"),
    "a bell": (f"{ED25519}\a", "control character"),
    "a line separator": (f"{ED25519}\u2028{ED25519}", "control character"),
    "an option": (f'command="rm -rf /" {ED25519}', "no options before them"),
    "nothing": ("", "the types are"),
    "a private key": ("-----BEGIN OPENSSH PRIVATE KEY-----", "the .pub file"),
    "a lone type": ("ssh-ed25519", "not a key of that type"),
    "no base64": ("ssh-ed25519 AAAA$$$$", "not a key of that type"),
    "a cut": (ED25519.split()[0] + " " + ED25519.split()[1][:-12], "not a key of that type"),
    "another type inside": (line("ssh-ed25519", b"k" * 32, inner="ssh-rsa"), "not a key of that type"),
    "a short point": (line("ssh-ed25519", b"k" * 31), "not a complete ssh-ed25519 key"),
    "something more": (line("ssh-ed25519", b"k" * 32, b"more"), "not a complete ssh-ed25519 key"),
    "another curve": (line("ecdsa-sha2-nistp256", b"nistp384", POINT), "not a complete ecdsa"),
    "a short RSA key": (line("ssh-rsa", b"\1\0\1", b"\0" + b"\xff" * 128), "1024 bits, and 2048 is the least"),
    "DSA": (line("ssh-dss", b"p"), "the types are"),
    "a certificate": (line("ssh-ed25519-cert-v01@openssh.com", b"k"), "the types are"),
    "too much": (f"{ED25519} {'x' * 20000}", "16384 is the limit"),
}


@pytest.mark.parametrize("text", GOOD, ids=lambda text: text.split()[0])
def test_a_key_of_each_type_is_taken_as_it_is(text: str) -> None:
    assert parse_public_key(f"  {text}\n").text == text


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_not_exactly_one_key_is_refused(text: str, message: str) -> None:
    with pytest.raises(NovaliteError, match=message) as refused:
        parse_public_key(text)
    assert "AAAA" not in str(refused.value)


@given(st.sampled_from(GOOD), st.text(), st.integers(0, 400))
def test_whatever_is_written_into_a_key_no_second_line_comes_out(text: str, insertion: str, position: int) -> None:
    try:
        key = parse_public_key(text[:position] + insertion + text[position:])
    except NovaliteError:
        return
    assert key.text.splitlines() == [key.text]
    assert key.text.split(" ")[0] == key.type


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_the_fingerprint_is_that_of_ssh_keygen(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-E", "md5", "-f", path], check=True, capture_output=True, text=True
    ).stdout.split()
    assert f"MD5:{parse_public_key(path.with_suffix('.pub').read_text()).fingerprint}" == shown[1]


def test_a_final_line_break_stays(run: Run) -> None:
    """Whoever compares what was sent with what is there, as Terraform does, sees no difference."""
    made = run("keypair", keypairs=[{"name": "test", "public_key": ED25519 + "\n"}])
    assert made["keypairs"][0]["public_key"] == ED25519 + "\n"
    assert not run("keypair", keypairs=[{"name": "test", "public_key": ED25519}])["changed"]


def test_a_key_pair_is_made_replaced_and_removed(run: Run) -> None:
    made = run("keypair", keypairs=[{"name": "test", "public_key": ED25519}])
    again = run("keypair", keypairs=[{"name": "test", "public_key": ED25519 + "\n"}])
    assert made["changed"] and not again["changed"]
    assert made["keypairs"][0]["public_key"] == again["keypairs"][0]["public_key"] == ED25519
    replaced = run("keypair", keypairs=[{"name": "test", "public_key": GOOD[2]}])
    assert replaced["diff"]["before"]["keypairs"]["test"]["public_key"] == ED25519
    assert replaced["diff"]["after"]["keypairs"]["test"]["public_key"] == GOOD[2]
    gone = run("keypair", keypairs=[{"name": "test"}], state="absent")
    assert gone["changed"] and gone["keypairs"] == []
    assert not run("keypair", keypairs=[{"name": "test"}], state="absent")["changed"]


def test_a_new_key_pair_needs_its_key(run: Run) -> None:
    with pytest.raises(NovaliteError, match="'test' does not exist yet: give its public_key"):
        run("keypair", keypairs=[{"name": "test"}])


def test_the_key_pairs_of_a_project_are_limited(run: Run) -> None:
    run("project", projects=[{"name": "demo", "quotas": {"key_pairs": 2}}])
    keys = [{"name": name, "public_key": ED25519} for name in "abc"]
    with pytest.raises(QuotaError, match="key_pairs: 3 wanted, 2 allowed"):
        run("keypair", keypairs=keys)
    assert run("keypair", keypairs=keys[:2])["changed"]
    with pytest.raises(QuotaError):
        run("keypair", keypairs=keys[2:])
