# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of people: every script and its blanks is taken, and what commands a terminal or ends a line is not."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain, without_controls
from ansible_collections.novalite.cloud.plugins.module_utils._rules.guest_requests import checked
from ansible_collections.novalite.cloud.plugins.module_utils._rules.public_keys import parse_public_key
from ansible_collections.novalite.cloud.plugins.module_utils._rules.records import check_text

BLANKS = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Zs"]
CONTROLS = [chr(code) for code in range(0x100) if unicodedata.category(chr(code)) == "Cc"]
BREAKERS = [*CONTROLS, "\u2028", "\u2029", "\ud800", "\udcff", "\u202e", "\u2066", "\uffff"]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # joined by U+200D


@pytest.mark.parametrize("blank", BLANKS, ids=lambda blank: f"U+{ord(blank):04X}")
def test_a_blank_of_any_script_may_stand_in_a_text(blank: str) -> None:
    text = f"me{blank}at{blank}home"
    assert check_text("name", text) == text
    assert parse_public_key(f"{KEY} {text}").text == f"{KEY} {text}"
    assert str(NovaliteError(f"{text!s} is not there")) == f"{text} is not there"
    assert checked("web", {"files": [{"path": f"/etc/{text}", "content": ""}]}).files == ((f"/etc/{text}", ""),)


@pytest.mark.parametrize(
    "text", [FAMILY, "\u6771\u4eac\u3000\u99c5", "na\u00efve \u00e9t\u00e9", "\u0645\u0646\u0632\u0644"]
)
def test_a_text_of_any_script_is_taken(text: str) -> None:
    assert check_text("name", text) == without_controls(text) == text


@pytest.mark.parametrize("breaker", BREAKERS, ids=lambda char: f"U+{ord(char):04X}")
def test_what_ends_a_line_or_commands_a_terminal_is_refused(breaker: str) -> None:
    text = f"me{breaker}home"
    with pytest.raises(NovaliteError, match="control character"):
        check_text("name", text)
    with pytest.raises(NovaliteError, match="control characters"):
        checked("web", {"files": [{"path": f"/etc/{text}", "content": ""}]})
    if breaker != "\t":  # a blank in a key's line, and in its comment
        with pytest.raises(NovaliteError, match="the public key is not usable"):
            parse_public_key(f"{KEY} {text}")
    assert without_controls(text) == "me?home"


@given(st.text())
def test_plain_text_is_one_line_and_survives_xml(text: str) -> None:
    shown = without_controls(text)
    assert is_plain(shown) and len(shown.splitlines()) <= 1
    assert is_plain(text) == (shown == text)
    element = ElementTree.Element("name")
    element.text = shown
    assert (ElementTree.fromstring(ElementTree.tostring(element)).text or "") == shown


@given(st.text(" \t", min_size=1), st.text(" \t", min_size=1), st.text().map(without_controls))
def test_a_key_may_have_any_blanks_and_any_comment(first: str, second: str, comment: str) -> None:
    kind, encoded = KEY.split()
    key = parse_public_key(f"{kind}{first}{encoded}{second}{comment}\r\n")
    words = key.text.split(" ", 2)
    assert words[:2] == [kind, encoded] and "".join(words[2:]) == comment.strip()


def test_ssh_keygen_takes_the_same_blanks() -> None:
    kind, encoded = KEY.split()
    for line in (f"{kind}\t{encoded}\tme", f"{kind} \t {encoded} \u3000me"):
        shown = subprocess.run(["ssh-keygen", "-l", "-f", "-"], input=line.encode(), capture_output=True, check=True)
        assert b"ED25519" in shown.stdout
        parse_public_key(line)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (f"{KEY} me\n".encode("utf-8-sig"), "byte order mark"),
        (f"{KEY} me\r\n".encode("utf-16"), "UTF-16"),
        (f"{KEY} me\r\n".encode("utf-16-le"), "UTF-16"),
        (f"{KEY} me\r\n".encode("utf-16-be"), "UTF-16"),
    ],
)
def test_a_file_in_another_encoding_is_called_so(data: bytes, message: str) -> None:
    # as Ansible's lookup of files reads it
    with pytest.raises(NovaliteError, match=message):
        parse_public_key(data.decode("utf-8", "surrogateescape"))
