/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mix is opened: its options, its token, a stream for each part, and whether they fit each other.
 * What the mix decides, batches, epochs, the token, is not the parts' to say, and is refused there, so
 * that nobody thinks it had an effect.
 *
 * Ranks: all ranks of a part must have been given equally many samples after each step, or the token
 * of one would not be that of all. So with samples as the unit an epoch's last, uneven step is left
 * out (OA_DROP_LAST of the parts), and samples cannot be skipped.
 */

#include <stdio.h>

#include "libaccess/connect/client.h"
#include "libaccess/error.h"
#include "libaccess/mix.h"
#include "libaccess/mix_token.h"
#include "plan/ranks/ranks.h"

struct mix_request {
	struct oa_mix_options options;
	struct oa_options part[BLEND_MAX_PARTS];
	uint32_t weight[BLEND_MAX_PARTS];
	struct mix_token token; /* n_parts 0: none */
};

/* ---- what is asked for ---- */

static int mix_read_options(const struct oa_mix_options *from, struct oa_mix_options *ret,
			    struct diag *diag)
{
	if (!from || from->size < offsetof(struct oa_mix_options, token))
		return error_mix(diag, "options.size must be sizeof(struct oa_mix_options)");
	return error_read(ret, sizeof(*ret), from, from->size, "oa_mix_open(): options", diag);
}

static int mix_check_options(const struct oa_mix_options *options, struct diag *diag)
{
	uint32_t flags = OA_DROP_LAST | OA_POISON;

	if (options->unit == OA_MIX_BATCHES)
		flags |= OA_COPY;
	if (options->batch < 1 || options->batch > LAYOUT_MAX_CHUNK)
		return error_mix(diag, "options.batch is %u, must be 1 to %d", options->batch,
				 LAYOUT_MAX_CHUNK);
	if ((unsigned)options->end > OA_MIX_LONGEST || (unsigned)options->unit > OA_MIX_BATCHES)
		return error_mix(diag, "options.end is %d, options.unit %d, must be an OA_MIX_...",
				 (int)options->end, (int)options->unit);
	if (options->flags & ~flags)
		return error_mix(diag,
				 "options.flags (0x%x) has a flag that a mix does not know; mixed "
				 "batches are copies in any case",
				 options->flags);
	if (!options->token != !options->token_size)
		return error_mix(diag, "options.token and options.token_size go together");
	return 0;
}

/* Samples as the unit, and several ranks. */
static int mix_check_ranks(const struct oa_options *part, uint32_t number, struct diag *diag)
{
	if (part->order != OA_ORDER_SEEDED && part->order != OA_ORDER_SEQUENTIAL)
		return error_mix(diag,
				 "part %u: ranks of a mix of samples need OA_ORDER_SEEDED or "
				 "OA_ORDER_SEQUENTIAL",
				 number);
	if (part->bad == OA_BAD_SKIP)
		return error_mix(diag,
				 "part %u: ranks of a mix of samples cannot skip bad ones, as they "
				 "would not go in step: OA_BAD_SUBSTITUTE",
				 number);
	return 0;
}

static int mix_check_part(const struct mix_request *request, uint32_t number, struct diag *diag)
{
	const struct oa_options *part = &request->part[number], *first = &request->part[0];

	if (part->batch || part->epochs || part->token || (part->flags & OA_DROP_LAST))
		return error_mix(diag,
				 "part %u: batch, epochs, token and OA_DROP_LAST are the mix's to "
				 "say; leave them 0",
				 number);
	if (part->ranks != first->ranks || part->rank != first->rank)
		return error_mix(
		    diag, "part 0 is rank %u of %u, part %u rank %u of %u: all must be the same",
		    first->rank, first->ranks, number, part->rank, part->ranks);
	if (part->ranks > 1 && request->options.unit == OA_MIX_SAMPLES)
		return mix_check_ranks(part, number, diag);
	return 0;
}

static int mix_read_parts(const struct oa_mix_part *parts, uint32_t n, struct mix_request *ret,
			  struct diag *diag)
{
	if (!parts || n < 1 || n > BLEND_MAX_PARTS)
		return error_mix(diag, "%u parts, must be 1 to %d", n, BLEND_MAX_PARTS);
	for (uint32_t i = 0; i < n; i++) {
		int r = stream_read_options(parts[i].options, &ret->part[i], diag);

		r = r ? r : mix_check_part(ret, i, diag);
		if (r)
			return r;
		ret->weight[i] = parts[i].weight;
	}
	return 0;
}

