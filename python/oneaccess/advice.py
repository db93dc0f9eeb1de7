# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds, computed from the status of accessd and of jobs.

Each function returns findings. A finding's kind is "ok", "BAD" (it does not work), "slow" (it works, and could be faster)
or "note". BAD and slow have a command that mends it.
"""

import collections
import math
import os
import shlex

Finding = collections.namedtuple("Finding", "kind what text mend", defaults=(None,))

_GAIN = 0.05  # less is not worth a change
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "afs", "lustre", "ceph", "beegfs", "gpfs", "glusterfs", "virtiofs")
_HEADROOM = 1.1  # pages of a store are never full
_TENANTS = 4  # tenant_cache is a quarter of cache_size, if nobody said another
_LARGE = 16 << 20  # slots that are to stand in huge pages


def size(count):
    """A number of bytes as text, such as "1.5 GiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024


def setting(status, text):
    """The command that sets a parameter: in the user's file for a private accessd, else in /etc/accessd.conf."""
    if "parameters" in status:
        return (f"mkdir -p ~/.config/oneaccess && echo '{text}' >> ~/.config/oneaccess/accessd.conf"
                "; the next daemon of this user's own reads it")
    return f"echo '{text}' | sudo tee -a /etc/accessd.conf && sudo systemctl restart accessd"


# ---- folders ----

def mount_of(path, mounts):
    """(mount point, file system, source) of an absolute path, from the lines of /proc/self/mountinfo; None: unknown."""
    best = None
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 2:
            continue
        point = fields[4].encode().decode("unicode_escape")  # a blank is \040 there
        if (path == point or path.startswith(point.rstrip("/") + "/")) and (best is None or len(point) >= len(best[0])):
            best = point, kind[0], kind[1]
    return best


def folder(path, mounts):
    """A finding for a folder of many files on a network file system. Shards and tables have none."""
    mount = mount_of(path, mounts) if os.path.isdir(path) else None
    if mount is None or not (mount[1] in _REMOTE or mount[1].startswith("fuse.")):
        return []
    return [Finding("slow", "storage", f"{path} lies on {mount[1]} ({mount[2]}): each file is a journey until it is kept",
                    f"access-ctl convert {shlex.quote(path)} /LOCAL/DISK/NAME.oads, and open that")]


# ---- the daemon ----

def _processors(status, processors):
    machine = status["node"].get("machine", {})
    cpus, workers = machine.get("cpus", 0), status["node"]["workers"]
    if 0 < cpus < processors:
        text = f"accessd may use {cpus} of {processors}, by {machine.get('cpus_from') or 'its cpuset'}"
        if "parameters" in status:
            return Finding("note", "processors", f"{text}, which it has of the job or shell that started it")
        return Finding("slow", "processors", text,
                       f"sudo systemctl set-property accessd.service CPUQuota={processors * 100}%, or its cpuset")
    if 0 < workers < cpus:
        return Finding("note", "workers", f"{workers}, of {cpus} processors; a job that waits for decoding gains by more")
    return Finding("ok", "processors", f"accessd may use {cpus or processors}, and has {workers} workers")


def _memory(status):
    node = status["node"]
    text = f"{size(node['memory_budget'])} for slots ({node['memory_source']}), {size(node['memory_used'])} are taken"
    if node["memory_used"] > 0.9 * node["memory_budget"]:
        return Finding("slow", "slots", text, setting(status, f"memory = {size(2 * node['memory_budget']).replace(' ', '')[:-2]}"))
    return Finding("ok", "slots", text)


def _huge_pages(status, shmem_enabled):
    large = [variant for stream in status["streams"] for variant in stream["variants"]
             if variant["slot_bytes"] >= _LARGE and not variant["huge_pages"]]
    if not large or "[deny]" not in shmem_enabled:
        return []
    return [Finding("slow", "huge pages", f"slots of {size(large[0]['slot_bytes'])} stand in small pages: shmem_enabled is deny",
                    "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled")]


