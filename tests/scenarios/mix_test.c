/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mixes against a real accessd: after every batch each part has its share but for less than one
 * sample; each part gives each of its samples once in each of its own epochs, whatever happens to the
 * mix: cut off in the middle of a batch, resumed with other batches, accessd killed.
 */

#include "tests/scenarios/trainee.h"

#include "base/hash.h"
#include "base/philox.h"
#include "plan/mix/blend.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PARTS 3
#define MOST 2000 /* samples of a part in a run */
#define RANDOM_SPEC                                                                     \
	"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[4,4]},{\"op\":" \
	"\"cast\",\"dtype\":\"u8\"}]"
#define LARGE_SPEC                                                                            \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,4]},{\"op\":\"cast\",\"dtype\":" \
	"\"u8\"}]"

static const uint32_t samples[PARTS] = {60, 101, 37}, classes[PARTS] = {1, 4, 2};
static const uint32_t weights[PARTS] = {5, 3, 2};
static char datasets[PARTS][PATH_MAX];

/* All that a mix has given, part by part. */
struct ledger {
	int64_t ids[PARTS][MOST];
	uint32_t n[PARTS];
	unsigned wrong;
};

struct setup {
	struct oa_options part[PARTS];
	struct oa_mix_part parts[PARTS];
	struct oa_mix_options mix;
};

static void set_up(struct setup *setup, enum oa_order order, uint32_t batch, uint64_t epochs)
{
	*setup = (struct setup){
	    .mix = {.size = sizeof(setup->mix), .batch = batch, .epochs = epochs, .seed = 9}};
	for (unsigned i = 0; i < PARTS; i++) {
		snprintf(datasets[i], sizeof(datasets[i]), "%s",
			 rig_pictures(i == 0   ? "a"
				      : i == 1 ? "b"
					       : "c",
				      samples[i], classes[i], 8));
		setup->part[i] = (struct oa_options){
		    .size = sizeof(setup->part[i]),
		    .dataset = datasets[i],
		    .pipeline = RANDOM_SPEC,
		    .order = order,
		    .seed = order == OA_ORDER_SEEDED ? 5 + i : 0,
		};
		setup->parts[i] = (struct oa_mix_part){&setup->part[i], weights[i]};
	}
}

static struct oa_mix *open_mix(struct oa_client *client, const struct setup *setup)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_mix *mix = NULL;
	int r = oa_mix_open(client, setup->parts, PARTS, &setup->mix, &mix, &error);

	ck_assert_msg(r == 0, "oa_mix_open: %s: %s", oa_error_name(r), error.text);
	return mix;
}

static struct oa_batch *next(struct oa_mix *mix)
{
	struct oa_batch *batch = NULL;
	int r = oa_mix_next(mix, PATIENCE_MS, &batch);

	ck_assert_msg(r == 0 || r == OA_E_END, "oa_mix_next: %s: %s", oa_error_name(r),
		      oa_mix_error_text(mix));
	return r ? NULL : batch;
}

/* The sample's picture and label are those of its id in its part. */
static bool is_right(const struct oa_batch *batch, const struct oa_batch_info *info, uint32_t i)
{
	struct oa_field image, label, index;
	uint32_t part = info->parts[i];
	uint8_t rgb[3];

	trainee_field(batch, "image", &image);
	trainee_field(batch, "label", &label);
	trainee_field(batch, "index", &index);
	for (unsigned c = 0; c < 3; c++)
		rgb[c] = *((const uint8_t *)image.data + i * (size_t)image.strides[0] +
			   c * (size_t)image.strides[image.shape[1] == 3 ? 1 : 3]);
	return part < PARTS && rig_number_of(rgb) == info->ids[i] &&
	       ((const int64_t *)index.data)[i] == info->ids[i] &&
	       ((const int64_t *)label.data)[i] ==
		   (int64_t)((uint64_t)info->ids[i] * classes[part] / samples[part]);
}

