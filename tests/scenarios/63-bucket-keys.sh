#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Credentials that change, and objects that do, while jobs read a bucket. A job with newer keys is served with those at once, and with it the job
# whose keys have ended meanwhile; keys that are good for nothing take nothing away. Keys in a file that end in the middle of an epoch are read
# anew. An object that is replaced there is an error of its sample, in words, and no other bytes.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_buckets

samples=96
mkdir "$work/store" "$work/store/bucket" "$work/aws"
"$pictures" "$work/store/bucket/data" $samples 2 64
serve_bucket "$work/store" --key "AKIDFIRST:first/secret" --key "AKIDSECOND:second/secret+key"
export AWS_REGION=us-east-1 AWS_ENDPOINT_URL_S3="http://127.0.0.1:$port" AWS_EC2_METADATA_DISABLED=true HOME="$work"
waits() {
	[ -e "$work/$1.waits" ]
}
waits_for() { # waits_for NAME PID: in the middle of its epoch
	until_true $patience waits "$1" || fail "$1 does not come to the middle: $(cat "$work/$1.json")"
	! is_gone "$2" || fail "$1 has ended: $(cat "$work/$1.json")"
}
waiting() { # waiting NAME [OPTION...]: a job that stays in the middle of its epoch as long as $work/NAME.waits is there
	name=$1
	shift
	job_as "$name" s3://bucket/data at=2 do="touch '$work/$name.waits'; while [ -e '$work/$name.waits' ]; do sleep 0.05; done" "$@"
}
has_all() { # has_all NAME
	"$expect" "$work/$1.json" samples == $samples unique == $samples different == 0 || fail "$1: not each sample once: $(cat "$work/$1.json")"
}
start_accessd workers=2 chunk=16 slots=4 linger_s=0

# Newer keys of another job, while one reads with older ones; which end then.
(
	export AWS_ACCESS_KEY_ID=AKIDFIRST AWS_SECRET_ACCESS_KEY=first/secret
	waiting first
) &
first=$!
waits_for first $first
was=$(processes access-bucket)
! (AWS_ACCESS_KEY_ID=AKIDSECOND AWS_SECRET_ACCESS_KEY=wrong job s3://bucket/data) || fail "a wrong key reads: $(cat "$work/job.json")"
"$expect" "$work/job.json" text | grep -q "SignatureDoesNotMatch" || fail "a wrong key: it is not said: $(cat "$work/job.json")"
[ "$(processes access-bucket)" = "$was" ] || fail "a wrong key takes a good one's access-bucket away"
bucket set expired=1
(AWS_ACCESS_KEY_ID=AKIDSECOND AWS_SECRET_ACCESS_KEY=second/secret+key job s3://bucket/data) || fail "newer keys: $(cat "$work/job.json")"
has_all job
rm "$work/first.waits"
wait $first || fail "the job with older keys: $(cat "$work/first.json")"
has_all first
# Behind the last job, too: the one of before stays for a while.
bucket set expired=2
(AWS_ACCESS_KEY_ID=AKIDFIRST AWS_SECRET_ACCESS_KEY=first/secret job s3://bucket/data) || fail "other keys behind the last job: $(cat "$work/job.json")"
has_all job
# shellcheck disable=SC2009 # /proc, of these processes
for pid in $(processes access-bucket); do
	! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -E "AKID|secret" || fail "keys are seen in the list of processes"
done

# Keys in a file end in the middle of an epoch, and the file has others then.
keys_are() { # keys_are ID SECRET
	printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$1" "$2" >"$work/aws/new"
	mv "$work/aws/new" "$work/aws/credentials"
}
export AWS_SHARED_CREDENTIALS_FILE="$work/aws/credentials"
bucket set expired=0
keys_are AKIDFIRST first/secret
waiting file &
file=$!
waits_for file $file
bucket set expired=1
keys_are AKIDSECOND second/secret+key
rm "$work/file.waits"
wait $file || fail "keys that ended in the middle of an epoch: $(cat "$work/file.json")"
has_all file

# An object is replaced in the middle of an epoch, by one of its size.
waiting replaced &
replaced=$!
waits_for replaced $replaced
for picture in "$work"/store/bucket/data/*/*.jpg; do
	touch -d "now + 1 hour" "$picture"
done
rm "$work/replaced.waits"
! wait $replaced || fail "objects that were replaced are read: $(cat "$work/replaced.json")"
"$expect" "$work/replaced.json" text | grep -q "changed: sample .*s3://bucket/data/.*\.jpg.*open it again" || fail "it is not said that it was replaced: $(cat "$work/replaced.json")"
job s3://bucket/data || fail "behind that: $(cat "$work/job.json")"
has_all job
stop_accessd
no_bucket_is_left
