/* SPDX-License-Identifier: Apache-2.0 */

/* What servers answer to a list, and what they say when they say no. */

#include <stdio.h>

#include "bucket/s3/s3_list.h"
#include "bucket/xml.h"
#include "tests/suite.h"

#define HEAD                                           \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" \
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
#define ENTRY(key, size)                                                                    \
	"<Contents><Key>" key "</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>" \
	"<ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>" size "</Size>"    \
	"<StorageClass>STANDARD</StorageClass></Contents>"
#define END "</ListBucketResult>"

struct seen {
	char text[512];
	int stop; /* what the sink says */
};

static int on_object(void *arg, const struct provider_object *object)
{
	struct seen *seen = arg;
	const size_t used = strlen(seen->text);

	ck_assert_int_eq(object->last_modified, 1255369830);
	ck_assert_str_eq(object->etag, "\"fba9dede5f27731c9771645a39863328\"");
	snprintf(seen->text + used, sizeof(seen->text) - used, "%s:%llu\n", object->name,
		 (unsigned long long)object->size);
	return seen->stop;
}

static int read_list(const char *text, struct seen *seen, char **ret_next, struct diag *diag)
{
	const struct provider_sink sink = {on_object, seen};

	*ret_next = NULL;
	return s3_list_read(text, strlen(text), &sink, ret_next, diag);
}

static const struct {
	const char *text, *objects, *next;
} good[] = {
    {HEAD "<IsTruncated>false</IsTruncated>" END, "", NULL},
    {HEAD ENTRY("a/b.jpg", "434234") ENTRY("c &amp; &#228;", "0") END,
     "a/b.jpg:434234\nc & \xc3\xa4:0\n", NULL},
    /* Some say so before the keys, others behind them. */
    {HEAD "<EncodingType>url</EncodingType>" ENTRY("a+b%2Bc%0A%C3%A4/%25", "1") END,
     "a b+c\n\xc3\xa4/%:1\n", NULL},
    {HEAD ENTRY("a+b", "1") "<EncodingType>url</EncodingType>" END, "a b:1\n", NULL},
    {HEAD ENTRY("a+b%20", "1") END, "a+b%20:1\n", NULL},
    {HEAD "<IsTruncated>true</IsTruncated><ContinuationToken>1</ContinuationToken>"
	  "<NextContinuationToken>2/+=</NextContinuationToken>" ENTRY("a", "1") END,
     "a:1\n", "2/+="},
    {HEAD "<NextContinuationToken>2</NextContinuationToken>" END, "", NULL},
    /* Of others than Contents no notice is taken. */
    {HEAD "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes><Key>k</Key>"
	  "<Contents><Owner><ID>1</ID><Key>no</Key></Owner><Key>a</Key><Size>7</Size>"
	  "<LastModified>2009-10-12T17:50:30Z</LastModified>"
	  "<ETag>\"fba9dede5f27731c9771645a39863328\"</ETag></Contents>" END,
     "a:7\n", NULL},
};

START_TEST(good_ones)
{
	struct seen seen = {"", 0};
	struct diag diag = {""};
	char *next;

	ck_assert_msg(read_list(good[_i].text, &seen, &next, &diag) == 0, "%s", diag.text);
	ck_assert_str_eq(seen.text, good[_i].objects);
	ck_assert_str_eq(next ? next : "none", good[_i].next ? good[_i].next : "none");
	free(next);
}
END_TEST

static const struct {
	const char *text, *why;
} bad[] = {
    {"", "no element"},
    {"<html><body>Sign in</body></html>", "no ListBucketResult"},
    {HEAD, "no element"},
    {"<!DOCTYPE a [<!ENTITY b \"c\">]><ListBucketResult/>", "a DOCTYPE"},
    {HEAD "&nbsp;" END, "undefined entity"},
    {HEAD ENTRY("a", "-1") END, "no Key or no Size"},
    {HEAD ENTRY("a", "1x") END, "no Key or no Size"},
    {HEAD ENTRY("a", "99999999999999999999") END, "no Key or no Size"},
    {HEAD ENTRY("", "1") END, "no Key or no Size"},
    {HEAD "<EncodingType>url</EncodingType>" ENTRY("a%0", "1") END, "a Key that is none"},
    {HEAD "<EncodingType>url</EncodingType>" ENTRY("a%00b", "1") END, "a Key that is none"},
    {HEAD "<IsTruncated>true</IsTruncated>" END, "ListObjectsV2"},
    {HEAD "<IsTruncated>true</IsTruncated><ContinuationToken>2</ContinuationToken>"
	  "<NextContinuationToken>2</NextContinuationToken>" END,
     "is this one"},
    {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a></a></a>"
     "</a></a></a></a></a></a>",
     "too deeply"},
};

START_TEST(bad_ones)
{
	struct seen seen = {"", 0};
	struct diag diag = {""};
	char *next;

	ck_assert_int_eq(read_list(bad[_i].text, &seen, &next, &diag), -EBADMSG);
	ck_assert_msg(strstr(diag.text, bad[_i].why) != NULL, "%s", diag.text);
	ck_assert_ptr_null(next);
}
END_TEST

START_TEST(the_sink_stops_it)
{
	struct seen seen = {"", -EXFULL};
	struct diag diag = {"untouched"};
	char *next;

	ck_assert_int_eq(read_list(HEAD ENTRY("a", "1") ENTRY("b", "1") END, &seen, &next, &diag),
			 -EXFULL);
	ck_assert_str_eq(seen.text, "a:1\n");
	ck_assert_str_eq(diag.text, "untouched");
}
END_TEST

START_TEST(long_texts)
{
	const size_t bytes = 2 * XML_MOST_TEXT;
	_cleanup_free_ char *text = calloc(1, bytes + 512), *key = calloc(1, bytes + 1);
	struct seen seen = {"", 0};
	struct diag diag = {""};
	char *next;

	memset(key, 'k', bytes);
	sprintf(text, HEAD "<Contents><Key>%s</Key></Contents>" END, key);
	ck_assert_int_eq(read_list(text, &seen, &next, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "too long"));
	key[S3_LIST_MOST_NAME + 1] = '\0';
	sprintf(text, HEAD "<Contents><Key>%s</Key><Size>1</Size></Contents>" END, key);
	ck_assert_int_eq(read_list(text, &seen, &next, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "a Key that is none"));
}
END_TEST

static const struct {
	const char *text, *code, *message, *region;
} errors[] = {
    {"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; "
     "expecting 'eu-west-1'</Message><Region>eu-west-1</Region><RequestId>1</RequestId></Error>",
     "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'",
     "eu-west-1"},
    {"<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>"
     "<Code>ExpiredTokenException</Code><Message>over</Message></Error></ErrorResponse>",
     "ExpiredTokenException", "over", ""},
    {"<html>503</html>", "", "", ""},
    {"<Error><Code>Half", "", "", ""},
    {"", "", "", ""},
};

START_TEST(errors_are_read)
{
	struct s3_error error;

	s3_error_read(errors[_i].text, strlen(errors[_i].text), &error);
	ck_assert_str_eq(error.code, errors[_i].code);
	ck_assert_str_eq(error.message, errors[_i].message);
	ck_assert_str_eq(error.region, errors[_i].region);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, good_ones, 0, BASE_ARRAY_LEN(good));
	tcase_add_loop_test(tcase, bad_ones, 0, BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, the_sink_stops_it);
	tcase_add_test(tcase, long_texts);
	tcase_add_loop_test(tcase, errors_are_read, 0, BASE_ARRAY_LEN(errors));
}

int main(void)
{
	return suite_run("s3_list", add);
}
