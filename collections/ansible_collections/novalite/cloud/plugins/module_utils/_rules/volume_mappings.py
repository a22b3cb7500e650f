# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are volumes: their property `block_device_mapping`, as Nova writes it, names snapshots of these.

Whoever owns an image may have written anything there. Plain data in, plain data out.
"""

from __future__ import annotations

import json
import typing as t

from .._errors import NovaliteError
from .._guest.image_properties import PRIVATE
from .._json import JsonMapping
from .._model.instance import Image
from .server_options import MAX_VOLUMES
from .volume_asks import SNAPSHOT, VolumeRequest

LAUNCHED_FROM = f"{PRIVATE}image"  # property of an instance's image: the id of the one that named its volumes
BOOT_SEQUENCE = (
    "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not "
    "valid."
)
# what an instance keeps as its image that starts from a volume of which nobody knows an image
NO_IMAGE: Image = {
    "id": "",
    "name": "",
    "disk_format": "raw",
    "source": "",
    "checksum": f"sha256:{'0' * 64}",
    "size": 0,
    "virtual_size": 0,
    "kernel": None,
    "ramdisk": None,
    "cmdline": "",
    "min_disk_gb": 0,
    "min_ram_mb": 0,
    "properties": {},
}

PROPERTY = "block_device_mapping"
ROOT_DEVICE = "/dev/vda"
MAX_LENGTH = 65535  # of the text
_MAX_ID = 64


def written(mappings: t.Sequence[JsonMapping]) -> dict[str, str]:
    """The properties of an image of these devices: each with snapshot_id, volume_size, boot_index and so on."""
    text = json.dumps(
        [
            {
                **{"source_type": "snapshot", "destination_type": "volume", "guest_format": None, "image_id": None},
                **{"device_type": "disk", "disk_bus": "virtio", "no_device": None, "volume_id": None},
                **mapping,
            }
            for mapping in mappings
        ]
    )
    return {PROPERTY: text, "bdm_v2": "True", "root_device_name": ROOT_DEVICE}


def volumes_of(image: JsonMapping) -> tuple[VolumeRequest, ...]:
    """The volumes that a server gets which is launched from this image record; none of one that holds a disk. Raises
    NovaliteError for a mapping that cannot be read."""
    text = (image.get("properties") or {}).get(PROPERTY)
    if not text:
        return ()
    try:
        devices = json.loads(text)
        if not isinstance(devices, list) or not 0 < len(devices) <= MAX_VOLUMES:
            raise ValueError(f"give a list of 1 to {MAX_VOLUMES} devices")
        return tuple(_volume(device) for device in devices)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise NovaliteError(
            f"Block Device Mapping is Invalid: property {PROPERTY} of image {image['id']}: {str(error)[:80]}"
        ) from None


def merged(image: JsonMapping, requested_volumes: tuple[VolumeRequest, ...]) -> tuple[VolumeRequest, ...]:
    """The volumes that the request for a server asks for, and the image's that it does not replace: by the same device,
    or by another disk to start from. Raises NovaliteError."""
    taken = {volume.device for volume in requested_volumes if volume.device}
    boots = any(volume.boot for volume in requested_volumes)
    own = [volume for volume in volumes_of(image) if volume.device not in taken and not (boots and volume.boot)]
    return (*own, *requested_volumes)


def _volume(device: JsonMapping) -> VolumeRequest:
    size, snapshot = device.get("volume_size"), device.get("snapshot_id")
    if not isinstance(snapshot, str) or not 0 < len(snapshot) <= _MAX_ID:
        raise ValueError("each device needs a snapshot_id")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**31):
        raise ValueError("volume_size is in GiB")
    boot = device.get("boot_index") in (0, "0")
    name = device.get("device_name")
    return VolumeRequest(
        source=SNAPSHOT,
        of=snapshot,
        size_gb=size,
        boot=boot,
        device=None if boot or not isinstance(name, str) else name,
        delete_on_termination=device.get("delete_on_termination") is True,
    )
