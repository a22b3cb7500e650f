# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What novalite has changed of things on a host that others made, so that it can give back all of that and no more.

It is kept in /run, which goes with the next boot as do the addresses, ports and settings themselves. A line is written
before its change is made: a run that was killed between the two leaves a line for nothing, and never the reverse.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import typing as t

from .._host import locked, write_atomically
from . import sysctl
from .ownership import Mark

DIRECTORY = "/run/novalite"
SETTINGS = "settings.json"
_LOCK = "settings"


@dataclasses.dataclass(frozen=True)
class Additions:
    """Of one ledger to one bridge. `addresses` (CIDR) and `ports` were added to a bridge of others, and its `switches`
    (`nf_call_iptables`) turned on; `mtus` (bytes) and `downs` are what devices were before."""

    addresses: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    mtus: tuple[tuple[str, int], ...] = ()  # (device, bytes), the first entry of a device counts
    downs: tuple[str, ...] = ()  # devices that were down
    switches: tuple[str, ...] = ()

    def __or__(self, more: Additions) -> Additions:
        known = {device for device, _mtu in self.mtus}
        return Additions(
            (*self.addresses, *(one for one in more.addresses if one not in self.addresses)),
            (*self.ports, *(one for one in more.ports if one not in self.ports)),
            (*self.mtus, *(one for one in more.mtus if one[0] not in known)),
            (*self.downs, *(one for one in more.downs if one not in self.downs)),
            (*self.switches, *(one for one in more.switches if one not in self.switches)),
        )


@dataclasses.dataclass(frozen=True)
class Setting:
    """A kernel setting that novalite changed: `was` before, `now` since, for the bridges `users`. `also` are settings
    that the kernel changes along with it, and that are to be as before."""

    was: str
    now: str
    users: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()


def read(bridge: str, mark: Mark) -> Additions:
    """What this ledger has added to the bridge; nothing where nobody remembers."""
    found = _load(os.path.join(_place(mark), f"{bridge}.json"))
    try:
        return Additions(
            tuple(map(str, found.get("addresses", ()))),
            tuple(map(str, found.get("ports", ()))),
            tuple((str(device), int(mtu)) for device, mtu in found.get("mtus", ())),
            tuple(map(str, found.get("downs", ()))),
            tuple(map(str, found.get("switches", ()))),
        )
    except (TypeError, ValueError):
        return Additions()


def write(bridge: str, mark: Mark, additions: Additions) -> None:
    """Remember `additions`; none is forgotten altogether."""
    path = os.path.join(_place(mark), f"{bridge}.json")
    if additions == Additions():
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        return
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    write_atomically(path, json.dumps({"mark": mark.text, **dataclasses.asdict(additions)}, sort_keys=True) + "\n")


def owners(bridge: str) -> list[str]:
    """The texts of the marks of all ledgers that have added something to this bridge."""
    found = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(DIRECTORY)):
            text = _load(os.path.join(DIRECTORY, name, f"{bridge}.json")).get("mark")
            if isinstance(text, str):
                found.append(text)
    return found


def claim(
    user: str, wanted: t.Mapping[str, str], before: t.Mapping[str, str] | None = None, put: bool = True,
) -> bool:
    """Make kernel settings (path below net/ -> value) be as `wanted` for as long as `user` is there, and remember what
    they were. A setting that was so already is nobody's. Returns whether `user` is a new one.

    `before` says of settings that the caller has changed what they were; with `put` false the caller will change them.
    Raises NovaliteError for one that cannot be set.
    """
    with locked(_LOCK):
        return _claim(user, wanted, before or {}, put)


def _claim(
    user: str, wanted: t.Mapping[str, str], before: t.Mapping[str, str], put: bool
) -> bool:
    wrong = {**sysctl.wrong(wanted), **before}
    known = _settings()
    after = dict(known)
    for name, value in wanted.items():
        if name in known and user not in known[name].users:
            after[name] = dataclasses.replace(known[name], users=(*known[name].users, user))
        elif name in wrong and name not in known:
            after[name] = Setting(wrong[name], value, (user,), tuple(sysctl.forwarding(name)))
    if after != known:
        _keep(after)
    if put:
        sysctl.put({name: wanted[name] for name in sysctl.wrong(wanted)})
    return after != known


def release(user: str) -> dict[str, tuple[str, str]]:
    """Give back the settings that only `user` needed. Returns {setting: (what it was just now, what it is again)}.

    A setting that somebody has changed since is left as it is.
    """
    with locked(_LOCK):
        return _release(user)


def _release(user: str) -> dict[str, tuple[str, str]]:
    known = _settings()
    kept: dict[str, Setting] = {}
    given_back: dict[str, tuple[str, str]] = {}
    for name, setting in known.items():
        users = tuple(one for one in setting.users if one != user)
        if users:
            kept[name] = dataclasses.replace(setting, users=users)
        elif sysctl.wrong({name: setting.now}) == {} and sysctl.wrong({name: setting.was}):
            given_back[name] = (setting.now, setting.was)
            sysctl.put({name: setting.was})
            also = dict(setting.also)
            sysctl.put({one: also[one] for one in sysctl.wrong(also)})
    if kept != known:
        _keep(kept)
    return given_back


def user_of(bridge: str, mark: Mark) -> str:
    """The name under which a bridge needs settings."""
    return f"{mark.text} {bridge}"


def _place(mark: Mark) -> str:
    return os.path.join(DIRECTORY, mark.ledger or "by-hand")


def _settings() -> dict[str, Setting]:
    found = {}
    for name, value in _load(os.path.join(DIRECTORY, SETTINGS)).items():
        with contextlib.suppress(TypeError, ValueError, KeyError):
            found[str(name)] = Setting(
                str(value["was"]), str(value["now"]), tuple(map(str, value["users"])),
                tuple((str(one), str(was)) for one, was in value.get("also", ())),
            )
    return found


def _keep(known: t.Mapping[str, Setting]) -> None:
    path = os.path.join(DIRECTORY, SETTINGS)
    if not known:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    os.makedirs(DIRECTORY, mode=0o755, exist_ok=True)
    text = json.dumps({name: dataclasses.asdict(one) for name, one in known.items()}, sort_keys=True)
    write_atomically(path, text + "\n")


def _load(path: str) -> dict[str, t.Any]:
    try:
        with open(path, encoding="utf-8") as handle:
            found = json.load(handle)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
