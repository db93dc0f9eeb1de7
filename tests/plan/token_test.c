/* SPDX-License-Identifier: Apache-2.0 */

/* The resume token: its bytes are frozen, random ones come back as they were, broken ones are
 * told. */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/philox.h"
#include "plan/permutation.h"
#include "plan/token.h"
#include "plan/token_parts.h"
#include "tests/suite.h"

static struct diag diag;

static size_t write_small(uint8_t *ret, size_t size)
{
	uint64_t need[2] = {0x5, 0x20};
	int64_t tail[2];
	struct token token = {
	    .n = 70,
	    .block = 1,
	    .order = 1,
	    .seed = 0x0102030405060708,
	    .epoch = 3,
	    .epochs = 90,
	    .delivered = 64,
	    .need = need,
	    .tail = tail,
	    .n_tail = 2,
	    .nonces = {0xaabb, 0xccdd},
	    .n_nonces = 2,
	    .sampler = {0xe0, 0xe1, 0xe2, 0xe3},
	};
	struct permutation permutation;

	for (int i = 0; i < 32; i++)
		token.dataset[i] = (uint8_t)i;
	permutation_init(&permutation, 70, token.dataset);
	tail[0] = (int64_t)permutation_sample(&permutation, 1);
	tail[1] = (int64_t)permutation_sample(&permutation, 3);
	ck_assert_uint_eq(token_size(&token), 128 + 16 + 8 + 16 + 8);
	ck_assert_uint_eq(token_write(&token, ret, token_size(&token) - 1), 0);
	return token_write(&token, ret, size);
}

/* Frozen: clients keep these bytes for months. */
START_TEST(the_bytes_are_frozen)
{
	static const uint8_t known[] = {
	    0x6f, 0x61, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x0a, 0x02, 0x00, 0x00, 0x00, 0xb0, 0x00,
	    0x00, 0x00, 0x46, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	    0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
	    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	    0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	    0x02, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5a, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
	    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0xe0, 0xe1, 0xe2, 0xe3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0xbb, 0xaa,
	    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xdd, 0xcc, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0xd3, 0x33, 0x06, 0x8b, 0xe9, 0x37, 0xc8, 0x01};
	uint8_t bytes[256];

	ck_assert_uint_eq(write_small(bytes, sizeof(bytes)), sizeof(known));
	ck_assert_mem_eq(bytes, known, sizeof(known));
}
END_TEST

static void assert_same(const struct token *a, const struct token *b)
{
	size_t words = bits_words((a->n + a->block - 1) / a->block);

	ck_assert_uint_eq(a->n, b->n);
	ck_assert_uint_eq(a->block, b->block);
	ck_assert_uint_eq(a->order, b->order);
	ck_assert_mem_eq(a->dataset, b->dataset, 32);
	ck_assert_uint_eq(a->seed, b->seed);
	ck_assert_uint_eq(a->epoch, b->epoch);
	ck_assert_uint_eq(a->epochs, b->epochs);
	ck_assert_uint_eq(a->delivered, b->delivered);
	ck_assert_uint_eq(a->n_tail, b->n_tail);
	ck_assert_uint_eq(a->n_nonces, b->n_nonces);
	ck_assert_mem_eq(a->need, b->need, words * 8);
	ck_assert_mem_eq(a->tail, b->tail, a->n_tail * sizeof(int64_t));
	ck_assert_mem_eq(a->nonces, b->nonces, a->n_nonces * sizeof(uint64_t));
}

