/* SPDX-License-Identifier: Apache-2.0 */

/* Bad samples: distinct ids against a model, the ring of reasons, the sentences for people. */

#include "base/philox.h"
#include "daemon/serve/bad.h"
#include "tests/suite.h"
#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

START_TEST(ids_count_once)
{
	static bool known[4096];
	struct bad bad = {0};
	struct philox_seq seq;
	uint64_t distinct = 0;

	philox_seq_init(&seq, 11, 0, 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t id = philox_below(&seq, BASE_ARRAY_LEN(known));

		ck_assert(bad_add(&bad, id * 1000000007) != known[id]);
		distinct += !known[id];
		known[id] = true;
		ck_assert_uint_eq(bad.count, distinct);
	}
	ck_assert(bad_add(&bad, UINT64_MAX - 1));
	ck_assert(!bad_add(&bad, UINT64_MAX - 1));
	bad_fini(&bad);
	ck_assert_uint_eq(bad.count, 0);
}
END_TEST

/* A dataset whose last samples are met first: what was a move of all others for each. */
START_TEST(many_cost_no_more_each)
{
	const uint64_t n = 1 << 20;
	struct bad bad = {0};

	for (uint64_t i = 0; i < n; i++)
		ck_assert(bad_add(&bad, n - i));
	ck_assert_uint_eq(bad.count, n);
	for (uint64_t i = 0; i < n; i += 97)
		ck_assert(!bad_add(&bad, n - i));
	bad_fini(&bad);
}
END_TEST

/* In the order in which they were met, each found by its id; beyond those that are sure, as memory allows. */
START_TEST(notes_are_kept)
{
	const uint64_t n = BAD_SURE + 3 * BAD_CHUNK;
	struct bad bad = {0};
	char detail[200];

	ck_assert_ptr_null(bad_note_of(&bad, 7));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t before = bad_bytes(&bad);

		snprintf(detail, sizeof(detail), "detail %llu %150s", (unsigned long long)i, "x");
		ck_assert(bad_add(&bad, 7 * (n - i)));
		bad_keep(&bad, 7 * (n - i), LAYOUT_FAIL_DECODE, -(int)i, detail,
			 i < n - BAD_CHUNK ? UINT64_MAX : 0);
		ck_assert(i < n - BAD_CHUNK || bad_bytes(&bad) == before);
	}
	ck_assert_uint_eq(bad.noted, n - BAD_CHUNK);
	ck_assert_uint_eq(bad.lost, BAD_CHUNK);
	ck_assert_uint_eq(bad.count, n);
	ck_assert_uint_ge(bad_bytes(&bad), bad.noted * sizeof(struct bad_note));
	for (uint64_t i = 0; i < n; i++) {
		const struct bad_note *note = bad_note_of(&bad, 7 * (n - i));

		ck_assert((note != NULL) == (i < bad.noted));
		if (!note)
			continue;
		ck_assert_ptr_eq(note, bad_note_at(&bad, i));
		ck_assert_uint_eq(note->id, 7 * (n - i));
		ck_assert_int_eq(note->code, -(int)i);
		ck_assert_int_eq(note->stage, LAYOUT_FAIL_DECODE);
		ck_assert(strncmp(note->detail, "detail ", 7) == 0);
	}
	ck_assert_ptr_null(bad_note_of(&bad, 8));
	bad_fini(&bad);
}
END_TEST

/* Little memory costs none of the first ones. */
START_TEST(some_notes_are_sure)
{
	struct bad bad = {0};

	for (uint64_t i = 0; i < BAD_SURE + 5; i++) {
		ck_assert(bad_add(&bad, i));
		bad_keep(&bad, i, LAYOUT_FAIL_READ, EIO, "", 0);
	}
	ck_assert_uint_eq(bad.noted, BAD_SURE);
	ck_assert_uint_eq(bad.lost, 5);
	bad_fini(&bad);
}
END_TEST

START_TEST(reasons_are_kept_for_a_while)
{
	struct bad bad = {0};
	char text[600], long_text[600];

	ck_assert_ptr_null(bad_reason_of(&bad, 1, 0));
	for (unsigned i = 0; i < BAD_REASONS + 10; i++) {
		snprintf(text, sizeof(text), "reason %u", i);
		bad_explain(&bad, 100 + i, i, i, text);
	}
	ck_assert_ptr_null(bad_reason_of(&bad, 109, 9)); /* forgotten */
	ck_assert_str_eq(bad_reason_of(&bad, 110, 10), "reason 10");
	ck_assert_str_eq(bad_reason_of(&bad, 100 + BAD_REASONS + 9, BAD_REASONS + 9), text);
	ck_assert_ptr_null(bad_reason_of(&bad, 110, 11)); /* another position */
	ck_assert_ptr_null(bad_reason_of(&bad, 0, 0));
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	bad_explain(&bad, 7, 7, 7, long_text);
	ck_assert_uint_eq(strlen(bad_reason_of(&bad, 7, 7)), sizeof(bad.reason->text) - 1);
	bad_fini(&bad);
}
END_TEST

