# SPDX-License-Identifier: Apache-2.0
"""The programs that a wheel brings along: where they are."""

import os
import pathlib


def find() -> None:
    """Tells libaccess where the wheel's accessd is, for a daemon of this user's own. A system's daemon
    that listens, and variables that are set, come first."""
    home = pathlib.Path(__file__).resolve().parent / "_native"
    daemon = home / "sbin" / "accessd"
    if daemon.is_file():
        os.environ.setdefault("ACCESS_DAEMON", str(daemon))
        os.environ.setdefault("ACCESS_LIBEXEC", str(home / "libexec"))
