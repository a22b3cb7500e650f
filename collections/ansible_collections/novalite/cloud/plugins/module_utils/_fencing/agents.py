# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fence agents of ClusterLabs: which may be used, and whether a host's parameters are what its agent takes.

An agent warns of a parameter that it does not know, and goes on without it: a misspelt plug then switches another host
off, or none. What an agent takes is in its own metadata, and compared before it is run.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._json import JsonMapping

NONE = "none"
NAME = re.compile(r"fence_[a-z0-9_]+")
# They prove nothing: the first ones switch nothing off (and fence_dummy says "already off" of a host that runs), the
# last one takes a person's word, which `novalite host confirm-dead` records by name
NO_PROOF = ("fence_dummy", "fence_heuristics_ping", "fence_ack_manual")
# What is ours to say, and what writes secrets to places where they do not belong
OURS = ("action", "method", "nodename", "stonith_status_sleep")
TALKATIVE = ("debug", "debug_file", "verbose", "verbose_level", "quiet", "version", "help")
# Values that are told with an agent's last words; others are taken for secrets there
SHOWN = ("ip", "ipaddr", "ipport", "plug", "port", "username", "login", "redfish_uri", "systems_uri")
SHORTEST_SECRET = 4  # characters: a shorter value is in too many words


@dataclasses.dataclass(frozen=True)
class Parameter:
    """Parameter that an agent takes. `is_flag` says that it takes no value: to be there is to be true."""

    name: str
    required: bool = False
    is_flag: bool = False
    obsoletes: str = ""


@dataclasses.dataclass(frozen=True)
class Agent:
    """Agent with what its metadata says."""

    name: str
    parameters: tuple[Parameter, ...]
    actions: frozenset[str]


def check_name(host: str, name: str) -> None:
    """Raise NovaliteError unless `name` is one of an agent that can prove the death of `host`."""
    if name == NONE:
        raise NovaliteError(
            f"{host} has no fence agent, so nothing is switched off: set novalite_fence_agent in the inventory, or run "
            f"novalite host confirm-dead {host} once you have seen that it is dead"
        )
    if not NAME.fullmatch(name):
        raise NovaliteError(f"'{name}' is not the name of a fence agent: they are called fence_ipmilan, fence_redfish")
    if name in NO_PROOF:
        raise NovaliteError(f"{name} switches nothing off, so it proves no death: choose the agent of the power supply")


def agent_of(name: str, metadata: str) -> Agent:
    """Return the agent `name` as its own `metadata`, XML, describes it. Raises NovaliteError."""
    try:
        if "<!DOCTYPE" in metadata or "<!ENTITY" in metadata:
            raise ValueError("it has entities")
        root = ElementTree.fromstring(metadata.strip())
    except (ElementTree.ParseError, ValueError) as error:
        raise NovaliteError(f"{name} does not describe itself ({error}): install its package anew") from error
    parameters = [
        Parameter(
            _plain(element.get("name", "")),
            element.get("required") == "1",
            (content := element.find("content")) is not None and content.get("type") == "boolean",
            _plain(element.get("obsoletes", "")),
        )
        for element in root.iter("parameter")
    ]
    actions = frozenset(element.get("name", "") for element in root.iter("action"))
    if missing := {"off", "status", "monitor"} - actions:
        raise NovaliteError(
            f"{name} cannot do {', '.join(sorted(missing))}: only an agent proves a death that switches off and can be "
            "asked for the status afterwards"
        )
    return Agent(name, tuple(parameters), actions)


def check_parameters(host: str, agent: Agent, parameters: JsonMapping) -> None:
    """Raise NovaliteError that names all that `agent` would not take of the `parameters` of `host`, and all that it
    lacks. No value is in it: it may be a secret."""
    known = {parameter.name: parameter for parameter in agent.parameters}
    problems = []
    for name, value in parameters.items():
        plain = _plain(name)
        if plain in OURS:
            problems.append(f"{name} is novalite's to say: leave it out")
        elif plain in TALKATIVE:
            problems.append(f"{name} would write secrets to logs: leave it out")
        elif plain not in known:
            near = difflib.get_close_matches(plain, sorted(known), 1)
            problems.append(f"{agent.name} does not take {name}" + (f": did you mean {near[0]}?" if near else ""))
        elif known[plain].is_flag and _flag(value) is None:
            problems.append(f"{name} is true or false")
        elif not known[plain].is_flag and not _is_text(value):
            problems.append(f"{name} is a text or a number, in one line")
    if len({_plain(name) for name in parameters}) < len(parameters):
        problems.append("a parameter is there twice, with '-' and with '_'")
    problems += [f"{agent.name} needs {name}" for name in _missing(agent, {_plain(name) for name in parameters})]
    if problems:
        raise NovaliteError(f"novalite_fence_parameters of {host}: {'; '.join(problems)}")


def _missing(agent: Agent, names: t.Collection[str]) -> list[str]:
    """List what `agent` needs beside the parameters `names`. Of two names for the same, the newer one is listed. An
    address is not said to be required, for some devices have it in another parameter."""
    newer = {parameter.obsoletes: parameter.name for parameter in agent.parameters if parameter.obsoletes}
    known = {parameter.name for parameter in agent.parameters}
    needed = {newer.get(parameter.name, parameter.name) for parameter in agent.parameters if parameter.required}
    if "ip" in known and "port_as_ip" not in names:
        needed.add("ip")
    older = {newer_name: name for name, newer_name in newer.items()}
    return sorted(name for name in needed if not {name, older.get(name)} & {*names, *OURS})


def standard_input(agent: Agent, parameters: JsonMapping, action: str) -> str:
    """Return what `agent` reads on its standard input for `action`. A flag that is false is left out: an agent takes
    `ssl_insecure=0` for a wish not to check certificates."""
    flags = {parameter.name for parameter in agent.parameters if parameter.is_flag}
    lines = [f"action={action}"]
    for name, value in parameters.items():
        plain = _plain(name)
        if plain not in flags:
            lines.append(f"{plain}={_quoted(str(value))}")
        elif _flag(value):
            lines.append(f"{plain}=1")
    return "".join(f"{line}\n" for line in lines)


def without_secrets(words: str, parameters: JsonMapping) -> str:
    """Return an agent's `words` without the values of parameters that may be secret."""
    values = {str(value) for name, value in parameters.items() if _plain(name) not in SHOWN}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST_SECRET:
            words = words.replace(value, "***")
    return words


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _flag(value: t.Any) -> bool | None:
    words = {"1": True, "yes": True, "on": True, "true": True, "0": False, "no": False, "off": False, "false": False}
    return words.get(str(value).lower())


def _is_text(value: t.Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).isprintable()


def _quoted(value: str) -> str:
    """Return `value` as an agent reads it back: it strips white space, and one pair of quotes around the rest."""
    return f'"{value}"' if value != value.strip() or (value[:1] == '"' == value[-1:]) or not value else value
