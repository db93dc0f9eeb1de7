#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 35: one CPU alone: one worker, and no deadlock, also with more of them than CPUs. Case 21: the kernel gives
# accessd less memory than its budget says: what does not fit is refused with a text, and what runs goes on; with
# the limit lifted the same request is served. Cases 21, 35: the cgroup's limits change under a job, and memory gets short:
# workers follow, what nobody needs is given back, what does not fit is refused, and the job gets each sample once. Case 34:
# its node of memory is not there.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires taskset prlimit

"$pictures" "$work/data" 400 2 100
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
train() { # train NAME OPTION...
	name=$1
	shift
	timeout $longest "$bench" --dataset "$work/data" --socket "$socket" --batch 16 --verify --json "$work/$name.json" \
		--quiet "$@" 2>>"$work/bench.log" || fail "$name: $("$expect" "$work/$name.json" "jobs.*.error")"
	exactly_once "$work/$name.json"
}
for workers in 0 4; do
	taskset -c "$cpu" "$accessd" --private --dir "$dir" --set cache_dir="$work/cache" --set workers=$workers \
		--set chunk=16 2>>"$work/accessd.log" &
	daemon=$!
	cleanup_fn "kill -KILL $daemon"
	until_true $patience answers || fail "accessd does not answer on one CPU"
	status_is node.workers == $((workers ? workers : 1)) || fail "$(status node.workers) workers for one CPU"
	train "cpu$workers" --jobs 3 --batch 16,8,12 --pipeline imagenet-train-u8 --epochs 1
	stop_accessd
done

