/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recording and replay, against a real accessd: what was delivered is replayed bit for bit, also
 * what was dealt beside others; a recording goes on after a resume; what does not fit is refused.
 */

#include "tests/scenarios/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/recording.h"

static const char *dataset;
static char file[PATH_MAX];

static struct oa_options recording_of(enum oa_order order, uint64_t seed, uint32_t batch)
{
	struct oa_options options = runs_options(dataset, order, seed, batch);

	options.record = file;
	return options;
}

static struct oa_options replay_of(uint32_t batch)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_REPLAY, 0, batch);

	options.epochs = 0;
	options.replay = file;
	return options;
}

static void set_up(const char *name)
{
	dataset = runs_photos(name);
	snprintf(file, sizeof(file), "%s", rig_path("%s.plan", name));
}

static int start_sharer(unsigned number)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_USUAL, 0, 3 + 5 * number);
	int pid = fork();

	if (pid == 0) {
		options.epochs = 5;
		runs_digest(&options);
		_exit(0);
	}
	return pid;
}

/* Dealt beside three others; replayed alone, by another accessd with other chunks. */
START_TEST(a_dealt_plan_is_replayed)
{
	struct oa_options options;
	struct hash_id id;
	int pids[3], status;

	set_up("dealt");
	options = recording_of(OA_ORDER_USUAL, 0, 8);
	rig_start("workers=2", "chunk=12", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++)
		pids[i] = start_sharer(i);
	id = runs_digest(&options);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	rig_end();
	rig_start("workers=1", "chunk=7", NULL);
	options = replay_of(8);
	runs_assert_same(runs_digest(&options), id);
	options.flags = OA_COPY;
	options.batch = 5; /* cut otherwise, the same samples in the same order */
	runs_assert_same(runs_digest(&options), id);
	rig_end();
}
END_TEST

/* Each order, and a replay of a replay. */
START_TEST(each_plan_is_replayed)
{
	static const int64_t ids[] = {3, 3, 1, 3, 50, 50, 2};
	const struct oa_sampler sampler = {.size = sizeof(sampler), .ids = ids, .n_ids = 7};
	static const struct {
		enum oa_order order;
		uint64_t seed;
		bool has_sampler;
	} plans[] = {{OA_ORDER_SEEDED, 5, false},
		     {OA_ORDER_SEQUENTIAL, 7, false},
		     {OA_ORDER_SEEDED, 5, true},
		     {OA_ORDER_USUAL, 0, false}};

	set_up("each");
	rig_start("workers=2", "chunk=8", NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(plans); i++) {
		struct oa_options options = recording_of(plans[i].order, plans[i].seed, 6);
		struct hash_id id;
		char copy[PATH_MAX];

		options.sampler = plans[i].has_sampler ? &sampler : NULL;
		id = runs_digest(&options);
		options = replay_of(6);
		snprintf(copy, sizeof(copy), "%s", rig_path("copy.plan"));
		options.record = copy;
		runs_assert_same(runs_digest(&options), id);
		options.replay = copy;
		options.record = NULL;
		runs_assert_same(runs_digest(&options), id);
	}
	rig_end();
}
END_TEST

/* Takes n batches (all: n 0) on from the token, which is replaced. false: it was the end. */
static bool run_part(struct oa_options options, unsigned n, void **token, size_t *size,
		     struct hash *hash)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream;
	struct oa_batch *batch = NULL;

	options.token = *token;
	options.token_size = *size;
	stream = rig_open(client, &options);
	for (unsigned i = 0; (!n || i < n) && (batch = runs_next(stream)); i++) {
		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	free(*token);
	*token = runs_token(stream, size);
	oa_close(stream);
	oa_disconnect(client);
	return batch != NULL;
}

/* Cut after some batches, of which some are taken and lost; killed in between. What is recorded in
 * the end is what was delivered. */
static void resume_often(enum oa_order order, uint64_t seed)
{
	struct oa_options options = recording_of(order, seed, 8);
	struct hash *hash, *ignored;
	struct hash_id id;
	void *token = NULL;
	size_t size = 0;
	bool more = true;

	unlink(file);
	ck_assert_int_eq(hash_new(&hash), 0);
	ck_assert_int_eq(hash_new(&ignored), 0);
	for (unsigned part = 0; more; part++) {
		options.batch = 3 + part % 5;
		more = run_part(options, 2 + part % 3, &token, &size, hash);
		if (part % 2 && more) { /* goes on, is recorded, and crashes: not saved */
			void *copy = malloc(size);
			size_t copy_size = size;

			memcpy(copy, token, size);
			run_part(options, 3, &copy, &copy_size, ignored);
			free(copy);
		}
		if (part == 4)
			runs_kill_and_restart();
	}
	hash_finish(hash, &id);
	hash_free(hash);
	hash_free(ignored);
	free(token);
	options = replay_of(8);
	runs_assert_same(runs_digest(&options), id);
}

START_TEST(a_recording_goes_on_after_a_resume)
{
	set_up("resume");
	rig_start("workers=2", "chunk=8", NULL);
	resume_often(OA_ORDER_SEEDED, 9);
	resume_often(OA_ORDER_USUAL, 0);
	rig_end();
}
END_TEST