/* ---- the token ---- */

static bool mix_is_of_token(const struct oa_mix *mix, const struct mix_token *token)
{
	struct blend blend;

	return token->n_parts == mix->n_parts && token->unit == (uint32_t)mix->unit &&
	       token->end == (uint32_t)mix->end &&
	       (mix->unit == OA_MIX_SAMPLES || token->batch == mix->batch) &&
	       blend_init(&blend, token->weight, token->n_parts) == 0 &&
	       memcmp(&blend, &mix->blend, sizeof(blend)) == 0;
}

static int mix_read_token(struct mix_request *request, struct oa_mix *mix, struct diag *diag)
{
	const struct oa_mix_options *options = &request->options;
	struct mix_token *token = &request->token;

	if (!options->token)
		return 0;
	if (mix_token_parse(options->token, options->token_size, token, diag))
		return OA_E_TOKEN;
	if (!mix_is_of_token(mix, token))
		return diag_fail(
		    diag, OA_E_TOKEN,
		    "resume token of a mix: it is of another number of parts, other weights, "
		    "another unit or end%s; open with those, or begin without a token",
		    mix->unit == OA_MIX_BATCHES ? " or batch" : "");
	if (options->seed && options->seed != token->seed)
		return diag_fail(
		    diag, OA_E_TOKEN,
		    "resume token of a mix: it has seed %llu, and seed %llu is asked for",
		    (unsigned long long)token->seed, (unsigned long long)options->seed);
	mix->seed = token->seed;
	mix->epoch = token->epoch;
	mix->at = token->at;
	return 0;
}

/* ---- the parts ---- */

static int mix_open_part(struct oa_client *client, const struct mix_request *request,
			 uint32_t number, struct oa_mix *mix, struct diag *diag)
{
	struct oa_options options = request->part[number];
	struct oa_error error = {.size = sizeof(error)};
	bool is_of_samples = mix->unit == OA_MIX_SAMPLES;
	int r;

	options.size = sizeof(options);
	options.batch = is_of_samples ? 1 : mix->batch;
	if (is_of_samples)
		options.flags &= ~(uint32_t)OA_COPY; /* once is enough */
	options.flags |= mix->flags & (OA_POISON | OA_COPY);
	if (is_of_samples ? options.ranks > 1 : mix->flags & OA_DROP_LAST)
		options.flags |= OA_DROP_LAST;
	if (request->token.n_parts) {
		options.token = request->token.part[number];
		options.token_size = request->token.part_size[number];
	}
	r = oa_open(client, &options, &mix->part[number].stream, &error);
	if (!r && mix->part[number].stream->course.is_logged)
		return error_mix(diag, "part %u: ranks of a mix need order seeded or sequential",
				 number);
	return r ? diag_fail(diag, r, "part %u: %.600s", number, error.text) : 0;
}

static uint64_t mix_count_units(const struct oa_mix *mix, const struct oa_stream *stream)
{
	struct ranks ranks = {
	    .n = listed_places(&stream->course, 0),
	    .batch = mix->batch,
	    .ranks = stream->course.ask->ranks,
	    .drop_last = mix->flags & OA_DROP_LAST,
	};

	return mix->unit == OA_MIX_SAMPLES ? ranks.n / ranks.ranks : ranks_steps(&ranks);
}

/* with_sizes: of its dimensions, or how many there are. */
static void mix_describe_field(const struct schema_field *field, bool with_sizes, char *ret,
			       size_t size)
{
	static const char *const types[] = {
	    [OA_U8] = "u8",     [OA_F16] = "f16", [OA_F32] = "f32", [OA_I64] = "i64",
	    [OA_BF16] = "bf16", [OA_I8] = "i8",   [OA_I16] = "i16", [OA_I32] = "i32",
	    [OA_U16] = "u16",   [OA_U32] = "u32", [OA_U64] = "u64", [OA_F64] = "f64",
	    [OA_BOOL] = "bool"};
	static const char *const kinds[] = {
	    [OA_DENSE] = "", [OA_RAGGED] = " ragged", [OA_TEXT] = " text"};
	int n = snprintf(ret, size, "\"%s\"%s %s", field->name, kinds[field->kind],
			 field->dtype < BASE_ARRAY_LEN(types) && types[field->dtype]
			     ? types[field->dtype]
			     : "of an unknown type");

	if (!with_sizes && n > 0 && (size_t)n < size)
		snprintf(ret + n, size - (size_t)n, " of %u dimensions", field->ndim);
	for (uint32_t i = 0; with_sizes && i < field->ndim && n > 0 && (size_t)n < size; i++)
		n += snprintf(ret + n, size - (size_t)n, "%s%llu", i ? "x" : " ",
			      (unsigned long long)field->shape[i]);
}

