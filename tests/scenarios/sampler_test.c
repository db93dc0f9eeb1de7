/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Own orders, repeats and weights, against a real accessd. What must come out is computed here once
 * more, by the same pure code (plan/listing.h, which has tests of its own); that the bytes are the
 * same in every way to run is told by digests.
 */

#include "tests/scenarios/runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire.h"
#include "plan/listing.h"
#include "plan/plan.h"
#include "shmring/region.h"
#include "shmring/proto.h"

static const int64_t ids[] = {5,  3,  3,  3,  52, 0,  7,  7, 11, 12,
			      13, 14, 15, 16, 17, 40, 41, 5, 5,  42};
static double weights[RUNS_SAMPLES];
static const struct oa_sampler own = {
    .size = sizeof(own), .ids = ids, .n_ids = BASE_ARRAY_LEN(ids)};
static const struct oa_sampler drawn = {.size = sizeof(drawn),
					.weights = weights,
					.n_weights = RUNS_SAMPLES,
					.samples = 120,
					.flags = OA_REPLACEMENT};
static const struct oa_sampler chosen = {
    .size = sizeof(chosen), .weights = weights, .n_weights = RUNS_SAMPLES, .samples = 20};
static const char *dataset;

static struct oa_options options_of(enum oa_order order, const struct oa_sampler *sampler,
				    uint32_t batch)
{
	struct oa_options options = runs_options(dataset, order, 5, batch);

	options.sampler = sampler;
	return options;
}

static void set_weights(void)
{
	for (int i = 0; i < RUNS_SAMPLES; i++)
		weights[i] = i % 7 ? i % 7 : i % 2;
}

static struct hash_id reference(const struct oa_options *options)
{
	struct hash_id id;

	rig_start("workers=2", NULL);
	id = runs_digest(options);
	rig_end();
	return id;
}

static uint64_t population(struct oa_stream *stream)
{
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_stream_stats(stream, &stats);
	return stats.n_samples;
}

/* Takes all, and compares ids with those of lists. */
static void assert_lists(const struct oa_options *options, const struct listing_spec *spec)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, options);

	for (uint64_t epoch = 0; epoch < options->epochs; epoch++) {
		struct listing_draft draft;
		uint64_t at = 0;

		ck_assert_int_eq(listing_build(spec, epoch, &draft), 0);
		ck_assert_uint_eq(population(stream), draft.places);
		while (at < draft.places) {
			struct oa_batch_info info = {.size = sizeof(info)};
			struct oa_batch *batch = runs_next(stream);

			ck_assert_ptr_nonnull(batch);
			oa_batch_info(batch, &info);
			ck_assert_uint_eq(info.epoch, epoch);
			ck_assert_uint_eq(info.count, BASE_MIN(options->batch, draft.places - at));
			for (uint32_t i = 0; i < info.count; i++)
				ck_assert_uint_eq((uint64_t)info.ids[i],
						  listing_id(draft.entries[at + i]));
			at += info.count;
			ck_assert_int_eq(info.is_last, at == draft.places);
			oa_release(batch);
		}
		listing_fini(&draft);
	}
	ck_assert_ptr_null(runs_next(stream));
	ck_assert_uint_eq(population(stream), listing_places(spec));
	oa_close(stream);
	oa_disconnect(client);
}

START_TEST(a_list_comes_as_it_was_given)
{
	struct oa_options options;
	struct listing_spec spec = {
	    .n = RUNS_SAMPLES, .seed = 5, .ids = ids, .n_ids = BASE_ARRAY_LEN(ids)};

	dataset = runs_photos("given");
	options = options_of(OA_ORDER_SEQUENTIAL, &own, 3);
	rig_start("workers=2", "chunk=8", NULL);
	assert_lists(&options, &spec);
	options.batch = 64;
	assert_lists(&options, &spec);
	rig_end();
}
END_TEST

static void read_version(struct listing_spec *spec)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);
	size_t size;
	uint8_t *token = runs_token(stream, &size);

	memcpy(spec->version, token + 32, sizeof(spec->version));
	free(token);
	oa_close(stream);
	oa_disconnect(client);
}

START_TEST(what_is_drawn_is_what_the_seed_says)
{
	struct listing_spec spec = {.n = RUNS_SAMPLES, .seed = 5, .is_seeded = true};
	struct oa_options options;

	set_weights();
	dataset = runs_photos("drawn");
	rig_start("workers=2", "chunk=8", NULL);
	read_version(&spec);
	spec.weights = weights;
	spec.samples = 120;
	spec.with_replacement = true;
	options = options_of(OA_ORDER_SEEDED, &drawn, 7);
	assert_lists(&options, &spec);
	spec.samples = 20;
	spec.with_replacement = false;
	options = options_of(OA_ORDER_SEEDED, &chosen, 7);
	assert_lists(&options, &spec);
	spec.weights = NULL;
	spec.ids = ids;
	spec.n_ids = BASE_ARRAY_LEN(ids);
	options = options_of(OA_ORDER_SEEDED, &own, 7);
	assert_lists(&options, &spec);
	rig_end();
}
END_TEST

