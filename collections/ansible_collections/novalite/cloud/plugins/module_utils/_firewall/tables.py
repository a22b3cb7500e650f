# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of one of a host's two iptables, what the other one still holds of novalite's, and what is loaded at the
next boot, before guests start."""

from __future__ import annotations

import os
import shutil

from .._host.command import CommandError, run
from .._json import JsonObject
from . import fingerprint, ruleset
from .rules import FAMILIES
from .ruleset import Ruleset

_WAIT = "20"  # seconds for the xtables lock of other programs; without -w iptables gives up at once
SCRIPT = "/usr/local/sbin/novalite-firewall"  # the role compute_node installs it
KEPT = "/var/lib/novalite/firewall/iptables"
_COMMAND = {"IPv4": "iptables", "IPv6": "ip6tables"}


class Tables:
    """iptables and ip6tables of one backend: `auto` (what the host's iptables command is), `nft` or `legacy`."""

    def __init__(self, backend: str = "auto") -> None:
        self._infix = "" if backend == "auto" else f"-{backend}"
        self.backend = self._resolve() if backend == "auto" else backend

    def read(self, family: str) -> Ruleset:
        return ruleset.parse(self.text(family))

    def text(self, family: str, counters: bool = False) -> str:
        return run([f"{_COMMAND[family]}{self._infix}-save", *(["-c"] if counters else [])]).stdout

    def write(self, family: str, text: str) -> None:
        run([f"{_COMMAND[family]}{self._infix}-restore", "--noflush", "--wait", _WAIT], stdin=text)

    def compares_bytes(self) -> bool:
        """Tell whether the kernel has xt_bpf, which a distribution may pack apart. Asked in a namespace of its own."""
        rule = ["-A", "INPUT", "-m", "bpf", "--bytecode", "1,6 0 0 1", "-j", "ACCEPT"]
        try:
            run(["unshare", "-n", f"{_COMMAND['IPv6']}{self._infix}", *rule])
        except CommandError:
            return False
        return True

    @staticmethod
    def _resolve() -> str:
        path = os.path.realpath(shutil.which("iptables", path=f"/usr/local/sbin:/usr/sbin:/sbin:{os.defpath}") or "")
        for backend in ("nft", "legacy"):
            if backend in os.path.basename(path):
                return backend
        # 1.8.2 called itself xtables; before 1.8 there was legacy only.
        return "nft" if "nf_tables" in run(["iptables", "--version"]).stdout else "legacy"


class Second:
    """The backend that this host does not use (any more). Packets traverse both, so that rules left behind there count
    as much as those that are kept up to date."""

    def __init__(self, used: str) -> None:
        self.backend = "legacy" if used == "nft" else "nft"
        self.rulesets: dict[str, Ruleset] = {}

    def look(self) -> bool:
        """Tell whether it holds chains of novalite's."""
        self.rulesets = {}
        # Legacy tables exist only when listed; asking iptables-legacy itself would create them.
        there = fingerprint.legacy_tables() if self.backend == "legacy" else dict.fromkeys(FAMILIES)
        for family in FAMILIES:
            if not any(name.startswith(family) for name in there):
                continue
            try:
                tables = Tables(self.backend).read(family)
            except (CommandError, OSError):
                continue
            if tables.owned():
                self.rulesets[family] = tables
        return bool(self.rulesets)

    def chains(self) -> JsonObject:
        """Return the chains by family, for the user."""
        return {family: ruleset.shown(tables.owned()) for family, tables in self.rulesets.items()}

    def clear(self) -> None:
        """Take novalite's chains out. Raises NovaliteError when a rule of somebody else's uses one."""
        for family, tables in self.rulesets.items():
            text = ruleset.delta(tables, {}, ())
            if text:
                Tables(self.backend).write(family, text)


def keep_for_boot(changed: bool) -> list[str]:
    """Have the rules of now loaded at the next boot, where that is installed: a host that loses its power says nothing
    before. Returns warnings."""
    if not os.path.exists(SCRIPT) or (os.path.exists(KEPT) and not changed):
        return []
    try:
        run([SCRIPT, "save"])
    except CommandError as error:
        return [f"guests of this host will be closed after the next boot until playbooks/firewall.yml has run: {error}"]
    return []
