#!/usr/bin/python3
"""check_disks.py DIRECTORY BARE MBR GPT <INSTANCES: what is in the disks that were carried from a hypervisor.

DIRECTORY has one directory per instance with its `disk`, an overlay on BARE, MBR and GPT in turn. INSTANCES is JSON: a
list of uuid, keys (all that a disk may have) and hostname. Each disk is made whole (`whole` beside it) and checked with
qemu-img, e2fsck and debugfs; every difference is a line, and the return code 1.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import typing as t

PARTITION = 1048576  # byte at which partition 1 begins
# what `debugfs stat` says: type, mode, user, group
OWNED_BY_ROOT = r"Type: (\w+) +Mode: +(\d+)(?s:.*?)User: +(\d+) +Group: +(\d+)"


class CheckError(Exception):
    """A tool found something wrong."""


def run(*argv: str | pathlib.Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise CheckError(f"{argv[0]}: {done.stdout.strip()} {done.stderr.strip()}")
    return done.stdout


def make_whole(directory: pathlib.Path, base: pathlib.Path) -> pathlib.Path:
    """The disk without its backing file: whatever path it has in its header, `base` is what it lies on."""
    overlay = "json:" + json.dumps(
        {
            "driver": "qcow2",
            "file": {"driver": "file", "filename": str(directory / "disk")},
            "backing": {"driver": "raw", "file": {"driver": "file", "filename": str(base)}},
        }
    )
    run("qemu-img", "check", "-q", overlay)
    run("qemu-img", "convert", "-O", "raw", overlay, directory / "raw")
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", directory / "raw", directory / "whole")
    return directory / "raw"


def differences(instance: dict[str, t.Any], directory: pathlib.Path, base: pathlib.Path, offset: int) -> list[str]:
    try:
        raw = make_whole(directory, base)
        run("e2fsck", "-f", "-n", f"{raw}?offset={offset}")
        wrong = look(instance, f"{raw}?offset={offset}")
        raw.unlink()
    except CheckError as error:
        wrong = [str(error)]
    return [f"{instance['hostname']}: {line}" for line in wrong]


def look(instance: dict[str, t.Any], root: str) -> list[str]:
    wrong = []
    for path, want in (
        ("/root/.ssh", ("directory", "0700", "0", "0")),
        ("/root/.ssh/authorized_keys", ("regular", "0600", "0", "0")),
    ):
        said = run("debugfs", "-R", f"stat {path}", root)
        inode_match = re.search(OWNED_BY_ROOT, said)
        if inode_match is None or inode_match.groups() != want:
            wrong.append(f"{path} is {inode_match.groups() if inode_match else said!r}, want {want}")
    lines = run("debugfs", "-R", "cat /root/.ssh/authorized_keys", root).splitlines()
    keys = [line for line in lines if line and not line.startswith("#")]
    if keys != instance["keys"]:
        wrong.append(f"keys are {keys}, want {instance['keys']}")
    hostname = run("debugfs", "-R", "cat /etc/hostname", root).strip()
    if hostname != instance["hostname"]:
        wrong.append(f"host name is {hostname!r}, want {instance['hostname']!r}")
    return wrong


def main() -> None:
    carried, *images = map(pathlib.Path, sys.argv[1:])
    bases = [carried / f"base-{number}" for number in range(3)]
    for base, image in zip(bases, images):
        run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", image, base)
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = []
        for number, instance in enumerate(json.load(sys.stdin)):
            form = number % 3  # bare, MBR, GPT
            directory, offset = carried / instance["uuid"], PARTITION if form else 0
            jobs.append(pool.submit(differences, instance, directory, bases[form], offset))
        for job in jobs:
            wrong += job.result()
    print("\n".join(wrong) or f"{len(jobs)} disks as they should be")
    sys.exit(bool(wrong))


main()