/* The recording outlives accessd: another stream's instances are in it, too. */
START_TEST(a_recording_goes_on_after_a_kill)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash_id id;
	struct hash *hash;

	set_up("kill");
	options = recording_of(OA_ORDER_USUAL, 0, 8);
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (int i = 0; i < 6; i++) {
		struct oa_batch *batch = runs_next(stream);

		if (i == 3)
			runs_kill_and_restart();
		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	runs_digest_rest(hash, stream);
	hash_finish(hash, &id);
	hash_free(hash);
	oa_close(stream);
	oa_disconnect(client);
	options = replay_of(8);
	runs_assert_same(runs_digest(&options), id);
	rig_end();
}
END_TEST

/* A replay is resumed like any plan. */
START_TEST(a_replay_resumes)
{
	struct oa_options options;
	struct hash_id id, again;
	void *token = NULL;
	size_t size = 0;
	struct hash *hash;

	set_up("again");
	options = recording_of(OA_ORDER_USUAL, 0, 8);
	rig_start("workers=2", "chunk=8", NULL);
	id = runs_digest(&options);
	options = replay_of(8);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (unsigned part = 0; run_part(options, 1 + part % 4, &token, &size, hash); part++)
		options.batch = 1 + 3 * part % 11;
	ck_assert_uint_le(size, 256);
	hash_finish(hash, &again);
	hash_free(hash);
	free(token);
	runs_assert_same(again, id);
	rig_end();
}
END_TEST

/* ---- damage ---- */

static uint8_t *read_file(size_t *ret_size)
{
	FILE *in = fopen(file, "rb");
	uint8_t *bytes = malloc(1 << 20);

	ck_assert_ptr_nonnull(in);
	*ret_size = fread(bytes, 1, 1 << 20, in);
	fclose(in);
	return bytes;
}

static void write_file(const uint8_t *bytes, size_t size)
{
	FILE *out = fopen(file, "wb");

	ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
	ck_assert_int_eq(fclose(out), 0);
}

/* A crash cuts the file somewhere: what is before is a plan. The blocks: one a saved token. */
START_TEST(a_cut_recording_is_usable)
{
	struct oa_options options;
	uint8_t *bytes;
	void *token = NULL;
	size_t size = 0, token_size = 0;
	struct hash *hash;

	set_up("cut");
	options = recording_of(OA_ORDER_SEEDED, 5, 8);
	options.epochs = 1;
	rig_start("workers=2", "chunk=8", NULL);
	ck_assert_int_eq(hash_new(&hash), 0);
	while (run_part(options, 1, &token, &token_size, hash))
		;
	hash_free(hash);
	free(token);
	bytes = read_file(&size);
	for (size_t cut = size - 1; cut > size - 120; cut -= 37) {
		struct hash_id whole, part;
		struct oa_options plan = options;

		plan.record = NULL;
		whole = runs_digest(&plan);
		write_file(bytes, cut);
		plan = replay_of(8);
		part = runs_digest(&plan);
		ck_assert_mem_ne(part.bytes, whole.bytes, sizeof(part.bytes));
	}
	bytes[size / 2] ^= 1;
	write_file(bytes, size);
	options = replay_of(8);
	runs_assert_refused(&options, OA_E_INVALID, "damaged");
	free(bytes);
	rig_end();
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
	struct oa_options options;
	const char *first;

	set_up("fit");
	first = dataset;
	options = recording_of(OA_ORDER_SEEDED, 5, 8);
	rig_start("workers=2", "chunk=8", NULL);
	runs_digest(&options);
	options = replay_of(8);
	options.epochs = RUNS_EPOCHS + 1;
	runs_assert_refused(&options, OA_E_INVALID, "ends with epoch 1");
	options = replay_of(8);
	options.pipeline = "imagenet-eval-u8";
	runs_assert_refused(&options, OA_E_PIPELINE, "another pipeline");
	options = replay_of(8);
	dataset = options.dataset = runs_photos("other");
	ck_assert_int_eq(unlink(rig_path("other/class/0000.jpg")), 0);
	runs_assert_refused(&options, OA_E_DATASET, "another version");
	options = replay_of(8);
	options.dataset = first;
	options.replay = rig_path("fit/class/0000.jpg");
	runs_assert_refused(&options, OA_E_INVALID, "this file is none");
	options.replay = rig_path("fit/no-such-file");
	runs_assert_refused(&options, -ENOENT, "no-such-file");
	options = runs_options(first, OA_ORDER_SEEDED, 5, 8);
	options.record = rig_path("fit/class/0001.jpg");
	runs_assert_refused(&options, OA_E_INVALID, "no recorded plan");
	rig_end();
}
END_TEST

/* Two ranks with one file would spoil it. */
START_TEST(a_file_is_of_one_recorder)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;

	set_up("one");
	options = recording_of(OA_ORDER_SEEDED, 5, 8);
	options.ranks = 2;
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	options.rank = 1;
	runs_assert_refused(&options, OA_E_INVALID, "a file of its own");
	oa_release(runs_next(stream));
	oa_close(stream);
	options = replay_of(8);
	runs_assert_refused(&options, OA_E_INVALID, "plan export");
	oa_disconnect(client);
	rig_end();
}
END_TEST

