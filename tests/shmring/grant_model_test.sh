#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the models of doc/models through Spin: all interleavings of takes and revokes, with one take word and with two, and with
# numbers that are left out; of values between nodes; of sleeps and wakes. A model as it stands must hold; with any one of
# its edges turned round it must not, or it would prove nothing.

set -u

for tool in spin cc; do
	command -v "$tool" >/dev/null 2>&1 && continue
	echo "grant_model_test: $tool is not installed (Debian: spin, gcc); skipped"
	exit 77
done

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# search MODEL MUTANT OPTION...
search() {
	model=$1 mutant=$2
	shift 2
	spin "-DMUTANT=$mutant" "$@" -a "$model.pml" && cc -O1 -w -DSAFETY -DCOLLAPSE -o pan pan.c &&
		./pan -m1000000 >pan.out 2>&1
}

# verify MODEL MUTANT OPTION...: 0 if Spin finds no error in the whole state space, 1 if it finds one
verify() {
	if ! cp "${top_srcdir:-.}/doc/models/$1.pml" "$work" || ! (cd "$work" && search "$@"); then
		echo "grant_model_test: Spin or the compiler failed"
		cat "$work/pan.out" 2>/dev/null
		exit 1
	fi
	if grep -q 'max search depth too small\|out of memory' "$work/pan.out"; then
		echo "grant_model_test: the search was cut short"
		exit 1
	fi
	grep -q 'errors: 0$' "$work/pan.out"
}

# check_model MUTANTS MODEL OPTION...
check_model() {
	mutants=$1 name=$2
	shift 2
	verify "$name" 0 "$@" || {
		echo "grant_model_test: $name.pml $* does not hold:"
		cat "$work/pan.out"
		exit 1
	}
	grep 'states, stored' "$work/pan.out"
	for number in $mutants; do
		if verify "$name" "$number" "$@"; then
			echo "grant_model_test: mutant $number of $name.pml $* was not found"
			exit 1
		fi
	done
}

check_model '1 2 3 4 5' grant
check_model '1 2 3 4' pins
check_model '1 2 3 4 5' pins -DSMALL_RING
check_model '1 2 3 4 5' fetch
check_model '1 2 3 4 5' credits
check_model '1 2 3 4' hand
check_model '1 2 3 4' wake
echo "the models hold; each mutant of each is found"