/* And these, from before there were samplers. */
START_TEST(old_tokens_are_read)
{
	static const uint8_t old[] = {
	    0x6f, 0x61, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x0a, 0x01, 0x00, 0x00, 0x00, 0xa0, 0x00,
	    0x00, 0x00, 0x46, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	    0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
	    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	    0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	    0x02, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5a, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
	    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00,
	    0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0xbb, 0xaa, 0x00, 0x00,
	    0x00, 0x00, 0x00, 0x00, 0xdd, 0xcc, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc4, 0x71,
	    0x35, 0xb9, 0xfa, 0x58, 0x8a, 0x78};
	uint8_t bytes[256];
	struct token now, then, head;
	size_t size = write_small(bytes, sizeof(bytes));

	ck_assert_int_eq(token_look(bytes, size, &head, &diag), 0);
	ck_assert(!head.need && !head.tail);
	ck_assert_int_eq(token_parse(bytes, size, &now, &diag), 0);
	ck_assert_uint_eq(head.n, now.n);
	ck_assert_uint_eq(head.epoch, now.epoch);
	ck_assert_msg(token_parse(old, sizeof(old), &then, &diag) == 0, "%s", diag.text);
	ck_assert(token_has_sampler(&now) && !token_has_sampler(&then));
	assert_same(&now, &then);
	token_fini(&now);
	token_fini(&then);
}
END_TEST

static void reseal(uint8_t *bytes, size_t size)
{
	uint64_t sum = hash_checksum(bytes, size - 8);

	memcpy(bytes + size - 8, &sum, 8);
}

START_TEST(damage_is_told_at_every_byte)
{
	uint8_t bytes[256], copy[256];
	size_t size = write_small(bytes, sizeof(bytes));
	struct token token = {.n = 99};

	for (size_t i = 0; i < size; i++) {
		memcpy(copy, bytes, size);
		copy[i] ^= 0x10;
		ck_assert_int_eq(token_parse(copy, size, &token, &diag), TOKEN_E_BAD);
		ck_assert_int_eq(token_parse(bytes, i, &token, &diag), TOKEN_E_BAD);
	}
	ck_assert_int_eq(token_parse(bytes, size + 1, &token, &diag), TOKEN_E_BAD);
	ck_assert_uint_eq(token.n, 99);
}
END_TEST

/* Forgeries with a right checksum: byte, its new value, what the message has to say. */
START_TEST(forgeries_are_told)
{
	static const struct {
		size_t at;
		uint8_t value;
		int outcome;
		const char *says;
	} forged[] = {
	    {0, 'x', TOKEN_E_BAD, "no token"},
	    {8, 4, TOKEN_E_VERSION, "upgrade"},
	    {8, 3, TOKEN_E_BAD, "too short"},
	    {8, 0, TOKEN_E_BAD, "format"},
	    {8, 1, TOKEN_E_BAD, "size"},
	    {12, 1, TOKEN_E_BAD, "cut off"},
	    {23, 0x80, TOKEN_E_BAD, "too short"},
	    {20, 1, TOKEN_E_BAD, "too short"},
	    {24, 3, TOKEN_E_BAD, "power of two"},
	    {24, 64, TOKEN_E_BAD, "power of two"},
	    {24, 0, TOKEN_E_BAD, "power of two"},
	    {24, 2, TOKEN_E_BAD, "size"},
	    {28, 7, TOKEN_E_BAD, "order"},
	    {72, 91, TOKEN_E_BAD, "epoch"},
	    {88, 66, TOKEN_E_BAD, "more samples"},
	    {95, 0xff, TOKEN_E_BAD, "more samples"},
	    {96, 3, TOKEN_E_BAD, "size"},
	    {96, 200, TOKEN_E_BAD, "too much"},
	    {100, 1, TOKEN_E_BAD, "size"},
	    {100, 65, TOKEN_E_BAD, "too much"},
	    {104, 8, TOKEN_E_BAD, "head"},
	    {108, 1, TOKEN_E_BAD, "size"},
	    {108, 2, TOKEN_E_BAD, "head"},
	    {128, 0x7, TOKEN_E_BAD, "needs whole"},
	    {136, 0x60, TOKEN_E_BAD, "past the end"},
	    {144, 70, TOKEN_E_BAD, "does not have"},
	};
	uint8_t bytes[256];
	struct token token = {0};

	for (size_t i = 0; i < BASE_ARRAY_LEN(forged); i++) {
		size_t size = write_small(bytes, sizeof(bytes));
		int r;

		bytes[forged[i].at] = forged[i].value;
		reseal(bytes, size);
		r = token_parse(bytes, size, &token, &diag);
		ck_assert_msg(r == forged[i].outcome && strstr(diag.text, forged[i].says),
			      "byte %zu: %d %s", forged[i].at, r, diag.text);
	}
}
END_TEST

