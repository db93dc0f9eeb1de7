/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of bad samples, and of names, from an accessd that lies: about how many there are, where it is, whose they are, or without
 * end. Each lie ends in a code and a text; what is true is told in order.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "shmring/bad_page.h"
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

#define SAMPLES 100

static void put_named(struct bad_page *page, uint64_t id, const char *name, const char *stage)
{
	ck_assert(bad_page_put(page, &(struct bad_page_entry){id, name, stage, "x"}));
}

static void put(struct bad_page *page, uint64_t id, const char *stage)
{
	put_named(page, id, "a/b.jpg", stage);
}

static const char *name_of(uint64_t id)
{
	static _Thread_local char name[32];

	snprintf(name, sizeof(name), "a/%llu.jpg", (unsigned long long)id);
	return name;
}

static void answer(int sock, uint16_t type, const void *bytes, size_t size, uint64_t done,
		   uint64_t total)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_bytes(&out, PROTO_KEY_ENTRIES, bytes, size);
	wire_put_u64(&out, PROTO_KEY_DONE, done);
	wire_put_u64(&out, PROTO_KEY_TOTAL, total);
	wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
}

/* ---- of all that it knows ---- */

enum lie {
	LIE_NONE,
	LIE_TOTAL,   /* more than there are samples */
	LIE_STANDS,  /* it does not go on */
	LIE_BACK,    /* behind where it was */
	LIE_EMPTY,   /* goes on without an entry */
	LIE_MORE,    /* more entries than it says */
	LIE_FOREIGN, /* no sample of the dataset */
	LIE_GARBAGE, /* no page */
	LIE_TYPE,    /* another message */
	LIE_REFUSES,
	LIE_HANGS_UP, /* each time */
	LIE_SILENT,
};

static const struct {
	int code;
	const char *text;
} outcomes[] = {
    [LIE_NONE] = {0, ""},
    [LIE_TOTAL] = {-EPROTO, "makes no sense"},
    [LIE_STANDS] = {-EPROTO, "makes no sense"},
    [LIE_BACK] = {-EPROTO, "makes no sense"},
    [LIE_EMPTY] = {-EPROTO, "makes no sense"},
    [LIE_MORE] = {-EPROTO, "makes no sense"},
    [LIE_FOREIGN] = {-EPROTO, "makes no sense"},
    [LIE_GARBAGE] = {-EPROTO, "makes no sense"},
    [LIE_TYPE] = {-EPROTO, "message 16"},
    [LIE_REFUSES] = {OA_E_REFUSED, "refused"},
    [LIE_HANGS_UP] = {OA_E_UNREACHABLE, "hung up"},
    [LIE_SILENT] = {OA_E_TIMEOUT, "in time"},
};

/* Ids 90, 80, ... 0 and 90 again, one a page; the lie is in the third page. */
static void tell(int sock, const struct wire_in *in, unsigned arg)
{
	static struct bad_page page;
	uint64_t from = 0, total = 11, next;
	enum lie lie;

	page.used = 0;
	wire_get_u64(in, PROTO_KEY_FROM, &from);
	lie = from == 2 ? (enum lie)arg : LIE_NONE;
	next = from + 1;
	put(&page,
	    lie == LIE_FOREIGN ? SAMPLES
	    : from == 10       ? 90
			       : 90 - 10 * from,
	    from == 10 ? "read" : "decode");
	if (lie == LIE_MORE)
		put(&page, 7, "decode");
	if (lie == LIE_GARBAGE)
		page.bytes[8] = 0;
	if (lie == LIE_STANDS || lie == LIE_EMPTY)
		page.used = 0;
	if (lie == LIE_STANDS || lie == LIE_BACK)
		next = lie == LIE_BACK ? 1 : from;
	if (lie == LIE_TOTAL)
		total = SAMPLES + 1;
	if (lie == LIE_HANGS_UP)
		shutdown(sock, SHUT_RDWR);
	else if (lie == LIE_REFUSES)
		answer(sock, PROTO_REFUSED, page.bytes, page.used, next, total);
	else if (lie != LIE_SILENT)
		answer(sock, lie == LIE_TYPE ? PROTO_WELCOME : PROTO_BAD_SAMPLES, page.bytes,
		       page.used, next, total);
}

static struct oa_stream *open_at(struct fake *fake, const struct fake_config *config)
{
	struct oa_options options = fake_options(5, 1);

	options.bad = OA_BAD_SKIP;
	fake_start(fake, config);
	return fake_open(fake, &options);
}

