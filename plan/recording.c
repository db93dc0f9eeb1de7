/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recorded plans: bytes. A crash can leave at the end a part of a block, or, where the file system
 * made the file longer before it wrote it, zeros or an old block's checksum; all that is "cut". What is
 * wrong in the middle is damage. The head of a block has a checksum of its own, so that a damaged
 * length is not taken for a cut.
 *
 * Everything that counts samples is bounded by the block's bytes, and they by RECORDING_MAX_BLOCK.
 */

#include "plan/recording.h"

#include "base/hash.h"
#include "base/little.h"
#include "plan/plan.h"

#define RECORDING_FORMAT 1
#define RECORDING_RUN 24
#define BLOCK_MAGIC 0x6b626f61u /* "aobk" */

static const uint8_t recording_magic[8] = {'o', 'a', '-', 'p', 'l', 'a', 'n', '\n'};

/* ---- writing ---- */

void recording_write_head(const struct recording_head *head, uint8_t ret[RECORDING_HEAD])
{
	memset(ret, 0, RECORDING_HEAD);
	memcpy(ret, recording_magic, sizeof(recording_magic));
	little_put(ret + 8, RECORDING_FORMAT, 4);
	little_put(ret + 12, RECORDING_HEAD, 4);
	little_put(ret + 16, head->n, 8);
	little_put(ret + 24, head->block, 4);
	little_put(ret + 28, head->order, 4);
	memcpy(ret + 32, head->dataset, sizeof(head->dataset));
	memcpy(ret + 64, head->pipeline, sizeof(head->pipeline));
	little_put(ret + 96, head->seed, 8);
	little_put(ret + 104, head->batch, 4);
	little_put(ret + 120, hash_checksum(ret, 120), 8);
}

size_t recording_batch_bytes(uint32_t count)
{
	return RECORDING_BATCH_HEAD + (size_t)count * (RECORDING_RUN + 8);
}

static uint32_t write_runs(const struct listing_key *keys, uint32_t count, uint8_t *at)
{
	uint32_t runs = 0, first = 0;

	for (uint32_t i = 1; i <= count; i++) {
		if (i < count && keys[i].seed == keys[first].seed &&
		    keys[i].nonce == keys[first].nonce)
			continue;
		little_put(at, keys[first].seed, 8);
		little_put(at + 8, keys[first].nonce, 8);
		little_put(at + 16, i - first, 8);
		at += RECORDING_RUN;
		first = i;
		runs++;
	}
	return count ? runs : 0;
}

size_t recording_write_batch(const struct recording_batch *batch, uint64_t n, const int64_t *ids,
			     const struct listing_key *keys, uint8_t *ret)
{
	uint32_t runs = write_runs(keys, batch->count, ret + RECORDING_BATCH_HEAD);
	uint8_t *at = ret + RECORDING_BATCH_HEAD + (size_t)runs * RECORDING_RUN;

	little_put(ret, batch->epoch, 8);
	little_put(ret + 8, batch->step, 8);
	little_put(ret + 16, batch->after, 8);
	little_put(ret + 24, batch->rank, 4);
	little_put(ret + 28, batch->ranks, 4);
	little_put(ret + 32, batch->count, 4);
	little_put(ret + 36, runs, 4);
	little_put(ret + 40, batch->flags, 8);
	for (uint32_t i = 0; i < batch->count; i++, at += plan_id_bytes(n))
		little_put(at, (uint64_t)ids[i], plan_id_bytes(n));
	return (size_t)(at - ret);
}

void recording_seal_block(uint8_t *block, uint64_t number, uint32_t bytes)
{
	little_put(block, BLOCK_MAGIC, 4);
	little_put(block + 4, bytes, 4);
	little_put(block + 8, number, 8);
	little_put(block + 16, hash_checksum(block, 16), 8);
	little_put(block + 24, hash_checksum(block + RECORDING_BLOCK_HEAD, bytes), 8);
}

/* ---- the head ---- */

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, RECORDING_E_BAD, "recorded plan: %s", what);
}

