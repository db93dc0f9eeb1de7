#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Data sets in a bucket. Each kind that a folder has, from a real S3 (rclone's): the samples are the local ones, bit for bit, each once.
# Then, of a server that counts: jobs that share read once for all, what is kept is not asked for again, nor is an index made anew; a job
# goes on from its state; access-bucket, the reader and accessd are killed in the middle of an epoch, and nothing is lost or repeated; and who
# may not read is told why. (Servers that fail: 61-bucket-faults.sh.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_buckets

export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY AWS_REGION=us-east-1
mkdir "$work/store" "$work/store/bucket"
make_kinds "$work/store/bucket"
tokens=$(($(stat -c %s "$work/store/bucket/tokens.bin") / 2))
size_of() { # size_of FOLDER: of its files
	find "$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }'
}

# Each kind.
serve_s3 "$work/store"
start_accessd workers=2 chunk=32 linger_s=1
bytes_of() { # bytes_of NAME DATASET OPTION...: each sample came once; their digest is in $work/digest.NAME
	of=$1
	shift
	job "$@" || fail "$1: $(cat "$work/job.json")"
	"$expect" "$work/job.json" samples == "$samples" unique == "$samples" different == 0 || fail "$1: not each sample once: $(cat "$work/job.json")"
	"$expect" "$work/job.json" digest >"$work/digest.$of"
}
alike() { # alike SAMPLES NAME OPTION...: it is so in the bucket and here
	samples=$1 name=$2
	shift 2
	bytes_of here "$work/store/bucket/$name" "$@"
	bytes_of there "s3://bucket/$name" "$@" "source={\"endpoint\": \"http://127.0.0.1:$port\"}"
	cmp "$work/digest.here" "$work/digest.there" || fail "$name has other samples in the bucket than here"
}
for kind in data tar tfrecord mds litdata recordio bagz arrayrecord beton zip one.oads; do
	alike 150 $kind
done
if "${PYTHON:-python3}" -c 'import pyarrow' 2>/dev/null; then
	alike 300 array.npy pipeline=none
else
	echo "not tested: a .npy in a bucket: pyarrow is not here"
fi
alike $(((tokens - 1) / 32)) tokens.bin tokens=32
# Of one object what it speaks of comes with it: a table's pictures, the ends of a file's documents.
alike 150 rows.csv
job "$work/store/bucket/tokens.bin" tokens=64 pack=1 || fail "packed here: $(cat "$work/job.json")"
alike "$("$expect" "$work/job.json" samples)" tokens.bin tokens=64 pack=1

# As programs of today are set up: by the environment alone, and by files.
samples=150
export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$port"
bytes_of environment s3://bucket/tar
mkdir "$work/aws"
cat >"$work/aws/credentials" <<END_OF_FILE
[other]
aws_access_key_id = $AWS_ACCESS_KEY_ID
aws_secret_access_key = $AWS_SECRET_ACCESS_KEY
END_OF_FILE
(
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	export AWS_SHARED_CREDENTIALS_FILE="$work/aws/credentials" AWS_CONFIG_FILE=/dev/null
	bytes_of files s3://bucket/tar 'source={"profile": "other"}'
)
stop_accessd
kill -KILL $server

# Of a server that counts.
serve_bucket "$work/store" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$port"

# Two jobs are served with one reading. (Slots for the whole of it: however slow a job is, it finds what the other one had.)
start_accessd workers=2 chunk=16 slots=12 linger_s=1
bucket set clear=
job_as first s3://bucket/data &
first=$!
job_as second s3://bucket/data || fail "a job of two: $(cat "$work/second.json")"
wait $first || fail "a job of two: $(cat "$work/first.json")"
for one in first second; do
	"$expect" "$work/$one.json" samples == 150 unique == 150 different == 0 || fail "not each sample once"
done
[ "$(bucket counts gets)" = 150 ] || fail "two jobs that share read more often than once: $(bucket counts gets) of 150"
[ "$(bucket counts bytes)" = "$(size_of "$work/store/bucket/data")" ] || fail "other bytes were read than there are"
stop_accessd

