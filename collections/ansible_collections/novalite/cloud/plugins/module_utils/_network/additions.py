# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of novalite to things of others on a host, noted so that it can give back all of that and no more.

It is kept in /run, which goes with the next boot as do the addresses, ports and settings themselves. A line is written
before its change is made: a run that was killed between the two leaves a line for nothing, and never the reverse.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import json
import os
import typing as t

from .._host.files import read_text, write_atomically
from .._host.locks import locked
from .._host.own_directory import make_own
from .._json import JsonObject
from . import sysctl
from .ownership import Mark

DIRECTORY = "/run/novalite"
SETTINGS = "settings.json"
_LOCK = "settings"


@dataclasses.dataclass(frozen=True)
class Additions:
    """Additions of one ledger to one bridge. `addresses` (CIDR) and `ports` were added to a bridge of others, and its
    `switches` (`nf_call_iptables`) turned on; `mtus` (bytes) and `downs` are what devices were before."""

    addresses: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    mtus: tuple[tuple[str, int], ...] = ()  # (device, bytes), the first entry of a device counts
    downs: tuple[str, ...] = ()  # devices that were down
    switches: tuple[str, ...] = ()

    def __or__(self, more: Additions) -> Additions:
        known = dict(self.mtus)
        return Additions(
            mtus=(*self.mtus, *(mtu for mtu in more.mtus if mtu[0] not in known)),
            **{name: tuple(dict.fromkeys((*getattr(self, name), *getattr(more, name)))) for name in _TEXTS},
        )


_TEXTS = [field.name for field in dataclasses.fields(Additions) if field.name != "mtus"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """A kernel setting that novalite changed: `was` before, `now` since, for the bridges `users`. `also` are settings
    that the kernel changes along with it, and that are to be as before."""

    was: str
    now: str
    users: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()


def read(bridge: str, mark: Mark) -> Additions:
    """Additions of this ledger to the bridge; none where nobody remembers."""
    content = _load(os.path.join(_place(mark), f"{bridge}.json"))
    try:
        return Additions(
            mtus=tuple((str(device), int(mtu)) for device, mtu in content.get("mtus", ())),
            **{name: tuple(map(str, content.get(name, ()))) for name in _TEXTS},
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
    make_own(os.path.dirname(path), 0o755)
    write_atomically(path, json.dumps({"mark": mark.text, **dataclasses.asdict(additions)}, sort_keys=True) + "\n")


def addresses() -> set[str]:
    """Return all addresses (CIDR) that novalite, by any ledger, added to devices of others, or as floating IPs."""
    texts: set[str] = set()
    for path in glob.glob(os.path.join(glob.escape(DIRECTORY), "*", "*.json")):
        listed = _load(path).get("addresses")
        texts.update(map(str, listed if isinstance(listed, list) else ()))
    return texts


def owners(bridge: str) -> list[str]:
    """The texts of the marks of all ledgers that have added something to this bridge."""
    texts = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(DIRECTORY)):
            text = _load(os.path.join(DIRECTORY, name, f"{bridge}.json")).get("mark")
            if isinstance(text, str):
                texts.append(text)
    return texts


@locked(_LOCK)
def claim(user: str, settings: t.Mapping[str, str]) -> bool:
    """Make kernel settings (path below net/ -> value) be as in `settings` for as long as `user` is there, and remember
    what they were. A setting that was so already is nobody's. Returns whether `user` is a new one.

    Raises NovaliteError for one that cannot be set.
    """
    wrong = sysctl.wrong(settings)
    known = _settings()
    after = dict(known)
    for name, value in settings.items():
        if name in known and user not in known[name].users:
            after[name] = dataclasses.replace(known[name], users=(*known[name].users, user))
        elif name in wrong and name not in known:
            after[name] = Setting(wrong[name], value, (user,), tuple(sysctl.forwarding(name)))
    if after != known:
        _keep(after)
    sysctl.put({name: settings[name] for name in wrong})
    return after != known


@locked(_LOCK)
def release(user: str) -> dict[str, tuple[str, str]]:
    """Give back the settings that only `user` needed; one that somebody has changed since stays as it is. Returns
    {setting: (what it was just now, what it is again)}."""
    known = _settings()
    kept: dict[str, Setting] = {}
    given_back: dict[str, tuple[str, str]] = {}
    for name, setting in known.items():
        users = tuple(other for other in setting.users if other != user)
        if users:
            kept[name] = dataclasses.replace(setting, users=users)
        elif sysctl.wrong({name: setting.now}) == {} and sysctl.wrong({name: setting.was}):
            given_back[name] = (setting.now, setting.was)
            sysctl.put({name: setting.was})
            also = dict(setting.also)
            sysctl.put({key: also[key] for key in sysctl.wrong(also)})
    if kept != known:
        _keep(kept)
    return given_back


def user_of(bridge: str, mark: Mark) -> str:
    """The name under which a bridge needs settings."""
    return f"{mark.text} {bridge}"


def _place(mark: Mark) -> str:
    return os.path.join(DIRECTORY, mark.ledger or "by-hand")


def _settings() -> dict[str, Setting]:
    settings = {}
    for name, value in _load(os.path.join(DIRECTORY, SETTINGS)).items():
        with contextlib.suppress(TypeError, ValueError, KeyError):
            settings[str(name)] = Setting(
                str(value["was"]),
                str(value["now"]),
                tuple(map(str, value["users"])),
                tuple((str(key), str(was)) for key, was in value.get("also", ())),
            )
    return settings


def _keep(known: t.Mapping[str, Setting]) -> None:
    path = os.path.join(DIRECTORY, SETTINGS)
    if not known:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    make_own(DIRECTORY, 0o755)
    text = json.dumps({name: dataclasses.asdict(setting) for name, setting in known.items()}, sort_keys=True)
    write_atomically(path, text + "\n")


def _load(path: str) -> JsonObject:
    try:
        content = json.loads(read_text(path) or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