static const uint8_t *recorded;

static int read_bytes(int zero, void *ret, uint64_t n, uint64_t at)
{
	memcpy(ret, recorded + at, n);
	return zero;
}

/* Runs access-ctl. Returns its exit status. */
static int ctl(const char *words)
{
	const char *build = getenv("top_builddir");
	char line[8 * PATH_MAX];

	snprintf(line, sizeof(line), "%s/tools/access-ctl %s", build ? build : ".", words);
	return WEXITSTATUS(system(line));
}

static unsigned lines_of(const char *path)
{
	FILE *in = fopen(path, "r");
	unsigned lines = 0;
	int c;

	ck_assert_ptr_nonnull(in);
	while ((c = getc(in)) != EOF)
		lines += c == '\n';
	fclose(in);
	return lines;
}

/* Two ranks record a file each; access-ctl makes one plan of them, which is replayed. */
START_TEST(the_parts_of_ranks_are_joined)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *streams[2];
	struct hash *hash;
	struct hash_id id;
	char parts[2][PATH_MAX + 16], words[6 * PATH_MAX];
	bool more = true;

	set_up("parts");
	options = recording_of(OA_ORDER_SEEDED, 5, 4);
	options.ranks = 2;
	rig_start("workers=2", "chunk=8", "slots=8", NULL);
	client = rig_connect();
	for (options.rank = 0; options.rank < 2; options.rank++) {
		snprintf(parts[options.rank], sizeof(parts[0]), "%s.%u", file, options.rank);
		options.record = parts[options.rank];
		streams[options.rank] = rig_open(client, &options);
	}
	ck_assert_int_eq(hash_new(&hash), 0);
	while (more)
		for (int rank = 0; rank < 2; rank++) {
			struct oa_batch *batch = runs_next(streams[rank]);

			more = batch != NULL;
			if (batch)
				runs_digest_batch(hash, batch);
			oa_release(batch);
		}
	hash_finish(hash, &id);
	hash_free(hash);
	oa_close(streams[0]);
	oa_close(streams[1]);
	oa_disconnect(client);
	snprintf(words, sizeof(words), "plan export --format plan --output %s %s %s", file,
		 parts[1], parts[0]);
	ck_assert_int_eq(ctl(words), 0);
	options = replay_of(8);
	runs_assert_same(runs_digest(&options), id);
	snprintf(words, sizeof(words), "plan export %s --output %s.csv", file, file);
	ck_assert_int_eq(ctl(words), 0);
	snprintf(words, sizeof(words), "%s.csv", file);
	ck_assert_uint_eq(lines_of(words), 1 + RUNS_EPOCHS * RUNS_SAMPLES);
	snprintf(words, sizeof(words), "plan show %s", file);
	ck_assert_int_eq(ctl(words), 0);
	snprintf(words, sizeof(words), "plan export %s >/dev/null", parts[0]);
	ck_assert_int_eq(ctl(words), 1); /* the other rank's part is missing */
	ck_assert_int_eq(ctl("plan show /dev/null"), 1);
	ck_assert_int_eq(ctl("plan"), 2);
	rig_end();
}
END_TEST

/* A block a 64 KiB, not a batch: no system call on the path of one. */
START_TEST(batches_share_blocks)
{
	struct oa_options options;
	struct recording_batch batch;
	struct diag diag;
	struct recording_reader reader;
	unsigned batches = 0;
	uint64_t blocks;
	uint8_t *bytes;
	size_t size;

	set_up("blocks");
	options = recording_of(OA_ORDER_SEQUENTIAL, 0, 1);
	options.pipeline = "imagenet-eval-u8";
	options.epochs = 10;
	rig_start("workers=2", NULL);
	runs_digest(&options);
	rig_end();
	bytes = read_file(&size);
	recorded = bytes;
	reader = (struct recording_reader){.read = read_bytes, .file = 0, .size = size};
	ck_assert_int_eq(recording_open(&reader, &diag), 0);
	while (recording_next(&reader, &batch, &diag) == 0)
		batches++;
	blocks = reader.number;
	recording_fini(&reader);
	ck_assert_uint_eq(batches, 10 * RUNS_SAMPLES);
	ck_assert_uint_le(blocks, 1 + size / 65536);
	free(bytes);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_dealt_plan_is_replayed);
	tcase_add_test(tcase, each_plan_is_replayed);
	tcase_add_test(tcase, a_recording_goes_on_after_a_resume);
	tcase_add_test(tcase, a_recording_goes_on_after_a_kill);
	tcase_add_test(tcase, a_replay_resumes);
	tcase_add_test(tcase, a_cut_recording_is_usable);
	tcase_add_test(tcase, what_does_not_fit_is_refused);
	tcase_add_test(tcase, a_file_is_of_one_recorder);
	tcase_add_test(tcase, the_parts_of_ranks_are_joined);
	tcase_add_test(tcase, batches_share_blocks);
}

int main(void)
{
	return rig_main("replay", add);
}
