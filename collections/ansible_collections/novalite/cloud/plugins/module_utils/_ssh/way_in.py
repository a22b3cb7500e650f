# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way by which Ansible reaches a compute host, read once from its variables, in all their spellings.

The variables are those of ansible.builtin.ssh and ansible.builtin.paramiko_ssh (`ansible-doc -t connection ssh`,
ansible-core 2.19 to 2.21); of several spellings of one option the last that is set counts, as for Ansible.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import typing as t
from dataclasses import dataclass

from .._json import JsonMapping
from .._model.plain_text import is_plain

ADDRESS = ("ansible_host", "ansible_ssh_host")
PORT = ("ansible_port", "ansible_ssh_port")
USER = ("ansible_user", "ansible_ssh_user")
IDENTITY = ("ansible_private_key_file", "ansible_ssh_private_key_file")
KEY_CHECKING = ("ansible_host_key_checking", "ansible_ssh_host_key_checking")
ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")  # in the order that ssh gets them
PKCS11 = "ansible_ssh_pkcs11_provider"
# Spellings that only paramiko reads, after the others
_BY_PARAMIKO: dict[tuple[str, ...], str] = {
    ADDRESS: "ansible_paramiko_host",
    PORT: "ansible_paramiko_port",
    USER: "ansible_paramiko_user",
    IDENTITY: "ansible_paramiko_private_key_file",
    KEY_CHECKING: "ansible_paramiko_host_key_checking",
}
PARAMIKO_PROXY, PARAMIKO_SHA2 = "ansible_paramiko_proxy_command", "ansible_paramiko_use_rsa_sha2_algorithms"
VARIABLES = (
    *("ansible_connection", *ADDRESS, *PORT, *USER, *IDENTITY, *KEY_CHECKING, PKCS11, *ARGUMENTS),
    *(*_BY_PARAMIKO.values(), PARAMIKO_PROXY, PARAMIKO_SHA2),
)
# Variables of the way for which ssh_config(5) has no option. Their values are secret, and carried over nowhere
WITHOUT_OPTION = (
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
    "ansible_private_key",
    "ansible_ssh_private_key",
    "ansible_private_key_passphrase",
    "ansible_ssh_private_key_passphrase",
    "ansible_paramiko_pass",
    "ansible_paramiko_password",
)
_BUILTIN = re.compile(r"ansible\.(builtin|legacy)\.")  # with which connections may be named in full
_PARAMIKO = ("paramiko", "paramiko_ssh")
_BY_SSH = ("", "ssh", "smart", *_PARAMIKO)

# ssh(1)'s flags that take a value, and the options of ssh_config(5) that say the same
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"
_AS_OPTION = {
    "b": "BindAddress", "B": "BindInterface", "c": "Ciphers", "F": "Include", "I": "PKCS11Provider",
    "i": "IdentityFile", "J": "ProxyJump", "l": "User", "m": "MACs", "P": "Tag", "p": "Port",
}  # fmt: skip
_FLAGS = {
    "4": ("AddressFamily", "inet"), "6": ("AddressFamily", "inet6"), "A": ("ForwardAgent", "yes"),
    "a": ("ForwardAgent", "no"), "C": ("Compression", "yes"), "K": ("GSSAPIAuthentication", "yes"),
    "k": ("GSSAPIDelegateCredentials", "no"),
}  # fmt: skip
_SILENT = "fGgMNnqsTtVvXxYy"  # about one call of ssh, its output or its terminal: nothing that a way consists of
BOOLEANS_FALSE = ("n", "no", "false", "f", "0", "off")  # what Ansible takes for false
_SEVERAL = ("certificatefile", "identityfile", "sendenv", "setenv")  # each line of these adds something
_FILES = ("certificatefile", "identityfile", "userknownhostsfile")  # whose values are names of files
_OF_BLOCKS = ("host", "match")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%~[]")


@dataclass(frozen=True)
class WayIn:
    """Options of ssh_config(5), in order and as its lines have them; for a host that Ansible works on without ssh
    (`local`) there are none. `dropped` are arguments of ssh, and names of variables, that have no such option."""

    options: tuple[tuple[str, str], ...] = ()
    local: bool = False
    dropped: tuple[str, ...] = ()


