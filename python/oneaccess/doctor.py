# SPDX-License-Identifier: Apache-2.0
"""python -m oneaccess.doctor [FOLDER]: checks OneAccess on this machine and says what to mend.

It looks at the machine, the configuration, the daemon and this user's running jobs. Each line is a check: "ok", "BAD" (it
does not work), "slow" (it works, and could be faster) or "note"; the line below has the command that mends it. The exit
status is 0 if nothing is BAD. With a folder, it opens that as a data set.
"""

import importlib.metadata
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

from . import _core, __version__, advice, urls, wrapped
from .advice import size as _bytes
from .errors import Error

_DESCRIPTORS = 256  # a stream takes one to three, a program has its own
_ADDRESSES = 64 << 30
_SYSTEM = pathlib.Path("/run/accessd/socket")
_PATIENCE = 20  # a daemon that was only just started opens what is kept first: tenths of a second


class _Report:
    def __init__(self):
        self.is_good = True

    def good(self, what, text):
        print(f"ok    {what}: {text}")

    def bad(self, what, text, mend):
        self.is_good = False
        print(f"BAD   {what}: {text}")
        print(f"      mend: {mend}")

    def note(self, what, text):
        print(f"note  {what}: {text}")

    def tell(self, findings):
        for finding in findings:
            print(f"{finding.kind:5} {finding.what}: {finding.text}")
            if finding.mend:
                print(f"      mend: {finding.mend}")
            self.is_good &= finding.kind != "BAD"


def _text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _programs(report):
    daemon = os.environ.get("ACCESS_DAEMON")
    if daemon and not os.access(daemon, os.X_OK):
        report.bad("program", f"ACCESS_DAEMON is {daemon}, which cannot be run",
                   "unset it, or name an accessd")
        return
    daemon = daemon or shutil.which("accessd")
    if daemon:
        report.good("program", f"a daemon of this user's own would be {daemon}")
    else:
        report.note("program", "accessd is not in PATH; the installed one is looked for all the same")


def _limits(report):
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _DESCRIPTORS:
        report.bad("descriptors", f"this process may open {soft}", "ulimit -n 1024")
    else:
        report.good("descriptors", f"this process may open {soft}")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < _ADDRESSES:
        report.bad("addresses", f"this process may map {_bytes(soft)}, slots are mapped whole",
                   "ulimit -v unlimited")
    else:
        report.good("addresses", "slots can be mapped")


def _memory(report):
    with open("/proc/meminfo", encoding="ascii") as lines:
        sizes = {name: int(rest.split()[0]) * 1024 for name, rest in
                 (line.split(":") for line in lines)}
    free = sizes["MemAvailable"]
    if free < 2 << 30:
        report.bad("memory", f"{_bytes(free)} of {_bytes(sizes['MemTotal'])} are available",
                   "end something, or give accessd less by its parameter memory")
    else:
        report.good("memory", f"{_bytes(free)} of {_bytes(sizes['MemTotal'])} are available")


def _no_account(report):
    """What other loaders need, and people look for first."""
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    report.note("of no account", "slots are accessd's memory, in files that have no name: neither /dev/shm"
                + (f" ({_bytes(shm.f_blocks * shm.f_frsize)})" if shm else "") + " nor the limit on locked memory"
                + (f" ({_bytes(locked)})" if locked != resource.RLIM_INFINITY else "") + " counts")


def _socket(report):
    """The system's, where it is the one to be asked."""
    if os.environ.get("ACCESS_SOCKET") or not _SYSTEM.parent.is_dir():
        return
    if not _SYSTEM.exists():
        report.note("socket", f"no {_SYSTEM}: the service does not run; sudo systemctl start accessd starts it")
    elif not os.access(_SYSTEM, os.R_OK | os.W_OK):
        report.bad("socket", f"{_SYSTEM} is there, and this user may not connect", f"ls -ld {_SYSTEM.parent} {_SYSTEM}: others need"
                   " x and rw; sudo systemctl restart accessd makes them anew")


def _daemon(report):
    """The client, or None."""
    try:
        client = _core.Client(None)
        status = json.loads(client.status())
    except Error as error:
        report.bad("daemon", f"{error.name}: {error}", "see accessd(8); a log is beside its socket")
        return None
    report.good("daemon", f"accessd {status['version']}, pid {status['pid']}, {len(status['jobs'])} jobs,"
                f" {len(status['workers'])} workers")
    if status["version"] != __version__:
        report.note("versions", f"this package is {__version__}; the two understand each other. The same would be"
                    f" pip install oneaccess=={status['version']}")
    report.tell(advice.node(status, os.cpu_count(), _text("/sys/kernel/mm/transparent_hugepage/shmem_enabled")))
    return client


