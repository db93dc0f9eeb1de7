/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/revisit.h"

#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"

#define MOST_SAMPLES 512 /* of a question: its message is to be a small one */

int revisit_init(struct stream *stream)
{
	if (stream->source->root.is_made)
		return 0;
	stream->users.revisit.as_of =
	    calloc(stream->geometry.max_slots, sizeof(*stream->users.revisit.as_of));
	return stream->users.revisit.as_of ? 0 : -ENOMEM;
}

void revisit_fini(struct stream *stream)
{
	free(base_take_ptr(stream->users.revisit.as_of));
}

/* ---- asking ---- */

/* As any variant of the chunk shows it: they have one outcome. */
static uint8_t status_of(const struct stream *stream, const struct carousel_chunk *chunk,
			 uint32_t i)
{
	VARIANT_EACH_OPEN(variant, stream)
		if (chunk->variants >> variant->number & 1)
			return slot_table_status_of(&variant->table, stream->users.revisit.slot)[i];
	return LAYOUT_SAMPLE_OK;
}

/* The sample, and where another one stands in for it, which is not noted, all that may. */
static unsigned put_samples(const struct stream *stream, const struct carousel_chunk *chunk,
			    uint32_t i, uint64_t *ret)
{
	unsigned n = 0;

	ret[n++] = (uint64_t)chunk->ids[i];
	if (status_of(stream, chunk, i) != LAYOUT_SAMPLE_SUBSTITUTED)
		return n;
	for (unsigned attempt = 1; attempt <= FILL_SUBSTITUTES; attempt++)
		ret[n++] = fill_substitute_of(stream, chunk, i, attempt);
	return n;
}

static void ask(struct stream *stream, const struct carousel_chunk *chunk)
{
	struct revisit *revisit = &stream->users.revisit;
	uint64_t sample[MOST_SAMPLES];
	unsigned n = 0;

	while (revisit->next < chunk->count && n + 1 + FILL_SUBSTITUTES <= MOST_SAMPLES)
		n += put_samples(stream, chunk, revisit->next++, sample + n);
	revisit->is_asked = true;
	stream->node->counters.samples_revisited += n;
	reading_revisit(&stream->domain->reading, stream->shared.queue.number, ++revisit->id,
			sample, n);
}

static void begin(struct stream *stream, uint32_t slot)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(stream->carousel, slot);
	struct revisit *revisit = &stream->users.revisit;

	revisit->slot = slot;
	revisit->next = 0;
	revisit->instance = chunk->instance;
	revisit->as_of_asked = revisit->opened;
	ask(stream, chunk);
}

void revisit_turn(struct stream *stream)
{
	uint32_t slot;

	if (stream->users.revisit.is_asked || !stream->shared.is_attached)
		return;
	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++)
		if (stream->users.job[i] && job_awaits_look(stream->users.job[i], &slot)) {
			begin(stream, slot);
			return;
		}
}

/* ---- answers ---- */

/* Who has been shown it came before that. */
static void forget(struct stream *stream, uint32_t slot)
{
	carousel_forget(stream->carousel, slot);
	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];

		if (job && !revisit_is_known(&stream->users.revisit, slot, job->since))
			job_take_back(job, slot, base_now_ns());
	}
}

void revisit_said(struct domain *domain, uint32_t queue, uint64_t id, bool is_same)
{
	struct stream *stream = stream_of_queue(domain, queue);
	const struct carousel_chunk *chunk;
	struct revisit *revisit;

	if (!stream || stream->state != STREAM_RUNS || !stream->users.revisit.is_asked ||
	    stream->users.revisit.id != id)
		return;
	revisit = &stream->users.revisit;
	revisit->is_asked = false;
	stream_turn_soon(stream);
	chunk = carousel_chunk_of(stream->carousel, revisit->slot);
	if (!chunk || chunk->instance != revisit->instance)
		return; /* it has left its slot */
	if (!is_same)
		forget(stream, revisit->slot);
	else if (revisit->next < chunk->count)
		ask(stream, chunk);
	else
		revisit->as_of[revisit->slot] = revisit->as_of_asked;
}

void revisit_reader_died(struct stream *stream)
{
	stream->users.revisit.is_asked = false;
}
