# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the commands of chapters as they are printed, against the hypervisors of the lab in HOME, and compare what comes
of them with expected.yml.

::

    unshare --mount --propagation private -- python -P -m tests.molecule.chapters HOME [CHAPTER ...]

Everything of it is in a directory below HOME and in /srv, which is a file system in memory here.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import typing as t

from tests.molecule.chapters.printed import ROOT, Chapter, chapter, expected, pattern

SCENARIO = pathlib.Path(__file__).parent
LONGEST = 600  # seconds for one command


class Shell:
    """A shell of a user's: what one command exports, and where it goes, holds for the next one."""

    def __init__(self, directory: pathlib.Path, home: pathlib.Path) -> None:
        self.directory = directory
        self.state = home / "environment"
        self.printed = ""  # by all commands of chapters so far
        self.environment = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            # of other collections: the tests have no Galaxy
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
            "PIP_CACHE_DIR": os.path.expanduser("~/.cache/pip"),
            **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        }

    def __call__(self, command: str, stdin: str = "", directory: pathlib.Path | None = None) -> tuple[int, str]:
        """Run the command; return its status, and what it printed."""
        script = f"{command}\nstatus=$?; env -0 >{self.state}; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=directory or self.directory,
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        pairs = [pair.partition("=") for pair in self.state.read_text().split("\0") if pair]
        self.environment = {name: value for name, _, value in pairs if name not in ("PWD", "OLDPWD", "SHLVL", "_")}
        return done.returncode, done.stdout

    def named(self, noun: str, column: str) -> dict[str, str]:
        """Return a column of `novalite <noun>`, by name."""
        status, text = self(f"novalite {noun.replace(',', ' ')} -o json -c name,{column} 2>&1")
        if status:
            raise SystemExit(f"novalite {noun} ended with {status}: {text}")
        return {row["name"]: str(row[column] or "") for row in json.loads(text)}


def prepare(home: pathlib.Path, directory: pathlib.Path) -> None:
    """Lay out what the chapters expect of a reader: an image, a key, an inventory with two hosts, and their files."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/srv"], check=True)
    pathlib.Path("/srv/images").mkdir()
    shutil.copy(
        pathlib.Path(os.environ["NOVALITE_IMAGES"]) / "disk-tiny.qcow2",
        "/srv/images/debian-12-genericcloud-amd64.qcow2",
    )
    shutil.rmtree(directory.parent, ignore_errors=True)
    (directory / "hosts/group_vars").mkdir(parents=True)
    (directory.parent / ".ssh").mkdir(mode=0o700)
    shutil.copy(home / "lab/test_key", directory.parent / ".ssh/id_ed25519")
    shutil.copy(home / "lab/test_key.pub", directory.parent / ".ssh/id_ed25519.pub")
    # the inventory as printed; the addresses are the lab's
    (directory / "hosts/lab.yml").write_text((SCENARIO / "inventory/hosts.yml").read_text())
    shutil.copy(SCENARIO / "inventory/group_vars/compute.yml", directory / "hosts/group_vars/compute.yml")
    (directory / "hosts/group_vars/all.yml").write_text(f"novalite_identity_file: {directory.parent}/.ssh/id_ed25519\n")


def write_files(directory: pathlib.Path, files: t.Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        (path / name if path.is_dir() else path).write_text(text)


def differences(shell: Shell, step: t.Mapping[str, t.Any], status: int, output: str) -> list[str]:
    """Return what did not come as the `step` says."""
    problems = [] if status == step.get("status", 0) else [f"it ended with {status}"]
    problems += [f"it did not print {text!r}" for text in step.get("says", ()) if text not in output]
    for look, expected_column in step.get("shows", {}).items():
        noun, column = look.split()
        is_ = shell.named(noun, column)
        alike = is_.keys() == expected_column.keys() and all(
            re.fullmatch(str(expected_column[name]), is_[name]) for name in is_
        )
        problems += [] if alike else [f"`novalite {noun}` shows the {column} {is_}, not {expected_column}"]
    return problems


def run(shell: Shell, name: str, page: Chapter, steps: list[dict[str, t.Any]]) -> list[str]:
    """Run a chapter; return what went wrong, with the output of the command."""
    wrong: list[str] = []
    for step in steps:
        command = step.get("run") or step["given"]
        before = shell.named("list", "host") if "moves" in step else {}
        began = time.monotonic()
        status, output = shell(command, step.get("stdin", ""), ROOT if step.get("in") == "checkout" else None)
        problems = differences(shell, step, status, output)
        # a login: an emulated guest may be too busy to answer in time
        for _again in range(4 if "stdin" in step else 0):
            if problems:
                status, output = shell(command, step["stdin"])
                problems = differences(shell, step, status, output)
        if "moves" in step:
            after = shell.named("list", "host")
            moved = sorted(server for server, host in after.items() if host != before.get(server))
            problems += [] if moved == step["moves"] else [f"other servers moved: {moved}"]
        print(f"{name}: {time.monotonic() - began:4.0f} s  {command}", flush=True)
        wrong += [f"{name}: `{command}`: {problem}" for problem in problems]
        if problems:
            print("\n".join([*problems, output]), flush=True)
        shell.printed += f"{command}\n{output}\n"
    for output in page.outputs:
        if not pattern(output).search(shell.printed):
            wrong.append(f"{name}: nothing printed this:\n{output}")
    return wrong


def main() -> None:
    home, chosen = pathlib.Path(sys.argv[1]), sys.argv[2:]
    directory = home / "reader/empty"
    chapters = expected()
    prepare(home, directory)
    shell = Shell(directory, directory.parent)
    pages = {name: chapter(name) for name in chapters}
    for page in pages.values():
        write_files(directory, page.files)
    wrong = []
    for name, steps in chapters.items():
        if not chosen or name in ("README", "install", *chosen):
            wrong += run(shell, name, pages[name], steps)
    sys.exit("\n".join(wrong) or None)  # an empty text is a failure, too


if __name__ == "__main__":
    main()
