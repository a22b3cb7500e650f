# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The waiting playbook of the command `novalite`: a run by it is as one without."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import stat
import subprocess
import sys
import time
import typing as t

import pytest

from api.cli import waiting
from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).parents[5]
PLAY = """
- hosts: localhost
  gather_facts: false
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
    - ansible.builtin.debug: {msg: "{{ agent }} {{ lookup('ansible.builtin.pipe', 'pwd') }} {{ word }} {{ open }}"}
      vars:
        agent: "{{ lookup('ansible.builtin.env', 'SSH_AUTH_SOCK') }}"
        open: "{{ lookup('ansible.builtin.pipe', 'readlink /proc/$PPID/fd/9 || true') }}"
    - ansible.builtin.shell: touch began && sleep 60
      when: word == 'waits'
    - ansible.builtin.fail:
      when: word == 'fails'
"""
ASKING_PLAY = """
- hosts: localhost
  gather_facts: false
  vars_prompt: [{name: secret, prompt: Which word}]
  tasks:
    - ansible.builtin.pause: {prompt: Really}
      register: paused
    - ansible.builtin.debug: {msg: "{{ secret }}, {{ paused.user_input }}"}
"""


class Command:
    """The command in a directory of its own, whose playbook is PLAY, with a runtime directory of its own."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory, self.runtime = directory, directory / "runtime"
        self.runtime.mkdir(mode=0o700)
        (directory / "play.yml").write_text(PLAY)
        (directory / "asks.yml").write_text(ASKING_PLAY)
        self.environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment |= {"XDG_RUNTIME_DIR": str(self.runtime), "NOVALITE_WAITING": "1", "ANSIBLE_NOCOLOR": "1"}

    def words(self, *words: str, playbook: str = "play.yml") -> list[str]:
        """Code that runs playbooks.run(), with this one for the playbook."""
        program = (
            f"import sys, os; sys.path.insert(0, {str(ROOT)!r}); from novalite_api.cli import playbooks, waiting; "
        )
        program += f"command = [{playbook!r}, '-i', 'localhost,', '-c', 'local', *sys.argv[1:]]; "
        program += "waiting.hand_over(command, os.environ); "
        program += "print('alone', flush=True); "
        program += "playbooks.replace_process([sys.executable, '-m', 'ansible', 'playbook', *command])"
        return [sys.executable, "-c", program, *words]

    def run(self, word: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words("-e", f"word={word}", *words),
            cwd=self.directory,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=GENEROUS,
        )

    def sockets(self) -> list[pathlib.Path]:
        return [path for path in (self.runtime / "novalite").glob("*") if path.is_socket()]

    def wait_for(self, count: int) -> None:
        """Wait until so many processes wait."""
        deadline = time.monotonic() + GENEROUS
        while len(self.sockets()) != count:
            assert time.monotonic() < deadline, self.sockets()
            time.sleep(0.05)

    def end(self) -> None:
        """End the processes that wait, by their ids, which are in the locks that they hold."""
        for lock in (self.runtime / "novalite").glob("*.lock"):
            os.kill(int(lock.read_text()), signal.SIGTERM)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Command]:
    begun = Command(tmp_path_factory.mktemp("waiting"))
    try:
        first = begun.run("first")
        assert first.returncode == 0 and first.stdout.startswith("alone\n"), first.stderr
        begun.wait_for(1)
        yield begun
    finally:
        begun.end()


@pytest.fixture(autouse=True)
def _no_other_test_of_this_file_at_once(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[None]:
    """Hold a lock of the whole test run: a test here changes the date of a file that every waiting process watches."""
    of_run = tmp_path_factory.getbasetemp()
    of_run = of_run.parent if "PYTEST_XDIST_WORKER" in os.environ else of_run
    with open(of_run / "waiting.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_a_run_by_it_has_the_callers_words_directory_environment_and_status(command: Command) -> None:
    done = command.run("told", SSH_AUTH_SOCK="/agent")
    assert "alone" not in done.stdout and done.returncode == 0, done.stdout + done.stderr
    assert f"/agent {command.directory} told" in done.stdout
    failed = command.run("fails", SSH_AUTH_SOCK="/other")
    assert "alone" not in failed.stdout and failed.returncode == 2 and "/other" in failed.stdout
    assert "agent" not in command.run("third").stdout


def test_only_its_user_may_ask_it(command: Command) -> None:
    directory = command.runtime / "novalite"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    try:
        assert command.run("x").stdout.startswith("alone\n")
    finally:
        directory.chmod(0o700)
    assert "alone" not in command.run("x").stdout


def test_another_environment_directory_or_setting_gets_another_one_or_none(command: Command) -> None:
    (socket,) = command.sockets()
    assert command.run("x", NOVALITE_WAITING="0").stdout.startswith("alone\n")
    assert command.sockets() == [socket]
    assert command.run("x", ANSIBLE_FORKS="3").stdout.startswith("alone\n")
    command.wait_for(2)
    settings = command.directory / "ansible.cfg"
    settings.write_text("[defaults]\nforks = 4\n")
    try:
        assert command.run("x").stdout.startswith("alone\n")
        command.wait_for(3)
    finally:
        settings.unlink()
    assert "alone" not in command.run("x").stdout


def test_what_its_caller_has_open_is_open_there(command: Command) -> None:
    kept = command.directory / "kept"
    kept.touch()
    words = ["bash", "-c", 'exec 9<kept "$@"', "bash", *command.words("-e", "word=x")]
    environment = command.environment
    done = subprocess.check_output(words, cwd=command.directory, env=environment, text=True, timeout=GENEROUS)
    assert "alone" not in done and f" x {kept}" in done, done


def test_an_interrupt_and_a_terminal_reach_the_run(command: Command) -> None:
    main, terminal = pty.openpty()
    run = subprocess.Popen(
        command.words("-e", "word=waits"),
        cwd=command.directory,
        env=command.environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen, deadline = b"", time.monotonic() + GENEROUS
    while not (command.directory / "began").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)  # as Ctrl-C does
    with contextlib.suppress(OSError):  # its other side is closed in the end
        while more := os.read(main, 4096):
            seen += more
    os.close(main)
    assert run.wait(GENEROUS) == 99 and b"alone" not in seen, seen.decode()  # Ansible's own status
    assert b"User interrupted execution" in seen


def _dialogue(command: Command, answers: dict[bytes, bytes]) -> bytes:
    """Run ASKING_PLAY in a terminal, and type the answer to the question at which it stands, again where nothing comes:
    what is typed just before Ansible listens is thrown away. Return what the terminal showed."""
    pid, main = pty.fork()
    if pid == 0:
        os.chdir(command.directory)
        words = command.words(playbook="asks.yml")
        os.execvpe(words[0], words, command.environment)
    seen, deadline = b"", time.monotonic() + GENEROUS
    try:
        with contextlib.suppress(OSError):  # its other side is closed in the end
            while time.monotonic() < deadline:
                if select.select([main], [], [], 0.5)[0]:
                    seen += os.read(main, 4096)
                else:
                    for question in [question for question in answers if seen.rstrip().endswith(question)]:
                        os.write(main, answers[question])
    finally:
        os.close(main)  # which ends it, where it still waits
        _pid, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, seen.decode()
    return seen


def test_a_playbook_asks_at_the_callers_terminal(command: Command) -> None:
    seen = _dialogue(command, {b"Which word:": b"opensesame\r", b"Really:": b"yes\r"})
    assert b"alone" not in seen and b"opensesame, yes" in seen, seen.decode()


def test_nobody_is_asked_in_the_background(command: Command) -> None:
    main, terminal = pty.openpty()  # nobody's controlling terminal
    try:
        words = command.words("-e", "secret=said", playbook="asks.yml")
        done = subprocess.run(
            words,
            cwd=command.directory,
            env=command.environment,
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
            timeout=GENEROUS,
        )
    finally:
        os.close(main)
        os.close(terminal)
    assert done.returncode == 0 and "alone" not in done.stdout, done.stdout + done.stderr
    assert "Not waiting for response" in done.stderr and "said, " in done.stdout


def test_what_python_compiles_beside_the_code_is_no_change_of_it(command: Command) -> None:
    assert "alone" not in command.run("x").stdout
    os.utime(ROOT / "collections/ansible_collections/novalite/cloud/plugins/modules")  # as a new __pycache__ does
    assert "alone" not in command.run("x").stdout


def test_code_that_was_changed_is_not_run_as_it_was(command: Command) -> None:
    module = ROOT / "collections/ansible_collections/novalite/cloud/plugins/modules/server.py"
    before = module.stat()
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    try:
        count = len(command.sockets())
        assert command.run("x").stdout.startswith("alone\n")
        command.wait_for(count - 1)  # it has ended
        assert command.run("x").stdout.startswith("alone\n")
        command.wait_for(count)
    finally:
        os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_launch_that_is_handed_over_imports_little() -> None:
    """Neither what other commands look with, nor what the waiting playbook has imported."""
    program = "import sys; from api.cli import main; from api.cli import waiting; main.get_command(None, 'launch'); "
    program += "assert 'launch' in main.commands; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).split()
    assert "api.cli.launching" in modules
    heavy = {"jinja2", "yaml", "sqlalchemy", "subprocess", "tempfile", "api.cli.looking", "api.cli.commands"}
    assert not heavy & set(modules)


def test_processes_that_were_killed_are_not_counted(tmp_path: pathlib.Path) -> None:
    locks = [tmp_path / f"{number}.lock" for number in range(waiting.MOST)]
    for lock in locks:
        lock.write_text("1")
    assert waiting._count(str(tmp_path)) == 0
    with open(locks[0]) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert waiting._count(str(tmp_path)) == 1
