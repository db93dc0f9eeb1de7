/* SPDX-License-Identifier: Apache-2.0 */

/* What is said at the socket, to the last byte; and which ranges are asked for as one. */

#include <stdio.h>

#include "bucket/question.h"
#include "tests/suite.h"

#define MEMORY 4096

static uint8_t message[BUCKET_MOST_MESSAGE + 64];
static size_t bytes;
static struct question question;

static struct bucket_ask good(uint64_t at, uint32_t n)
{
	return (struct bucket_ask){
	    .id = 7, .at = at, .size = 1000, .mtime_ns = 5, .bytes = n, .name_bytes = 1};
}

static void say(uint32_t kind, uint32_t count, uint64_t memory)
{
	const struct bucket_head head = {BUCKET_MAGIC, kind, count, memory, 0};

	memcpy(message, &head, sizeof(head));
	bytes = sizeof(head);
}

static void add(const void *data, size_t n)
{
	memcpy(message + bytes, data, n);
	bytes += n;
}

static int read_one(const struct bucket_ask *ask, const char *name)
{
	say(BUCKET_READ, 1, 0);
	add(ask, sizeof(*ask));
	add(name, ask->name_bytes);
	return question_read(message, bytes, MEMORY, &question);
}

START_TEST(test_heads)
{
	say(BUCKET_WATCH, 0, 0);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), 0);
	ck_assert_int_eq(question_read(message, bytes - 1, 0, &question), -EBADMSG);
	ck_assert_int_eq(question_read(message, bytes + 1, 0, &question), -EBADMSG);
	say(BUCKET_WATCH, 1, 0);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_HELLO, 0, MEMORY);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), 0);
	ck_assert_uint_eq(question.memory, MEMORY);
	say(BUCKET_HELLO, 0, 0);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_HELLO, 0, BUCKET_MOST_MEMORY + 1);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_YIELD, 0, 0);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), 0);
	say(5, 0, 0);
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_WATCH, 0, 0);
	message[0] ^= 1;
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_WATCH, 0, 0);
	message[offsetof(struct bucket_head, reserved)] = 1;
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
}
END_TEST

START_TEST(test_read)
{
	struct bucket_ask ask = good(10, 20);

	ck_assert_int_eq(read_one(&ask, "a"), 0);
	ck_assert_uint_eq(question.n, 1);
	ck_assert_uint_eq(question.ask[0].ask.id, 7);
	ck_assert_int_eq(*question.ask[0].name, 'a');
	ck_assert_int_eq(question_read(message, bytes - 1, MEMORY, &question), -EBADMSG);
	ck_assert_int_eq(question_read(message, bytes + 1, MEMORY, &question), -EBADMSG);
	/* Before its HELLO. */
	ck_assert_int_eq(question_read(message, bytes, 0, &question), -EBADMSG);
	say(BUCKET_READ, 0, 0);
	ck_assert_int_eq(question_read(message, bytes, MEMORY, &question), -EBADMSG);
	say(BUCKET_READ, BUCKET_MOST_ASKS + 1, 0);
	ck_assert_int_eq(question_read(message, sizeof(message), MEMORY, &question), -EBADMSG);
}
END_TEST

START_TEST(test_asks)
{
	static const struct {
		struct bucket_ask ask;
		const char *name;
		bool is_good;
	} cases[] = {
	    {{.size = 9, .bytes = 9, .name_bytes = 1}, "a", true},
	    {{.size = 9, .bytes = 9, .name_bytes = 3}, "a/b", true},
	    {{.size = 9, .bytes = 10, .name_bytes = 1}, "a", false},
	    {{.size = 9, .at = 5, .bytes = 5, .name_bytes = 1}, "a", false},
	    {{.size = 9, .at = UINT64_MAX, .bytes = 1, .name_bytes = 1}, "a", false},
	    {{.size = UINT64_MAX, .bytes = 1, .name_bytes = 1}, "a", false},
	    {{.size = 9, .bytes = 0, .name_bytes = 1}, "a", false},
	    {{.size = 9, .bytes = 9, .place = MEMORY - 9, .name_bytes = 1}, "a", true},
	    {{.size = 9, .bytes = 9, .place = MEMORY - 8, .name_bytes = 1}, "a", false},
	    {{.size = 9, .bytes = 9, .place = UINT64_MAX, .name_bytes = 1}, "a", false},
	    {{.size = 9, .bytes = 9, .mtime_ns = -1, .name_bytes = 1}, "a", false},
	    {{.size = 9, .bytes = 9, .name_bytes = 0}, "", false},
	    {{.size = 9, .bytes = 9, .name_bytes = 4}, "../a", false},
	    {{.size = 9, .bytes = 9, .name_bytes = 2}, "a\0", false},
	    {{.size = 9, .bytes = 9, .name_bytes = 1, .reserved = {0, 1}}, "a", false},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++)
		ck_assert_msg(read_one(&cases[i].ask, cases[i].name) ==
				  (cases[i].is_good ? 0 : -EBADMSG),
			      "case %zu", i);
}
END_TEST

