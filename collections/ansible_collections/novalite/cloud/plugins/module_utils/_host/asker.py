# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever had this host's process run, and waits for what it prints."""

from __future__ import annotations

import select

STDOUT = 1


def has_gone() -> bool:
    """Tell whether nobody reads any more what this process prints: the controller was killed, or ssh was lost.

    Nobody would go on from there, or take back what fails, and reconcile.yml may already be at work. sshd closes its
    end of a pipe with the session: POLLERR, or POLLHUP of a terminal (poll(2)). False where it cannot be told, as below
    a sudo with a terminal of its own.
    """
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _fd, events in poll.poll(0))