START_TEST(each_lie_is_told)
{
	const struct fake_config config = {
	    .n = SAMPLES, .chunk = 10, .slots = 4, .bad = tell, .bad_arg = (unsigned)_i};
	struct oa_bad_sample sample = {.size = sizeof(sample)};
	struct oa_bad_list *list = NULL;
	struct fake fake;
	struct oa_stream *stream = open_at(&fake, &config);
	int r = oa_bad_samples(stream, _i == LIE_SILENT ? 50 : 60000, &list);

	ck_assert_msg(r == outcomes[_i].code, "%s: %s", oa_error_name(r), oa_error_text(stream));
	if (r == 0) {
		ck_assert_uint_eq(oa_bad_samples_count(list), 10);
		for (unsigned i = 0; i < 10; i++) {
			ck_assert_int_eq(oa_bad_samples_at(list, i, &sample), 0);
			ck_assert_int_eq(sample.id, 10 * i);
			ck_assert_str_eq(sample.stage, "decode"); /* what was told first */
		}
		oa_bad_samples_free(list);
	} else {
		ck_assert_ptr_null(list);
		if (_i != LIE_HANGS_UP)
			ck_assert_msg(strstr(oa_error_text(stream), outcomes[_i].text) != NULL,
				      "%s", oa_error_text(stream));
	}
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- of those that the job came to ---- */

static uint8_t some_are_skipped(uint64_t id)
{
	return id % 4 == 3 ? LAYOUT_SAMPLE_SKIPPED : LAYOUT_SAMPLE_OK;
}

enum id_lie { IDS_ALL, IDS_FEW, IDS_NONE, IDS_MORE, IDS_OTHERS, IDS_LIES };

static void tell_ids(int sock, const struct wire_in *in, unsigned arg)
{
	static struct bad_page page;
	const void *bytes;
	uint64_t id, n = 0;
	size_t size;

	page.used = 0;
	if (wire_get_bytes(in, PROTO_KEY_IDS, &bytes, &size)) {
		answer(sock, PROTO_BAD_SAMPLES, page.bytes, 0, 0, 0);
		return;
	}
	for (; n < size / 8 && arg != IDS_NONE && (arg != IDS_FEW || n < 3); n++) {
		memcpy(&id, (const uint8_t *)bytes + 8 * n, 8);
		id = arg == IDS_OTHERS ? (id + 1) % SAMPLES : id;
		put_named(&page, id, name_of(id), "");
	}
	if (arg == IDS_MORE)
		put(&page, 0, "");
	answer(sock, PROTO_BAD_SAMPLES, page.bytes, page.used, n + (arg == IDS_MORE), size / 8);
}

START_TEST(what_was_skipped_has_its_name)
{
	const struct fake_config config = {.n = SAMPLES,
					   .chunk = 10,
					   .slots = 4,
					   .status = some_are_skipped,
					   .bad = tell_ids,
					   .bad_arg = (unsigned)_i};
	struct oa_bad_sample sample = {.size = sizeof(sample)};
	struct oa_bad_list *list = NULL;
	struct fake fake;
	struct oa_stream *stream = open_at(&fake, &config);
	struct oa_batch *batch;
	int r;

	while ((r = oa_next(stream, 60000, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_END);
	r = oa_bad_samples(stream, 60000, &list);
	ck_assert_int_eq(r, _i == IDS_ALL || _i == IDS_FEW ? 0 : -EPROTO);
	for (unsigned i = 0; r == 0 && i < SAMPLES / 4; i++) {
		ck_assert_int_eq(oa_bad_samples_at(list, i, &sample), 0);
		ck_assert_int_eq(sample.id, 4 * i + 3);
		ck_assert_str_eq(sample.name, name_of(4 * i + 3));
		ck_assert_str_eq(sample.stage, "unknown");
	}
	if (r == 0)
		ck_assert_uint_eq(oa_bad_samples_count(list), SAMPLES / 4);
	oa_bad_samples_free(list);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- names ---- */

/* Of more than a question has room for and than there are samples, so some come again. */
START_TEST(samples_have_names)
{
	const struct fake_config config = {
	    .n = SAMPLES, .chunk = 10, .slots = 4, .bad = tell_ids, .bad_arg = (unsigned)_i};
	int64_t ids[3 * SAMPLES];
	char **names = NULL;
	struct fake fake;
	struct oa_stream *stream = open_at(&fake, &config);
	int r;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(ids); i++)
		ids[i] = 7 * i % SAMPLES;
	r = oa_sample_names(stream, ids, BASE_ARRAY_LEN(ids), 60000, &names);
	if (_i == IDS_ALL || _i == IDS_FEW) {
		ck_assert_msg(r == 0, "%s: %s", oa_error_name(r), oa_error_text(stream));
		for (unsigned i = 0; i < BASE_ARRAY_LEN(ids); i++)
			ck_assert_str_eq(names[i], name_of((uint64_t)ids[i]));
		ck_assert_ptr_null(names[BASE_ARRAY_LEN(ids)]);
		free(names);
	} else {
		ck_assert_int_eq(r, -EPROTO);
		ck_assert_ptr_null(names);
		ck_assert_msg(strstr(oa_error_text(stream), "list of samples' names makes") != NULL,
			      "%s", oa_error_text(stream));
	}
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(names_of_no_samples)
{
	const struct fake_config config = {
	    .n = SAMPLES, .chunk = 10, .slots = 4, .bad = tell_ids, .bad_arg = IDS_ALL};
	const int64_t wrong[][2] = {{0, SAMPLES}, {1, -1}, {2, INT64_MAX}};
	char **names = NULL, text[64];
	struct fake fake;
	struct oa_stream *stream = open_at(&fake, &config);

	for (unsigned i = 0; i < BASE_ARRAY_LEN(wrong); i++) {
		snprintf(text, sizeof(text), "ids[1] is %lld: the data set has samples 0 to 99",
			 (long long)wrong[i][1]);
		ck_assert_int_eq(oa_sample_names(stream, wrong[i], 2, 60000, &names), OA_E_INVALID);
		ck_assert_str_eq(oa_error_text(stream), text);
	}
	ck_assert_int_eq(oa_sample_names(stream, NULL, 1, 60000, &names), OA_E_INVALID);
	ck_assert_int_eq(oa_sample_names(stream, wrong[0], 1, 60000, NULL), OA_E_INVALID);
	ck_assert_int_eq(oa_sample_names(NULL, wrong[0], 1, 60000, &names), OA_E_INVALID);
	ck_assert_ptr_null(names);
	ck_assert_int_eq(oa_sample_names(stream, NULL, 0, 60000, &names), 0);
	ck_assert_ptr_null(names[0]);
	free(names);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- of an epoch that has none ---- */

static uint8_t all_are_skipped(uint64_t id)
{
	(void)id;
	return LAYOUT_SAMPLE_SKIPPED;
}

/* Some accessd has met, the others the job. */
static void tell_both(int sock, const struct wire_in *in, unsigned arg)
{
	const void *bytes;
	size_t size;

	if (wire_get_bytes(in, PROTO_KEY_IDS, &bytes, &size))
		tell(sock, in, arg);
	else
		tell_ids(sock, in, IDS_ALL);
}

/* The first one has a name in the error, unless the call has no time to ask for it. */
START_TEST(an_empty_epoch_has_its_first_name)
{
	const struct fake_config config = {
	    .n = SAMPLES, .chunk = 10, .slots = 4, .status = all_are_skipped, .bad = tell_both};
	const int timeout_ms = _i ? 60000 : 0;
	struct oa_batch *batch;
	struct fake fake;
	struct oa_stream *stream = open_at(&fake, &config);
	const char *text;
	int r;

	while ((r = oa_next(stream, timeout_ms, &batch)) == OA_E_TIMEOUT && !timeout_ms)
		sched_yield();
	text = oa_error_text(stream);
	ck_assert_msg(r == OA_E_SAMPLE, "%s: %s", oa_error_name(r), text);
	ck_assert_msg(strstr(text, "; 100 bad, all of them") != NULL, "%s", text);
	ck_assert_msg(!timeout_ms || strstr(text, "the first: sample 0, a/b.jpg") != NULL, "%s",
		      text);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, 600);
	tcase_add_loop_test(tcase, each_lie_is_told, 0, BASE_ARRAY_LEN(outcomes));
	tcase_add_loop_test(tcase, what_was_skipped_has_its_name, 0, IDS_LIES);
	tcase_add_loop_test(tcase, samples_have_names, 0, IDS_LIES);
	tcase_add_test(tcase, names_of_no_samples);
	tcase_add_loop_test(tcase, an_empty_epoch_has_its_first_name, 0, 2);
}

int main(void)
{
	return suite_run("lists", add);
}