# What is kept is not asked for again.
start_accessd workers=2 chunk=16 slots=4 linger_s=1 cache_size=64M cache_force=1 cache_point=packed
job s3://bucket/data epochs=2 || fail "two epochs: $(cat "$work/job.json")"
all_is_kept() {
	"$ctl" --socket "$socket" cache ls | grep -q " packed .* 150 .*100.0 %"
}
until_true $patience all_is_kept || fail "it is not kept: $("$ctl" --socket "$socket" cache ls)"
bucket set clear=
job s3://bucket/data epochs=2 || fail "two epochs more: $(cat "$work/job.json")"
"$expect" "$work/job.json" samples == 300 unique == 150 different == 0 || fail "not each sample once an epoch"
[ "$(bucket counts gets)" = 0 ] || fail "what is kept was read $(bucket counts gets) times"
stop_accessd

# An index is made once: shards are not read for it again, nor by another accessd. (It is as far as the files were read for it and for an epoch.)
size=$(size_of "$work/store/bucket/tar")
rm -rf "$work/cache"
mkdir -m 0700 "$work/cache"
for open in first again; do
	start_accessd workers=2 chunk=16 slots=4 linger_s=1
	bucket set clear=
	job s3://bucket/tar || fail "$open: $(cat "$work/job.json")"
	bytes=$(bucket counts bytes)
	[ $open = again ] || [ "$bytes" -gt "$size" ] || fail "the first opening reads no shards for the index"
	[ $open = first ] || [ "$bytes" -le "$size" ] || fail "shards were read again, for an index that is there: $bytes of $size"
	stop_accessd
done

