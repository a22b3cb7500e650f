# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fence agents: which may be used, what they are told, and that what they do not take is told before they run."""

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._fencing import agents

METADATA = """<?xml version="1.0" ?>
<resource-agent name="fence_pdu">
<parameters>
  <parameter name="action" required="1"><content type="string" default="reboot"/></parameter>
  <parameter name="ip" required="0" obsoletes="ipaddr"><content type="string"/></parameter>
  <parameter name="ipaddr" required="0" deprecated="1"><content type="string"/></parameter>
  <parameter name="login" required="1" deprecated="1"><content type="string"/></parameter>
  <parameter name="username" required="1" obsoletes="login"><content type="string"/></parameter>
  <parameter name="password" required="0" obsoletes="passwd"><content type="string"/></parameter>
  <parameter name="plug" required="1" obsoletes="port"><content type="string"/></parameter>
  <parameter name="port" required="1" deprecated="1"><content type="string"/></parameter>
  <parameter name="ssl_insecure" required="0"><content type="boolean"/></parameter>
</parameters>
<actions><action name="on"/><action name="off"/><action name="status"/><action name="monitor"/></actions>
</resource-agent>
"""
AGENT = agents.agent_of("fence_pdu", METADATA)
ENOUGH = {"ip": "192.0.2.1", "username": "fencing", "password": "secret", "plug": "7"}


def complaints(**parameters: t.Any) -> str:
    with pytest.raises(NovaliteError) as refused:
        agents.check_parameters("hv3", AGENT, parameters)
    return str(refused.value)


def test_what_the_agent_takes_is_taken() -> None:
    agents.check_parameters("hv3", AGENT, ENOUGH)
    agents.check_parameters("hv3", AGENT, {"ipaddr": "192.0.2.1", "login": "fencing", "port": 7, "ssl-insecure": True})


def test_all_that_is_wrong_is_told_at_once_and_no_value_is() -> None:
    words = complaints(ip="192.0.2.1", user_name="fencing", password="secret", ssl_insecure="perhaps")
    assert words == (
        "novalite_fence_parameters of hv3: fence_pdu does not take user_name: did you mean username?; ssl_insecure is "
        "true or false; fence_pdu needs plug; fence_pdu needs username"
    )
    assert complaints(**{**ENOUGH, "ip": ["192.0.2.1"]}).endswith("ip is a text or a number, in one line")
    assert "fence_pdu needs ip" in complaints(username="fencing", plug="7")


@pytest.mark.parametrize("name", ["action", "method", "verbose", "debug_file", "debug-file", "nodename"])
def test_what_is_not_the_inventorys_is_refused(name: str) -> None:
    assert f"parameters of hv3: {name} " in complaints(**{**ENOUGH, name: "1"})


def test_a_value_cannot_say_more_than_itself() -> None:
    assert "password is a text or a number, in one line" in complaints(**{**ENOUGH, "password": "x\naction=on"})
    assert "twice" in complaints(**{**ENOUGH, "ssl_insecure": True, "ssl-insecure": False})


@pytest.mark.parametrize("value", [False, "false", "no", 0, "off"])
def test_a_flag_that_is_false_is_left_out(value: t.Any) -> None:
    """For agents look whether it is there: `ssl_insecure=0` checks no certificate."""
    assert "ssl_insecure" not in agents.standard_input(AGENT, {**ENOUGH, "ssl_insecure": value}, "status")
    assert "\nssl_insecure=1\n" in agents.standard_input(AGENT, {**ENOUGH, "ssl-insecure": "true"}, "status")


def read_back(text: str) -> dict[str, str]:
    """Read what an agent is told as fencing.py of fence-agents 4.12 does."""
    values = {}
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            name, value = f"{line}=".split("=", 1)
            values[name] = re.sub('^"(.*)"$', "\\1", value[:-1])
    return values


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=20).filter(str.isprintable))
def test_a_password_arrives_as_it_is(password: str) -> None:
    text = agents.standard_input(AGENT, {**ENOUGH, "password": password}, "off")
    assert read_back(text) == {"action": "off", **ENOUGH, "password": password}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "hv3 has no fence agent, so nothing is switched off"),
        ("fence_dummy", "switches nothing off"),
        ("fence_ack_manual", "switches nothing off"),
        ("ipmilan", "is not the name of a fence agent"),
        ("fence_../../bin/sh", "is not the name of a fence agent"),
        ("fence_redfish --help", "is not the name of a fence agent"),
        ("", "is not the name of a fence agent"),
    ],
)
def test_an_agent_that_proves_nothing_is_refused(name: str, words: str) -> None:
    with pytest.raises(NovaliteError, match=re.escape(words)):
        agents.check_name("hv3", name)


@pytest.mark.parametrize("action", ["off", "status", "monitor"])
def test_an_agent_that_cannot_be_asked_afterwards_is_refused(action: str) -> None:
    with pytest.raises(NovaliteError, match=f"fence_pdu cannot do {action}: only an agent"):
        agents.agent_of("fence_pdu", METADATA.replace(f'<action name="{action}"/>', ""))


@pytest.mark.parametrize("text", ["", "usage: fence_pdu", "<resource-agent>", '<!DOCTYPE x [<!ENTITY a "b">]><x/>'])
def test_an_agent_that_does_not_describe_itself_is_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match="fence_pdu does not describe itself"):
        agents.agent_of("fence_pdu", text)


def test_words_of_an_agent_have_no_secrets() -> None:
    parameters = {**ENOUGH, "password": "hunter2", "plug": "plug7"}
    words = "login of fencing at 192.0.2.1 plug7 with hunter2 failed: hunter2"
    assert agents.without_secrets(words, parameters) == "login of fencing at 192.0.2.1 plug7 with *** failed: ***"
