# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests for servers, and their checks: bounds, names, counts, quotas. Plain data in, plain data out."""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

from .._addressing.texts import parse_address
from .._errors import NovaliteError, QuotaError
from .._json import Json, JsonMapping, JsonObject
from .._model.instance import Flavor, Image, Instance, is_iso
from .._model.plain_text import is_plain
from .._model.yaml_types import complaint
from . import guest_requests, ha_wishes, hints, volume_asks
from .guest_requests import GuestRequest
from .ha_wishes import NO_WISHES, HaWishes
from .server_options import MAX_GROUPS, MAX_NICS, MAX_SERVERS, MAX_TEXT
from .volume_asks import VolumeRequest

GIB = 1024**3

# RFC 1123 section 2.1 with RFC 1035's length: what a guest, dnsmasq and a DNS search list all accept.
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

_OF_FLAVORS: t.Final = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb", "extra_specs")
_OF_IMAGES: t.Final = ("id", "checksum")
# The order in which Nova names resources in its message.
QUOTA_RESOURCES = ("instances", "cores", "ram", "fixed_ips")

Amounts = t.Mapping[str, int]


@dataclass(frozen=True)
class NetworkRequest:
    """Interface asked for: a network's name and, optionally, the IPv4 address on it; or a port that exists."""

    name: str
    fixed_ip: str | None = None
    port: str | None = None  # its UUID; it knows its network
    subnet: str | None = None  # UUID of the network's subnet that the address is to be of; None: of any


class _SeenNetwork(t.Protocol):
    @property
    def is_default(self) -> bool: ...


Seen = t.TypeVar("Seen", bound=_SeenNetwork)


def network_of_choice(seen: t.Sequence[Seen]) -> Seen | None:
    """Return the network of a server that names none, of those that its project sees: the only one, else the default
    one. None where there is no such network, and one has to be named."""
    return seen[0] if len(seen) == 1 else next((network for network in seen if network.is_default), None)


@dataclass(frozen=True)
class ServerRequest:
    """Server asked for, after `count` was expanded. `networks` is None for network_of_choice()."""

    name: str
    flavor: str | None
    image: str | None
    hostname: str = ""
    chose_hostname: bool = False  # the user did, beside the name
    key: str | None = None
    networks: tuple[NetworkRequest, ...] | None = None
    security_groups: tuple[str, ...] = ()
    availability_zone: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    hints: JsonObject = field(default_factory=dict)  # for the scheduler, with requirements and rank
    guest: GuestRequest = field(default_factory=GuestRequest)
    volumes: tuple[VolumeRequest, ...] = ()
    ha: HaWishes = NO_WISHES


class Labels(t.NamedTuple):
    """Attributes of an instance that the APIs show, and playbooks do not ask for."""

    display_name: str | None = None
    description: str | None = None
    user_id: str | None = None
    reservation_id: str | None = None
    tags: tuple[str, ...] = ()
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str = "MANUAL"


NO_LABELS = Labels()


@dataclass(frozen=True)
class CreateRequest(ServerRequest):
    """Request for `min_count` to `max_count` servers that differ in their names only.

    `name` is the one to be shown. The flavor and the image (None: it starts from one of its volumes) are named by the
    ids that clients know, networks by UUID, security groups by name or UUID (none: the project's default group).
    """

    min_count: int = 1
    max_count: int = 1
    image_disk: bool = True  # False: the server starts from a volume, which the image may name
    labels: Labels = NO_LABELS


def expand(entries: t.Sequence[JsonMapping]) -> list[ServerRequest]:
    """Expand `entries` into all servers that they ask for: `count` 1 keeps the name, n > 1 makes name-1 to name-n, as
    Nova does. Raises NovaliteError naming the first value that cannot be, before anything is looked up or written."""
    requests: list[ServerRequest] = []
    for name, count, entry in _counted(entries):
        requests.extend(_expand_one(name, count, entry))
    _refuse_twice("server", [request.name for request in requests])
    _refuse_twice("hostname", [request.hostname for request in requests])
    _refuse_twice(
        "fixed address", [f"{nic.fixed_ip} on {nic.name}" for r in requests for nic in r.networks or () if nic.fixed_ip]
    )
    return requests