static const struct {
	const char *folder, *name;
	enum layout_fail stage;
	int code;
	const char *detail, *text;
} texts[] = {
    {"/data", "a/b.jpg", LAYOUT_FAIL_OPEN, EACCES, "",
     "sample 5, /data/a/b.jpg, stage open: Permission denied"},
    {"/data", "a/b.jpg", LAYOUT_FAIL_READ, -EIO, "",
     "sample 5, /data/a/b.jpg, stage read: Input/output error"},
    {"/data", "b.jpg", LAYOUT_FAIL_DECODE, 0, "Not a JPEG file",
     "sample 5, /data/b.jpg, stage decode: Not a JPEG file"},
    {"/data", "b.jpg", LAYOUT_FAIL_REFUSED, -27, "",
     "sample 5, /data/b.jpg, stage decode: code -27"},
    {"/data", "b.mp4", LAYOUT_FAIL_REFUSED, -EFBIG, "600000000 bytes, the arena has 268435456",
     "sample 5, /data/b.mp4, stage decode: 600000000 bytes, the arena has 268435456; raise arena "
     "(accessd.conf), or cut the file into smaller ones"},
    {"/data", "b.jpg", LAYOUT_FAIL_CRASH, SIGSEGV, "ignored",
     "sample 5, /data/b.jpg, stage worker: its worker died (Segmentation fault) and was replaced"},
    {"/data", "b.jpg", LAYOUT_FAIL_CRASH, 3 << 8, "",
     "sample 5, /data/b.jpg, stage worker: its worker exited and was replaced"},
    {"/data", "b.jpg", LAYOUT_FAIL_CRASH, WORKER_EXIT_SPENT << 8, "",
     "sample 5, /data/b.jpg, stage worker: its worker ran out of memory and was replaced"},
    {"/data", "b.jpg", LAYOUT_FAIL_HANG, SIGKILL, "",
     "sample 5, /data/b.jpg, stage worker: took longer than sample_timeout_ms (accessd.conf) "
     "allows "
     "for its size; its worker was replaced; raise it if the sample is good"},
    {"/data", "b.mp4", LAYOUT_FAIL_MEMORY, 0, "no memory for the video",
     "sample 5, /data/b.mp4, stage memory: no memory for the video; raise worker_memory "
     "(accessd.conf)"},
    {"/data", "b.jpg", LAYOUT_FAIL_MEMORY, 0, "more than 1 GiB",
     "sample 5, /data/b.jpg, stage memory: more than 1 GiB"},
    {"/data", "b.jpg", LAYOUT_FAIL_OP, 2, "crop larger than the picture",
     "sample 5, /data/b.jpg, stage pipeline: crop larger than the picture"},
    {"/data", "b.jpg", (enum layout_fail)77, 1, "", "sample 5, /data/b.jpg, stage unknown: code 1"},
    {"/da\nta", "a\"\x1b[2J.jpg", LAYOUT_FAIL_DECODE, 0, "line\none\x80",
     "sample 5, /da\\x0ata/a\\x22\\x1b[2J.jpg, stage decode: line\\x0aone\\x80"},
    {"/data", "sch\xc3\xb6n.jpg", LAYOUT_FAIL_DECODE, 0, "x",
     "sample 5, /data/sch\xc3\xb6n.jpg, stage decode: x"},
};

START_TEST(sentences)
{
	char text[600];

	bad_text(text, sizeof(text), texts[_i].folder, texts[_i].name, 5, texts[_i].stage,
		 texts[_i].code, texts[_i].detail);
	ck_assert_str_eq(text, texts[_i].text);
}
END_TEST

START_TEST(folders)
{
	static const struct {
		const char *path;
		bool is_manifest;
		const char *folder;
	} paths[] = {
	    {"/data", false, "/data"},
	    {"/data?{x=", false, "/data?{x="},
	    {"/data/train.csv", true, "/data"},
	    {"/data/train.csv?path=a/b", true, "/data"},
	    {"/data/{a,b}/list.csv?label=x", true, "/data"},
	    {"/what?/train.csv", true, "/what?"},
	    {"/train.csv", true, ""},
	};
	char folder[64];

	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++) {
		bad_folder(folder, sizeof(folder), paths[i].path, paths[i].is_manifest);
		ck_assert_str_eq(folder, paths[i].folder);
	}
}
END_TEST

/* Names of any length in rooms of any size: terminated, no control byte. */
START_TEST(long_and_strange_names)
{
	char name[4096], text[600];
	struct philox_seq seq;

	philox_seq_init(&seq, 12, 0, 0);
	for (unsigned i = 0; i < 2000; i++) {
		size_t size = 1 + (size_t)philox_below(&seq, sizeof(text));
		size_t length = (size_t)philox_below(&seq, sizeof(name));

		for (size_t k = 0; k < length; k++)
			name[k] = (char)(1 + philox_below(&seq, 255));
		name[length] = '\0';
		memset(text, 1, sizeof(text));
		bad_text(text, size, name, name, i, LAYOUT_FAIL_DECODE, 0, name);
		ck_assert_ptr_nonnull(memchr(text, '\0', size));
		for (const char *at = text; *at; at++)
			ck_assert_uint_ge((unsigned char)*at, ' ');
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, ids_count_once);
	tcase_add_test(tcase, many_cost_no_more_each);
	tcase_add_test(tcase, notes_are_kept);
	tcase_add_test(tcase, some_notes_are_sure);
	tcase_add_test(tcase, reasons_are_kept_for_a_while);
	tcase_add_test(tcase, folders);
	tcase_add_loop_test(tcase, sentences, 0, BASE_ARRAY_LEN(texts));
	tcase_add_test(tcase, long_and_strange_names);
}

int main(void)
{
	return suite_run("bad", add);
}