static int check_head(const uint8_t *bytes, struct recording_head *ret, struct diag *diag)
{
	if (memcmp(bytes, recording_magic, sizeof(recording_magic)) != 0)
		return bad(diag, "this file is none");
	if (little_get(bytes + 120, 8) != hash_checksum(bytes, 120))
		return bad(diag, "its head is damaged (checksum)");
	if (little_32(bytes + 8) > RECORDING_FORMAT)
		return diag_fail(
		    diag, RECORDING_E_VERSION,
		    "recorded plan: format %u is newer than this version's %u; upgrade oneaccess",
		    little_32(bytes + 8), RECORDING_FORMAT);
	*ret = (struct recording_head){
	    .n = little_get(bytes + 16, 8),
	    .block = little_32(bytes + 24),
	    .order = little_32(bytes + 28),
	    .seed = little_get(bytes + 96, 8),
	    .batch = little_32(bytes + 104),
	};
	memcpy(ret->dataset, bytes + 32, sizeof(ret->dataset));
	memcpy(ret->pipeline, bytes + 64, sizeof(ret->pipeline));
	if (little_32(bytes + 8) != RECORDING_FORMAT || little_32(bytes + 12) != RECORDING_HEAD ||
	    !ret->n || ret->n >= LISTING_MAX_ID || ret->order < PLAN_CAROUSEL ||
	    ret->order > PLAN_LIST)
		return bad(diag, "its head contradicts itself");
	return 0;
}

bool recording_is_same(const struct recording_head *a, const struct recording_head *b)
{
	return a->n == b->n && a->order == b->order && a->seed == b->seed &&
	       memcmp(a->dataset, b->dataset, sizeof(a->dataset)) == 0 &&
	       memcmp(a->pipeline, b->pipeline, sizeof(a->pipeline)) == 0;
}

static int read_at(const struct recording_reader *reader, void *ret, size_t bytes, uint64_t at)
{
	int r = reader->read(reader->file, ret, bytes, at);

	return r == -ENODATA ? -EIO : r; /* it was longer */
}

int recording_open(struct recording_reader *reader, struct diag *diag)
{
	uint8_t bytes[RECORDING_HEAD];
	int r;

	reader->block = NULL;
	reader->bytes = reader->at = 0;
	if (reader->size < sizeof(bytes))
		return bad(diag, "this file is none: it is too short");
	r = read_at(reader, bytes, sizeof(bytes), 0);
	if (r)
		return r;
	recording_seek(reader, sizeof(bytes), 0);
	return check_head(bytes, &reader->head, diag);
}

void recording_fini(struct recording_reader *reader)
{
	free(reader->block);
	reader->block = NULL;
}

void recording_seek(struct recording_reader *reader, uint64_t offset, uint64_t number)
{
	reader->offset = offset;
	reader->number = number;
	reader->bytes = reader->at = 0;
}

/* ---- blocks ---- */

/* Something that is no block follows: was it never written? */
static int judge_rest(struct recording_reader *reader, struct diag *diag)
{
	uint8_t bytes[4096];
	uint64_t at = reader->offset;

	while (at < reader->size) {
		size_t part = (size_t)BASE_MIN((uint64_t)sizeof(bytes), reader->size - at);
		int r = read_at(reader, bytes, part, at);

		if (r)
			return r;
		for (size_t i = 0; i < part; i++)
			if (bytes[i])
				return bad(
				    diag,
				    "it is damaged in the middle (no block where one must begin)");
		at += part;
	}
	return RECORDING_E_CUT;
}

static int read_payload(struct recording_reader *reader, uint32_t bytes, uint64_t sum,
			struct diag *diag)
{
	uint64_t end = reader->offset + RECORDING_BLOCK_HEAD + bytes;
	uint8_t *block = realloc(reader->block, bytes);
	int r;

	if (!block)
		return -ENOMEM;
	reader->block = block;
	r = read_at(reader, block, bytes, reader->offset + RECORDING_BLOCK_HEAD);
	if (r)
		return r;
	if (hash_checksum(block, bytes) != sum)
		return end == reader->size ? RECORDING_E_CUT
					   : bad(diag, "it is damaged in the middle (checksum)");
	reader->begin = reader->offset;
	reader->offset = end;
	reader->number++;
	reader->bytes = bytes;
	reader->at = 0;
	return 0;
}