/* Two parts' fields must be the same, or one array cannot hold both; whole batches are each an array of its own. */
static int mix_compare(const struct oa_mix *mix, uint32_t number, struct diag *diag)
{
	const struct oa_stream *a = mix->part[0].stream, *b = mix->part[number].stream;
	const bool with_sizes = mix->unit == OA_MIX_SAMPLES;
	char first[128], other[128];

	if (mix->unit == OA_MIX_SAMPLES &&
	    (batch_mixed_joins(&a->batch_mixed) || batch_mixed_joins(&b->batch_mixed)))
		return error_mix(
		    diag,
		    "part %u has mosaic, mixup or cutmix, which join samples of a part's own "
		    "batches: give OA_MIX_BATCHES, or leave them out",
		    batch_mixed_joins(&a->batch_mixed) ? 0 : number);
	if (mix->unit == OA_MIX_SAMPLES && b->course.is_ranked &&
	    (a->chunks.has_holes || b->chunks.has_holes))
		return error_mix(diag,
				 "part %u: ranks of a mix of samples cannot leave out samples by "
				 "size, as they would not go in step: leave the filter out",
				 a->chunks.has_holes ? 0 : number);
	if (a->schema.n != b->schema.n)
		return error_mix(diag, "part 0 has %u fields, part %u has %u", a->schema.n, number,
				 b->schema.n);
	for (uint32_t i = 0; i < a->schema.n; i++) {
		mix_describe_field(&a->shown->field[i], with_sizes, first, sizeof(first));
		mix_describe_field(&b->shown->field[i], with_sizes, other, sizeof(other));
		if (strcmp(first, other) == 0 &&
		    a->schema.field[i].where == b->schema.field[i].where)
			continue;
		return error_mix(diag,
				 "part 0 has the field %s, part %u has %s: give both pipelines the "
				 "same %slayout and type",
				 first, number, other, with_sizes ? "size, " : "");
	}
	return 0;
}

static int mix_measure(struct oa_mix *mix, struct diag *diag)
{
	uint64_t units[BLEND_MAX_PARTS];

	for (uint32_t i = 0; i < mix->n_parts; i++) {
		units[i] = mix->part[i].units = mix_count_units(mix, mix->part[i].stream);
		if (units[i] < 1 || units[i] > BLEND_MAX_UNITS)
			return error_mix(diag, "part %u has %llu samples: that makes no epoch", i,
					 (unsigned long long)mix->part[i].stream->course.n_samples);
	}
	mix->length = blend_length(&mix->blend, units, (enum blend_end)mix->end);
	if (mix->unit == OA_MIX_SAMPLES && (mix->flags & OA_DROP_LAST) && mix->length < mix->batch)
		return error_mix(diag,
				 "an epoch of the mix has %llu samples, fewer than one batch of "
				 "%u: with OA_DROP_LAST nothing would be left",
				 (unsigned long long)mix->length, mix->batch);
	if (mix->at >= mix->length)
		return diag_fail(diag, OA_E_TOKEN,
				 "resume token of a mix: it is past the end of its epoch");
	if (mix->unit == OA_MIX_SAMPLES && (mix->flags & OA_DROP_LAST) &&
	    mix->length - mix->at < mix->batch) { /* what is left is left out */
		mix->epoch++;
		mix->at = 0;
	}
	mix->step = mix->unit == OA_MIX_SAMPLES ? mix->at / mix->batch : mix->at;
	blend_seek(&mix->blend, mix->at, &mix->place);
	return 0;
}

/* ---- memory ---- */

static int mix_make_own(struct oa_mix *mix)
{
	const struct oa_stream *first = mix->part[0].stream;
	int r = stream_new_like(first, mix->batch, mix->flags & OA_POISON, &mix->own);

	if (r)
		return r;
	mix->own->schema.bytes += base_align_up(mix->batch * sizeof(uint32_t), 64);
	mix->is_marked = calloc(mix->batch, sizeof(*mix->is_marked));
	mix->ids = calloc(mix->batch, sizeof(*mix->ids));
	return mix->is_marked && mix->ids ? 0 : -ENOMEM;
}