# Control groups that we make up, in a mount namespace of accessd's.
limited_part() {
	flags=-m
	[ "$(id -u)" = 0 ] || flags=-rm
	unshare $flags true 2>/dev/null || {
		echo "not tested: limits that change, which needs a mount namespace"
		return
	}
	export really="$accessd" flags groups="$work/groups"
	mkdir -p "$groups/a"
	echo "0::/a" >"$work/self"
	cat >"$work/limited" <<'END'
#!/bin/sh
nodes=/sys/devices/system/node
exec unshare $flags sh -c '[ ! -d "$0" ] || mount --bind "${groups%/*}/nodes" "$0" || exit 70
	mount --bind "$groups" /sys/fs/cgroup && mount --bind "${groups%/*}/self" "/proc/$$/cgroup" &&
	exec "$really" "$@"' "$nodes" "$@"
END
	chmod +x "$work/limited"
	two_nodes
	unlimited
	accessd=$work/limited
	start_accessd memory_pressure=auto chunk=16 linger_s=3600 variants=1 cache_size=64M cache_force=1 cpu_priority=low
	cpus=$(status node.machine.cpus)
	training follows 30 change --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --step-ms 40
	"$expect" "$work/follows.json" jobs.0.reconnects == 0 || fail "the job that ran noticed"
	status_is node.worker_restarts == 0 node.bad_samples == 0 || fail "a worker died of a change"
	stop_accessd
	accessd=$really
}
limit() { # limit FILE TEXT: at once, as the kernel's are
	printf '%b\n' "$2" >"$work/limit" && mv "$work/limit" "$groups/a/$1"
}
press() { # press SOME FULL
	limit memory.pressure "some avg10=$1 avg60=0.00 avg300=0.00 total=0\nfull avg10=$2 avg60=0.00 avg300=0.00 total=0"
}
unlimited() {
	limit cpu.max "max 100000"
	limit memory.max max
	press 0.00 0.00
}
# All CPUs are on a node that the kernel does not know: what should lie there is refused, and all goes on.
two_nodes() {
	mkdir -p "$work/nodes/node0" "$work/nodes/node63"
	echo 0,63 >"$work/nodes/online"
	echo >"$work/nodes/node0/cpulist"
	echo 0-1023 >"$work/nodes/node63/cpulist"
}
idle_stream() { # one more than the job's own
	train idle --pipeline imagenet-eval
	status_is streams == 2 || fail "the stream of a job that has ended did not stay"
}
is_low() { # is_low PID: scheduled as SCHED_BATCH
	[ "$(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 39)" = 3 ]
}
are_low() { # trainers go first
	is_low "$(status node.reader_pid)" && is_low "$(status node.parent_pid)" && is_low "$(status workers.0.pid)"
}
workers_are() {
	status_is node.workers == "$1" node.workers_alive == "$1" node.machine.workers == "$1"
}
change() {
	unlimited
	while_training "the job does not train" all_train 1 || return 1
	if [ -d /sys/devices/system/node ]; then
		status_is node.numa.on == true node.numa.nodes == 2 node.numa.placed == 0 streams.0.numa_node == 63 ||
			fail "a stream does not belong to its job's node"
		[ -n "$(status node.numa.refused)" ] || fail "a node that is not there is not said to be missing"
	else
		echo "not tested: nodes of memory, of which this kernel says nothing"
	fi
	while_training "no memory is granted to what is kept" status_is node.memory_kept ">" 0 || return 1
	while_training "not as many workers as CPUs" workers_are "$cpus" || return 1
	while_training "workers and readers are not of a low priority" are_low || return 1
	limit cpu.max "50000 100000"
	while_training "workers do not follow a smaller quota" workers_are 1 || return 1
	[ "$(status node.machine.cpus_from)" = /sys/fs/cgroup/a/cpu.max ] || fail "the file of the quota is not named"
	limit cpu.max "max 100000"
	while_training "workers do not follow a larger quota" workers_are "$cpus" || return 1

	idle_stream
	limit memory.max 1048576
	while_training "a stream without jobs stays though its memory is gone" status_is node.memory_budget == 524288 \
		streams == 1 jobs == 1 || return 1
	code=0
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-eval --socket "$socket" --batch 64 \
		--json "$work/less.json" --quiet 2>>"$work/bench.log" || code=$?
	[ $code = 1 ] || fail "a job was not refused for the cgroup's limit (status $code)"
	"$expect" "$work/less.json" jobs.0.error >"$work/error.txt"
	grep -q "cgroup" "$work/error.txt" || fail "the cgroup's limit is not named: $(cat "$work/error.txt")"
	limit memory.max max
	while_training "the budget does not grow again" status_is node.memory_budget ">" 524288 || return 1

	idle_stream
	press 30.00 12.00
	while_training "pressure is not seen" status_is node.machine.pressure.level == slots \
		node.machine.pressure.cache_eighths == 0 node.memory_kept == 0 streams == 1 || return 1
	press 0.00 0.00
	while_training "the end of pressure is not seen" status_is node.machine.pressure.level == caches
}
limited_part

if ldd "$accessd" | grep -q -e libasan -e libtsan; then
	exit 0 # sanitizers need more address space than any limit leaves
fi
# What is large is mapped anew each time, and so meets the limit, whatever was freed before.
GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072
export GLIBC_TUNABLES
start_accessd workers=1 chunk=16 linger_s=0 memory=4G
squeeze() {
	while_training "the job does not start" all_train 1 || return 1
	used=$(sed -n 's/^VmSize:[[:blank:]]*\([0-9]*\) kB/\1/p' "/proc/$daemon/status")
	prlimit --pid "$daemon" --as="$((used * 1024)):" || fail "prlimit"
	code=0
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-eval --socket "$socket" --batch 64 \
		--json "$work/refused.json" --quiet 2>>"$work/bench.log" || code=$?
	status_is pid == "$daemon" || fail "another accessd answers"
	prlimit --pid "$daemon" --as=unlimited: || fail "prlimit"
	all_train 1 || return 1 # a domain that begins under the limit is another story
	[ $code = 1 ] || fail "it was not refused (status $code)"
	"$expect" "$work/refused.json" jobs.0.error >"$work/error.txt"
	grep -qi memory "$work/error.txt" || fail "memory is not named: $(cat "$work/error.txt")"
}
training first 40 squeeze --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
"$expect" "$work/first.json" jobs.0.reconnects == 0 || fail "the job that ran noticed"
train again --pipeline imagenet-eval --batch 64
stop_accessd
