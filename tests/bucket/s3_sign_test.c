/* SPDX-License-Identifier: Apache-2.0 */

/* Signatures: those of Amazon's documents, and of botocore 1.43, which were recorded. */

#include <stdio.h>

#include "bucket/s3/s3_sign.h"
#include "bucket/s3/s3_time.h"
#include "tests/bucket/s3_fake.h"
#include "tests/suite.h"

static const struct s3_keys amazon = {.id = "AKIAIOSFODNN7EXAMPLE",
				      .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
static const struct s3_keys recorded = {.id = "AKIDEXAMPLE",
					.secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
static const struct s3_keys session = {.id = "AKIDEXAMPLE",
				       .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
				       .token = "TOKEN/with+signs=="};

static const struct row {
	const struct s3_keys *keys;
	const char *now, *service, *region, *method, *url, *header, *body, *names, *signature;
} rows[] = {
    {&amazon, "2013-05-24T00:00:00Z", "s3", "us-east-1", "GET",
     "https://examplebucket.s3.amazonaws.com/test.txt", "Range: bytes=0-9", NULL,
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {&amazon, "2013-05-24T00:00:00Z", "s3", "us-east-1", "GET",
     "https://examplebucket.s3.amazonaws.com/?lifecycle=", NULL, NULL,
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {&amazon, "2013-05-24T00:00:00Z", "s3", "us-east-1", "GET",
     "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", NULL, NULL,
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    {&session, "2026-11-27T09:05:07Z", "s3", "eu-central-1", "GET",
     "https://bucket.s3.eu-central-1.amazonaws.com/train/a%20b%2Bc~%C3%BC.jpg",
     "Range: bytes=100-199", NULL,
     "host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token",
     "2e53dd08c2f8fe40a92d6941100f85a58fef1212c8503681dad7d2ed4d02968e"},
    {&recorded, "2026-11-27T09:05:07Z", "s3", "us-east-1", "GET",
     "http://127.0.0.1:9000/"
     "my.bucket?continuation-token=1%2Fx%3D%3D&encoding-type=url&list-type=2&max-keys=1000"
     "&prefix=a%2Fb%20c%2F",
     "x-amz-request-payer: requester", NULL,
     "host;x-amz-content-sha256;x-amz-date;x-amz-request-payer",
     "c28c55247fcfdf6e782f8d9bd457dd0b5ed08c9c57e309cae71a9771add766eb"},
    {&recorded, "2026-11-27T09:05:07Z", "s3", "us-east-1", "HEAD",
     "http://127.0.0.1:9000/b/..%2F%25", NULL, NULL, "host;x-amz-content-sha256;x-amz-date",
     "a2ecf5816f70fbcfb27ebbaab7d5952215b5e5eefd836d4b5e6f2f71d1358657"},
    {&recorded, "2026-11-27T09:05:07Z", "sts", "us-west-2", "POST",
     "https://sts.us-west-2.amazonaws.com/", "Content-Type: application/x-www-form-urlencoded",
     "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"
     "&RoleSessionName=s",
     "content-type;host;x-amz-date",
     "7d0995acadc137fe47a33662fd0365dabb9d7d5b2af9bf881226bb461a843828"},
};

static void check_row(const struct row *row, struct s3_sign_key *key)
{
	struct http_request request = {.method = row->method};
	char wanted[512];

	http_request_url(&request, "%s", row->url);
	/* Not for those who sign: it is as it was. */
	http_request_header(&request, "Accept-Encoding: identity");
	if (row->header)
		http_request_header(&request, "%s", row->header);
	if (row->body) {
		request.body = strdup(row->body);
		request.body_bytes = strlen(row->body);
	}
	/* The second one has the headers of the first one already. */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(s3_sign(&request, row->keys, row->region, row->service,
					 s3_time_parse(row->now), key),
				 0);
	snprintf(wanted, sizeof(wanted),
		 "AWS4-HMAC-SHA256 Credential=%s/%.4s%.2s%.2s/%s/%s/"
		 "aws4_request,SignedHeaders=%s,Signature=%s",
		 row->keys->id, row->now, row->now + 5, row->now + 8, row->region, row->service,
		 row->names, row->signature);
	ck_assert_str_eq(http_request_value(&request, "Authorization"), wanted);
	http_request_free(&request);
}

START_TEST(signatures)
{
	struct s3_sign_key key = {.scope = ""};

	check_row(&rows[_i], &key);
	check_row(&rows[_i], &key);
}
END_TEST

/* A key is of one day, region and service. */
START_TEST(keys_of_days)
{
	struct s3_sign_key key = {.scope = ""};

	for (size_t i = 4; i < BASE_ARRAY_LEN(rows); i++)
		check_row(&rows[i], &key);
}
END_TEST

static const struct {
	const char *text;
	int64_t seconds;
} times[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2009-10-12T17:50:30.000Z", 1255369830},
    {"2009-10-12T17:50:30+01:00", 1255369830 - 3600},
    {"2009-10-12T17:50:30-0130", 1255369830 + 5400},
    {"2009-10-12T17:50:30", INT64_MIN},
    {"2009-10-12", INT64_MIN},
    {"2009-13-12T17:50:30Z", INT64_MIN},
    {"2009-10-12T17:50:30Zulu", INT64_MIN},
    {"2009-10-12T17:-5:30Z", INT64_MIN},
    {"", INT64_MIN},
};

START_TEST(times_are_read)
{
	ck_assert_int_eq(s3_time_parse(times[_i].text), times[_i].seconds);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, signatures, 0, BASE_ARRAY_LEN(rows));
	tcase_add_test(tcase, keys_of_days);
	tcase_add_loop_test(tcase, times_are_read, 0, BASE_ARRAY_LEN(times));
}

int main(void)
{
	return suite_run("s3_sign", add);
}