# Compressed shards are refused with what reads them, as here; that does, and goes on when access-bucket is killed in the middle.
mkdir "$work/store/bucket/packed"
cp "$work"/store/bucket/tar/*.tar "$work/store/bucket/packed/"
first=$(find "$work/store/bucket/packed" -name "*.tar" | sort | head -n 1)
gzip "$first"
start_accessd workers=1
! job s3://bucket/packed || fail "compressed shards are read: $(cat "$work/job.json")"
"$expect" "$work/job.json" text | grep -q "is compressed.*access-ctl convert .*s3://bucket/packed.* NEW.tar" || fail "compressed shards are refused otherwise: $(cat "$work/job.json")"
stop_accessd
"$ctl" convert "$work/store/bucket/packed" "$work/here.oads" >"$work/said" 2>&1 || fail "convert here: $(cat "$work/said")"
"$ctl" convert s3://bucket/packed "$work/there.oads" >"$work/said" 2>&1 || fail "convert of compressed shards: $(cat "$work/said")"
cmp "$work/here.oads" "$work/there.oads" || fail "convert of compressed shards writes something else"
# Of shards that turn out to be plain the copy that was looked into is kept: the listing, and each byte once.
"$ctl" convert "$work/store/bucket/arrayrecord" "$work/here.oads" --force >"$work/said" 2>&1 || fail "convert here: $(cat "$work/said")"
bucket set clear=
"$ctl" convert s3://bucket/arrayrecord "$work/there.oads" --force >"$work/said" 2>&1 || fail "convert of ArrayRecord: $(cat "$work/said")"
cmp "$work/here.oads" "$work/there.oads" || fail "convert of ArrayRecord writes something else"
[ "$(bucket counts bytes)" = "$(size_of "$work/store/bucket/arrayrecord")" ] ||
	fail "convert read $(bucket counts bytes) bytes of plain shards of $(size_of "$work/store/bucket/arrayrecord")"
for what in packed data; do
	rm -f "$work/here.oads"
	"$ctl" convert "$work/store/bucket/$what" "$work/here.oads" >"$work/said" 2>&1 || fail "convert here: $(cat "$work/said")"
	bucket set clear= stall=+1
	"$ctl" convert --force s3://bucket/$what "$work/there.oads" >"$work/said" 2>&1 &
	run=$!
	bucket until done.stall 1
	# shellcheck disable=SC2046 # a list of numbers
	kill -KILL $(processes access-bucket)
	bucket set stall=0
	wait $run || fail "access-bucket was killed under convert: $(cat "$work/said")"
	cmp "$work/here.oads" "$work/there.oads" || fail "convert of $what writes something else when access-bucket was killed"
done

# It is left and taken up again, in an accessd of another life.
for part in 1 2 3 4; do
	start_accessd workers=2 chunk=16 slots=4 linger_s=1
	stop=stop=3
	[ $part != 4 ] || stop=stop=0
	job s3://bucket/mds state="$work/job.state" $stop || fail "part $part: $(cat "$work/job.json")"
	[ $part = 4 ] || "$expect" "$work/job.json" samples == $((part * 48)) || fail "part $part has other samples"
	stop_accessd
done
"$expect" "$work/job.json" samples == 150 unique == 150 different == 0 || fail "a job that was taken up has not each sample once"

# Each of our processes is killed in the middle of each epoch, where pictures are read, shards, and shards with an index of their own.
kill_one() { # kill_one NAME: the job goes on when it is dead; of accessd, when there is another one
	case $1 in
	accessd)
		offspring=$(offspring_of "$daemon")
		kill -KILL "$daemon"
		wait "$daemon" 2>/dev/null || true
		# shellcheck disable=SC2086 # a list of numbers
		until_true $patience are_gone $offspring || fail "a process outlives accessd: $offspring"
		start_accessd workers=2 chunk=16 slots=4 linger_s=1
		;;
	access-reader) kill -KILL "$(status node.reader_pid)" ;;
	*)
		pid=$(processes "$1")
		[ -n "$pid" ] || fail "there is no $1"
		# shellcheck disable=SC2086 # a list of numbers
		kill -KILL $pid
		;;
	esac
}
waits_or_is_gone() {
	[ -e "$work/waits" ] || is_gone "$run"
}
start_accessd workers=2 chunk=16 slots=4 linger_s=1
for name in data tar mds; do
	for what in access-bucket access-reader accessd; do
		job "s3://bucket/$name" epochs=3 at=3,13,23 do="touch '$work/waits'; while [ -e '$work/waits' ]; do sleep 0.05; done" &
		run=$!
		for _ in 3 13 23; do
			until_true $patience waits_or_is_gone || fail "$name: the job does not go on behind the death of $what"
			[ -e "$work/waits" ] || fail "$name: the job ended, $what was killed: $(cat "$work/job.json")"
			kill_one $what
			rm "$work/waits"
		done
		wait $run || fail "$name: $what was killed: $(cat "$work/job.json")"
		"$expect" "$work/job.json" samples == 450 unique == 150 different == 0 ||
			fail "$name: $what was killed, and not each sample came once an epoch: $(cat "$work/job.json")"
	done
done
stop_accessd

# Who may not read is told why, and how to mend it.
refused() { # refused PATTERN DATASET OPTION...
	pattern=$1
	shift
	! job "$@" || fail "$1 is read: $(cat "$work/job.json")"
	"$expect" "$work/job.json" error == DatasetError 2>/dev/null || "$expect" "$work/job.json" error == MissingError 2>/dev/null ||
		"$expect" "$work/job.json" error == ClosedError || fail "$1: another error: $(cat "$work/job.json")"
	"$expect" "$work/job.json" text | grep -Eq -- "$pattern" || fail "$1: \"$pattern\" is not said: $(cat "$work/job.json")"
}
start_accessd workers=1
refused "NoSuchBucket|no such bucket" s3://nobucket/data
refused "nothing|no object" s3://bucket/nothing
AWS_SECRET_ACCESS_KEY=other refused "SignatureDoesNotMatch|secret" s3://bucket/data
AWS_ACCESS_KEY_ID=AKIDOTHER refused "InvalidAccessKeyId" s3://bucket/data
(
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	export HOME="$work" AWS_EC2_METADATA_DISABLED=true
	refused "AWS_ACCESS_KEY_ID|credentials" s3://bucket/data
)
refused "arguments" s3://bucket/data 'source={"endpont": "http://127.0.0.1:1"}'
stop_accessd
no_bucket_is_left
