# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.unit._disk.hostile.jail guests` (or images, or tenants), as root: a corpus on a host whose every
change is seen.

The host is this machine's own root file system under an overlay, in a private mount namespace: whatever is written to
any path of it lies in the overlay's upper directory afterwards, and there alone. /run and /tmp are empty ones. After
each guest and image all of that is compared with what it was before; only the instance's own directory, and the cache,
may differ. Prints one JSON object per case.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import typing as t
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, Rules, ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._disk.config_drive import ConfigDrive, write_config_drives
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import File, Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import INSTANCES, instance_dir
from ansible_collections.novalite.cloud.plugins.module_utils._plan.host_plan import plan_by_host
from ansible_collections.novalite.cloud.plugins.module_utils._rules.guest_requests import (
    GuestRequest,
    wants_config_drive,
)
from tests.unit._disk.hostile.guests import GUESTS, KEY, VICTIM, HostileGuest
from tests.unit._disk.hostile.images import IMAGES, HostileImage

MS_BIND, MS_REC, MS_PRIVATE, CLONE_NEWNS = 0x1000, 0x4000, 0x40000, 0x20000
PR_CAPBSET_DROP, LINUX_CAPABILITY_VERSION_3 = 24, 0x20080522
CAP_SYS_ADMIN, CAP_MKNOD = 21, 27  # to mount, and to attach a loop or nbd device; to make a node for one
REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
STATE = "/var/lib/novalite"
# What a run may leave outside: locks, the empty mount point of injections, and the directories on the way.
ALLOWED = ("run/novalite",)  # and those of this beginning
LIMIT_CPU, LIMIT_MEMORY = 60.0, 1 << 30  # seconds, bytes; of one case with all its processes

_libc = ctypes.CDLL(None, use_errno=True)


def _mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    if _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode() or None):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def enter(work: str) -> str:
    """Make the overlay below `work` and make it the root directory; returns the upper directory, as seen inside."""
    if _libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    _mount("novalite-jail", work, "tmpfs", 0, "size=2g,mode=0755")
    upper, scratch, root = (os.path.join(work, name) for name in ("upper", "work", "root"))
    for path in (upper, scratch, root):
        os.mkdir(path)
    _mount("overlay", root, "overlay", 0, f"lowerdir=/,upperdir={upper},workdir={scratch}")
    for path in ("/proc", "/sys", "/dev"):
        _mount(path, root + path, "none", MS_BIND | MS_REC)
    for needed in {str(REPOSITORY), sys.prefix, sys.base_prefix}:
        if not os.path.exists(root + needed):  # on a file system of its own
            os.makedirs(root + needed, exist_ok=True)
            _mount(needed, root + needed, "none", MS_BIND)
    for path in ("/run", "/tmp"):
        _mount("novalite-jail", root + path, "tmpfs", 0, "mode=0755")
    inside = "/tmp/upper"
    os.mkdir(root + inside)
    _mount(upper, root + inside, "none", MS_BIND)
    os.chroot(root)
    os.chdir("/")
    return inside


def snapshot(root: str, skip: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """Map what is below `root`, by path: kind, mode, owner, size, time, content, links, attributes."""
    entries: dict[str, t.Any] = {}
    for directory, directories, names in os.walk(root):
        relative = os.path.relpath(directory, root)
        directories[:] = [name for name in directories if os.path.normpath(os.path.join(relative, name)) not in skip]
        for name in [*directories, *names]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            entry = [stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid]
            if not stat.S_ISDIR(status.st_mode):  # that of a directory changes with what is in it, which is seen itself
                entry += [status.st_nlink, status.st_rdev, status.st_size, status.st_mtime_ns]
            content = None
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as handle:
                    content = hashlib.sha256(handle.read()).hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            entries[os.path.normpath(os.path.join(relative, name))] = [entry, content]
    return entries


def host(upper: str) -> dict[str, t.Any]:
    """All of the host but the state directory."""
    state = STATE.lstrip("/")
    entries = snapshot(upper, skip=(state,))
    entries.update({f"run/{path}": entry for path, entry in snapshot("/run").items()})
    # a directory on the way to a changed file shows up in the overlay's upper directory, unchanged
    return {
        path: entry
        for path, entry in entries.items()
        if not f"{state}/".startswith(f"{path}/") and not path.startswith(ALLOWED)
    }


def differences(before: dict[str, t.Any], after: dict[str, t.Any]) -> list[str]:
    return sorted(path for path in {**before, **after} if before.get(path) != after.get(path))


def write_everywhere() -> None:
    """Do what an escape could do, so that it is known to be seen."""
    os.mkdir("/etc/new")
    for path in ("/etc/new/x", "/run/y", f"{STATE}/mine"):
        pathlib.Path(path).touch()
    os.chmod("/etc/passwd", 0o600)
    os.unlink("/etc/group")
    os.symlink("/", "/usr/z")


def devices() -> list[str]:
    return sorted(name for name in os.listdir("/dev") if not name.startswith("loop"))


def mounts() -> list[str]:
    lines = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if "novalite" in line.split()[1]]