def _trouble(status):
    node = status["node"]
    restarts = [f"{count} {what}" for what, count in (("workers", node["worker_restarts"]), ("readers", node["reader_restarts"]),
                                                      ("parents", node["parent_restarts"])) if count]
    if restarts:
        yield Finding("note", "restarts", f"{', '.join(restarts)} died and were replaced; accessd's log says of what")
    if node.get("refused"):
        yield Finding("note", "refused", f"{node['refused']} jobs were; accessd's log says why")
    if status["draining"]:
        yield Finding("note", "draining", "accessd ends; jobs go on with the next one")


def node(status, processors, shmem_enabled):
    return [_processors(status, processors), _memory(status), *_huge_pages(status, shmem_enabled), *_trouble(status)]


# ---- jobs ----

_LIMITS = {
    "read": "reading is its limit", "decode": "decoding is its limit", "slots": "the memory of finished samples is its limit",
    "cache": "the room for what is kept is its limit", "listing": "its files are being listed",
    "accessd": "accessd starts, ends, or lacks processor time", "unknown": "too little is measured yet",
}


def _mend(status, explained, row):
    dataset = shlex.quote(explained["dataset"])
    if row["change"] == "workers":
        return setting(status, row["how"].split(",")[0])
    if row["change"] == "processors":
        return f"{row['how']} for accessd: sudo systemctl set-property accessd.service CPUQuota=..."
    if row["change"] == "kept" and not row["fits"]:
        share = 1 if "parameters" in status else _TENANTS  # of a system's accessd, what one user may take
        return setting(status, f"cache_size = {math.ceil(row['bytes'] * _HEADROOM * share / (1 << 20))}M")
    if row["change"] == "kept":
        form = "deepest" if row["form"].startswith("decoded+") else row["form"]
        pipeline = next((stream["pipeline"] for stream in status["streams"] if stream["id"] == explained["stream"]), "JSON")
        return f"access-ctl cache warm {dataset} --pipeline {shlex.quote(pipeline)} --form {form}"
    if row["change"] == "source":
        return f"access-ctl convert {dataset} /LOCAL/DISK/NAME.oads, and open that"
    return f"{row['how']} (accessd.conf(5))"


def _is_possible(status, row, processors):
    """There are no more processors than all; the job itself is nothing that the daemon could change."""
    return row["change"] != "job" and (row["change"] != "processors" or status["node"].get("machine", {}).get("cpus", 0) < processors)


def job(status, explained, processors):
    """What limits a job, and the change that helps most, from `access-ctl --json explain`. processors: those of the machine."""
    what = f"job {explained['name']}"
    pace = f"{explained['rate']:.0f} samples a second"
    if explained["limit"] == "job":
        return Finding("ok", what, f"{pace}: its own steps, or its GPU, are its pace")
    limit = _LIMITS.get(explained["limit"], explained["limit"])
    rows = [row for row in explained["what_if"] if _is_possible(status, row, processors) and (row["gain"] or 0) >= _GAIN]
    if not rows:
        return Finding("note", what, f"{pace}: {limit}; no change that was measured would help")
    best = max(rows, key=lambda row: row["gain"])
    text = f"{pace}: {limit}. {best['words']}: {100 * best['gain']:+.0f} %"
    if best["change"] == "processors" and "parameters" in status:
        return Finding("note", what, f"{text}, by {best['how']} where its daemon is started")
    return Finding("slow", what, text, _mend(status, explained, best))


def bad_samples(status, uid):
    """A finding for the bad samples of the streams of this user's jobs."""
    names = {stream["id"]: stream for stream in status["streams"] if stream["bad_samples"]}
    for one in status["jobs"]:
        stream = names.pop(one["stream"], None) if one["uid"] == uid else None
        if stream:
            yield Finding("note", f"job {one['name']}", f"{stream['bad_samples']} samples are bad: access-ctl bad {one['id']}")
