# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Behind a reverse proxy: whose word counts for where a request came from."""

from __future__ import annotations

import typing as t

import netaddr
from werkzeug.middleware.proxy_fix import ProxyFix

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.texts import parse_address, parse_network
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

Environ = dict[str, t.Any]
StartResponse = t.Callable[..., t.Any]
Application = t.Callable[[Environ, StartResponse], t.Iterable[bytes]]

FORWARDED = tuple(f"HTTP_X_FORWARDED_{name}" for name in ("FOR", "PROTO", "HOST", "PORT", "PREFIX"))
PASSED_ON = ("HTTP_FORWARDED", "HTTP_VIA")  # what else proxies say
STRANGER = "novalite.forwarded_by_a_stranger"


def networks(text: str | None, name: str) -> list[netaddr.IPNetwork]:
    """Addresses and networks, with commas between them. Raises NovaliteError for what is none; `name` says whose."""
    ip_networks: list[netaddr.IPNetwork] = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        try:
            ip_networks.append(parse_network(part.strip()))
        except ValueError as error:
            raise NovaliteError(f"{name}: {part.strip()!r} is not an address or network ({error})") from None
    return ip_networks


def within(address: str | None, among: t.Sequence[netaddr.IPNetwork]) -> bool:
    try:
        peer = parse_address((address or "").partition("%")[0])
    except ValueError:
        return False
    return any((peer.ipv4() if peer.is_ipv4_mapped() else peer) in network for network in among)


def is_told_by_a_stranger(environ: t.Mapping[str, t.Any]) -> bool:
    """Tell whether a request came through a proxy that is not trusted: then its caller's address is not known."""
    return STRANGER in environ


class TrustedProxies:
    """X-Forwarded-For, -Proto, -Host and -Prefix of trusted peers are believed; of others they are removed.

    The proxy must set each of them itself: of a list the last one counts, which is what the proxy saw.
    """

    def __init__(self, application: Application, trusted: t.Sequence[netaddr.IPNetwork]) -> None:
        self._application = application
        self._trusted = trusted
        self._fixed = ProxyFix(t.cast(t.Any, application), x_for=1, x_proto=1, x_host=1, x_prefix=1)

    def __call__(self, environ: Environ, start_response: StartResponse) -> t.Iterable[bytes]:
        if within(environ.get("REMOTE_ADDR"), self._trusted):
            return self._fixed(environ, start_response)
        for name in FORWARDED:
            if environ.pop(name, None) is not None:
                environ[STRANGER] = True
        if any(name in environ for name in PASSED_ON):
            environ[STRANGER] = True
        return self._application(environ, start_response)