def measured(work: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
    """Run `work` in a child; returns what it does, with its time and memory and those of all its processes."""
    read_end, write_end = os.pipe()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read_end)
            # the soft limit kills, and may be raised by prlimit
            resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT_CPU), resource.RLIM_INFINITY))
            os.write(write_end, json.dumps(work()).encode())
            status = 0
        except BaseException as error:
            os.write(write_end, json.dumps({"crash": f"{type(error).__name__}: {error}"}).encode())
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as handle:
        text = handle.read()
    _pid, _status, usage = os.wait4(pid, 0)
    result: dict[str, t.Any] = json.loads(text or '{"crash": "it was killed"}')
    result.update(
        seconds=round(time.monotonic() - began, 2),
        cpu=round(usage.ru_utime + usage.ru_stime, 2),
        memory=usage.ru_maxrss << 10,
    )
    return result


def inject(image: pathlib.Path, guest: HostileGuest) -> dict[str, t.Any]:
    """Register the file system, make a disk on it and write the owner's key into it, through the public functions."""
    checksum = f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"
    instance = str(uuid.uuid4())
    result: dict[str, t.Any] = {"refusal": None}
    try:
        pushed = Image(checksum, str(image), disk_format="raw", staged=str(image))
        ensure_images([pushed], STATE, rules=Rules(pushed=True))
        create_disks([Disk(instance, checksum)], STATE)
        files = tuple(File(path, b"content") for path in guest.files)
        request = Request(instance, (KEY,), guest.user, "web-1", files=files)
        result["written"] = inject_all([request], STATE, "fuse")["instances"][0]["written"]
        result["again"] = inject_all([request], STATE, "fuse")["changed"]
        result["has_key"] = _key(instance_dir(STATE, instance), KEY)
    except NovaliteError as error:
        result["refusal"] = str(error)
    finally:
        remove_disks([Disk(instance)], STATE)
        shutil.rmtree(layout.base_dir(STATE))
    return result


def tell(image: pathlib.Path, guest: HostileGuest, properties: dict[str, str]) -> dict[str, t.Any]:
    """Do what a host does for an instance of a tenant's image before its domain is defined, as the controller plans it.

    The kernel refuses this process every mount, and every loop and nbd device.
    """
    checksum = f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"
    instance = planned_instance(str(uuid.uuid4()), checksum, str(image), image.stat().st_size, properties)
    request = GuestRequest(files=tuple((path, "eA==") for path in guest.files))
    instance["config_drive"] = wants_config_drive(request, instance["image"])
    instance["guest"] = {"files": request.file_records}
    plan = plan_by_host([instance], {}, lambda *_: "")["hv1"]
    pushed = Image(checksum, str(image), disk_format="raw", staged=str(image))
    result: dict[str, t.Any] = {"refusal": None, "injections": len(plan.injections)}
    _renounce(CAP_SYS_ADMIN, CAP_MKNOD)
    try:
        ensure_images([pushed], STATE, rules=Rules(pushed=True))
        disk = create_disks([Disk(instance["uuid"], checksum)], STATE)["disks"][0]["path"]
        before = pathlib.Path(disk).read_bytes()
        requests = [
            Request(injection["uuid"], tuple(injection["keys"]), injection["user"]) for injection in plan.injections
        ]
        result["injected"] = inject_all(requests, STATE, "fuse")["changed"]
        (drive,) = plan.config_drives
        contents = {path: base64.b64decode(text) for path, text in drive["files"].items()}
        config_drive = ConfigDrive(drive["uuid"], drive["format"], contents)
        (written,) = write_config_drives([config_drive], STATE)["config_drives"]
        result["has_key"] = KEY.encode() in pathlib.Path(written["path"]).read_bytes()
        result["unread"] = pathlib.Path(disk).read_bytes() == before
    except NovaliteError as error:
        result["refusal"] = str(error)
    finally:
        remove_disks([Disk(instance["uuid"])], STATE)
        shutil.rmtree(layout.base_dir(STATE))
    return result