static void enter(struct ledger *ledger, const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);

	ck_assert_ptr_nonnull(info.parts);
	for (uint32_t i = 0; i < info.count; i++) {
		uint32_t part = info.parts[i];

		ledger->wrong += !is_right(batch, &info, i);
		ck_assert(part < PARTS && ledger->n[part] < MOST);
		ledger->ids[part][ledger->n[part]++] = info.ids[i];
	}
}

/* Each part: its own epochs one after the other, each sample once in each. */
static void assert_exactly_once(const struct ledger *ledger)
{
	ck_assert_uint_eq(ledger->wrong, 0);
	for (uint32_t part = 0; part < PARTS; part++)
		for (uint32_t first = 0; first < ledger->n[part]; first += samples[part]) {
			uint8_t seen[128] = {0};

			for (uint32_t i = first;
			     i < BASE_MIN(ledger->n[part], first + samples[part]); i++)
				ck_assert_msg(!seen[ledger->ids[part][i]]++,
					      "part %u: sample %" PRId64 " twice in an epoch", part,
					      ledger->ids[part][i]);
		}
}

/* ---- shares and epochs ---- */

static void assert_shares(const struct ledger *ledger, const uint32_t *before, uint64_t given)
{
	for (uint32_t part = 0; part < PARTS; part++) {
		int64_t off = (int64_t)(ledger->n[part] - before[part]) * 10 -
			      (int64_t)(given * weights[part]);

		ck_assert_msg(off > -10 && off < 10, "part %u is %g samples off", part,
			      (double)off / 10);
	}
}