/* The whole data set as a list is the seeded plan, to the last bit. */
START_TEST(the_list_of_all_is_the_plan_of_all)
{
	int64_t all[RUNS_SAMPLES];
	const struct oa_sampler sampler = {
	    .size = sizeof(sampler), .ids = all, .n_ids = RUNS_SAMPLES};
	struct oa_options options;
	struct hash_id id;

	for (int i = 0; i < RUNS_SAMPLES; i++)
		all[i] = i;
	dataset = runs_photos("all");
	options = options_of(OA_ORDER_SEEDED, NULL, 8);
	id = reference(&options);
	options.sampler = &sampler;
	runs_assert_same(reference(&options), id);
}
END_TEST

/* One sample again and again is augmented otherwise each time, and the same in another run. */
START_TEST(repeats_are_augmented_anew)
{
	static const int64_t nines[8] = {9, 9, 9, 9, 9, 9, 9, 9};
	const struct oa_sampler sampler = {.size = sizeof(sampler), .ids = nines, .n_ids = 8};
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct oa_field field = {.size = sizeof(field)};

	dataset = runs_photos("nines");
	options = options_of(OA_ORDER_SEQUENTIAL, &sampler, 8);
	rig_start("workers=2", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	batch = runs_next(stream);
	ck_assert_int_eq(oa_batch_field(batch, 0, &field), 0);
	for (uint64_t i = 0; i < 8; i++)
		for (uint64_t k = 0; k < i; k++)
			ck_assert_mem_ne((const uint8_t *)field.data + i * field.bytes / 8,
					 (const uint8_t *)field.data + k * field.bytes / 8,
					 field.bytes / 8);
	oa_release(batch);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static int start_sharer(unsigned number)
{
	static const struct oa_sampler *const samplers[] = {NULL, &own, &drawn};
	struct oa_options options =
	    options_of(number % 2 ? OA_ORDER_SEEDED : OA_ORDER_USUAL,
		       number % 2 ? samplers[number % 3] : NULL, 3 + 4 * number);
	int pid = fork();

	if (pid == 0) {
		options.seed = number % 2 ? 5 : 0;
		runs_digest(&options);
		_exit(0);
	}
	return pid;
}

static struct hash_id run_with_kills(const struct oa_options *options)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, options);
	struct hash_id id;
	struct hash *hash;

	ck_assert_int_eq(hash_new(&hash), 0);
	for (int i = 0; i < 12; i++) {
		struct oa_batch *batch = runs_next(stream);

		if (i == 4 || i == 10)
			runs_kill_and_restart();
		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	runs_digest_rest(hash, stream);
	hash_finish(hash, &id);
	hash_free(hash);
	oa_close(stream);
	oa_disconnect(client);
	return id;
}

/* Alone, beside six others of whom some have the same list, and through kills. */
START_TEST(a_list_is_the_same_whatever_happens)
{
	struct oa_options options;
	struct hash_id id;
	int pids[6], status;

	set_weights();
	dataset = runs_photos("same");
	options = options_of(OA_ORDER_SEEDED, &drawn, 8);
	id = reference(&options);
	options.batch = 16;
	rig_start("workers=2", "chunk=8", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++)
		pids[i] = start_sharer(i);
	runs_assert_same(runs_digest(&options), id);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	runs_assert_same(run_with_kills(&options), id);
	rig_end();
}
END_TEST

/* A step of all ranks. false: all are at the end. */
static bool step(struct oa_stream **streams, uint32_t ranks, struct hash *hash)
{
	uint32_t ended = 0;

	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct oa_batch *batch = runs_next(streams[rank]);

		ended += batch == NULL;
		if (batch)
			runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	ck_assert(ended == 0 || ended == ranks);
	return ended == 0;
}

/* A few steps of R ranks from the token on, which is replaced by one of theirs. */
static bool run_part(struct oa_options options, uint32_t ranks, unsigned steps, void **token,
		     size_t *size, struct hash *hash)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *streams[4];
	bool more = true;

	options.token = *token;
	options.token_size = *size;
	options.ranks = ranks;
	for (options.rank = 0; options.rank < ranks; options.rank++)
		streams[options.rank] = rig_open(client, &options);
	while (steps-- && more)
		more = step(streams, ranks, hash);
	free(*token);
	*token = runs_token(streams[ranks - 1], size);
	ck_assert_uint_le(*size, 256);
	for (uint32_t rank = 0; rank < ranks; rank++)
		oa_close(streams[rank]);
	oa_disconnect(client);
	return more;
}

