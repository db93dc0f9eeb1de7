/* SPDX-License-Identifier: Apache-2.0 */

/* What carriers say to agree on how values go: it says what it said, and all else makes no sense. */

#include <stdlib.h>
#include <string.h>

#include "cluster/path.h"
#include "base/base.h"
#include "tests/suite.h"

static const struct path_message said[] = {
    {.step = PATH_OFFER,
     .yes = true,
     .address = {.number = 17, .first = 0xffffff, .lid = 4, .mtu = 5}},
    {.step = PATH_OFFER,
     .yes = true,
     .address = {.number = 0xffffff, .mtu = 1, .is_ethernet = true, .gid = {[15] = 1}}},
    {.step = PATH_OFFER, .text = "there is no RDMA device"},
    {.step = PATH_READY, .yes = true},
    {.step = PATH_DONE, .yes = true},
    {.step = PATH_DONE, .text = "no message came through"},
};

START_TEST(test_says)
{
	const struct path_message *message = &said[_i];
	struct path_message heard;
	uint8_t bytes[PATH_BYTES];

	path_write(message, bytes);
	ck_assert(path_read(bytes, &heard));
	ck_assert_int_eq(heard.step, message->step);
	ck_assert_int_eq(heard.yes, message->yes);
	ck_assert_str_eq(heard.text, message->text);
	ck_assert_uint_eq(heard.address.number, message->address.number);
	ck_assert_uint_eq(heard.address.first, message->address.first);
	ck_assert_uint_eq(heard.address.lid, message->address.lid);
	ck_assert_uint_eq(heard.address.mtu, message->address.mtu);
	ck_assert_int_eq(heard.address.is_ethernet, message->address.is_ethernet);
	ck_assert_int_eq(memcmp(heard.address.gid, message->address.gid, 16), 0);
}
END_TEST

/* A byte of another value is another message, or none: there is one way to say a thing. */
START_TEST(test_one_way)
{
	uint8_t bytes[PATH_BYTES], again[PATH_BYTES];
	struct path_message heard;

	path_write(&said[_i], bytes);
	for (unsigned at = 0; at < PATH_BYTES; at++)
		for (unsigned other = 1; other < 256; other++) {
			bytes[at] ^= (uint8_t)other;
			if (path_read(bytes, &heard)) {
				path_write(&heard, again);
				ck_assert_int_eq(memcmp(bytes, again, PATH_BYTES), 0);
			}
			bytes[at] ^= (uint8_t)other;
		}
}
END_TEST

static const struct {
	unsigned at;
	uint8_t byte;
} wrongs[] = {
    {0, 0}, {0, 4}, {1, 2}, {2, 0}, {2, 6}, {3, 2}, {7, 1}, {11, 1}, {14, 1}, {32, 'a'}, {255, 1},
};

START_TEST(test_wrong)
{
	uint8_t bytes[PATH_BYTES];
	struct path_message heard;

	path_write(&said[0], bytes);
	ck_assert_uint_ne(bytes[wrongs[_i].at], wrongs[_i].byte);
	bytes[wrongs[_i].at] = wrongs[_i].byte;
	ck_assert(!path_read(bytes, &heard));
}
END_TEST

/* A reason is for people: what is no letter is none, what is too long is cut, and one without an end is refused. */
START_TEST(test_reason)
{
	struct path_message message = {.step = PATH_DONE};
	uint8_t bytes[PATH_BYTES];

	memset(message.text, 'x', sizeof(message.text));
	message.text[3] = '\n';
	path_write(&message, bytes);
	ck_assert(path_read(bytes, &message));
	ck_assert_uint_eq(strlen(message.text), PATH_TEXT - 1);
	ck_assert_int_eq(message.text[3], '?');
	bytes[32 + PATH_TEXT - 1] = 'x';
	ck_assert(!path_read(bytes, &message));
	path_write(&said[2], bytes);
	bytes[32] = '\x1b';
	ck_assert(!path_read(bytes, &message));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_says, 0, (int)BASE_ARRAY_LEN(said));
	tcase_add_loop_test(tcase, test_one_way, 0, (int)BASE_ARRAY_LEN(said));
	tcase_add_loop_test(tcase, test_wrong, 0, (int)BASE_ARRAY_LEN(wrongs));
	tcase_add_test(tcase, test_reason);
}

int main(void)
{
	return suite_run("path", add);
}
