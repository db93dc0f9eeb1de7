#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each kind of data set over three nodes: a and b, which are peers, and c, which knows nobody and has a copy of the data in another
# place. Four ranks over them get, byte for byte, what they get on one node, though c's accessd is killed in the middle; and a job
# that goes on with other numbers of ranks and nodes gets each sample once. A job on b has from a what a keeps of pictures, and
# goes on when a is killed. Of rows of numbers, of fields beside pictures and of programs' samples nothing is kept, so nothing is
# shared. (Folders of pictures: nodes_test.c, 46-peers.sh.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster
package=$top_builddir/python/package
[ -e "$package/oneaccess/_core.abi3.so" ] || skip "the Python package is not built here"
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "NumPy is not here"
export PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1

kept="tar tfrecord mds litdata recordio bagz arrayrecord beton zip converted manifest columns"
rest="beside windows packed records array"
mkdir "$work/here"
make_kinds "$work/here"
for table in hdf5:h5 parquet:parquet; do
	if [ -e "$work/here/rows.${table#*:}" ]; then
		rest="$rest ${table%:*}"
	else
		echo "not tested: ${table%:*}, whose package is not here"
	fi
done
cp -a "$work/here" "$work/there"
all="$kept $rest"

ride() { # ride RUN NODE FOLDER FIRST COUNT RANKS BATCH STEPS [BEFORE]: ranks of a job on that node; its process is $run
	ride_run=$1 ride_node=$2 ride_folder=$3
	shift 3
	XDG_RUNTIME_DIR=$work/$ride_node timeout $longest "$PYTHON" "$top_srcdir/tests/scenarios/ranks.py" "$work" "$ride_node" "$ride_run" \
		"$work/$ride_folder" "$all" "$@" 2>"$work/$ride_run-$ride_node.log" &
	run=$!
	rides="$rides $run"
	cleanup_fn "kill -KILL $run"
}
arrive() { # all of them do
	# shellcheck disable=SC2086 # a list of numbers
	for ride in $rides; do
		wait "$ride" || fail "a job fails: $(cat "$work/$ride_run"-*.log)"
	done
	rides=
}
rides=
at_pauses() { # at_pauses RUN "KINDS" COMMAND...: while it waits in the middle of each kind
	pausing=$1 pausing_at=$2
	shift 2
	for kind in $pausing_at; do
		while_training "$kind: the job does not come to its pause" test -e "$work/$pausing.$kind.paused" || fail "$kind: no pause: $(cat "$work/$pausing"-*.log)"
		"$@"
		touch "$work/$pausing.$kind.goes"
	done
}
same_samples() { # same_samples RUN...: together, and each once, those of the run on one node
	for kind in $all; do
		for part in "$@"; do
			cat "$work/$part.$kind".[0-9]
		done | sort >"$work/together"
		cmp -s "$work/together" "$work/one.$kind.sorted" || fail "$*: $kind: other samples than on one node: $(diff "$work/together" "$work/one.$kind.sorted" | head)"
	done
}

killed() { # killed PID: of an accessd, and its folder is free
	kill -KILL "$1"
	wait "$1" 2>/dev/null || :
}

# ---- one node ----

start_c() {
	dir=$work/c socket=$work/c/socket
	start_accessd workers=1 chunk=16 idle_exit_s=0
	c=$daemon
}
start_c
ride one c there 0 4 4 8 0
arrive
for kind in $all; do
	sort "$work/one.$kind".[0-9] >"$work/one.$kind.sorted"
	# of both epochs each number from 0 on, once
	cut -d ' ' -f 1,2 "$work/one.$kind.sorted" | sort -n -k 1,1 -k 2,2 | awk '{ wrong += $2 != n[$1]++ } END { exit wrong || n[0] < 100 || n[0] != n[1] }' ||
		fail "$kind: samples are lost or repeated on one node"
done

# ---- what a keeps comes to b, and a is killed ----

two_nodes
start_a() {
	node a "$port_a" cache_point=packed chunk=8 slots=4 linger_s=0
	a=$daemon
}
at() { # at NAME COMMAND...: with $socket of that node
	dir=$work/$1 socket=$work/$1/socket
	shift
	"$@"
}
has_met() {
	status_is cluster.channels == 1
}
start_a
node b "$port_b" cache_point=packed chunk=8 slots=4 linger_s=0
for name in a b; do
	until_true $patience at $name has_met || fail "$name does not meet the other one"
done
ride a a here 0 1 1 8 0
arrive
same_samples a
n_kept=$((150 * $(echo "$kept" | wc -w)))
all_is_kept() {
	total=0
	for name in a b; do
		values=$(at $name status caches.0.values)
		total=$((total + ${values:-0}))
	done
	[ $total -ge $n_kept ]
}
until_true $patience all_is_kept || fail "what was made is kept nowhere: $total of $n_kept"
kill_a() {
	killed "$a"
	start_a
	until_true $patience at b has_met || fail "$kind: b does not meet a again"
}
PAUSES=peers && export PAUSES
ride b b here 0 1 1 8 0
at_pauses b "$kept" kill_a
arrive
unset PAUSES
same_samples b
for kind in $kept; do
	"$expect" "$work/b.$kind.cache" peer_hits ">" 0 || fail "$kind: nothing came from a"
done
for kind in $rest; do
	"$expect" "$work/b.$kind.cache" on == false peer_hits == 0 || fail "$kind: $(cat "$work/b.$kind.cache")"
done

# ---- four ranks over three nodes ----

kill_c() {
	killed "$c"
	start_c
}
ride three a here 0 2 4 8 0
ride three b here 2 1 4 8 0
PAUSES=step && export PAUSES
ride three c there 3 1 4 8 0
at_pauses three "$all" kill_c
unset PAUSES
arrive
for kind in $all; do
	for rank in 0 1 2 3; do
		cmp -s "$work/three.$kind.$rank" "$work/one.$kind.$rank" || fail "$kind: rank $rank gets something else over three nodes"
	done
done

# ---- other ranks and nodes go on ----

ride first a here 0 1 3 7 5
ride first c there 1 2 3 7 5
arrive
ride second b here 0 2 5 4 6 first
ride second a here 2 1 5 4 6 first
ride second c there 3 2 5 4 6 first
arrive
ride last c there 0 1 2 9 0 second
ride last b here 1 1 2 9 0 second
arrive
same_samples first second last