def way_in(variables: JsonMapping) -> WayIn:
    """The way of a host with these `variables`, of which VARIABLES and WITHOUT_OPTION count. The values of ssh's own
    options are taken as they are, quotes and percent signs included: ssh reads both places by the same rules."""
    connection = str(variables.get("ansible_connection") or "")
    match = _BUILTIN.match(connection)
    by = connection[match.end() :] if match else connection
    if by == "local":
        return WayIn(local=True)
    options: list[tuple[str, str]] = []
    dropped = [] if by in _BY_SSH else [f"ansible_connection={connection}"]
    dropped += [name for name in WITHOUT_OPTION if variables.get(name) not in (None, "")]

    def add(name: str, value: str) -> None:
        # of most, the first that says it counts; sharing of Ansible's connections belongs to its own runs
        known = name.lower() in {option.lower() for option, _value in options} and name.lower() not in _SEVERAL
        if not value or known or name.lower().startswith("control"):
            return
        if name.lower() in _OF_BLOCKS or not is_plain(value, allowed="\t"):
            dropped.append(f"{name} {value!r}")  # it would end the host's block, and be about all hosts
        else:
            options.append((name, _from_anywhere(value) if name.lower() in _FILES else value))

    def add_arguments(name: str) -> None:
        try:
            words = shlex.split(str(variables.get(name) or ""))
        except ValueError as error:  # Ansible does not get in either; the ways to other hosts stay
            dropped.append(f"{name} ({error})")
            return
        for flag, value in _flags(words):
            if flag == "o":
                add(*_assignment(value))
            elif flag == "F":
                file = os.path.abspath(os.path.expanduser(value))
                if value in ("none", os.devnull):
                    continue  # nothing is read beside this file anyway
                if _may_be_included(file):
                    add(_AS_OPTION[flag], quoted(file))
                else:
                    dropped.append(f"-F {value} (another user may write to it)")
            elif flag in _AS_OPTION:
                add(_AS_OPTION[flag], quoted(value))
            elif flag in _FLAGS:  # of these, the last one counts
                name_of_flag = _FLAGS[flag][0].lower()
                options[:] = [option for option in options if option[0].lower() != name_of_flag]
                add(*_FLAGS[flag])
            elif flag not in _SILENT:
                dropped.append(f"-{flag} {value}".strip())

    def value_of(spellings: tuple[str, ...]) -> str:
        return _last(variables, (*spellings, _BY_PARAMIKO[spellings]) if by in _PARAMIKO else spellings)

    address = value_of(ADDRESS)
    add("HostName", quoted(address.replace("%", "%%")))  # as in fe80::1%eth0
    add_arguments(ARGUMENTS[0])
    if value_of(KEY_CHECKING).lower() in BOOLEANS_FALSE:
        add("StrictHostKeyChecking", "no")
    add("Port", value_of(PORT))
    # in Ansible's own quotes, in which a backslash means what it means to ssh
    for option, value in (("IdentityFile", os.path.expanduser(value_of(IDENTITY))), ("User", value_of(USER))):
        add(option, f'"{value}"' if value else "")
    if by in _PARAMIKO:  # which knows three of ssh's tokens
        add("ProxyCommand", re.sub("%(?![hpr])", "%%", str(variables.get(PARAMIKO_PROXY) or "")))
        if str(variables.get(PARAMIKO_SHA2, "")).lower() in BOOLEANS_FALSE:
            dropped.append(PARAMIKO_SHA2)
    add("PKCS11Provider", quoted(str(variables.get(PKCS11) or "")))
    for name in ARGUMENTS[1:]:
        add_arguments(name)
    return WayIn(tuple(options), dropped=tuple(dropped))


def quoted(value: str) -> str:
    """`value` as one word of a line of ssh_config(5)."""
    if set(value) <= _PLAIN:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def own_path(path: str) -> str:
    """A path that is no template of ssh's, as one word of ssh_config(5): it has tokens that begin with a percent sign,
    and workspaces are called `feature%2Fvpn`."""
    return quoted(path.replace("%", "%%"))


def _from_anywhere(value: str) -> str:
    """The name of a file, as a line of ssh_config(5) has it, that means the same wherever ssh is started."""
    name = value.strip('"')
    if not name or name[0] in "/~%$" or name == "none" or " " in value or "\t" in value:
        return value
    return quoted(f"{os.getcwd().replace('%', '%%')}/{name}")


def _may_be_included(path: str) -> bool:
    """Tell whether ssh goes on where it is to include this file: one that others may write to ends it. A group of one
    is no other for some distributions' ssh."""
    try:
        status = os.stat(path)
    except OSError:
        return True  # left out
    return not status.st_mode & stat.S_IWOTH and status.st_uid in (0, os.getuid())


def _last(variables: JsonMapping, spellings: t.Sequence[str]) -> str:
    values = [str(variables[name]) for name in spellings if variables.get(name) not in (None, "")]
    return values[-1] if values else ""


def _flags(words: t.Sequence[str]) -> t.Iterator[tuple[str, str]]:
    """Yield each flag of ssh(1) with its value; empty for a flag that takes none."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "--":
            continue
        letters = word[1:]
        for position, letter in enumerate(letters):
            if letter in _WITH_VALUE:
                yield letter, letters[position + 1 :] or next(rest, "")
                break
            yield letter, ""


def _assignment(text: str) -> tuple[str, str]:
    """The name and the value of `Name=value`, `Name = value` or `Name value`."""
    name = next(iter(text.partition("=")[0].split()), "")
    value = text.lstrip()[len(name) :].lstrip()
    return name, value[1:].strip() if value.startswith("=") else value.strip()