def expand_names(entries: t.Sequence[JsonMapping]) -> list[str]:
    """The names that the same `entries` would make with state=present; nothing but name and count is looked at."""
    names = [name for base, count, _entry in _counted(entries) for name in _numbered(base, count)]
    return list(dict.fromkeys(names))


def _counted(entries: t.Iterable[JsonMapping]) -> t.Iterator[tuple[str, int, JsonMapping]]:
    """Name, count and entry of each. Raises NovaliteError for more than MAX_SERVERS in all."""
    total = 0
    for entry in entries:
        name, count = check_label(entry.get("name"), "server name"), _count_of(entry)
        total += count
        if total > MAX_SERVERS:
            raise NovaliteError(f"{total} servers in one call: ask for at most {MAX_SERVERS}")
        yield name, count, entry


def check_label(value: object, what: str) -> str:
    """`value`, if it is one RFC 1123 host name label (1 to 63 letters, digits, inner hyphens); else NovaliteError."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise NovaliteError(
            f"{what} {_shown(value)} is not a host name: use 1 to 63 letters, digits and hyphens, "
            "with a letter or digit first and last"
        )
    return value


def check_fits(name: str, flavor: Flavor, image: Image) -> None:
    """Refuse a flavor that is too small for the image (a flavor's root_gb of 0 means: as large as the image). The
    virtual size counts, not the size of the file: CVE-2013-2096, a small qcow2 that unfolds on the host."""
    pair = f"flavor '{flavor['name']}' of '{name}' is too small for image '{image['name']}'"
    if flavor["memory_mb"] < image["min_ram_mb"]:
        raise NovaliteError(f"{pair}: it has {flavor['memory_mb']} MiB of RAM, the image needs {image['min_ram_mb']}")
    root_gb = flavor["root_gb"]
    if root_gb == 0:
        return
    if root_gb < image["min_disk_gb"]:
        raise NovaliteError(f"{pair}: its disk has {root_gb} GiB, the image needs {image['min_disk_gb']}")
    if root_gb * GIB < image["virtual_size"] and not is_iso(image):
        needed = -(-image["virtual_size"] // GIB)
        raise NovaliteError(f"{pair}: its disk has {root_gb} GiB, the image's disk {needed} GiB")


def limited(requested: Amounts, limits: Amounts) -> list[str]:
    """The resources of which more is asked for, and that have a limit: what is used of others is not counted, which
    would read all instances of the project."""
    return [name for name in QUOTA_RESOURCES if requested.get(name, 0) > 0 and limits.get(name, -1) >= 0]


def check_quota(requested: Amounts, used: Amounts, limits: Amounts) -> None:
    """Refuse what would go over a limit, in Nova's words. -1, or no limit at all, is unlimited. Something that asks for
    nothing is never refused, even when a lowered limit lies below what is used."""
    over = [
        resource
        for resource in limited(requested, limits)
        if used.get(resource, 0) + requested[resource] > limits[resource]
    ]
    if over:
        names, allowed = _listed(over), _listed(limits[r] for r in over)
        raise QuotaError(
            f"Quota exceeded for {names}: Requested {_listed(requested[r] for r in over)}, "
            f"but already used {_listed(used.get(r, 0) for r in over)} of {allowed} {names}"
        )


def check_own_quota(request: ServerRequest, limits: Amounts) -> None:
    """Refuse more metadata items or files on one server than the project's quotas allow."""
    limit = limits.get("metadata_items", -1)
    if 0 <= limit < len(request.metadata):
        raise QuotaError(f"metadata of '{request.name}' has {len(request.metadata)} items: at most {limit} are allowed")
    guest_requests.check_quota(request.name, request.guest, limits)


def differences(request: ServerRequest, flavor: Flavor, image: Image, key: str | None) -> list[dict[str, str | None]]:
    """List the fields in which a request names another flavor, image or key than the server of that name has."""
    actual = {"flavor": flavor["name"], "image": image["name"], "key": key}
    requested_fields = {"flavor": request.flavor, "image": request.image, "key": request.key}
    return [
        {"name": request.name, "field": field, "requested": requested_fields[field], "actual": actual[field]}
        for field in ("flavor", "image", "key")
        if requested_fields[field] is not None
        and requested_fields[field] != actual[field]
        and not (field == "image" and requested_fields[field] == image["id"])
    ]


@dataclass(frozen=True)
class Asked:
    """Request for a server, as far as the server does not show it: the addresses of its interfaces (by their ids), its
    volumes (None: nothing is known of them), its flavor and image as they are by now (None: gone)."""

    addresses: t.Mapping[str, str] = field(default_factory=dict)
    volumes: t.Sequence[JsonMapping] | None = None
    flavor: Flavor | None = None
    image: Image | None = None


def differs_from(request: ServerRequest, stored: Instance, asked: Asked = Asked()) -> bool:
    """Tell whether a request, in what it sets, asks for another server than `stored`, which failed."""
    if differences(request, stored["flavor"], stored["image"], stored["key"] and stored["key"]["name"]):
        return True
    if request.networks is not None and [nic.name for nic in request.networks] != [
        nic["network"]["name"] for nic in stored["nics"]
    ]:
        return True
    # of the same name, and not as they were
    if asked.flavor is not None and any(asked.flavor[each] != stored["flavor"][each] for each in _OF_FLAVORS):
        return True
    if asked.image is not None and any(asked.image[each] != stored["image"][each] for each in _OF_IMAGES):
        return True
    addresses = [asked.addresses.get(nic["id"]) for nic in stored["nics"]]
    if request.networks is not None and [nic.fixed_ip for nic in request.networks] != addresses:
        return True
    if request.volumes and asked.volumes not in (None, [asdict(volume) for volume in request.volumes]):
        return True
    # a zone that is not named any more is a zone that turned out wrong
    return bool(
        request.availability_zone != stored["availability_zone"]
        or (request.hints and request.hints != stored["request"])
        or (request.metadata and request.metadata != stored["metadata"])
        or any(stored[wish] != value for wish, value in request.ha.said().items())  # type: ignore[literal-required]  # wishes are keys of Instance
        or (request.chose_hostname and request.hostname != stored["hostname"])
        or sorted(request.security_groups) != sorted(group["name"] for group in stored["security_groups"])
    )


def _expand_one(name: str, count: int, entry: JsonMapping) -> t.Iterator[ServerRequest]:
    hostname = entry.get("hostname")
    if hostname is not None:
        check_label(hostname, f"hostname of '{name}'")
    networks = _networks_of(name, count, entry.get("networks"))
    groups = entry.get("security_groups")
    texts = {field: _text(name, field, entry.get(field)) for field in ("flavor", "image", "key", "availability_zone")}
    metadata, for_scheduler = _metadata_of(name, entry.get("metadata")), hints.checked(name, entry)
    guest, ha = guest_requests.checked(name, entry), ha_wishes.of_entry(name, entry)
    volumes = volume_asks.parse(name, entry.get("volumes"))
    if count > 1 and any(volume.source == volume_asks.VOLUME for volume in volumes):
        raise NovaliteError(f"volumes of '{name}' with count {count}: one volume goes to one server only")
    group_names = _groups_of(name, ["default"] if groups is None else groups)
    hostnames = _numbered(hostname or name, count)
    for server_name, server_hostname in zip(_numbered(name, count), hostnames):
        check_label(server_hostname, "server name" if hostname is None else f"hostname of '{name}'")
        yield ServerRequest(
            name=check_label(server_name, "server name"),
            hostname=server_hostname.lower(),
            chose_hostname=hostname is not None,
            **texts,
            networks=networks,
            security_groups=group_names,
            metadata=metadata,
            hints=for_scheduler,
            guest=guest,
            volumes=volumes,
            ha=ha,
        )


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def _count_of(entry: JsonMapping) -> int:
    value = entry.get("count")
    if value is None:
        return 1
    # `-e count=3` arrives as text; a bool is an int to Python, but no count to anybody
    count = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise NovaliteError(f"count {_shown(value, quote=False)} of '{entry.get('name')}': give 1 or more")
    if count > MAX_SERVERS:
        raise NovaliteError(f"count {count} of '{entry.get('name')}': ask for at most {MAX_SERVERS} in one call")
    return count


def _networks_of(name: str, count: int, value: Json) -> tuple[NetworkRequest, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not value or len(value) > MAX_NICS:
        raise NovaliteError(f"networks of '{name}': give a list of 1 to {MAX_NICS} network names, or leave it out")
    networks = tuple(_network_of(name, item) for item in value)
    if count > 1 and (fixed := next((nic.fixed_ip for nic in networks if nic.fixed_ip), None)):
        raise NovaliteError(f"fixed_ip {fixed} of '{name}' with count {count}: one address goes to one server only")
    # Two interfaces in one network would answer ARP for each other; Nova refuses it by default, too.
    _refuse_twice(f"network of '{name}'", [nic.name for nic in networks])
    return networks


def _network_of(name: str, item: Json) -> NetworkRequest:
    entry = {"name": item} if isinstance(item, str) else item
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise NovaliteError(f"network {_shown(item)} of '{name}': give a name, or a name and a fixed_ip")
    if unknown := sorted(str(key) for key in entry.keys() - {"name", "fixed_ip"}):
        raise NovaliteError(
            f"network {_shown(entry['name'])} of '{name}' has no option {_shown(unknown[0])}: give name and fixed_ip"
        )
    network, address = _text(name, "network", entry["name"]) or "", entry.get("fixed_ip")
    if address is None:
        return NetworkRequest(network)
    try:
        parsed = parse_address(address if isinstance(address, str) else "", 4)
    except ValueError:
        raise NovaliteError(f"fixed_ip {_shown(address)} of '{name}' is not an IPv4 address") from None
    return NetworkRequest(network, str(parsed))


def _groups_of(name: str, value: Json) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_GROUPS:
        raise NovaliteError(f"security_groups of '{name}': give a list of at most {MAX_GROUPS} names")
    groups = [_text(name, "security group", item) for item in value]
    if not all(groups):
        raise NovaliteError(f"security group '' of '{name}': give a name")
    return tuple(dict.fromkeys(group for group in groups if group))


def _metadata_of(name: str, value: Json) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NovaliteError(f"metadata of '{name}': give a dictionary of texts")
    items: dict[str, str] = {}
    for key, item in value.items():
        if not isinstance(item, str):
            raise NovaliteError(complaint(f"metadata {_shown(key)} of '{name}'", item))
        if not isinstance(key, str) or not 1 <= len(key) <= MAX_TEXT or len(item) > MAX_TEXT:
            raise NovaliteError(
                f"metadata {_shown(key)} of '{name}': give a key of 1 to {MAX_TEXT} and a text of up to {MAX_TEXT} "
                "characters"
            )
        items[key] = item
    return items


def _text(name: str, what: str, value: Json) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT or not is_plain(value):
        raise NovaliteError(f"{what} {_shown(value)} of '{name}': give a name of 1 to {MAX_TEXT} printable characters")
    return value


def _refuse_twice(what: str, values: t.Sequence[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise NovaliteError(f"{what} '{value}' is asked for twice: name each once")
        seen.add(value)


def _shown(value: object, quote: bool = True) -> str:
    """`value` for an error of one line: escaped, and cut, for it may be anything of any length."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("unicode_escape").decode("ascii")
    text = text if len(text) <= 70 else text[:67] + "..."
    return f"'{text}'" if quote else text


def _listed(values: t.Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)