/* With whole batches their parts are known: the number of one, as often as a batch may need it. */
static int mix_number_parts(struct oa_mix *mix)
{
	for (uint32_t i = 0; i < mix->n_parts; i++) {
		uint32_t *parts = malloc(mix->batch * sizeof(*parts));

		if (!parts)
			return -ENOMEM;
		for (uint32_t k = 0; k < mix->batch; k++)
			parts[k] = i;
		mix->part[i].stream->parts = parts;
	}
	return 0;
}

static int mix_open_parts(struct oa_client *client, const struct mix_request *request,
			  struct oa_mix *mix, struct diag *diag)
{
	int r = 0;

	for (uint32_t i = 0; i < mix->n_parts && !r; i++) {
		r = mix_open_part(client, request, i, mix, diag);
		r = r ? r : mix_compare(mix, i, diag);
	}
	r = r ? r : mix_measure(mix, diag);
	if (!r)
		r = mix->unit == OA_MIX_SAMPLES ? mix_make_own(mix) : mix_number_parts(mix);
	return r;
}

static struct oa_mix *mix_new(const struct oa_mix_options *options, uint32_t n_parts)
{
	struct oa_mix *mix = calloc(1, sizeof(*mix));

	if (!mix || guard_init(&mix->guard)) {
		free(mix);
		return NULL;
	}
	pthread_mutex_init(&mix->lock, NULL);
	diag_set(&mix->error, "no error");
	mix->batch = options->batch;
	mix->flags = options->flags;
	mix->epochs = options->epochs;
	mix->seed = options->seed;
	mix->end = options->end;
	mix->unit = options->unit;
	mix->n_parts = n_parts;
	return mix;
}

static int mix_open(struct oa_client *client, struct mix_request *request, uint32_t n_parts,
		    struct oa_mix **ret, struct diag *diag)
{
	struct oa_mix *mix = mix_new(&request->options, n_parts);
	int r;

	if (!mix)
		return -ENOMEM;
	if (blend_init(&mix->blend, request->weight, n_parts))
		r = error_mix(diag,
			      "weights must be 1 or more, and in lowest terms their sum %d at most",
			      BLEND_MAX_PERIOD);
	else
		r = mix_read_token(request, mix, diag);
	r = r ? r : mix_open_parts(client, request, mix, diag);
	if (r)
		oa_mix_close(mix);
	else
		*ret = mix;
	return r;
}

int oa_mix_open(struct oa_client *client, const struct oa_mix_part *parts, uint32_t n_parts,
		const struct oa_mix_options *options, struct oa_mix **ret, struct oa_error *error)
{
	struct mix_request *request = calloc(1, sizeof(*request));
	struct diag diag = {""};
	int r = request ? 0 : -ENOMEM;

	if (!r && (!client || !ret))
		r = error_mix(&diag, "client or ret is NULL");
	if (!r && !guard_is_ours(&client->guard))
		r = diag_fail(&diag, OA_E_FORKED, ERROR_FORKED_TEXT);
	r = r ? r : mix_read_options(options, &request->options, &diag);
	r = r ? r : mix_check_options(&request->options, &diag);
	r = r ? r : mix_read_parts(parts, n_parts, request, &diag);
	r = r ? r : mix_open(client, request, n_parts, ret, &diag);
	if (r < 0 && !diag.text[0])
		diag_set(&diag, "oa_mix_open(): %s", oa_error_name(r));
	free(request);
	return error_export(error, r, diag.text);
}

void oa_mix_close(struct oa_mix *mix)
{
	if (!mix)
		return;
	if (mix->under_way &&
	    guard_is_ours(&mix->guard)) { /* it goes the way of a batch that was given out */
		pthread_mutex_lock(&mix->own->lock);
		mix->under_way->is_live = true;
		mix->own->stats.outstanding++;
		pthread_mutex_unlock(&mix->own->lock);
		oa_release(mix->under_way);
	}
	oa_close(mix->own);
	for (uint32_t i = 0; i < mix->n_parts; i++)
		oa_close(mix->part[i].stream);
	if (!guard_is_ours(&mix->guard))
		return; /* as with a stream, the child keeps what it cannot know to be unused */
	pthread_mutex_destroy(&mix->lock);
	guard_fini(&mix->guard);
	free(mix->is_marked);
	free(mix->ids);
	free(mix);
}