START_TEST(a_list_resumes_with_other_ranks_and_batches)
{
	struct oa_options options;
	struct hash_id id, again;
	void *token = NULL;
	size_t size = 0;
	struct hash *hash;

	set_weights();
	dataset = runs_photos("ranks");
	options = options_of(OA_ORDER_SEEDED, &drawn, 8);
	id = reference(&options);
	rig_start("workers=2", "chunk=8", "slots=20", NULL);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (unsigned part = 0;; part++) {
		options.batch = 1 + part * 5 % 7;
		if (!run_part(options, 1 + part % 4, 1 + part % 3, &token, &size, hash))
			break;
	}
	hash_finish(hash, &again);
	hash_free(hash);
	runs_assert_same(again, id);
	options.token = token;
	options.token_size = size;
	options.sampler = &chosen;
	runs_assert_refused(&options, OA_E_TOKEN, "another sampler");
	options.sampler = NULL;
	runs_assert_refused(&options, OA_E_TOKEN, "with a sampler");
	free(token);
	rig_end();
}
END_TEST

/* Epochs of a few samples: each needs its list before it can begin. */
START_TEST(short_epochs_follow_each_other)
{
	const struct oa_sampler three = {.size = sizeof(three), .ids = ids, .n_ids = 3};
	struct listing_spec spec = {.n = RUNS_SAMPLES, .seed = 5, .ids = ids, .n_ids = 3};
	struct oa_options options;

	dataset = runs_photos("short");
	options = options_of(OA_ORDER_SEQUENTIAL, &three, 2);
	options.epochs = 40;
	rig_start("workers=1", NULL);
	assert_lists(&options, &spec);
	rig_end();
}
END_TEST

/* Two jobs in step with the same list cost one. */
START_TEST(the_same_list_is_made_once)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *streams[2];
	struct hash *hash;

	set_weights();
	dataset = runs_photos("once");
	options = options_of(OA_ORDER_SEEDED, &drawn, 8);
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	streams[0] = rig_open(client, &options);
	streams[1] = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	while (step(streams, 2, hash))
		;
	ck_assert(
	    rig_wait_status("node.samples_preprocessed", RUNS_EPOCHS * 120, RUNS_EPOCHS * 120));
	hash_free(hash);
	oa_close(streams[0]);
	oa_close(streams[1]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(what_there_is_not_is_refused)
{
	static const int64_t beyond[] = {0, RUNS_SAMPLES};
	static const double few[] = {1, 0, 1};
	struct oa_sampler sampler = {.size = sizeof(sampler), .ids = beyond, .n_ids = 2};
	struct oa_options options;

	dataset = runs_photos("not");
	options = options_of(OA_ORDER_SEQUENTIAL, &sampler, 8);
	rig_start("workers=1", NULL);
	runs_assert_refused(&options, OA_E_INVALID, "ids[1] is 53, the dataset has 53 samples");
	sampler.n_ids = 0;
	runs_assert_refused(&options, OA_E_INVALID, "n_ids");
	sampler = (struct oa_sampler){.size = sizeof(sampler), .weights = few, .n_weights = 3};
	options.order = OA_ORDER_SEEDED;
	runs_assert_refused(&options, OA_E_INVALID, "n_weights is 3, the dataset has 53");
	sampler.samples = 3;
	runs_assert_refused(&options, OA_E_INVALID, "only 2 of 3 weights");
	rig_end();
}
END_TEST

/* ---- a client that is not libaccess ---- */

/* The next message of a type. */
static void hear(int sock, uint16_t type, struct wire_in *ret)
{
	struct timeval limit = {.tv_sec = PATIENCE_S};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (;;) {
		wire_in_init(ret);
		ck_assert_int_eq(wire_recv(sock, ret, 0), 0);
		if (ret->type == type)
			return;
		ck_assert_uint_ne(ret->type, PROTO_REFUSED);
		wire_in_fini(ret);
	}
}

static void send_and_end(int sock, struct wire_out *out)
{
	ck_assert_int_eq(wire_send(sock, out, 0), 0);
	wire_out_fini(out);
}

/* A served job whose plan is a list, that has sent none. */
static int open_raw(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct wire_in in;
	struct wire_out out;
	const void *nonce;
	size_t size;

	strcpy(address.sun_path, rig_host.socket);
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	wire_out_init(&out, PROTO_HELLO);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	send_and_end(sock, &out);
	hear(sock, PROTO_WELCOME, &in);
	ck_assert_int_eq(wire_get_bytes(&in, PROTO_KEY_NONCE, &nonce, &size), 0);
	wire_out_init(&out, PROTO_OPEN);
	wire_put_bytes(&out, PROTO_KEY_NONCE, nonce, size);
	wire_put_string(&out, PROTO_KEY_DATASET, dataset);
	wire_put_string(&out, PROTO_KEY_PIPELINE, "imagenet-eval-u8");
	wire_put_u64(&out, PROTO_KEY_BATCH, 8);
	wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_LIST);
	send_and_end(sock, &out);
	wire_in_fini(&in);
	hear(sock, PROTO_OPENED, &in);
	wire_in_fini(&in);
	return sock;
}

