/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an accessd says of mosaic, mixup and cutmix, and what lies in its slots, as the library takes them, also for an objective
 * of the job's, whose numbers are checked elsewhere. The fields fit
 * the slot table, whose own target sees to that; nothing else is honest. What is let in must work on any numbers without a
 * read or a write outside of its arrays.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libaccess/batch_mixed.h"
#include "libaccess/held.h"
#include "libaccess/progress.h"

#define FUZZ_FIELDS 8
#define FUZZ_BATCH 5
#define FUZZ_MOST (1 << 16) /* bytes of a field of one sample */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input begins with one, what it lacks is zero: the rest fills the arrays. */
struct fuzz_head {
	uint8_t n, count, is_mix, item_bytes;
	struct {
		uint8_t dtype, ndim, where, kind, lengths, shape[LAYOUT_MAX_DIMS];
	} field[FUZZ_FIELDS];
	uint64_t seed, nonce, epoch, sample;
	uint8_t item[sizeof(struct proto_mosaic)];
};

/* In place of batch.c's: each field is an array of its own. */
static uint8_t *fuzz_data[FUZZ_FIELDS];

const void *batch_data(const struct oa_batch *batch, uint32_t index)
{
	(void)batch;
	return fuzz_data[index];
}

/* In place of progress.c's: batch_mixed_note() is not what is tried here. */
void progress_keys(const struct progress *progress, const struct held *held, uint32_t first,
		   uint32_t n, struct listing_key *ret)
{
	(void)progress;
	(void)held;
	(void)first;
	memset(ret, 0, n * sizeof(*ret));
}

static bool fuzz_field(const struct fuzz_head *head, uint32_t i, struct schema_field *ret)
{
	*ret = (struct schema_field){
	    .dtype = 1 + head->field[i].dtype % LAYOUT_BOOL,
	    .where = head->field[i].where % 8 ? LAYOUT_IN_SLOT : LAYOUT_IN_TABLE,
	    .ndim = head->field[i].ndim % (LAYOUT_MAX_DIMS + 1),
	    .kind = head->field[i].kind % 2 ? LAYOUT_RAGGED : LAYOUT_DENSE,
	    .lengths = head->field[i].lengths % head->n,
	};
	snprintf(ret->name, sizeof(ret->name), i == 0 ? "image" : i == 1 ? "label" : "f%u", i);
	ret->sample_bytes = layout_dtype_bytes(ret->dtype);
	for (uint32_t k = 0; k < ret->ndim; k++) {
		ret->shape[k] = head->field[i].shape[k];
		ret->sample_bytes *= ret->shape[k];
		if (ret->sample_bytes > FUZZ_MOST)
			return false;
	}
	return ret->sample_bytes > 0;
}

/* An array of each field, of just its size, filled with the rest of the input again and again. */
static void fuzz_fill(const struct schema *schema, uint32_t count, const uint8_t *rest, size_t left)
{
	size_t at = 0;

	for (uint32_t i = 0; i < schema->n; i++) {
		const size_t bytes = count * (size_t)schema->field[i].sample_bytes;

		fuzz_data[i] = calloc(bytes, 1);
		if (!fuzz_data[i])
			abort();
		for (size_t k = 0; left && k < bytes; k++)
			fuzz_data[i][k] = rest[at++ % left];
	}
}

static void fuzz_batch(struct batch_mixed *batch_mixed, const struct fuzz_head *head,
		       const struct schema *schema)
{
	static const int64_t ids[FUZZ_BATCH];
	struct oa_batch batch = {.ids = ids, .count = 1 + head->count % FUZZ_BATCH};
	struct batch_mixed_buffer *buffer;
	uint32_t good;

	if (batch_mixed_reserve(batch_mixed))
		abort();
	buffer = batch_mixed_take(batch_mixed);
	batch_mixed->key =
	    (struct batch_mix_key){head->seed, head->nonce, head->epoch, (int64_t)head->sample};
	good = batch_mixed_fill(batch_mixed, schema, &batch, buffer->memory);
	if (good > batch.count)
		abort();
	batch_mixed_free(batch_mixed, buffer);
}

static void fuzz_ask(const struct fuzz_head *head, struct mixed_ask *ret, struct diag *diag, int *r)
{
	struct wire_out out;
	struct wire_in in;

	wire_in_init(&in);
	wire_out_init(&out, PROTO_OPENED);
	wire_put_bytes(&out, head->is_mix % 2 ? PROTO_KEY_BATCH_MIX : PROTO_KEY_MOSAIC, head->item,
		       head->item_bytes == 0 ? sizeof(head->item) : head->item_bytes);
	if (out.error || wire_in_parse(&in, out.data, out.size))
		abort();
	*r = mixed_ask_read(&in, ret, diag);
	wire_out_fini(&out);
	wire_in_fini(&in);
}

/* One of each kind, or none, for tokens of any number. */
static void fuzz_objective(const struct fuzz_head *head, struct objective_batch *ret)
{
	static const int64_t sentinels[] = {9, 8, 7, 6, 5, 4, 3, 2};
	static const uint8_t what[] = {0, OBJECTIVE_SPECIAL, OBJECTIVE_CONTINUES, 3};

	ret->objective = (struct objective){
	    .kind = head->is_mix / 64,
	    .masked = {.5, .5, .3, 3, 1 + head->item[0], what, sizeof(what)},
	    .spans = {head->item[1] / 255.0, 1 + head->item[2] % 8, sentinels,
		      BASE_ARRAY_LEN(sentinels), (int64_t)head->item[3] - 9},
	    .middle = {.9, .5, 1, 2, 3, (int64_t)head->item[4] - 9},
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batch_mixed batch_mixed = {0};
	struct schema schema = {.batch = FUZZ_BATCH};
	struct fuzz_head head = {0};
	struct mixed_ask ask;
	struct diag diag = {0};
	int r;

	memcpy(&head, data, BASE_MIN(size, sizeof(head)));
	head.n = 1 + head.n % FUZZ_FIELDS;
	for (schema.n = 0; schema.n < head.n; schema.n++)
		if (!fuzz_field(&head, schema.n, &schema.field[schema.n]))
			return 0;
	schema_lay_out(&schema);
	fuzz_objective(&head, &batch_mixed.objective);
	if (batch_mixed_is_used(&batch_mixed)) {
		ask = (struct mixed_ask){.n = 0};
		r = 0;
	} else {
		fuzz_ask(&head, &ask, &diag, &r);
	}
	r = r ? r : batch_mixed_begin(&batch_mixed, &ask, &schema, &diag);
	if ((r == -EPROTO || r == OA_E_INVALID) && !diag.text[0])
		abort();
	if (r == 0 && batch_mixed_is_used(&batch_mixed)) {
		fuzz_fill(&schema, 1 + head.count % FUZZ_BATCH,
			  size > sizeof(head) ? data + sizeof(head) : data,
			  size > sizeof(head) ? size - sizeof(head) : 0);
		fuzz_batch(&batch_mixed, &head, &schema);
		for (uint32_t i = 0; i < schema.n; i++)
			free(fuzz_data[i]);
	}
	batch_mixed_fini(&batch_mixed);
	return 0;
}
