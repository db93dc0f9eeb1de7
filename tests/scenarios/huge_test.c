/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots in huge pages, where the kernel gives them and where it gives none: a process and its children can be
 * without them (PR_SET_THP_DISABLE), and so can an accessd that is started by one.
 */

#include "tests/scenarios/rig.h"
#include "shmring/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SAMPLES 128 /* 20 MiB of a slot */

static const char *dataset;

static void without_huge_pages(bool are_without)
{
	ck_assert_int_eq(prctl(PR_SET_THP_DISABLE, are_without, 0, 0, 0), 0);
}

/* Has it any at all? */
static bool kernel_gives(void)
{
	_cleanup_close_ int fd = base_memfd("probe", REGION_HUGE);

	if (fd >= 0 && region_reserve_huge(fd, 0, REGION_HUGE) == 0)
		return true;
	fprintf(stderr, "not tested: the kernel gives no huge page\n");
	return false;
}

static struct oa_options options(void)
{
	return (struct oa_options){.size = sizeof(struct oa_options),
				   .dataset = dataset,
				   .pipeline = "imagenet-eval-u8",
				   .batch = 64,
				   .epochs = 1};
}

static void train(struct oa_stream *stream)
{
	uint64_t samples = 0;
	struct oa_batch *batch;

	while (oa_next(stream, PATIENCE_MS, &batch) == 0) {
		struct oa_batch_info info = {.size = sizeof(info)};

		oa_batch_info(batch, &info);
		samples += info.count;
		oa_release(batch);
	}
	ck_assert_uint_eq(samples, SAMPLES);
}

/* Waits until the status says so of the stream's slots. With auto it says so where the kernel was quick enough, so only
 * what is certain is asked: none where there are none, all where they are required. */
static void await_huge(bool is_huge)
{
	const uint64_t until_ns = base_now_ns() + PATIENCE_NS;
	bool is = !is_huge;

	while (is != is_huge) {
		struct json_in *status = rig_whole_status();
		const struct json_in *streams = json_in_member(status, "streams");
		const struct json_in *variants =
		    json_in_member(json_in_item(streams, 0), "variants");

		ck_assert_msg(base_now_ns() < until_ns, "huge_pages is never %d", is_huge);
		is =
		    json_in_bool(json_in_member(json_in_item(variants, 0), "huge_pages"), !is_huge);
		json_in_free(status);
		rig_sleep_ms(20);
	}
}

static void serve(const char *setting, bool is_huge)
{
	struct oa_options ask;
	struct oa_client *client;
	struct oa_stream *stream;

	dataset = rig_pictures("data", SAMPLES, 2, 32);
	rig_start(setting, "workers=1", "chunk=128", "seed=3", NULL);
	ask = options();
	client = rig_connect();
	stream = rig_open(client, &ask);
	await_huge(is_huge);
	train(stream);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}

START_TEST(auto_goes_on_without)
{
	without_huge_pages(true);
	serve("huge_pages=auto", false);
}
END_TEST

START_TEST(off_never_asks)
{
	serve("huge_pages=off", false);
}
END_TEST

START_TEST(require_has_them)
{
	if (kernel_gives())
		serve("huge_pages=require", true);
}
END_TEST

/* The numbers, what the kernel is set to, and what to write where. Nothing of it stays. */
START_TEST(require_refuses)
{
	static const char *const words[] = {"huge_pages = require", "0 slots of 20 MiB",
					    "shmem_enabled", "echo advise", "huge_pages = auto"};
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options ask;
	struct oa_client *client;
	struct oa_stream *stream = NULL;

	without_huge_pages(true);
	dataset = rig_pictures("data", SAMPLES, 2, 32);
	rig_start("huge_pages=require", "workers=1", "chunk=128", "linger_s=0", NULL);
	ask = options();
	client = rig_connect();
	ck_assert_int_eq(oa_open(client, &ask, &stream, &error), OA_E_MEMORY);
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		ck_assert_msg(strstr(error.text, words[i]), "%s: %s", words[i], error.text);
	oa_disconnect(client);
	ck_assert(rig_wait_status("node.memory_used", 0, 0));
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, auto_goes_on_without);
	tcase_add_test(tcase, off_never_asks);
	tcase_add_test(tcase, require_has_them);
	tcase_add_test(tcase, require_refuses);
}

int main(void)
{
	return rig_main("huge", add);
}
