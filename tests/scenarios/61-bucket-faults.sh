#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Object stores that fail: each way by itself, once so that a job comes through, with each sample once and its bytes right, and once so
# that it does not: then the error says what the store said, of which object, and with bad="skip" the other samples come.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_buckets

export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY AWS_REGION=us-east-1
samples=48
mkdir "$work/store" "$work/store/bucket"
"$pictures" "$work/store/bucket/data" $samples 2 64
mkdir "$work/store/bucket/tar"
"$ctl" convert --shard-size 6K "$work/store/bucket/data" "$work/store/bucket/tar/s.tar" >"$work/said" 2>&1 || fail "convert: $(cat "$work/said")"
serve_bucket "$work/store" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --key "AKIDSECOND:second/secret+key"
export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$port"

# The server keeps to what it is taken for, as a client says that was not made here.
if rclone=${ACCESS_RCLONE:+$ACCESS_RCLONE/}rclone && "$rclone" version >/dev/null 2>&1; then
	bucket set page=7
	RCLONE_CONFIG_HERE_TYPE=s3 RCLONE_CONFIG_HERE_PROVIDER=Other RCLONE_CONFIG_HERE_ENDPOINT="$AWS_ENDPOINT_URL_S3" RCLONE_CONFIG_HERE_ENV_AUTH=true \
		RCLONE_CONFIG_HERE_LIST_VERSION=2 "$rclone" --config /dev/null check --download "$work/store/bucket" here:bucket >"$work/said" 2>&1 ||
		fail "rclone sees something else in the bucket: $(cat "$work/said")"
	bucket set page=0
else
	echo "not tested: the server of the bucket by another client: there is no rclone"
fi

start_accessd workers=2 chunk=16 slots=4 linger_s=1
for name in data tar; do
	job "$work/store/bucket/$name" || fail "$name: $(cat "$work/job.json")"
	"$expect" "$work/job.json" digest >"$work/digest.$name"
done
fault() { # fault NAME=VALUE...: no others, and nothing was counted; the stream of before is not used again
	bucket set slow_down=0 internal=0 reset=0 cut=0 stall=0 silent=0 trickle=0 stop_heads=0 wrong_range=0 wrong_total=0 short=0 long=0 whole=0 \
		other_etag=0 no_etag=0 missing=0 denied=0 garbage=0 endless=0 loop=0 html=0 latency_ms=0 page=0 etag_parts=0 expired=0 region=us-east-1 \
		only= clear= "$@"
	# shellcheck disable=SC2046 # a list of numbers
	no_process access-bucket || kill $(processes access-bucket)
	no_bucket_is_left
	until_true $patience status_is streams == 0 || fail "a stream stays"
}
has_all() { # has_all WHAT [TIMES]: the job came through
	"$expect" "$work/job.json" samples == $((samples * ${2:-1})) unique == $samples different == 0 || fail "$1: not each sample once: $(cat "$work/job.json")"
}
comes_through() { # comes_through NAME FAULT...: and the fault was there
	name=$1
	shift
	fault "$@"
	job "s3://bucket/$name" || fail "$name, $*: $(cat "$work/job.json")"
	has_all "$name, $*"
	"$expect" "$work/job.json" digest | cmp - "$work/digest.$name" || fail "$name, $*: other bytes"
}
happened() { # happened FAULT
	[ "$(bucket counts "done.$1")" -gt 0 ] || fail "$1 never happened: nothing was tested"
}
for name in data tar; do
	for kind in slow_down internal reset cut short; do
		comes_through $name $kind=+2
		happened $kind
	done
	comes_through $name page=5
	comes_through $name latency_ms=30
	comes_through $name etag_parts=1
done
# What stops is cut off, and asked for again.
for kind in stall silent trickle; do
	comes_through data $kind=+1 only=0007.jpg
	happened $kind
done

# What lasts is an error that names the object; others come where bad samples may be left out.
gives_up() { # gives_up PATTERN FAULT...: at one picture of many
	pattern=$1
	shift
	fault "$@" only=000007.jpg
	! job s3://bucket/data || fail "$*: it comes through: $(cat "$work/job.json")"
	"$expect" "$work/job.json" text | grep -Eq -- "000007.jpg.*($pattern)" || fail "$*: \"$pattern\" is not said of it: $(cat "$work/job.json")"
	fault "$@" only=000007.jpg
	job s3://bucket/data bad=skip || fail "$*, bad=\"skip\": $(cat "$work/job.json")"
	"$expect" "$work/job.json" unique == $((samples - 1)) different == 0 bad == 1 || fail "$*: not the other samples: $(cat "$work/job.json")"
	"$expect" "$work/job.json" bad.0.1 | grep -Eq -- "000007.jpg" || fail "$*: another sample is bad: $(cat "$work/job.json")"
}
gives_up "500|InternalError" internal=1

stop_accessd
no_bucket_is_left