static int next_block(struct recording_reader *reader, struct diag *diag)
{
	uint64_t left = reader->size - BASE_MIN(reader->offset, reader->size);
	uint8_t head[RECORDING_BLOCK_HEAD];
	uint32_t bytes;
	int r;

	if (!left)
		return RECORDING_E_END;
	if (left < sizeof(head))
		return RECORDING_E_CUT;
	r = read_at(reader, head, sizeof(head), reader->offset);
	if (r)
		return r;
	bytes = little_32(head + 4);
	if (little_32(head) != BLOCK_MAGIC || little_get(head + 16, 8) != hash_checksum(head, 16))
		return judge_rest(reader, diag);
	if (little_get(head + 8, 8) != reader->number || !bytes || bytes > RECORDING_MAX_BLOCK)
		return bad(diag, "its blocks do not follow each other");
	if (bytes > left - sizeof(head))
		return RECORDING_E_CUT;
	return read_payload(reader, bytes, little_get(head + 24, 8), diag);
}

/* ---- batches ---- */

static int check_batch(const struct recording_reader *reader, const struct recording_batch *batch,
		       struct diag *diag)
{
	uint64_t samples = 0;
	struct listing_key key;

	for (uint32_t i = 0; i < batch->n_runs; i++) {
		uint32_t run = recording_run(batch, i, &key);

		if (!run)
			return bad(diag, "a batch's keys are not those of its samples");
		samples += run;
	}
	if (samples != batch->count || !batch->ranks || batch->rank >= batch->ranks)
		return bad(diag, "a batch contradicts itself");
	for (uint32_t i = 0; i < batch->count; i++)
		if ((uint64_t)recording_id(batch, i) >= reader->head.n)
			return bad(diag, "it names a sample that the dataset does not have");
	return 0;
}

static int read_batch(struct recording_reader *reader, struct recording_batch *ret,
		      struct diag *diag)
{
	const uint8_t *at = reader->block + reader->at;
	uint64_t left = reader->bytes - reader->at, bytes;

	if (left < RECORDING_BATCH_HEAD)
		return bad(diag, "a batch is cut off inside a block");
	*ret = (struct recording_batch){
	    .epoch = little_get(at, 8),
	    .step = little_get(at + 8, 8),
	    .after = little_get(at + 16, 8),
	    .rank = little_32(at + 24),
	    .ranks = little_32(at + 28),
	    .count = little_32(at + 32),
	    .n_runs = little_32(at + 36),
	    .flags = little_32(at + 40),
	    .runs = at + RECORDING_BATCH_HEAD,
	    .id_bytes = plan_id_bytes(reader->head.n),
	};
	bytes = RECORDING_BATCH_HEAD + (uint64_t)ret->n_runs * RECORDING_RUN +
		(uint64_t)ret->count * ret->id_bytes;
	if (bytes > left)
		return bad(diag, "a batch is cut off inside a block");
	ret->ids = ret->runs + (size_t)ret->n_runs * RECORDING_RUN;
	reader->at += (uint32_t)bytes;
	return check_batch(reader, ret, diag);
}

int recording_next(struct recording_reader *reader, struct recording_batch *ret, struct diag *diag)
{
	if (reader->at == reader->bytes) {
		int r = next_block(reader, diag);

		if (r)
			return r;
	}
	return read_batch(reader, ret, diag);
}

int64_t recording_id(const struct recording_batch *batch, uint32_t i)
{
	return (int64_t)little_get(batch->ids + (size_t)i * batch->id_bytes, batch->id_bytes);
}

uint32_t recording_run(const struct recording_batch *batch, uint32_t i, struct listing_key *ret)
{
	const uint8_t *at = batch->runs + (size_t)i * RECORDING_RUN;
	uint64_t samples = little_get(at + 16, 8);

	*ret = (struct listing_key){little_get(at, 8), little_get(at + 8, 8)};
	return samples > batch->count ? 0 : (uint32_t)samples;
}