START_TEST(a_sample_twice_in_the_tail_is_told)
{
	uint8_t bytes[256];
	size_t size = write_small(bytes, sizeof(bytes));
	struct token token;

	memcpy(bytes + 148, bytes + 144, 4);
	reseal(bytes, size);
	ck_assert_int_eq(token_parse(bytes, size, &token, &diag), TOKEN_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "twice"));
}
END_TEST

START_TEST(a_token_of_another_dataset_is_told)
{
	uint8_t bytes[256], dataset[32];
	size_t size = write_small(bytes, sizeof(bytes));
	struct token token;

	ck_assert_int_eq(token_parse(bytes, size, &token, &diag), 0);
	memcpy(dataset, token.dataset, 32);
	ck_assert_int_eq(token_fits(&token, 70, 1, dataset, &diag), 0);
	ck_assert_int_eq(token_fits(&token, 71, 1, dataset, &diag), TOKEN_E_FOREIGN);
	ck_assert_ptr_nonnull(strstr(diag.text, "71"));
	ck_assert_int_eq(token_fits(&token, 70, 2, dataset, &diag), TOKEN_E_FOREIGN);
	dataset[31] ^= 1;
	ck_assert_int_eq(token_fits(&token, 70, 1, dataset, &diag), TOKEN_E_FOREIGN);
	ck_assert_ptr_nonnull(strstr(diag.text, "another version"));
	token_fini(&token);
	token_fini(&token);
}
END_TEST

START_TEST(a_token_of_another_sampler_is_told)
{
	static const struct {
		uint8_t tokens, jobs;
		const char *says;
	} pairs[] = {{1, 0, "with a sampler"}, {0, 1, "without a sampler"}, {1, 2, "another"}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(pairs); i++) {
		struct token token = {.sampler = {[15] = pairs[i].tokens}};
		uint8_t sampler[TOKEN_SAMPLER] = {[15] = pairs[i].jobs};

		ck_assert_int_eq(token_fits_sampler(&token, sampler, &diag), TOKEN_E_FOREIGN);
		ck_assert_msg(strstr(diag.text, pairs[i].says) != NULL, "%s", diag.text);
		ck_assert_int_eq(token_fits_sampler(&token, token.sampler, &diag), 0);
	}
}
END_TEST

/* A random state of a job: each block is needed whole, begun or through. */
static void draw_token(struct philox_seq *random, struct token *token)
{
	struct permutation permutation;
	uint64_t n = philox_below(random, 3000);

	*token = (struct token){.n = n, .block = 1u << philox_below(random, 6), .order = 2};
	for (int i = 0; i < 32; i++)
		token->dataset[i] = (uint8_t)philox_u32(random);
	permutation_init(&permutation, n, token->dataset);
	token->seed = philox_u64(random);
	token->epoch = philox_below(random, 1000);
	token->need = calloc(n / 64 + 2, sizeof(uint64_t));
	token->tail = calloc(n + 1, sizeof(int64_t));
	for (uint64_t first = 0; first < n; first += token->block) {
		uint64_t size = BASE_MIN(n - first, (uint64_t)token->block);
		uint64_t left = philox_below(random, size + 1);

		if (left == size)
			bits_set(token->need, first / token->block);
		for (uint64_t i = 0; i < left && left < size; i++)
			token->tail[token->n_tail++] =
			    (int64_t)permutation_sample(&permutation, first + i);
		token->delivered += size - left;
	}
	for (int i = 0; i < TOKEN_SAMPLER; i++)
		token->sampler[i] = (uint8_t)philox_u32(random);
	token->n_nonces = (uint32_t)philox_below(random, TOKEN_MAX_NONCES + 1);
	for (uint32_t i = 0; i < token->n_nonces; i++)
		token->nonces[i] = philox_u64(random);
}