static unsigned merge(const struct bucket_ask *ask, const char *const *name, unsigned n,
		      struct question_span *spans)
{
	question = (struct question){.kind = BUCKET_READ, .n = n};
	for (unsigned i = 0; i < n; i++) {
		question.ask[i] = (struct question_ask){ask[i], name[i]};
		question.ask[i].ask.name_bytes = (uint32_t)strlen(name[i]);
	}
	return question_merge(&question, spans);
}

START_TEST(test_merge)
{
	const char *const names[] = {"b", "a", "b", "b", "bb", "b"};
	const struct bucket_ask asks[] = {good(500, 100), good(0, 10),  good(0, 10),
					  good(5, 10),    good(10, 10), good(900, 100)};
	struct question_span spans[BUCKET_MOST_ASKS];
	unsigned n = merge(asks, names, 6, spans);

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(spans[0].n, 1); /* a */
	ck_assert_uint_eq(spans[1].n, 4); /* b: overlapping ones, and gaps */
	ck_assert_uint_eq(spans[1].from, 0);
	ck_assert_uint_eq(spans[1].to, 1000);
	ck_assert_uint_eq(spans[2].n, 1); /* bb */
	/* Of another size or tag it is another object. */
	{
		struct bucket_ask other[] = {good(0, 10), good(10, 10), good(20, 10)};

		other[1].size++;
		other[2].mtime_ns++;
		ck_assert_uint_eq(merge(other, names + 2, 3 - 1, spans), 2);
		other[1] = good(10, 10);
		other[1].mtime_ns++;
		ck_assert_uint_eq(merge(other, names + 2, 2, spans), 2);
	}
}
END_TEST

START_TEST(test_merge_limits)
{
	const char *const names[] = {"a", "a", "a", "a"};
	struct question_span spans[BUCKET_MOST_ASKS];
	struct bucket_ask asks[4];

	for (unsigned i = 0; i < 4; i++)
		asks[i] = (struct bucket_ask){.size = UINT64_C(1) << 40, .bytes = 1000};
	asks[1].at = 1000 + QUESTION_MOST_GAP;
	asks[2].at = 2000 + 2 * QUESTION_MOST_GAP + 1;
	ck_assert_uint_eq(merge(asks, names, 3, spans), 2);
	ck_assert_uint_eq(spans[0].n, 2);
	/* As one of them wants, but no more by others. */
	asks[0].bytes = UINT32_MAX;
	asks[1].at = UINT32_MAX;
	ck_assert_uint_eq(merge(asks, names, 2, spans), 2);
	asks[0].bytes = QUESTION_MOST_SPAN - 1000;
	asks[1].at = asks[0].bytes;
	ck_assert_uint_eq(merge(asks, names, 2, spans), 1);
	asks[1].at++;
	ck_assert_uint_eq(merge(asks, names, 2, spans), 2);
}
END_TEST

static void add_tests(TCase *all)
{
	tcase_add_test(all, test_heads);
	tcase_add_test(all, test_read);
	tcase_add_test(all, test_asks);
	tcase_add_test(all, test_merge);
	tcase_add_test(all, test_merge_limits);
}

int main(void)
{
	return suite_run("question", add_tests);
}
