# SPDX-License-Identifier: Apache-2.0
"""The programs that a wheel brings along: where they are, and those that are commands."""

import os
import pathlib
import sys


_HOME = pathlib.Path(__file__).resolve().parent / "_native"


def find() -> None:
    """Tells libaccess where the wheel's accessd is, for a daemon of this user's own. A system's daemon
    that listens, and variables that are set, come first."""
    daemon = _HOME / "sbin" / "accessd"
    if daemon.is_file():
        os.environ.setdefault("ACCESS_DAEMON", str(daemon))
        os.environ.setdefault("ACCESS_LIBEXEC", str(_HOME / "libexec"))


def _become(program: str) -> None:
    find()
    path = _HOME / "bin" / program
    if not path.is_file():
        sys.exit(f"{program}: this package has no programs of its own; the system's packages bring {program}")
    os.execv(path, [program, *sys.argv[1:]])


def bench() -> None:
    """access-bench(1)"""
    _become("access-bench")


def ctl() -> None:
    """access-ctl(1)"""
    _become("access-ctl")
