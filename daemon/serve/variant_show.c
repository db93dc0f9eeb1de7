/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients see of variants.
 *
 * A client knows of its own variant alone: its slot table is a whole one, with the geometry of its slots,
 * and shows the chunks that were made in it. What that costs is a second place for a sample's id and
 * status; what it saves is a second kind of slot table, which every client would have to check.
 */
#include "daemon/serve/variant.h"

#include <stdio.h>

#include "daemon/net/conn.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "pipeline/spec/compare.h"

/* ---- slot tables ---- */

static struct variant *shown(const struct stream *stream, uint32_t variants, unsigned number)
{
	struct variant *variant = stream->variant[number];

	return variants >> number & 1 && variant && variant->state != VARIANT_GONE ? variant : NULL;
}

void variant_show_begin(const struct stream *stream, uint32_t variants, uint32_t slot,
			const struct carousel_chunk *chunk)
{
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = shown(stream, variants, i);

		if (variant)
			slot_table_begin(&variant->table, slot, chunk->instance, chunk->nonce,
					 chunk->ids, chunk->count, chunk->blocks, chunk->n_blocks,
					 chunk->is_private);
	}
}

void variant_show_status(const struct stream *stream, const struct fill *fill, uint32_t i,
			 uint8_t status)
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		struct variant *variant = shown(stream, fill->variants, v);

		if (variant)
			slot_table_status(&variant->table, fill->slot, i, status);
	}
}

void variant_show_watermark(const struct stream *stream, const struct fill *fill)
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		struct variant *variant = shown(stream, fill->variants, v);

		if (variant)
			slot_table_watermark(&variant->table, fill->slot, fill->watermark);
	}
}

void variant_show_empty(const struct stream *stream, uint32_t slot)
{
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = shown(stream, UINT32_MAX, i);

		if (variant)
			slot_table_empty(&variant->table, slot);
	}
}

/* ---- what is shared ---- */

static size_t add_text(char *ret, size_t size, size_t at, const char *text)
{
	int n = at < size ? snprintf(ret + at, size - at, "%s", text) : 0;

	return at + (size_t)n;
}

/* "all of it with 2, decode and resize with 1 (hflip: p differs)" */
static void tell_variants(const struct variant *own, unsigned n_same, char *ret, size_t size)
{
	const struct stream *stream = own->stream;
	char shared[96], words[160], part[320];
	size_t at = 0;

	if (n_same) {
		snprintf(part, sizeof(part), ": all of it with %u", n_same);
		at = add_text(ret, size, at, part);
	}
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		const struct variant *other = stream->variant[i];

		if (other == own || !variant_is_open(other) || !other->n_jobs)
			continue;
		compare_shared(own->pipeline, other->pipeline, shared, sizeof(shared));
		compare_words(own->pipeline, other->pipeline, words, sizeof(words));
		snprintf(part, sizeof(part), "%s %s with %u (%s)", at ? "," : ":", shared,
			 other->n_jobs, words);
		at = add_text(ret, size, at, part);
	}
}

void variant_tell_shared(const struct conn *conn, char *ret, size_t size)
{
	const struct variant *own = conn->variant;
	const struct stream *stream = own->stream;
	unsigned others = stream->users.n_jobs - 1, same = own->n_jobs - 1;
	const struct domain *domain = stream->domain;
	char open[NAMED_NAME_MAX + 32] = "";
	int at;

	if (domain->kind == DOMAIN_PUBLIC)
		snprintf(open, sizeof(open), ", of data that are open to every user,");
	else if (domain->kind == DOMAIN_NAMED)
		snprintf(open, sizeof(open), ", of the data set \"%s\",", domain->name);

	if (others)
		at = snprintf(ret, size, "shares its stream%s with %u other job%s", open, others,
			      others == 1 ? "" : "s");
	else
		at = snprintf(ret, size, "is alone on its stream%s%s", open, conn->apart);
	if (same < others && (size_t)at < size)
		tell_variants(own, same, ret + at, size - (size_t)at);
}
