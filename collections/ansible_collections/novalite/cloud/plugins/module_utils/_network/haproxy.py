# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration of a network's metadata proxy, from plain data. Pure; nothing from outside reaches a line unchecked.

The proxy answers guests at 169.254.169.254 and passes their questions on to the metadata service, with the network
that they came in on and the address that they came from, both signed with this host's key. What a guest says about
itself is thrown away first.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import ipaddress
import json
import re
import typing as t
import urllib.parse
import uuid

from .._errors import NovaliteError
from .._guest.signature import ADDRESS_HEADER, HOST_HEADER, NETWORK_HEADER, SEPARATOR, SIGNATURE_HEADER
from .._json import JsonMapping
from .bridge_request import NAME
from .ownership import NO_LEDGER, Mark

ADDRESS = "169.254.169.254"
PORT = 80
TOKEN_PATH = "/latest/api/token"  # the one that a guest may PUT to: session tokens, as EC2's IMDSv2

# How much of the service a guest can take from the others: a boot asks some 60 times.
CONNECTIONS = 20  # at once
REQUESTS = 500  # in 10 seconds

_DATA = "# novalite: "
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_HOSTNAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Upstream:
    """Address of the metadata service."""

    host: str
    port: int
    tls: bool = False


@dataclasses.dataclass(frozen=True)
class Proxy:
    """The proxy of one network (its uuid); `namespace` has the host's address on the bridge (None: its own)."""

    bridge: str
    namespace: str | None
    network: str


def parse(values: t.Iterable[JsonMapping]) -> list[Proxy]:
    """The module's `networks`, checked. Raises NovaliteError that names the offending value."""
    proxies = [_proxy(value) for value in values]
    if len({proxy.bridge for proxy in proxies}) != len(proxies):
        raise NovaliteError("a bridge is given twice; there is one metadata proxy for each")
    return proxies


def parse_bridge(name: str) -> str:
    """The name of a bridge, which is also that of a directory. Raises NovaliteError."""
    if not NAME.fullmatch(name):
        raise NovaliteError(f"{name!r} is not a name of a bridge")
    return name


def parse_upstream(url: str) -> Upstream:
    """`http://host[:port]` or `https://host[:port]`. Raises NovaliteError for anything else."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urllib.parse.urlsplit(""), "", None
    tls = parts.scheme == "https"
    if (
        parts.scheme not in ("http", "https")
        or parts.path not in ("", "/")
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
        or not _is_host(host)
        or port == 0
    ):
        raise NovaliteError(f"the metadata service's URL {url!r} is not of the form http://192.0.2.10:8775")
    return Upstream(host, port or (443 if tls else 80), tls)


def config(proxy: Proxy, upstream: Upstream, host: str, key: bytes, place: int | None, mark: Mark = NO_LEDGER) -> str:
    """haproxy's configuration file for `proxy` on compute host `host` with `key`.

    `place` is the inode of the namespace, or the index of the bridge, that the socket gets tied to when the proxy
    starts: one that was removed and made again meanwhile is another one, though it has the same name.
    """
    data = json.dumps({**dataclasses.asdict(proxy), "place": place}, sort_keys=True)
    tied = f"namespace {proxy.namespace}" if proxy.namespace else f"interface {proxy.bridge}"
    # Only these come from a guest unchanged. "x_novalite_host" would become the same variable of the service as the
    # header with hyphens.
    headers = "host|user-agent|accept|accept-encoding|range|if-none-match|if-modified-since"
    untold = rf"^(?!(?:{headers}|x-aws-ec2-metadata-token|x-aws-ec2-metadata-token-ttl-seconds)$)"
    signed = f"str({host}{SEPARATOR}{proxy.network}{SEPARATOR}),concat(,txn.address)"
    secret = base64.b64encode(key).decode()
    address = f"[{upstream.host}]" if ":" in upstream.host else upstream.host
    server = f"{address}:{upstream.port}"
    if upstream.tls:
        server += f" ssl verify required ca-file @system-ca sni str({upstream.host}) verifyhost {upstream.host}"
    return f"""\
{_DATA}{data}
{mark.line}
# Written by novalite; it is replaced whenever the network or the service changes. It holds a key.
global
    user haproxy
    group haproxy
    chroot /var/lib/haproxy
    nbthread 1
    maxconn 512
    hard-stop-after 5s

defaults
    mode http
    timeout client 10s
    timeout connect 5s
    timeout server 30s
    timeout http-request 10s
    timeout http-keep-alive 5s

frontend guests
    bind {ADDRESS}:{PORT} {tied}
    stick-table type ip size 10k expire 30s store http_req_rate(10s),conn_cur
    tcp-request connection track-sc0 src
    tcp-request connection reject if {{ sc0_conn_cur gt {CONNECTIONS} }}
    http-request deny deny_status 429 if {{ sc0_http_req_rate gt {REQUESTS} }}
    acl token method PUT
    acl token_path path {TOKEN_PATH}
    http-request deny deny_status 405 unless {{ method GET HEAD }} || token token_path
    # as Amazon: whoever made a proxy in the guest pass its request on did not ask for a token by itself
    http-request deny deny_status 403 if token {{ req.hdr_cnt(x-forwarded-for) gt 0 }}
    http-request deny deny_status 413 if token {{ req.hdr_val(content-length) gt 0 }}
    http-request deny deny_status 413 if token {{ req.hdr_cnt(transfer-encoding) gt 0 }}
    http-request del-header {untold} -m reg
    http-request set-var(txn.address) src
    http-request set-header {HOST_HEADER} "{host}"
    http-request set-header {NETWORK_HEADER} "{proxy.network}"
    http-request set-header {ADDRESS_HEADER} %[var(txn.address)]
    http-request set-header {SIGNATURE_HEADER} %[{signed},hmac(sha256,{secret}),hex,lower]
    default_backend service

backend service
    server metadata {server}
"""


def read(text: str) -> Proxy | None:
    """The proxy that a file of `config` is of; None for another file."""
    first = text.partition("\n")[0]
    with contextlib.suppress(ValueError, KeyError, TypeError):
        if first.startswith(_DATA):
            data = json.loads(first[len(_DATA) :])
            return Proxy(data["bridge"], data["namespace"], data["network"])
    return None


def shown(text: str | None) -> list[str]:
    """The file's lines for people: in place of the key stands by what it can be told from another."""
    return [
        re.sub(
            r"(hmac\(sha256,)([^)]*)(\))",
            lambda match: f"{match[1]}key {hashlib.sha256(match[2].encode()).hexdigest()[:8]}{match[3]}",
            line,
        )
        for line in (text or "").splitlines()
    ]


def _proxy(value: JsonMapping) -> Proxy:
    bridge = parse_bridge(str(value["bridge"]))
    namespace = value.get("namespace") or None
    if namespace is not None and (len(namespace) > 255 or not _NAME.fullmatch(namespace)):
        raise NovaliteError(f"bridge {bridge!r}: {namespace!r} is not a name of a network namespace")
    try:
        network = str(uuid.UUID(str(value["network"])))
    except ValueError:
        raise NovaliteError(f"bridge {bridge!r}: {value['network']!r} is not the UUID of a network") from None
    return Proxy(bridge, namespace, network)


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(_HOSTNAME.fullmatch(host)) and ".." not in host
    return "%" not in host  # behind it anything may stand
