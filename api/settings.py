# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the application, from environment variables."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import Carrier, carrier
from ansible_collections.novalite.cloud.plugins.module_utils._rules.pools import check_bridge
from ansible_collections.novalite.cloud.plugins.module_utils._secret_file import CREDENTIALS, secret_path

from .web import proxy


def values_of(
    kind: type, environ: t.Mapping[str, str], variables: t.Mapping[str, str], may_be_0: t.Collection[str] = ()
) -> JsonObject:
    """Return the environment's values of a dataclass's fields: {field: text, or number where it is one}.

    `variables` has the variable of each field. Raises NovaliteError for a number that is none, or is 0 and must not be.
    """
    values: JsonObject = {}
    for field in dataclasses.fields(kind):
        name = variables[field.name]
        text = environ.get(name, "")
        if text and field.type == "int":
            if not text.isascii() or not text.isdigit() or int(text) < (field.name not in may_be_0):
                raise NovaliteError(f"{name}={text!r} is not a positive number")
            values[field.name] = int(text)
        elif text:
            values[field.name] = text
    return values


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the application. Each field is NOVALITE_<FIELD>; the playbooks know `home` and `ledger_url`, too."""

    home: str | None = None  # directory of the ledger
    ledger_url: str | None = None
    metadata_secret_file: str | None = None  # default: metadata.secret in the ledger's home
    credentials_secret_file: str | None = None  # default: credentials.secret in the ledger's home
    metadata_bind: str = "127.0.0.1:8775"  # Nova's port; the hypervisors' proxies must reach it
    workers: int = 2  # processes
    threads: int = 4  # in each
    max_request_bytes: int = 1024 * 1024
    api_workers: int = 2
    api_threads: int = 16  # a live stream of events keeps one for as long as it is looked at
    api_consoles: int = 4  # in a browser, in each process; each keeps a thread for as long as it is open
    console_idle_seconds: int = 1800  # after which a console that carries nothing is closed
    api_metrics_from: str = "127.0.0.0/8,::1"  # addresses and networks that may read /metrics
    api_rate: int = 200  # requests a second, of one user in one project, in each process
    api_burst: int = 4000  # so many at once before that holds
    api_anonymous_rate: int = 20  # likewise, of those of one address that nobody stands for: logins, versions
    api_anonymous_burst: int = 400
    api_bind: str = "127.0.0.1:8774"  # Nova's port
    api_public_url: str | None = None  # https://cloud.example.org: what the catalog says; default: as it was asked
    api_trusted_proxies: str | None = None  # addresses and networks, with commas, whose X-Forwarded-* are believed
    api_cors_origins: str = ""  # https://dashboard.example.org, with commas, or "*": whose pages may ask in a browser
    api_ec2_hosts: str = ""  # ec2.example.org, with commas: names of this machine whose root is EC2's service
    api_policy: str | None = None  # action=role, with commas: rules other than the policy table's
    api_legacy: str = "on"  # "off": without what Nova gave up in 2016 and 2017 (proxies of other services, os-hosts)
    tenant_networks: str = "vxlan"  # what carries the networks that projects make: vxlan, vlan:<interface>, flat_dhcp
    physical_networks: str = ""  # with commas: the hosts' interfaces that administrators may name for a network
    image_max_gigabytes: int = 1024  # of one image that is uploaded
    token_seconds: int = 8 * 3600
    auth_failures: int = 5  # wrong passwords for one user from one address; for the user from all others it gets slower
    auth_failures_address: int = 50  # from one address
    auth_lock_seconds: int = 15 * 60
    auth_known_days: int = 30  # how long a user is known at an address, and locked out of it by nobody elsewhere
    ec2_window_seconds: int = 5 * 60  # how far a signed request's time may be from ours

    @classmethod
    def from_environment(cls, environ: t.Mapping[str, str] | None = None) -> Settings:
        """Raises NovaliteError for a number that is none, or not positive."""
        variables = {field.name: f"NOVALITE_{field.name.upper()}" for field in dataclasses.fields(cls)}
        return cls(**values_of(cls, os.environ if environ is None else environ, variables))

    def check(self) -> None:
        """Raise NovaliteError for what only shows when it is used."""
        proxy.networks(self.api_trusted_proxies, "NOVALITE_API_TRUSTED_PROXIES")
        proxy.networks(self.api_metrics_from, "NOVALITE_API_METRICS_FROM")
        carrier(self.tenant_networks)
        for interface in self.interfaces:
            check_bridge("NOVALITE_PHYSICAL_NETWORKS: interface", interface)
        if self.api_legacy not in ("on", "off"):
            raise NovaliteError(f"NOVALITE_API_LEGACY={self.api_legacy!r}: write on or off")
        for origin in self.cors_origins - {"*"}:
            if not re.fullmatch(r"https?://[^\s/?#]+", origin):
                raise NovaliteError(
                    f"NOVALITE_API_CORS_ORIGINS: {origin!r} is not an origin: write https://host[:port], several "
                    "with commas, or *"
                )
        for name in self.ec2_host_names:
            if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
                raise NovaliteError(
                    f"NOVALITE_API_EC2_HOSTS: {name!r} is not a host's name: write ec2.example.org without scheme, "
                    "port and path, several with commas"
                )
        if self.api_public_url is not None and not re.fullmatch(r"https?://[^\s?#]+", self.api_public_url):
            raise NovaliteError(f"NOVALITE_API_PUBLIC_URL={self.api_public_url!r}: write https://host[:port][/path]")

    @property
    def cors_origins(self) -> frozenset[str]:
        return frozenset(filter(None, (origin.strip() for origin in self.api_cors_origins.split(","))))

    @property
    def ec2_host_names(self) -> frozenset[str]:
        return frozenset(filter(None, (name.strip().lower() for name in self.api_ec2_hosts.split(","))))

    @property
    def secret_file(self) -> str:
        return self.metadata_secret_file or secret_path(self.home)

    @property
    def credentials_file(self) -> str:
        return self.credentials_secret_file or secret_path(self.home, CREDENTIALS)

    @property
    def carrier(self) -> Carrier:
        return carrier(self.tenant_networks)

    @property
    def interfaces(self) -> frozenset[str]:
        """The physical networks, as Neutron calls them, with that of projects' own networks."""
        named = (name.strip() for name in self.physical_networks.split(","))
        return frozenset(filter(None, (*named, self.carrier.interface)))
