#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A person's pictures are to go (doc/guide/15-erase.md): from a folder, whose files are removed; from shards, of which the option
# leave_out leaves samples out until they are written anew without them; and from what accessd keeps: after "access-ctl cache
# forget" no file of the cache has a byte of a value, which lay there before, and what is kept of other data sets is whole.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

python=${PYTHON:-/usr/bin/python3}
make_kinds "$work"
ask() { # ask WORD...: what access-ctl says is in $work/plain.txt
	timeout $longest "$ctl" --socket "$socket" "$@" >"$work/plain.txt" 2>&1
}
says() { # says PATTERN
	grep -Eq -- "$1" "$work/plain.txt" || fail "no \"$1\" in: $(cat "$work/plain.txt")"
}
samples_of() { # samples_of DATASET N: a job gets so many, each once
	timeout $longest "$bench" --socket "$socket" --dataset "$1" --pipeline imagenet-eval-u8 --batch 16 --verify --quiet \
		--json "$work/got.json" 2>"$work/said" || fail "$1: $(cat "$work/said")"
	exactly_once "$work/got.json"
	"$expect" "$work/got.json" jobs.0.samples == "$2" || fail "$1: not $2 samples"
}
start_accessd workers=2 chunk=16 linger_s=0 cache_size=64M cache_force=1 cache_dir="$work/kept" cache_point=packed

# ---- shards ----

