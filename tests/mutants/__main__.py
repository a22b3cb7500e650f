# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put single wrong lines into the sources, one at a time, and look whether the nearest tests notice.

`python -m tests.mutants [NAME ...]` tries all of mutants.yml, or some, in copies of the tree; `make mutants` tries all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import time

from .listed import ROOT, Mutant, mutants

PATIENCE = 900  # seconds for the nearest tests of one: who takes longer has been noticed


def copy_of_tree(directory: pathlib.Path) -> pathlib.Path:
    """A copy of what git knows of this tree, and links to what bootstrap made."""
    copy = pathlib.Path(tempfile.mkdtemp(dir=directory))
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if os.path.lexists(ROOT / name):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    for made in (".venv", ".cache"):
        (copy / made).symlink_to(ROOT / made)
    return copy


def is_noticed(mutant: Mutant, copy: pathlib.Path) -> bool:
    """Tell whether the nearest tests fail with it."""
    path = copy / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    environment = {**os.environ, "PYTHONPATH": str(copy / "collections"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(text)
    if done.returncode not in (0, 1):  # the tests themselves could not be run
        raise RuntimeError(f"{mutant.name}: pytest ended with {done.returncode}:\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Wrong lines that tests must notice.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    tried = [mutant for mutant in mutants() if not options.names or mutant.name in options.names]
    survivors = []
    with tempfile.TemporaryDirectory(prefix="novalite-mutants-") as directory:
        count = os.cpu_count() or 1
        copies: queue.Queue[pathlib.Path] = queue.Queue()
        for _number in range(count):
            copies.put(copy_of_tree(pathlib.Path(directory)))

        def attempt(mutant: Mutant) -> tuple[bool, float]:
            copy, began = copies.get(), time.monotonic()
            try:
                return is_noticed(mutant, copy), time.monotonic() - began
            finally:
                copies.put(copy)

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            for mutant, (noticed, seconds) in zip(tried, pool.map(attempt, tried)):
                print(f"{'caught  ' if noticed else 'SURVIVES'}  {seconds:4.0f} s  {mutant.name}", flush=True)
                survivors += [] if noticed else [mutant]
    for mutant in survivors:
        print(
            f"nothing in {', '.join(mutant.tests)} notices {mutant.new!r} in place of {mutant.old!r} in {mutant.file}"
        )
    print(f"{len(tried)} mutants, {len(tried) - len(survivors)} caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