def planned_instance(number: str, checksum: str, source: str, size: int, properties: dict[str, str]) -> t.Any:
    """An Instance dict, as the ledger has it, of an image with these properties."""
    image = {
        "id": "i1",
        "name": "theirs",
        "disk_format": "raw",
        "source": source,
        "checksum": checksum,
        "size": size,
        "virtual_size": size,
        "kernel": None,
        "ramdisk": None,
        "cmdline": "",
        "properties": properties,
    }
    flavor = {"name": "m1", "vcpus": 1, "memory_mb": 64, "root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0}
    return {
        "id": 1,
        "uuid": number,
        "name": "web-1",
        "hostname": "web-1",
        "domain_name": "instance-00000001",
        "host": "hv1",
        "flavor": flavor,
        "image": image,
        "key": {"name": "me", "public_key": KEY},
        "nics": [],
        "security_groups": [],
        "volumes": [],
        "metadata": {},
        "availability_zone": None,
        "vm_state": "building",
        "project": {"id": "p", "name": "p"},
        "launched_at": None,
        "created_at": 0,
        "index": 0,
        "tags": [],
    }


def _renounce(*capabilities: int) -> None:
    """Go on without these, for good, whatever is executed."""
    for capability in capabilities:
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    header = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()
    if _libc.capget(header, held):
        raise OSError(ctypes.get_errno(), "capget")
    for capability in capabilities:
        for number in range(3):  # effective, permitted, inheritable
            held[number] &= ~(1 << capability)
    if _libc.capset(header, held):
        raise OSError(ctypes.get_errno(), "capset")


def _key(directory: str, key: str) -> bool:
    """Tell whether the disk holds the key, by another way than the code under test."""
    raw = os.path.join(directory, "raw")
    disk = os.path.join(directory, "disk")
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", disk, raw], check=True)
    with open(raw, "rb") as handle:
        return key.encode() in handle.read()


def register(path: pathlib.Path, hostile: HostileImage) -> dict[str, t.Any]:
    """Push a hostile disk image into the cache."""
    with open(path, "rb") as handle:
        checksum = f"sha256:{hashlib.sha256(handle.read()).hexdigest()}"
    options: dict[str, t.Any] = {"disk_format": hostile.declared, "staged": str(path), **dict(hostile.options)}
    try:
        ensure_images([Image(checksum, str(path), **options)], STATE, rules=Rules(pushed=True))
    except NovaliteError as error:
        return {"refusal": str(error), "cached": os.listdir(os.path.join(STATE, "_base"))}
    return {"refusal": None}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="novalite-jail-") as work:
        upper = enter(work)
        os.mkdir(VICTIM)
        passwd = "root:x:0:0::/victim:/bin/sh\n"
        for name, content in (("file", "untouched\n"), ("hostname", "host\n"), ("passwd", passwd)):
            pathlib.Path(VICTIM, name).write_text(content)
        shutil.rmtree(STATE, ignore_errors=True)
        os.makedirs(STATE)
        before, nodes = host(upper), devices()
        if sys.argv[1] == "self-test":
            write_everywhere()
            print(json.dumps({"name": "self-test", "seen": differences(before, host(upper))}))
            return
        corpora: dict[str, tuple[HostileGuest | HostileImage, ...]] = {
            "guests": GUESTS,
            "images": IMAGES,
            "tenants": GUESTS,
            "vouched": GUESTS[:1],
        }
        cases = corpora[sys.argv[1]]
        for case in cases:
            directory = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
            if isinstance(case, HostileGuest) and sys.argv[1] in ("tenants", "vouched"):
                properties = {"os_host_mount": "yes"} if sys.argv[1] == "vouched" else {}
                result = measured(functools.partial(tell, case.build(directory), case, properties))
            elif isinstance(case, HostileGuest):
                result = measured(functools.partial(inject, case.build(directory), case))
            else:
                case.write(directory / "image")
                result = measured(functools.partial(register, directory / "image", case))
            result["touched"] = differences(before, host(upper))
            result["left"] = sorted(os.listdir(os.path.join(STATE, INSTANCES)))
            result["mounts"] = mounts()
            result["nodes"] = [name for name in devices() if name not in nodes]
            print(json.dumps({"kind": type(case).__name__, "name": case.name, **result}), flush=True)
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