leave_out() { # leave_out KIND ONE OTHER: two of its 150 samples
	samples_of "$work/$1?leave_out=$2" 149
	samples_of "$work/$1?leave_out=$2;$3;$2" 148
}
first() { # first KIND PATTERN: its first shard
	for shard in "$work/$1"/$2; do
		[ -f "$shard" ] || fail "no $2 in $work/$1"
		shard=${shard##*/}
		return
	done
}
first tar '*.tar'
leave_out tar "$shard:000000000" "$shard:000000002"
tar=$shard
first tfrecord '*'
leave_out tfrecord "$shard:[0]" "$shard:[2]"
first mds '*.mds'
leave_out mds "$shard:[0]" "$shard:[2]"
first recordio '*.rec'
leave_out recordio "$shard:[0]" "$shard:[2]"
first bagz '*.bag'
leave_out bagz "$shard:[0]" "$shard:[2]"
first arrayrecord '*.array_record'
leave_out arrayrecord "$shard:[0]" "$shard:[2]"
first beton '*.beton'
leave_out beton "$shard:[0]" "$shard:[2]"
first zip '*.zip'
zip=$("$python" -c 'import sys, zipfile; print(*(sys.argv[2] + ":" + name for name in zipfile.ZipFile(sys.argv[1]).namelist()[:2]))' "$work/zip/$shard" "$shard")
leave_out zip "${zip% *}" "${zip#* }"
first litdata '*.bin'
leave_out litdata "$shard:[0]" "$shard:[2]"
for name in "$tar:000000777" "$tar" "000000000" "x.tar:000000000"; do
	! timeout $longest "$bench" --socket "$socket" --dataset "$work/tar?leave_out=$name" >"$work/said" 2>&1 ||
		fail "$name is nobody's name, and is left out"
	grep -Fq "leave_out: there is no sample" "$work/said" || fail "$name: $(cat "$work/said")"
done
# A conversion writes the shards without it.
timeout $longest "$ctl" convert "$work/tar?leave_out=$tar:000000001" "$work/new.tar" >"$work/said" 2>&1 || fail "convert: $(cat "$work/said")"
samples_of "$work/new.tar" 149
"$python" - "$work/tar/$tar" "$work/new.tar" <<'END' || fail "the picture is in the new archive"
import sys
import tarfile
with tarfile.open(sys.argv[1]) as old:
    gone, stays = (old.extractfile(f"00000000{n}.jpg").read() for n in (1, 2))
new = open(sys.argv[2], "rb").read()
assert stays in new and gone not in new
assert gone[-64:] not in new
END

# ---- what is kept ----

"$python" -c 'import lmdb, PIL' 2>/dev/null || skip "not tested: python3-lmdb and python3-pil, which look at what is kept, are not here"
noise() { # noise FOLDER N: pictures whose packed form is larger than a page
	mkdir -p "$1/class"
	"$python" - "$1/class" "$2" <<'END'
import random
import sys
import PIL.Image
numbers = random.Random(sys.argv[1])
for i in range(int(sys.argv[2])):
    PIL.Image.frombytes("RGB", (128, 128), numbers.randbytes(3 * 128 * 128)).save(f"{sys.argv[1]}/{i:03}.jpg", quality=85)
END
}
noise "$work/people" 60
noise "$work/others" 20
kept() { # kept FILE: all values of the store, for `gone`
	"$python" - "$work/kept" "$1" <<'END'
import glob
import pickle
import sys
import lmdb
file, = glob.glob(sys.argv[1] + "/**/cache.mdb", recursive=True)
with lmdb.open(file, subdir=False, readonly=True, max_dbs=2) as env, env.begin(env.open_db(b"values", create=False)) as all:
    values = {bytes(key): bytes(value) for key, value in all.cursor()}
with open(sys.argv[2], "wb") as out:
    pickle.dump(values, out)
END
}
gone() { # gone BEFORE AFTER: of values that are not there after, no page is in a file of the store; of at least 60 there was
	"$python" - "$work/kept" "$1" "$2" <<'END'
import glob
import pickle
import sys
before, after = (pickle.load(open(file, "rb")) for file in sys.argv[2:])
went = [value for key, value in before.items() if key not in after and len(value) > 12352]
assert len(went) >= 60, len(went)
assert all(before[key] == value for key, value in after.items() if key in before)
files = [open(file, "rb").read() for file in glob.glob(sys.argv[1] + "/**/cache.mdb*", recursive=True)]
assert all(any(value[4096:4160] in file for file in files) for value in after.values() if len(value) > 8192)
for value in went:
    for at in range(0, 12288, 512): # what is behind is the same in all of them, such as tables
        assert not any(value[at:at + 64] in file for file in files), at
END
}
ask --pipeline imagenet-train-u8 cache warm "$work/people" || fail "cache warm: $(cat "$work/plain.txt")"
ask --pipeline imagenet-train-u8 cache warm "$work/others" || fail "cache warm: $(cat "$work/plain.txt")"
kept "$work/before"
set -- "$work"/people/*/*
rm "$1" "$2" "$3"
samples_of "$work/people" 57
# While another program reads the file, bytes stay: as often as it is asked, also where no group is left to be dropped.
mkfifo "$work/reads" "$work/ends"
"$python" - "$work/kept" "$work/reads" "$work/ends" <<'END' &
import glob
import sys
import lmdb
file, = glob.glob(sys.argv[1] + "/**/cache.mdb", recursive=True)
with lmdb.open(file, subdir=False, readonly=True, max_dbs=2) as env, env.begin():
    open(sys.argv[2], "w").close()
    open(sys.argv[3]).close()
END
reader=$!
: <"$work/reads"
! ask cache forget "$work/people" || fail "all is forgotten that somebody reads"
says "another program reads: when that has ended, run access-ctl cache forget"
says "[1-9][0-9]* groups of $work/people were thrown away, with [0-9]+ values \([0-9.]+ [KM]iB\)"
! ask cache forget "$work/people" || fail "nothing is kept that somebody reads"
says "another program reads: when that has ended, run access-ctl cache forget"
group=$(timeout $longest "$ctl" --socket "$socket" --json cache ls | "$python" -c 'import json, sys; print(next(g["id"] for g in json.load(sys.stdin)["groups"] if "/others" in g["note"]))')
! ask cache drop "$group" || fail "a group is dropped that somebody reads"
says "another program reads: when that has ended, run access-ctl cache forget"
ask --pipeline imagenet-train-u8 cache warm "$work/others" || fail "cache warm: $(cat "$work/plain.txt")"
: >"$work/ends"
wait "$reader"
ask cache forget "$work/people" || fail "cache forget: $(cat "$work/plain.txt")"
ask cache ls || fail "cache ls"
kept "$work/after"
gone "$work/before" "$work/after" || fail "bytes of what was thrown away are in the store"
ask cache verify || fail "cache verify"
says "0 damaged ones"
samples_of "$work/people" 57
stop_accessd
