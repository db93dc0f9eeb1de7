#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl convert to WebDataset shards: every file as it is, with its label, name and class, read again by tar and by
# Python's tarfile; the same bytes whatever --jobs is; shards no larger than asked for; nothing is left of what
# fails, and nothing is overwritten or mixed with older shards by chance.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 300 3 64
cp "${top_srcdir:-.}"/tests/pipeline/data/*.jpg "$work/data/class_0001"
mv "$(find "$work/data/class_0001" -name '*.jpg' | sort | head -n 1)" "$work/data/class_0001/two.dots \"ä\".JPG"
mkdir "$work/out"
out=$work/out
convert() { # convert OPTION...: $code is its status, $work/said what it says
	code=0
	timeout $longest "$ctl" convert "$@" >"$work/said" 2>&1 || code=$?
}
says() {
	grep -q -- "$1" "$work/said" || fail "it does not say \"$1\": $(cat "$work/said")"
}
refuses() { # refuses WORDS OPTION...
	words=$1
	shift
	convert "$@"
	[ $code = 1 ] || fail "convert $*: status $code"
	says "$words"
}

# Whatever --jobs is; one archive or several have the same members.
convert --jobs 1 "$work/data" "$out/one.tar"
[ $code = 0 ] || fail "convert: $(cat "$work/said")"
convert --jobs 5 --form file "$work/data" "$out/five.tar"
[ $code = 0 ] || fail "convert --jobs 5: $(cat "$work/said")"
cmp "$out/one.tar" "$out/five.tar" || fail "the archive depends on --jobs"
convert --shard-size 100000 "$work/data" "$out/s.tar"
[ $code = 0 ] || fail "convert --shard-size: $(cat "$work/said")"
[ -e "$out/s-000002.tar" ] || fail "no third shard: $(ls "$out")"
for shard in "$out"/s-*.tar; do
	tar -tf "$shard" || fail "$shard is no archive for tar"
done >"$work/members"
tar -tf "$out/one.tar" | cmp - "$work/members" || fail "shards have other members"

# What is in it, and that no shard is larger than it must be.
/usr/bin/python3 - "$work/data" "$out" <<'END' || fail "it is not what was asked for"
import glob, json, os, sys, tarfile
data, out = sys.argv[1:]
classes = sorted(os.listdir(data))
seen = set()
for path in sorted(glob.glob(out + "/s-*.tar")):
    samples = {}
    with tarfile.open(path, "r:") as shard:
        for member in shard:
            assert member.isreg() and member.mtime == 0, member
            key, suffix = member.name.split(".", 1)
            samples.setdefault(key, {})[suffix] = shard.extractfile(member).read()
    assert os.path.getsize(path) % 10240 == 0 and (os.path.getsize(path) <= 100000 or len(samples) == 1), path
    for key, sample in samples.items():
        about = json.loads(sample.pop("json"))
        assert int(sample.pop("cls")) == classes.index(about["class"]) and about["name"].startswith(about["class"] + "/")
        [(suffix, content)] = sample.items()
        assert about["name"].lower().endswith("." + suffix), (about, suffix)
        assert content == open(os.path.join(data, about["name"]), "rb").read(), about
        assert int(key) == len(seen), key
        seen.add(about["name"])
assert len(seen) == sum(len(files) for _, _, files in os.walk(data)), len(seen)
END

# Nothing by chance.
refuses "is there already: --force" "$work/data" "$out/one.tar"
refuses "is there already: --force" --shard-size 100000 "$work/data" "$out/s.tar"
before=$(ls "$out")
refuses "leave out --form" --form packed "$work/data" "$out/x.tar"
refuses "ends in .tar" --shard-size 1G "$work/data" "$out/x.oads"
refuses "s-000001.tar\" is there" --force --shard-size 1G "$work/data" "$out/s.tar"
code=0
(ulimit -f 100 && exec "$ctl" convert "$work/data" "$out/x.tar") >"$work/said" 2>&1 || code=$?
[ $code = 1 ] || fail "a full disk: status $code"
says "cannot write"
code=0
timeout $longest prlimit --nofile=12 "$ctl" convert --jobs 1 --shard-size 20K "$work/data" "$out/many.tar" >"$work/said" 2>&1 || code=$?
[ $code = 1 ] || fail "too few descriptors: status $code: $(cat "$work/said")"
[ "$(ls -A "$out")" = "$before" ] || fail "left behind: $(ls -A "$out")"

# accessd opens what was written as it opens the folder: as many samples, each once. (Pixels: tests/python/shards_test.py.)
"$pictures" "$work/good" 60 3 64
mkdir "$work/shards"
convert --shard-size 20K "$work/good" "$work/shards/s.tar"
[ $code = 0 ] || fail "convert: $(cat "$work/said")"
for data in "$work/good" "$work/shards"; do
	timeout $longest "$bench" --private --dataset "$data" --order sequential --jobs 1 --epochs 2 --batch 16 --verify --json "$work/json" >"$work/said" 2>&1 ||
		fail "a job of $data: $(cat "$work/said")"
	exactly_once "$work/json"
	"$expect" "$work/json" jobs.0.samples == 120 node.bad_samples == 0 || fail "samples of $data"
done

# A name with two suffixes keeps both: by the last one alone no reader would find a sample.
mkdir -p "$work/volumes/a"
cp "$work/data/class_0000/000000.jpg" "$work/volumes/a/one.nii.gz"
cp "$work/data/class_0000/000000.jpg" "$work/volumes/a/two.NII.GZ"
convert "$work/volumes" "$out/volumes.tar"
[ $code = 0 ] || fail "convert of volumes: $(cat "$work/said")"
[ "$(tar -tf "$out/volumes.tar" | grep -c '^[^.]*\.nii\.gz$')" = 2 ] || fail "volumes have other names: $(tar -tf "$out/volumes.tar")"
