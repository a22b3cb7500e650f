# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import concurrent.futures
import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils import _secret_file
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.signature import host_key, is_signed, sign

SECRET = b"s" * 32


@given(parts=st.lists(st.text(max_size=20), min_size=3, max_size=3), others=st.lists(st.text(max_size=20), min_size=3))
def test_a_signature_is_for_one_host_one_network_and_one_address(parts: list[str], others: list[str]) -> None:
    host, network, address = "hv1", parts[1], parts[2]
    signed = sign(host_key(SECRET, host), host, network, address)
    clean = "/" not in network + address
    assert is_signed(SECRET, host, network, address, signed) == clean
    if [network, address] != others[1:3]:
        assert not is_signed(SECRET, host, others[1], others[2], signed)
    assert not is_signed(SECRET, "hv2", network, address, signed)
    assert not is_signed(SECRET, others[0], network, address, signed)
    assert not is_signed(b"t" * 32, host, network, address, signed)


def test_parts_do_not_flow_into_each_other() -> None:
    signed = sign(host_key(SECRET, "hv1"), "hv1", "a/b", "c")
    assert not is_signed(SECRET, "hv1", "a", "b/c", signed)


@pytest.mark.parametrize("name", ["", "hv 1", "hv/1", "hv1\n", "hv1\r\nX-A: b", '"', "é", "h" * 256])
def test_a_name_with_no_place_in_a_header(name: str) -> None:
    with pytest.raises(NovaliteError, match="cannot have a metadata proxy"):
        host_key(SECRET, name)
    assert not is_signed(SECRET, name, "n", "a", "0" * 64)


def test_the_secret_is_made_once(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "home" / "metadata.secret")
    assert _secret_file.read_secret(path) is None
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(_secret_file.ensure_secret, [path] * 16))
    assert len(secrets) == 1 and len(secrets.pop()) == 32
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "home") == ["metadata.secret"]


def test_a_secret_that_cannot_be_used(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "metadata.secret"
    path.touch(0o600)
    for text in ("", "xyz", "ab" * 31, "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(NovaliteError, match="secret"):
            _secret_file.ensure_secret(str(path))
    path.write_text("ab" * 32)
    assert _secret_file.ensure_secret(str(path)) == b"\xab" * 32
    path.chmod(0o640)
    with pytest.raises(NovaliteError, match="chmod 600"):
        _secret_file.ensure_secret(str(path))


def test_where_the_secret_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOVALITE_HOME", "/there")
    assert _secret_file.secret_path() == "/there/metadata.secret"
    assert _secret_file.secret_path("/here") == "/here/metadata.secret"
    monkeypatch.delenv("NOVALITE_HOME")
    assert _secret_file.secret_path() == "/var/lib/novalite/metadata.secret"