def _access_ctl():
    """Beside the daemon that the wheel brought, or in PATH."""
    beside = pathlib.Path(os.environ.get("ACCESS_DAEMON", "/")).parent.parent / "bin" / "access-ctl"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("access-ctl")


def _explained(status, program):
    """What access-ctl says of each of this user's jobs."""
    for job in status["jobs"]:
        if job["uid"] != os.geteuid():
            continue
        run = subprocess.run([program, "--json", "explain", str(job["id"])], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, check=False)
        if run.returncode == 0:  # else it has ended
            yield from json.loads(run.stdout)


def _jobs(report, client):
    status, program = json.loads(client.status()), _access_ctl()
    mounts = _text("/proc/self/mountinfo").splitlines()
    for path in {stream["dataset"] for stream in status["streams"]}:
        report.tell(advice.folder(path, mounts))
    report.tell(advice.bad_samples(status, os.geteuid()))
    if not status["jobs"]:
        report.note("jobs", "none runs; beside one that does, the doctor says what limits it")
    elif program is None:
        report.note("jobs", "what limits them access-ctl says, which is not in PATH")
    else:
        report.tell(advice.job(status, explained, os.cpu_count()) for explained in _explained(status, program))


def _kept_of(client):
    """What the daemon says of what it keeps for this user, or None: it has served none of his jobs yet."""
    for cache in json.loads(client.status())["caches"]:
        if cache["uid"] == os.geteuid() and not cache["public"] and not cache.get("named"):
            return cache
    return None


def _kept(report, client):
    cache = _kept_of(client)
    for _ in range(_PATIENCE):
        if cache is None or cache["mode"] != "off" or cache["why"]:
            break
        time.sleep(0.1)
        cache = _kept_of(client)
    if cache is None:
        report.note("kept", "the daemon has not served this user yet")
    elif cache["mode"] == "on":
        report.good("kept", f"{_bytes(cache['used'])} of work that was done, {_bytes(cache['limit'])} at most")
    elif cache["mode"] == "memory":
        report.note("kept", f"in memory only, {_bytes(cache['memory_used'])} of {_bytes(cache['memory_limit'])}, and gone"
                    f" with the daemon: {cache['why']}")
    elif cache["mode"] == "off":
        why = cache["why"] or "the store is not open yet"
        report.tell([advice.Finding("slow" if cache["why"] else "note", "kept", f"nothing: {why}",
                                    cache["why"] and advice.setting(json.loads(client.status()), "cache_size = 50G")
                                    + ", with cache_dir on a local disk")])
    else:
        report.note("kept", f"what is there is used, nothing comes to it: {cache['why']}")


def _pools(report):
    try:
        pools = wrapped.pools()
    except (Error, OSError) as error:
        report.bad("pools", str(error), "oneaccess.wrap() needs a folder of this user's own")
        return
    for folder, is_there in pools:
        if is_there:
            report.good("pool", f"{folder}: a wrapped data set is served; {folder}/log has what it printed")
        else:
            report.note("pool", f"{folder}: its processes are gone; the next wrapped data set removes it")


def _libraries(report):
    for name in ("numpy", "torch", "torchvision", "jax", "ml_dtypes"):
        try:
            report.good(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            report.note(name, "is not there")


def _dataset(report, client, folder):
    is_elsewhere = folder.startswith("name:") or urls.is_url(folder)
    try:
        dataset = _core.Dataset(client, folder if is_elsewhere else os.path.abspath(folder))
    except Error as error:
        report.bad("data set", str(error), "name a folder of pictures, CLASS/NAME.jpg or flat")
        return
    report.good("data set", f"{folder}: {dataset.count:,} samples of {len(dataset.classes):,} classes")
    if not is_elsewhere:
        report.tell(advice.folder(os.path.realpath(folder), _text("/proc/self/mountinfo").splitlines()))


def main(arguments):
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    report = _Report()
    report.good("package", f"oneaccess {__version__}, Python {sys.version.split()[0]}, {os.path.dirname(__file__)}")
    _programs(report)
    _limits(report)
    _memory(report)
    _no_account(report)
    _socket(report)
    client = _daemon(report)
    if client is not None:
        _kept(report, client)
        _jobs(report, client)
    _pools(report)
    _libraries(report)
    if arguments and client is not None:
        _dataset(report, client, arguments[0])
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
