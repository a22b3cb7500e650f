# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to create servers, translated into the ledger's terms. Impossible ones are refused in Nova's words."""

from __future__ import annotations

import base64
import binascii
import secrets
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.texts import parse_address
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain
from ansible_collections.novalite.cloud.plugins.module_utils._rules import guest_requests, hints, volume_mappings
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_options import MAX_VOLUMES
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import (
    CreateRequest,
    Labels,
    NetworkRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_asks import (
    BLANK,
    IMAGE,
    VOLUME,
    VolumeRequest,
    root_of,
)

from ....web.bodies import Record
from ....web.errors import BadRequestError, as_bad_request
from .schemas import TRUE

PASSWORD_LENGTH = 12  # Nova's; of these characters, more than 70 bits
PASSWORD_CHARACTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"  # none that looks like another


class ServerRequest(t.NamedTuple):
    create_request: CreateRequest
    password: str
    forced_host: str | None  # what only an administrator may ask for
    reservation_only: bool
    group_names: list[str]  # as the answer repeats them


def parse(body: Record) -> ServerRequest:
    """A body that its schema allows. Raises BadRequestError."""
    server = body["server"]
    name = shown_name(server["name"])
    least = int(server.get("min_count", 1))
    most = int(server.get("max_count", least))
    if least > most:
        raise BadRequestError("min_count must be <= max_count")
    zone, forced = _zone(server)
    group_names = [group["name"] for group in server.get("security_groups") or () if "name" in group]
    generated = not server.get("adminPass")
    password = new_password() if generated else server["adminPass"]
    for_scheduler = _hints(name, body)
    for_scheduler.pop("host", None)  # ours alone: a user who names one is sent anywhere
    if forced is not None:
        for_scheduler["host"] = forced
    image, volumes, image_disk = _devices(server)
    if most > 1 and any(volume.source == VOLUME for volume in volumes):
        raise BadRequestError("Block Device Mapping is Invalid: one volume goes to one server: ask for one at a time.")
    create_request = CreateRequest(
        name=name,
        min_count=least,
        max_count=most,
        flavor=str(server["flavorRef"]),
        image=image,
        image_disk=image_disk,
        volumes=volumes,
        key=server.get("key_name"),
        networks=_networks(server.get("networks")),
        security_groups=tuple(group_names),
        availability_zone=zone,
        hostname=server.get("hostname") or "",
        metadata=server.get("metadata") or {},
        hints=for_scheduler,
        guest=_guest(name, server, password, generated),
        labels=Labels(
            description=text(server.get("description"), "description"),
            tags=tuple(dict.fromkeys(server.get("tags") or ())),
            **access_addresses(server),
            disk_config=server.get("OS-DCF:diskConfig", "MANUAL"),
        ),
    )
    return ServerRequest(create_request, password, forced, server.get("return_reservation_id") in TRUE, group_names)


def shown_name(name: str) -> str:
    """A name that people are shown. Raises BadRequestError for one of blanks, or with control characters."""
    name = name.strip()
    if not name or not is_plain(name):
        raise BadRequestError(
            "Invalid input for field/attribute name. A name is 1 to 255 characters that can be printed, "
            "and not all of them blanks."
        )
    return name


def text(value: str | None, what: str) -> str | None:
    if value is not None and not is_plain(value, allowed="\n\t\r"):
        raise BadRequestError(f"Invalid input for field/attribute {what}. It holds characters that cannot be printed.")
    return value


def column_values(server: Record) -> Record:
    """Return what a request changes of a server, by columns of the ledger. Raises BadRequestError."""
    values: Record = {}
    if "name" in server:
        values["display_name"] = shown_name(server["name"])
    if "description" in server:
        values["description"] = text(server["description"], "description")
    if "hostname" in server:
        values["hostname"] = server["hostname"].lower()
    addresses = access_addresses(server)
    values |= {
        f"access_ip_v{version}": addresses[f"access_ip_v{version}"]
        for version in (4, 6)
        if f"accessIPv{version}" in server
    }
    if "OS-DCF:diskConfig" in server:
        values["disk_config"] = server["OS-DCF:diskConfig"]
    return values


def access_addresses(server: Record) -> dict[str, str | None]:
    """accessIPv4 and accessIPv6 as the ledger has them: null, or an address. Raises BadRequestError."""
    addresses: dict[str, str | None] = {"access_ip_v4": None, "access_ip_v6": None}
    for version in (4, 6):
        address = server.get(f"accessIPv{version}")
        if address:
            try:
                addresses[f"access_ip_v{version}"] = str(parse_address(address, version))
            except ValueError:
                raise BadRequestError(
                    f"Invalid input for field/attribute accessIPv{version}. Value: {address[:45]}. It is not an "
                    f"address of IPv{version}."
                ) from None
    return addresses


def _zone(server: Record) -> tuple[str | None, str | None]:
    """The availability zone, and the host that is asked for, with it ("zone:host") or beside it."""
    zone, _colon, host = (server.get("availability_zone") or "").partition(":")
    host, _colon, node = host.partition(":")
    if node and host and node != host:
        raise BadRequestError(f"The requested availability zone is not available: no host {host} has a node {node}")
    host_names = {name for name in (host or node, server.get("host"), server.get("hypervisor_hostname")) if name}
    if len(host_names) > 1:
        raise BadRequestError(f"No host has all of these names: {', '.join(sorted(host_names))}")
    return zone or None, next(iter(host_names), None)


class Devices(t.NamedTuple):
    """The image's id (None: there is none, or the volume's own is taken); the volumes that the server gets; whether the
    image is to be a disk of its own."""

    image: str | None
    volumes: tuple[VolumeRequest, ...]
    image_disk: bool


def _devices(server: Record) -> Devices:
    """Judge the boot sequence as Nova does: the indexes that are not negative go from 0 on without a gap."""
    image: str = server.get("imageRef") or ""
    if server.get("block_device_mapping"):
        raise BadRequestError("Block Device Mapping is Invalid: use block_device_mapping_v2.")
    devices = server.get("block_device_mapping_v2") or ()
    volumes: list[VolumeRequest] = []
    for device in devices:
        boot = _boot_index(device) == 0
        if device.get("source_type") == IMAGE and device.get("destination_type") in ("local", None):
            if not boot or not image or image != device.get("uuid"):
                raise BadRequestError(
                    "Block Device Mapping is Invalid: Mapping image to local is not supported, but for the image of "
                    "imageRef at boot_index 0."
                )
        else:
            volumes.append(_volume(device, boot))
    boots = sorted(index for index in map(_boot_index, devices) if index >= 0)
    if not image and not devices:
        raise BadRequestError("Invalid imageRef provided.")  # which is what most clients forget
    if boots != list(range(len(boots))) or (not boots and not image):
        raise BadRequestError(volume_mappings.BOOT_SEQUENCE)
    if len(volumes) > MAX_VOLUMES:
        raise BadRequestError(f"Block Device Mapping is Invalid: a server gets at most {MAX_VOLUMES} volumes.")
    root = root_of(volumes)
    # beside a volume the image only describes the server; of images and snapshots the volume itself tells more
    kept = image if root is None or root.source in (BLANK, VOLUME) else None
    return Devices(kept or None, tuple(volumes), not devices or (root is None and bool(boots)))


def _boot_index(device: Record) -> int:
    index = device.get("boot_index")
    return -1 if index is None else int(index)


def _volume(device: Record, boot: bool) -> VolumeRequest:
    source = device.get("source_type", VOLUME)
    if device.get("destination_type", "volume") not in ("volume", None) or device.get("no_device"):
        raise BadRequestError("Block Device Mapping is Invalid: a local disk beside the flavor's cannot be had.")
    of = device.get("uuid")
    size = device.get("volume_size")
    if size in (None, ""):
        size = None
    elif isinstance(size, bool) or not str(size).isdigit() or not 0 < int(size) < 2**31:
        raise BadRequestError("Invalid input for field/attribute volume_size. Value must be a number of GiB.")
    if source == BLANK and (size is None or of):
        raise BadRequestError("Block Device Mapping is Invalid: a blank volume has a size, and no uuid.")
    if source != BLANK and not of:
        raise BadRequestError("Block Device Mapping is Invalid: block device mapping needs a uuid.")
    if source == IMAGE and size is None:
        raise BadRequestError(
            "Block Device Mapping is Invalid: Images with destination_type 'volume' need to have a non-zero size "
            "specified"
        )
    return VolumeRequest(
        source=source,
        of=of,
        size_gb=None if size is None else int(size),
        type=device.get("volume_type") or None,
        boot=boot,
        device=device.get("device_name"),
        tag=device.get("tag"),
        delete_on_termination=device.get("delete_on_termination") in TRUE,
    )


def _networks(value: str | list[Record] | None) -> tuple[NetworkRequest, ...] | None:
    if value == "none":
        return ()
    if not value or isinstance(value, str):  # "auto"
        return None
    network_requests = []
    for network in value:
        if network.get("port") is not None:
            if network.get("fixed_ip") is not None:
                raise BadRequestError(
                    f"Specified Fixed IP '{network['fixed_ip']}' cannot be used with port '{network['port']}'."
                )
            network_requests.append(NetworkRequest("", port=network["port"].lower()))
            continue
        if network.get("uuid") is None:
            raise BadRequestError("Bad network format: missing 'uuid'")
        network_requests.append(NetworkRequest(network["uuid"].lower(), _address(network.get("fixed_ip"))))
    ports = [network.port for network in network_requests if network.port is not None]
    if len(set(ports)) != len(ports):
        raise BadRequestError(f"Port {ports[0]} is given twice: a server has a port once")
    return tuple(network_requests)


def _address(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return str(parse_address(value, 4))
    except ValueError:
        raise BadRequestError(f"Invalid fixed IP address ({value}): give an IPv4 address") from None


def _hints(name: str, body: Record) -> Record:
    scheduler_hints = body.get("os:scheduler_hints") or body.get("OS-SCH-HNT:scheduler_hints") or {}
    with as_bad_request():
        return hints.checked(name[:70], {"hints": scheduler_hints})


def check_base64(user_data: str) -> None:
    """Raises BadRequestError for user data that is none."""
    try:
        base64.b64decode("".join(user_data.split()).encode(), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequestError("Invalid input for field/attribute user_data. It must be encoded in base64.") from None


def files(personality: t.Iterable[Record]) -> list[dict[str, str]]:
    """The files of a request, as guest_requests takes them."""
    return [{"path": file["path"], "content": file["contents"], "encoding": "base64"} for file in personality]


def new_password() -> str:
    return "".join(secrets.choice(PASSWORD_CHARACTERS) for _char in range(PASSWORD_LENGTH))


def _guest(name: str, server: Record, password: str, generated: bool) -> guest_requests.GuestRequest:
    check_base64(server.get("user_data") or "")
    config_drive = server.get("config_drive")
    try:
        return guest_requests.checked(
            name[:70],
            {
                "user_data": server.get("user_data"),
                "user_data_encoding": guest_requests.BASE64,
                "config_drive": None if config_drive in (None, "") else config_drive in TRUE,
                "files": files(server.get("personality") or ()) or None,
                "password_hash": guest_requests.hashed(name[:70], password, generated),
                "password_optional": generated,
            },
        )
    except NovaliteError as error:
        raise BadRequestError(str(error)) from None
