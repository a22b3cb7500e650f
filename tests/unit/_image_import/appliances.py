# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of other hypervisors and appliances, made for the tests: good ones by qemu-img, others byte by byte."""

from __future__ import annotations

import hashlib
import pathlib
import struct
import subprocess
import typing as t

SIZE = 4 << 20  # bytes of the disks
FORMATS = {
    "vmdk": ("vmdk", "subformat=streamOptimized"),
    "vhd": ("vpc", "force_size=on"),
    "vhdx": ("vhdx", "subformat=dynamic"),
    "vdi": ("vdi", "static=off"),
}
OVF = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
 xmlns:vmw="http://www.vmware.com/schema/ovf">
 <References>{files}</References>
 <DiskSection>{disks}</DiskSection>
 <VirtualSystem ovf:id="web"><VirtualHardwareSection>
  <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType>
   <rasd:VirtualQuantity>{vcpus}</rasd:VirtualQuantity></Item>
  <Item><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType>
   <rasd:AllocationUnits>{units}</rasd:AllocationUnits><rasd:VirtualQuantity>{memory}</rasd:VirtualQuantity></Item>
  <Item><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceType>6</rasd:ResourceType></Item>
  <Item><rasd:InstanceID>4</rasd:InstanceID><rasd:ResourceType>10</rasd:ResourceType>
   <rasd:Connection>VM Network</rasd:Connection></Item>
  {drives}{more}
 </VirtualHardwareSection></VirtualSystem>
</Envelope>"""
VMDK_URI = "http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"
EFI = '<vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>'


def raw_disk(path: pathlib.Path) -> pathlib.Path:
    """A disk with a boot signature, and something at its beginning, in its middle and at its end."""
    data = bytearray(SIZE)
    data[510:512] = b"\x55\xaa"
    for position in (1024, SIZE // 2, SIZE - 512):
        data[position : position + 512] = hashlib.sha512(str(position).encode()).digest() * 8
    path.write_bytes(data)
    return path


def converted(raw: pathlib.Path, disk_format: str) -> pathlib.Path:
    driver, options = FORMATS[disk_format]
    path = raw.with_suffix(f".{disk_format}")
    argv = ["qemu-img", "convert", "-f", "raw", "-O", driver, "-o", options, str(raw), str(path)]
    subprocess.run(argv, check=True)
    return path


def raw_of(path: str, disk_format: str = "qcow2") -> bytes:
    """The bytes that a guest sees."""
    argv = ["qemu-img", "convert", "-f", disk_format, "-O", "raw", path, f"{path}.seen"]
    subprocess.run(argv, check=True)
    seen = pathlib.Path(f"{path}.seen")
    data = seen.read_bytes()
    seen.unlink()
    return data


def descriptor(names: t.Sequence[str], **changes: t.Any) -> bytes:
    """An OVF descriptor with a disk for each of the files `names`, which are written in the reverse of their order."""
    numbered = list(enumerate(names))
    values = {
        "vcpus": 2,
        "memory": 512,
        "units": "byte * 2^20",
        "more": "",
        "files": "".join(f'<File ovf:id="file{n}" ovf:href="{file}"/>' for n, file in numbered),
        "disks": "".join(
            f'<Disk ovf:diskId="disk{n}" ovf:fileRef="file{n}" ovf:capacity="4" ovf:format="{VMDK_URI}"/>'
            for n, _file in numbered
        ),
        "drives": "".join(
            f"<Item><rasd:AddressOnParent>{n}</rasd:AddressOnParent>"
            f"<rasd:HostResource>ovf:/disk/disk{n}</rasd:HostResource><rasd:InstanceID>{10 + n}</rasd:InstanceID>"
            "<rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>"
            for n, _file in reversed(numbered)
        ),
    }
    return OVF.format(**{**values, **changes}).encode()


def member(name: str, data: bytes, kind: bytes = b"0", size: int | None = None, link: str = "") -> bytes:
    """A member of a tar archive, as its header says, right or wrong."""
    length = len(data) if size is None else size
    header = bytearray(
        struct.pack(
            "100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12x",
            *(name.encode()[:100], b"0000644\0", b"0000000\0", b"0000000\0", b"%011o\0" % length, b"00000000000\0"),
            *(b" " * 8, kind, link.encode(), b"ustar\x0000", b"", b"", b"", b"", b""),
        )
    )
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data + bytes(-len(data) % 512)


def archive(path: pathlib.Path, *members: bytes) -> pathlib.Path:
    path.write_bytes(b"".join(members) + bytes(1024))
    return path


def manifest(files: t.Mapping[str, bytes]) -> bytes:
    return "".join(f"SHA256({name})= {hashlib.sha256(data).hexdigest()}\n" for name, data in files.items()).encode()