/* Whatever rule ends its epochs. */
START_TEST(shares_are_exact)
{
	const uint64_t units[PARTS] = {samples[0], samples[1], samples[2]};
	static struct ledger ledger;
	uint64_t given = 0, epoch = 0, step = 0, length;
	uint32_t before[PARTS] = {0};
	struct oa_client *client;
	struct oa_batch *batch;
	struct setup setup;
	struct blend blend;
	struct oa_mix *mix;

	set_up(&setup, OA_ORDER_USUAL, 8, 3);
	setup.mix.end = (enum oa_mix_end)_i;
	blend_init(&blend, weights, PARTS);
	length = blend_length(&blend, units, (enum blend_end)_i);
	rig_start("workers=2", "log_level=warn", NULL);
	client = rig_connect();
	mix = open_mix(client, &setup);
	memset(&ledger, 0, sizeof(ledger));
	for (; (batch = next(mix)); oa_release(batch), step++) {
		struct oa_batch_info info = trainee_info(batch);

		enter(&ledger, batch);
		given += info.count;
		assert_shares(&ledger, before, given);
		ck_assert_uint_eq(info.epoch, epoch);
		ck_assert_uint_eq(info.step, step);
		ck_assert_uint_eq(info.copied, info.count);
		ck_assert_int_eq(info.is_last, given == length);
		ck_assert_uint_eq(info.count, info.is_last ? (length - 1) % 8 + 1 : 8);
		if (!info.is_last)
			continue;
		memcpy(before, ledger.n, sizeof(before));
		given = 0;
		step = UINT64_MAX;
		epoch++;
	}
	ck_assert_uint_eq(epoch, 3);
	assert_exactly_once(&ledger);
	oa_mix_close(mix);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Whole batches take turns, and nothing is copied. */
START_TEST(batches_take_turns)
{
	static struct ledger ledger;
	struct oa_batch *batch, *kept = NULL;
	uint64_t given = 0, of[PARTS] = {0};
	struct oa_batch_info kept_info;
	struct oa_client *client;
	struct setup setup;
	struct oa_mix *mix;

	set_up(&setup, OA_ORDER_USUAL, 4, 1);
	setup.mix.unit = OA_MIX_BATCHES;
	setup.mix.end = OA_MIX_ALL;
	for (unsigned i = 0; i < PARTS; i++)
		setup.part[i].chunk = 16;
	rig_start("workers=2", "log_level=warn", NULL);
	client = rig_connect();
	mix = open_mix(client, &setup);
	memset(&ledger, 0, sizeof(ledger));
	while ((batch = next(mix))) {
		struct oa_batch_info info = trainee_info(batch);

		ck_assert_uint_eq(info.step, given++);
		of[info.parts[0]]++;
		for (uint32_t part = 0; part < PARTS; part++) {
			int64_t off = (int64_t)(of[part] * 10) - (int64_t)(given * weights[part]);

			ck_assert(off > -10 && off < 10);
		}
		for (uint32_t i = 0; i < info.count; i++)
			ck_assert_uint_eq(info.parts[i], info.parts[0]);
		enter(&ledger, batch);
		oa_release(kept);
		kept = batch;
	}
	for (unsigned i = 0; i < PARTS; i++)
		ck_assert_uint_ge(of[i], (samples[i] + 3) / 4);
	oa_mix_close(mix);
	kept_info = trainee_info(kept); /* it outlives the mix */
	for (uint32_t i = 0; i < kept_info.count; i++)
		ck_assert(is_right(kept, &kept_info, i));
	oa_release(kept);
	assert_exactly_once(&ledger);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- resume ---- */

static void take_token(struct oa_mix *mix, void **token, size_t *size)
{
	free(*token);
	*size = 0;
	ck_assert_int_eq(oa_mix_state(mix, NULL, size), -ENOBUFS);
	*token = malloc(*size);
	ck_assert_int_eq(oa_mix_state(mix, *token, size), 0);
}

/* Asks without waiting until a batch is under way that lacks something. accessd is stopped, so what is
 * there runs out; batches that still come are entered. */
static void stop_within_a_batch(struct oa_mix *mix, struct ledger *ledger)
{
	struct oa_batch *batch;
	int r;

	kill(rig_host.pid, SIGSTOP);
	while ((r = oa_mix_next(mix, 20, &batch)) == 0) {
		enter(ledger, batch);
		oa_release(batch);
	}
	ck_assert(r == OA_E_TIMEOUT || r == OA_E_END);
	ck_assert(r == OA_E_END || strncmp(oa_mix_error_text(mix), "part ", 5) == 0);
}

/* A life: some batches; then the mix is cut off between two, or within one; maybe accessd dies. */
static bool live(const struct setup *setup, struct philox_seq *random, void **token, size_t *size,
		 struct ledger *ledger)
{
	struct oa_client *client = rig_connect();
	struct oa_mix *mix = open_mix(client, setup);
	uint64_t batches = philox_below(random, 9), way = philox_below(random, 3);
	struct oa_batch *batch = NULL;
	bool more = true;

	for (uint64_t i = 0; i < batches && more; i++) {
		batch = next(mix);
		more = batch != NULL;
		if (batch)
			enter(ledger, batch);
		oa_release(batch);
	}
	if (way == 1 && more)
		stop_within_a_batch(mix, ledger);
	take_token(mix, token, size);
	if (way == 1 && more)
		kill(rig_host.pid, SIGCONT);
	if (way == 2)
		rig_restart("workers=2", "log_level=warn", NULL);
	oa_mix_close(mix);
	oa_disconnect(client);
	return more;
}

START_TEST(it_resumes_anywhere)
{
	static const enum oa_order orders[] = {OA_ORDER_CAROUSEL, OA_ORDER_SEEDED};
	static struct ledger ledger;
	struct philox_seq random;
	struct setup setup;
	void *token = NULL;
	unsigned lives = 0;

	set_up(&setup, orders[_i], 8, 4);
	setup.mix.end = OA_MIX_ALL;
	memset(&ledger, 0, sizeof(ledger));
	philox_seq_init(&random, 31, (uint64_t)_i, 0);
	rig_start("workers=2", "chunk=7", "log_level=warn", NULL);
	for (bool more = true; more; lives++) {
		setup.mix.batch = 1 + (uint32_t)philox_below(&random, 40);
		more = live(&setup, &random, &token, &setup.mix.token_size, &ledger);
		setup.mix.token = token;
		setup.mix.seed = lives % 2 ? 9 : 0;
		for (unsigned i = 0; i < PARTS; i++)
			setup.part[i].order = lives % 2 ? orders[_i] : OA_ORDER_USUAL;
	}
	ck_assert_uint_gt(lives, 5);
	assert_exactly_once(&ledger);
	free(token);
	rig_end();
}
END_TEST

/* With seeded parts every byte is as without a break, and pixels stay with their samples. */
START_TEST(a_seeded_mix_is_the_same_after_a_resume)
{
	struct hash_id whole = {{0}}, again;
	struct oa_client *client;
	struct oa_batch *batch;
	struct setup setup;
	void *token = NULL;

	set_up(&setup, OA_ORDER_SEEDED, 8, 2);
	rig_start("workers=2", "log_level=warn", NULL);
	client = rig_connect();
	for (int broken = 0; broken < 2; broken++) {
		struct oa_mix *mix = open_mix(client, &setup);
		struct hash *hash;
		unsigned n = 0;

		ck_assert_int_eq(hash_new(&hash), 0);
		while ((batch = next(mix))) {
			struct oa_batch_info info = trainee_info(batch);
			struct oa_field field = {.size = sizeof(field)};

			hash_add(hash, info.ids, info.count * sizeof(*info.ids));
			hash_add(hash, info.parts, info.count * sizeof(*info.parts));
			for (uint32_t f = 0; oa_batch_field(batch, f, &field) == 0; f++)
				hash_add(hash, field.data, (size_t)field.bytes);
			oa_release(batch);
			if (!broken || ++n % 5)
				continue;
			take_token(mix, &token, &setup.mix.token_size);
			oa_mix_close(mix);
			setup.mix.token = token;
			mix = open_mix(client, &setup);
		}
		hash_finish(hash, broken ? &again : &whole);
		hash_free(hash);
		oa_mix_close(mix);
	}
	ck_assert_mem_eq(again.bytes, whole.bytes, sizeof(whole.bytes));
	free(token);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- ranks ---- */

/* Two ranks go in step: the same parts in the same places, each sample for one of them; the token of one
 * is that of the other. */
START_TEST(ranks_of_a_mix_go_in_step)
{
	static struct ledger ledger;
	struct oa_client *client;
	struct oa_mix *mix[2];
	struct setup setup;
	void *tokens[2] = {NULL};
	size_t sizes[2];
	bool more = true;

	set_up(&setup, OA_ORDER_SEEDED, 6, 2);
	rig_start("workers=2", "slots=12", "log_level=warn", NULL);
	client = rig_connect();
	for (uint32_t rank = 0; rank < 2; rank++) {
		for (unsigned i = 0; i < PARTS; i++) {
			setup.part[i].ranks = 2;
			setup.part[i].rank = rank;
		}
		mix[rank] = open_mix(client, &setup);
	}
	memset(&ledger, 0, sizeof(ledger));
	for (unsigned step = 0; more; step++) {
		struct oa_batch *batch[2] = {next(mix[0]), next(mix[1])};
		struct oa_batch_info info[2];

		more = batch[0] != NULL;
		ck_assert_int_eq(more, batch[1] != NULL);
		for (unsigned rank = 0; rank < 2 && more; rank++) {
			info[rank] = trainee_info(batch[rank]);
			for (uint32_t i = 0; i < info[rank].count; i++)
				ledger.wrong += !is_right(batch[rank], &info[rank], i);
			take_token(mix[rank], &tokens[rank], &sizes[rank]);
		}
		for (uint32_t i = 0; more && i < info[0].count; i++) {
			uint32_t part = info[0].parts[i];

			ck_assert_uint_eq(info[1].parts[i], part);
			for (unsigned rank = 0; rank < 2; rank++)
				if (ledger.n[part] < samples[part] / 2 * 2) /* its first epoch */
					ledger.ids[part][ledger.n[part]++] = info[rank].ids[i];
		}
		if (more) {
			ck_assert_uint_eq(sizes[0], sizes[1]);
			ck_assert_mem_eq(tokens[0], tokens[1], sizes[0]);
		}
		oa_release(batch[0]);
		oa_release(batch[1]);
	}
	assert_exactly_once(&ledger);
	for (unsigned rank = 0; rank < 2; rank++) {
		free(tokens[rank]);
		oa_mix_close(mix[rank]);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- what is refused ---- */

static void assert_refused(struct oa_client *client, const struct setup *setup, int code,
			   const char *says, const char *and)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_mix *mix = NULL;
	int r = oa_mix_open(client, setup->parts, PARTS, &setup->mix, &mix, &error);

	ck_assert_msg(r == code && strstr(error.text, says) && strstr(error.text, and), "%s: %s",
		      oa_error_name(r), error.text);
	ck_assert_ptr_null(mix);
}

START_TEST(what_does_not_fit_is_refused)
{
	struct oa_client *client;
	struct setup setup, good;
	struct oa_mix *mix;
	void *token = NULL;
	size_t size = 0;

	set_up(&good, OA_ORDER_USUAL, 8, 1);
	rig_start("workers=2", "log_level=warn", NULL);
	client = rig_connect();
	mix = open_mix(client, &good);
	oa_release(next(mix));
	take_token(mix, &token, &size);
	oa_mix_close(mix);

	setup = good;
	setup.part[1].pipeline = LARGE_SPEC;
	for (unsigned i = 0; i < PARTS; i++)
		setup.parts[i].options = &setup.part[i];
	assert_refused(client, &setup, OA_E_INVALID, "part 0 has the field \"image\" u8",
		       "part 1 has \"image\" u8");
	setup.part[1] = good.part[1];
	setup.part[2].batch = 8;
	assert_refused(client, &setup, OA_E_INVALID, "part 2", "batch");
	setup.part[2] = good.part[2];
	setup.part[1].dataset = "/nothing/there";
	assert_refused(client, &setup, OA_E_DATASET, "part 1", "/nothing/there");
	setup.part[1] = good.part[1];
	setup.parts[1].weight = 0;
	assert_refused(client, &setup, OA_E_INVALID, "weights", "1");
	setup.parts[1].weight = 4;
	setup.mix.token = token;
	setup.mix.token_size = size;
	assert_refused(client, &setup, OA_E_TOKEN, "weights", "token");
	setup.parts[1].weight = weights[1];
	setup.mix.seed = 10;
	assert_refused(client, &setup, OA_E_TOKEN, "seed 9", "seed 10");
	setup.mix.seed = 0;
	setup.part[1].dataset = datasets[2]; /* the token of one part, the dataset of another */
	assert_refused(client, &setup, OA_E_TOKEN, "part 1", "dataset");
	setup.part[1] = good.part[1];
	for (size_t i = 0; i < size; i += 1 + size / 50) {
		((uint8_t *)token)[i] ^= 0x41;
		assert_refused(client, &setup, OA_E_TOKEN, "token", "mix");
		((uint8_t *)token)[i] ^= 0x41;
	}
	setup.mix.token_size = size - 9;
	assert_refused(client, &setup, OA_E_TOKEN, "token", "cut off");
	setup.mix.token_size = size;
	mix = open_mix(client, &setup);
	oa_mix_close(mix);
	free(token);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, shares_are_exact, OA_MIX_FIRST, OA_MIX_LONGEST + 1);
	tcase_add_test(tcase, batches_take_turns);
	tcase_add_loop_test(tcase, it_resumes_anywhere, 0, 2);
	tcase_add_test(tcase, a_seeded_mix_is_the_same_after_a_resume);
	tcase_add_test(tcase, ranks_of_a_mix_go_in_step);
	tcase_add_test(tcase, what_does_not_fit_is_refused);
}

int main(void)
{
	return rig_main("mix", add);
}