START_TEST(what_is_written_is_read)
{
	struct philox_seq random;

	philox_seq_init(&random, 1, 0, 0);
	for (int i = 0; i < 500; i++) {
		struct token token, back;
		size_t size;
		uint8_t *bytes;

		draw_token(&random, &token);
		size = token_size(&token);
		bytes = malloc(size);
		ck_assert_uint_eq(token_write(&token, bytes, size), size);
		ck_assert_msg(token_parse(bytes, size, &back, &diag) == 0, "%s", diag.text);
		assert_same(&token, &back);
		ck_assert_mem_eq(token.sampler, back.sampler, TOKEN_SAMPLER);
		token_fini(&token);
		token_fini(&back);
		free(bytes);
	}
}
END_TEST

/* ---- large datasets ---- */

#define LARGE (UINT64_C(70) * 1000 * 1000) /* samples: 67 parts */

static struct token large_token(void)
{
	struct token token = {.n = LARGE, .block = 32, .order = 1, .epochs = 2};

	token.need = calloc(LARGE / 32 / 64 + 2, sizeof(uint64_t));
	token.tail = calloc(1, sizeof(*token.tail));
	bits_fill(token.need, LARGE / 32);
	return token;
}

/* A part that is through, two that are begun, the last one among them, the others whole. */
static void draw_large(struct philox_seq *random, struct token *token)
{
	uint64_t blocks = LARGE / 32, last = blocks / TOKEN_PART;
	uint64_t through = 10 + philox_below(random, 20), begun = philox_below(random, 10);

	for (uint64_t i = 0; i < TOKEN_PART; i++) {
		bits_clear(token->need, through * TOKEN_PART + i);
		if (philox_below(random, 2))
			bits_clear(token->need, begun * TOKEN_PART + i);
	}
	for (uint64_t i = last * TOKEN_PART; i < blocks; i += 1 + philox_below(random, 3))
		bits_clear(token->need, i);
	token->delivered = 32 * (blocks - bits_count(token->need, blocks));
}

/* What is written is small: of all parts but the begun ones a byte. */
START_TEST(a_large_need_is_written_in_parts)
{
	struct philox_seq random;

	philox_seq_init(&random, 3, 0, 0);
	for (int i = 0; i < 20; i++) {
		struct token token = large_token(), back;
		size_t size;
		uint8_t *bytes;

		draw_large(&random, &token);
		size = token_size(&token);
		ck_assert_uint_le(size, 128 + 72 + 2 * TOKEN_PART / 8 + 8);
		bytes = malloc(size);
		ck_assert_uint_eq(token_write(&token, bytes, size), size);
		ck_assert_uint_eq(bytes[8], 3);
		ck_assert_msg(token_parse(bytes, size, &back, &diag) == 0, "%s", diag.text);
		assert_same(&token, &back);
		token_fini(&token);
		token_fini(&back);
		free(bytes);
	}
}
END_TEST

/* Each forged byte of a need in parts is found, whatever the checksum says. */
START_TEST(a_forged_part_is_told)
{
	static const struct {
		size_t at;
		uint8_t value;
	} forged[] = {
	    {128, 3},             /* no kind */
	    {128, 2},             /* a bitmap that is not there */
	    {128 + 67, 1},        /* what fills up the kinds */
	    {128 + 3, 0},         /* part 3 is begun: its bitmap is too much */
	    {128 + 72 + 1000, 0}, /* all of part 3 is needed: there is another way to say so */
	    {22, 1},              /* more samples than this format has */
	};
	struct token token = large_token(), back;
	uint8_t bytes[8192];
	size_t size;

	bits_clear(token.need, 3 * TOKEN_PART + 8000);
	token.delivered = 32;
	for (size_t i = 0; i < BASE_ARRAY_LEN(forged); i++) {
		size = token_write(&token, bytes, sizeof(bytes));
		ck_assert_uint_eq(size, 128 + 72 + TOKEN_PART / 8 + 8);
		bytes[forged[i].at] = forged[i].at > 1000 ? 0xff : forged[i].value;
		reseal(bytes, size);
		ck_assert_msg(token_parse(bytes, size, &back, &diag) == TOKEN_E_BAD, "byte %zu",
			      forged[i].at);
	}
	token_fini(&token);
}
END_TEST

