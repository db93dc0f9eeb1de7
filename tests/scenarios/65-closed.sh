#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A node before its maintenance: with `closed` in the configuration, read again, new jobs are refused with its words, and those that
# run go on, are completed by ranks that are not there yet, and go on under the accessd after this one. Without it new ones are served again.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

export XDG_CONFIG_HOME="$work/config"
mkdir -p "$work/config/oneaccess"
"$pictures" "$work/data" 400 2 100
configure() { # configure LINE...: in force when this is over
	printf '%s\n' "$@" >"$work/config/oneaccess/accessd.conf"
	said=$(grep -c ' reloaded ' "$work/accessd.log" || true)
	kill -HUP "$daemon"
	until_true $patience is_reloaded || fail "it is not read again: $(cat "$work/accessd.log")"
}
is_reloaded() {
	[ "$(grep -c ' reloaded ' "$work/accessd.log")" -gt "$said" ]
}
another() { # another NAME: the status of one more job
	timeout $longest "$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --epochs 1 --quiet \
		--json "$work/$1.json" 2>>"$work/bench.log"
}
is_refused() { # is_refused NAME WORDS
	another "$1" && fail "$1: a job was served"
	"$expect" "$work/$1.json" jobs.0.error >"$work/error.txt"
	grep -q "$2" "$work/error.txt" || fail "$1: it was told: $(cat "$work/error.txt")"
}
two_train() { # and the program, where it does
	status_is jobs ">=" $((2 + ${trainer:+1} + 0)) "jobs.*.active" == true "jobs.*.delivered" ">" 0
}

# One that began before, and opens what it evaluates on only now. WHEN: its own job comes back to a new accessd later, or never.
evaluates() { # evaluates WHEN
	touch "$work/is-$1"
	[ -n "$trainer" ] || return 0
	until_true $patience has_evaluated "$1" || fail "a program does not evaluate, $1: $(cat "$work/trainer.log")"
	[ -e "$work/evaluated-$1" ] || fail "a program that trains cannot evaluate, $1: $(tail -n 3 "$work/trainer.log")"
}
has_evaluated() {
	[ -e "$work/evaluated-$1" ] || is_gone "$trainer"
}
trains_no_more() {
	[ -n "$trainer" ] || return 0
	wait "$trainer" || fail "the program that trains and evaluates: $(tail -n 3 "$work/trainer.log")"
	trainer=
}
# One rank of two has begun: the other may come.
rank_of_two() { # rank_of_two RANK
	PYTHONPATH="$top_builddir/python/package" PYTHONDONTWRITEBYTECODE=1 timeout $longest "${PYTHON:-python3}" -c '
import os, sys, time
import oneaccess as oa
socket, data, folder, rank = sys.argv[1:]
with oa.Loader(data, oa.imagenet_train(64), batch_size=16, socket=socket, job="ranks", rank=int(rank), world_size=2, epochs=1) as loader:
    batches = iter(loader)
    ids = next(batches).ids.tolist()
    open(folder + "/rank" + rank, "w").close()
    while not os.path.exists(folder + "/rank1"):
        time.sleep(0.05)
    print(*ids, *(i for batch in batches for i in batch.ids), sep="\n")' "$socket" "$work/data" "$work" "$1" >"$work/ranks$1.txt" 2>"$work/rank$1.log"
}
first_has_come() {
	[ -e "$work/rank0" ] || is_gone "$ranks"
}
others_may_come() {
	[ -e "$top_builddir/python/package/oneaccess/_core.abi3.so" ] && "${PYTHON:-python3}" -c 'import numpy' 2>/dev/null || {
		echo "not tested: ranks that come later: the Python package is not built here"
		return 0
	}
	rank_of_two 0 &
	ranks=$!
	cleanup_fn "kill -KILL $ranks"
	until_true $patience first_has_come || fail "one rank of two does not begin: $(cat "$work/rank0.log")"
	configure "closed = maintenance at 18:00"
	rank_of_two 1 || fail "the other rank of a job that has begun: $(tail -n 3 "$work/rank1.log")"
	wait "$ranks" || fail "the rank that was there: $(tail -n 3 "$work/rank0.log")"
	[ "$(sort -u "$work/ranks0.txt" "$work/ranks1.txt" | wc -l)" = 400 ] || fail "the two ranks did not get all samples"
	rank_of_two 1 && fail "a rank of a job of which nobody is there was served"
	grep -q "maintenance at 18:00" "$work/rank1.log" || fail "a rank was told: $(tail -n 3 "$work/rank1.log")"
	configure ""
}
trainer=
begin_to_train() {
	[ -e "$top_builddir/python/package/oneaccess/_core.abi3.so" ] && "${PYTHON:-python3}" -c 'import numpy' 2>/dev/null || {
		echo "not tested: a program with two jobs: the Python package is not built here"
		return 0
	}
	PYTHONPATH="$top_builddir/python/package" PYTHONDONTWRITEBYTECODE=1 timeout $longest "${PYTHON:-python3}" -c '
import os, sys, time
import oneaccess as oa
socket, data, folder = sys.argv[1:]
with oa.Loader(data, oa.imagenet_train(64), batch_size=16, socket=socket) as loader:
    next(iter(loader))
    open(folder + "/trains", "w").close()
    for when in "closed", "killed", "once-more", "ended":
        while not os.path.exists(folder + "/is-" + when):
            time.sleep(0.05)
        with oa.Loader(data, oa.imagenet_eval(64), batch_size=16, epochs=1, socket=socket) as evaluation:
            assert sum(len(batch.ids) for batch in evaluation) == 400
        open(folder + "/evaluated-" + when, "w").close()' "$socket" "$work/data" "$work" 2>"$work/trainer.log" &
	trainer=$!
	cleanup_fn "kill -KILL $trainer"
	until_true $patience has_begun || fail "the program does not train: $(cat "$work/trainer.log")"
}
has_begun() {
	[ -e "$work/trains" ] || is_gone "$trainer"
}

maintain() { # what is left of it would be in the way of the jobs that train once more
	maintain_node || {
		configure ""
		return 1
	}
}
maintain_node() {
	while_training "the jobs do not start" two_train || return 1
	configure "closed = maintenance at 18:00"
	is_refused closed "serves no new jobs now.*maintenance at 18:00"
	"$ctl" --socket "$socket" status | tr '\n' ' ' | grep -q "no new jobs are served (maintenance at 18:00)" || fail "the status says nothing of it"
	while_training "the jobs do not go on" two_train || return 1
	evaluates closed
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null || true
	start_accessd workers=2 chunk=16
	evaluates killed
	evaluates once-more
	stop_accessd
	start_accessd workers=2 chunk=16
	evaluates ended
	trains_no_more
	while_training "the jobs do not go on with the next accessd" two_train || return 1
	is_refused again "maintenance at 18:00"
	configure ""
	another open || fail "nobody is served when it is open again"
	while_training "the jobs do not go on when it is open again" two_train
}
start_accessd workers=2 chunk=16
others_may_come
begin_to_train
training result 40 maintain --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --jobs 2 --step-ms 10
"$expect" "$work/result.json" "jobs.*.error" == null "jobs.*.reconnects" ">=" 1
stop_accessd