enum hostile {
	HOSTILE_ID,
	HOSTILE_KEY,
	HOSTILE_UNSEALED,
	HOSTILE_HOLES,
	HOSTILE_NOTHING,
	HOSTILE_HEAD,
	HOSTILE_SIZE,
	HOSTILE_EMPTY,
	HOSTILE_EPOCH,
	HOSTILE_KINDS,
};

static int hostile_memory(enum hostile kind)
{
	uint64_t entries[3] = {listing_entry(1, 0), listing_entry(2, 0), listing_entry(3, 0)};
	struct listing_key key = {7, 8};
	struct listing_draft draft = {entries, &key, 3, 1};
	uint64_t bytes = listing_bytes(&draft) + (kind == HOSTILE_SIZE);
	void *map;
	int fd = -1;

	if (kind == HOSTILE_HOLES) {
		fd = base_memfd("holes", 1 << 20);
		ck_assert_int_eq(region_freeze(fd, 1 << 20, &(void *){NULL}), 0);
		return fd;
	}
	if (kind == HOSTILE_ID)
		entries[2] = listing_entry(RUNS_SAMPLES, 0);
	if (kind == HOSTILE_KEY)
		entries[2] = listing_entry(1, 1);
	if (kind == HOSTILE_EMPTY) {
		draft.places = 0;
		bytes = listing_bytes(&draft);
	}
	ck_assert_int_eq(region_new("list", REGION_UNSEALED, bytes, &map, &fd), 0);
	listing_write(&draft, map);
	if (kind == HOSTILE_HEAD)
		memset(map, 0xff, LISTING_HEAD);
	if (kind != HOSTILE_UNSEALED)
		ck_assert_int_eq(region_freeze(fd, bytes, &map), 0);
	region_unmap(map, bytes);
	return fd;
}

static void send_list(int sock, uint64_t epoch, int fd)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_PLAN);
	wire_put_u64(&out, PROTO_KEY_EPOCH, epoch);
	if (fd >= 0)
		wire_put_fd(&out, fd);
	send_and_end(sock, &out);
}

/* Each ends its own job with a text, and the job beside it does not notice. */
START_TEST(a_hostile_list_ends_its_own_job)
{
	struct oa_options options;
	struct hash_id id;

	dataset = runs_photos("hostile");
	options = options_of(OA_ORDER_SEQUENTIAL, &own, 8);
	options.pipeline = "imagenet-eval-u8";
	id = reference(&options);
	rig_start("workers=1", "chunk=8", NULL);
	for (enum hostile kind = 0; kind < HOSTILE_KINDS; kind++) {
		int sock = open_raw(), fd = kind == HOSTILE_NOTHING ? -1 : hostile_memory(kind);
		const char *text = "";
		struct wire_in in;

		send_list(sock, 0, fd);
		if (kind == HOSTILE_EPOCH)
			send_list(sock, 0, fd);
		hear(sock, PROTO_FAILED, &in);
		wire_get_string(&in, PROTO_KEY_TEXT, &text);
		ck_assert_msg(strstr(text, "the list of "), "%d: %s", (int)kind, text);
		wire_in_fini(&in);
		close(sock);
		if (fd >= 0)
			close(fd);
		runs_assert_same(runs_digest(&options), id);
	}
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_list_comes_as_it_was_given);
	tcase_add_test(tcase, what_is_drawn_is_what_the_seed_says);
	tcase_add_test(tcase, the_list_of_all_is_the_plan_of_all);
	tcase_add_test(tcase, repeats_are_augmented_anew);
	tcase_add_test(tcase, a_list_is_the_same_whatever_happens);
	tcase_add_test(tcase, a_list_resumes_with_other_ranks_and_batches);
	tcase_add_test(tcase, short_epochs_follow_each_other);
	tcase_add_test(tcase, the_same_list_is_made_once);
	tcase_add_test(tcase, what_there_is_not_is_refused);
	tcase_add_test(tcase, a_hostile_list_ends_its_own_job);
}

int main(void)
{
	return rig_main("sampler", add);
}