/* As it was written before there were parts. */
START_TEST(a_large_need_in_one_bitmap_is_read)
{
	struct token token = large_token(), back;
	size_t words = bits_words(LARGE / 32), size = 128 + 8 * words + 8;
	uint8_t *bytes = malloc(size), *head;

	bits_clear(token.need, 5);
	token.delivered = 32;
	head = malloc(token_size(&token));
	token_write(&token, head, token_size(&token));
	memcpy(bytes, head, 128);
	memcpy(bytes + 128, token.need, 8 * words);
	bytes[8] = 2;
	for (unsigned i = 0; i < 4; i++)
		bytes[12 + i] = (uint8_t)(size >> (8 * i));
	reseal(bytes, size);
	ck_assert_msg(token_parse(bytes, size, &back, &diag) == 0, "%s", diag.text);
	assert_same(&token, &back);
	token_fini(&token);
	token_fini(&back);
	free(bytes);
	free(head);
}
END_TEST

/* A fixed plan needs a place and no more: at most 256 bytes, whatever n is. */
START_TEST(a_place_in_a_fixed_plan)
{
	struct token token = {.n = INT64_MAX, .block = 32, .order = 3, .seed = 7, .epoch = 2}, back;
	uint8_t bytes[256];
	size_t size;

	token.delivered = 1234567890123;
	size = token_write(&token, bytes, sizeof(bytes));
	ck_assert_uint_eq(size, 136);
	ck_assert_int_eq(token_parse(bytes, size, &back, &diag), 0);
	ck_assert_uint_eq(back.order, 3);
	ck_assert_uint_eq(back.seed, 7);
	ck_assert_uint_eq(back.delivered, token.delivered);
	token_fini(&back);
	bytes[95] = 0xff;
	reseal(bytes, size);
	ck_assert_int_eq(token_parse(bytes, size, &back, &diag), TOKEN_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "past the end"));
	token.sampler[7] = 1; /* its epochs may be longer than the dataset */
	token.delivered = INT64_MAX;
	token.n = 10;
	size = token_write(&token, bytes, sizeof(bytes));
	ck_assert_int_eq(token_parse(bytes, size, &back, &diag), 0);
	token_fini(&back);
	size = token_write(&token, bytes, sizeof(bytes));
	bytes[100] = 1;
	reseal(bytes, size);
	ck_assert_int_eq(token_parse(bytes, size, &back, &diag), TOKEN_E_BAD);
}
END_TEST

/* DESIGN.md section 10: n / (8 g) bytes, at most 64 KiB, and a little: head, tail, nonces. */
START_TEST(tokens_are_small)
{
	static const uint64_t sizes[] = {1000, 1281167, 16777216};
	static const size_t most[] = {125, 40037, 65536};

	for (size_t i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
		struct token token = {.n = sizes[i],
				      .block = permutation_block_of(sizes[i]),
				      .n_tail = 512,
				      .n_nonces = 64};

		ck_assert_uint_le(token_size(&token), most[i] + 144 + 4 * 512 + 8 * 64);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_bytes_are_frozen);
	tcase_add_test(t, old_tokens_are_read);
	tcase_add_test(t, damage_is_told_at_every_byte);
	tcase_add_test(t, forgeries_are_told);
	tcase_add_test(t, a_sample_twice_in_the_tail_is_told);
	tcase_add_test(t, a_token_of_another_dataset_is_told);
	tcase_add_test(t, a_token_of_another_sampler_is_told);
	tcase_add_test(t, what_is_written_is_read);
	tcase_add_test(t, a_large_need_is_written_in_parts);
	tcase_add_test(t, a_forged_part_is_told);
	tcase_add_test(t, a_large_need_in_one_bitmap_is_read);
	tcase_add_test(t, a_place_in_a_fixed_plan);
	tcase_add_test(t, tokens_are_small);
}

int main(void)
{
	return suite_run("token", add);
}
