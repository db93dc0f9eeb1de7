#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A job over two nodes under a real Slurm: two slurmds on this machine, an accessd on each that the job starts as access-cluster(7)
# says, with Slurm's list of nodes as peers, and two tasks of srun on each. Loaders find their ranks by what srun sets: together
# they get each sample once, and each node makes what its ranks read. A second srun of the job gets what the first has prepared,
# from either node. Tasks dealt round the nodes are refused in words.
# (The scripts of doc/slurm, for one node: tests/packaging/slurm.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
PATH=$PATH:/usr/sbin:/sbin
package=$top_builddir/python/package
[ -x "$top_builddir/cluster/access-gate" ] || skip "this build has no cluster"
[ -e "$package/oneaccess/_core.abi3.so" ] || skip "the Python package is not built here"
[ "$(id -u)" = 0 ] || skip "needs root, for namespaces and Slurm's daemons"
requires "${PYTHON:-python3}" unshare ip hostname
for program in munged slurmctld slurmd salloc srun; do
	command -v $program >/dev/null || skip "Slurm is not here (Debian: munge, slurmctld, slurmd, slurm-client)"
done
"${PYTHON:-python3}" -c 'import numpy' 2>/dev/null || skip "NumPy is not here"
if [ -z "${SCENARIO_INSIDE:-}" ]; then
	flags="--mount --net --uts --pid --fork --kill-child --mount-proc --propagation private"
	# shellcheck disable=SC2086
	unshare $flags true 2>/dev/null || skip "no namespaces here"
	code=0
	# shellcheck disable=SC2086
	SCENARIO_INSIDE=1 TMPDIR="$work" timeout $longest unshare $flags sh "$0" || code=$?
	exit $code
fi

# Nodes that are names of one machine, with an address each.
ip link set lo up
hostname control
printf '127.0.0.1 localhost\n192.0.2.1 n1\n192.0.2.2 n2\n192.0.2.3 control\n' >"$work/hosts"
for number in 1 2 3; do
	ip address add 192.0.2.$number/32 dev lo
done
mount --bind "$work/hosts" /etc/hosts
mount -t tmpfs run /run
mkdir -m 0755 /run/munge
head -c 128 /dev/urandom >"$work/munge.key"
chmod 0400 "$work/munge.key"
cat >"$work/slurm.conf" <<END
ClusterName=test
SlurmctldHost=control
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
StateSaveLocation=$work
SlurmdSpoolDir=$work/%n-spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
NodeName=n1 NodeHostname=control NodeAddr=192.0.2.1 Port=17001 CPUs=4 State=UNKNOWN
NodeName=n2 NodeHostname=control NodeAddr=192.0.2.2 Port=17002 CPUs=4 State=UNKNOWN
PartitionName=main Nodes=n[1-2] Default=YES State=UP
END
# No control group is used, but the plugin of version 2 wants some to be there.
echo CgroupPlugin=cgroup/v1 >"$work/cgroup.conf"
export SLURM_CONF="$work/slurm.conf"
munged --key-file="$work/munge.key" --pid-file="$work/munged.pid" --seed-file="$work/munge.seed" \
	--log-file="$work/munged.log" --force || skip "munged does not start: $(tail -n 1 "$work/munged.log")"
slurmctld || skip "slurmctld does not start: $(tail -n 1 "$work/slurmctld.log")"
for node in n1 n2; do
	slurmd -N $node || skip "slurmd is not built for several on a machine"
done
is_idle() { # both nodes
	[ "$(sinfo --noheader --format=%T:%D 2>/dev/null)" = idle:2 ]
}
until_true $patience is_idle || fail "the nodes do not come up: $(sinfo 2>&1)"

"$pictures" "$work/data" 96 4 60
(umask 077 && mkdir -p "$work/.config/oneaccess" && head -c 48 /dev/urandom | base64 >"$work/.config/oneaccess/cluster.key")
# Programs that are started by libtool's scripts find themselves by their whole path.
export HOME="$work" work accessd ctl top_builddir PYTHONPATH="$package"
export ACCESS_LIBEXEC="${ACCESS_LIBEXEC:-$top_builddir/libexec}"

# What a node runs: its accessd, and a task.
cat >"$work/serve.sh" <<'END'
mkdir -m 0700 "$work/$SLURMD_NODENAME"
exec "$accessd" --private --dir "$work/$SLURMD_NODENAME" --set idle_exit_s=0 --set workers=1 --set cache_dir="$work/$SLURMD_NODENAME/cache" \
	--set cache_force=1 --set cache_point=packed --set peers=slurm --set peer_listen="$(sed -n "s/ $SLURMD_NODENAME\$//p" /etc/hosts):7411" --set node_name="$SLURMD_NODENAME" \
	2>>"$work/$SLURMD_NODENAME-accessd.log"
END
cat >"$work/task.sh" <<'END'
ACCESS_SOCKET=$work/$SLURMD_NODENAME/socket exec "${PYTHON:-python3}" "$work/task.py" "$work/data" "$1.$SLURM_PROCID" "$2"
END
cat >"$work/task.py" <<'END'
import sys

import oneaccess as oa

with open(sys.argv[2], "w", encoding="ascii") as seen:
    for batch in oa.Loader(sys.argv[1], oa.imagenet_train(32), batch_size=8, seed=int(sys.argv[3]), epochs=1, as_="numpy"):
        print(*batch.ids, sep="\n", file=seen)
END

# One allocation, in which the steps of the job run beside each other.
salloc --no-shell --nodes=2 --cpus-per-task=4 --quiet || fail "no nodes are allocated"
job=$(squeue --noheader --format=%i)
step() { # step OPTION... COMMAND...: on both nodes
	srun --jobid="$job" --nodes=2 --cpus-per-task=1 "$@"
}
step --ntasks-per-node=1 --overlap sh "$work/serve.sh" &
cleanup_fn "kill -KILL $!"
at() { # at NODE COMMAND...: with $socket of that node
	socket=$work/$1/socket
	shift
	"$@"
}
for node in n1 n2; do
	until_true $patience at $node answers || fail "no accessd answers on $node"
	until_true $patience at $node status_is cluster.channels == 1 || fail "Slurm's nodes do not meet: $(at $node "$ctl" --socket "$socket" peers)"
done

# As doc/cluster.md says it, on two nodes with two tasks each.
words=$(sed -n 's/^    srun \(.*\) python train\.py$/\1/p' "${top_srcdir:-.}/doc/cluster.md")
[ "$words" = "--nodes=4 --ntasks-per-node=8" ] || fail "the page's command for Slurm: srun $words"
train() { # train NAME SEED: a step in which each sample comes once
	# shellcheck disable=SC2046 # they are several words
	step $(echo "$words" | sed 's/=[0-9]*/=2/g') sh "$work/task.sh" "$work/$1" "$2" 2>"$work/said" || fail "a task: $(cat "$work/said")"
	[ "$(cat "$work/$1".[0-3] | wc -l)" = 96 ] || fail "the tasks got $(cat "$work/$1".* | wc -l) samples, not 96"
	[ "$(cat "$work/$1".* | sort -u | wc -l)" = 96 ] || fail "a sample came twice"
	for rank in 0 1 2 3; do
		[ "$(wc -l <"$work/$1.$rank")" = 24 ] || fail "rank $rank got $(wc -l <"$work/$1.$rank") samples, not 24"
		grep -q "this is rank $rank of the 4 of one job, by SLURM_PROCID=$rank" "$work/said" || fail "rank $rank is not told so: $(cat "$work/said")"
	done
}
train first 7
for node in n1 n2; do
	at $node status_is node.samples_preprocessed == 48 || fail "$node made $(at $node status node.samples_preprocessed) samples, not its half"
done

# A later step of the job has the same peers, and what both nodes have prepared.
kept() { # all of it, on one node or the other
	total=0
	for node in n1 n2; do
		kept=$(at $node status caches.0.values)
		total=$((total + ${kept:-0}))
	done
	[ $total -ge 96 ]
}
until_true $patience kept || fail "what was made is kept nowhere: $total of 96"
train second 8
came() { # from the other node, to one of them; a carrier says so once a second
	at n1 status_is cluster.channels.0.gots ">" 0 || at n2 status_is cluster.channels.0.gots ">" 0
}
until_true $patience came || fail "nothing came from a peer"

! step --ntasks-per-node=2 -m cyclic sh "$work/task.sh" "$work/cyclic" 7 2>"$work/said" || fail "tasks that go round the nodes are served"
grep -q "they must follow each other.*srun -m block" "$work/said" || fail "no word of what to do: $(cat "$work/said")"
scancel "$job"
