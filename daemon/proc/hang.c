/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker hangs over a sample when
 *
 *   it has used more CPU time on it than the limit (it computes for ever),
 *   it sleeps, or is gone from the CPU, for ten times the limit of wall time (it waits for what does
 *   not come: a worker has nothing to wait for while it has a task), or
 *   it is stopped at the limit: that is no fault of the sample, which is tried once more.
 *
 * The limit is the stream's (stream_patience_ns), or what is generous for the sample's own size, if that is
 * more: a huge picture among small ones is as good as they are. Its pixels only the worker knows, from the
 * file's head; what it says is believed up to the most that any picture has.
 *
 * A worker that is ready to run and is not let is none of these, however long it takes: replacing it
 * would call a healthy photograph bad, and the next worker would lack the same CPU. Where neither CPU
 * time nor state can be read, ten times the limit of wall time decides.
 *
 * When accessd itself did not run for a while, the machine or the container was paused: that time
 * counts for nobody.
 */
#include "daemon/proc/hang.h"

#include "pipeline/spec/op.h"

#define BLOCKED 10   /* limits of wall time */
#define PIXEL_NS 200 /* nine times a progressive JPEG of high quality */
#define BYTE_NS 50

/* ---- one worker ---- */

bool hang_is_same(const struct hang_work *a, const struct hang_work *b)
{
	return a->has_task == b->has_task && a->is_wanted == b->is_wanted && a->queue == b->queue &&
	       a->row == b->row && a->task == b->task && a->instance == b->instance &&
	       a->attempt == b->attempt;
}

void hang_note(struct hang *hang, const struct hang_work *work, uint64_t now_ns, uint64_t cpu_ns)
{
	if (!hang->since_ns || !hang_is_same(&hang->work, work)) {
		*hang = (struct hang){.work = *work,
				      .since_ns = now_ns,
				      .moved_ns = now_ns,
				      .since_cpu_ns = cpu_ns,
				      .cpu_ns = cpu_ns};
		return;
	}
	if (cpu_ns != hang->cpu_ns)
		hang->moved_ns = now_ns;
	hang->cpu_ns = cpu_ns;
}

void hang_forgive(struct hang *hang, uint64_t now_ns)
{
	hang->since_ns = hang->moved_ns = now_ns;
}

bool hang_is_late(const struct hang *hang, uint64_t now_ns, uint64_t limit_ns)
{
	return (hang->work.has_task || hang->work.is_wanted) && now_ns > hang->since_ns &&
	       now_ns - hang->since_ns >= limit_ns;
}

uint64_t hang_spent_ns(const struct hang *hang)
{
	return hang->cpu_ns && hang->since_cpu_ns ? hang->cpu_ns - hang->since_cpu_ns : 0;
}

uint64_t hang_used_ns(const struct hang *hang, uint64_t life_ns, uint64_t limit_ns)
{
	const uint64_t last_ns = BASE_MAX(life_ns, hang->cpu_ns);

	return last_ns > hang->since_cpu_ns ? last_ns - hang->since_cpu_ns : limit_ns;
}

/* Asleep since ten limits, as far as can be seen. */
static bool is_blocked(const struct hang *hang, uint64_t now_ns, uint64_t limit_ns, char state)
{
	uint64_t patience_ns = BLOCKED * limit_ns;

	if (state == 'R' || now_ns - hang->since_ns < patience_ns)
		return false;
	return state == 'S' || !hang->cpu_ns || now_ns - hang->moved_ns >= patience_ns;
}

enum hang_verdict hang_judge(const struct hang *hang, uint64_t now_ns, uint64_t limit_ns,
			     char state)
{
	if (!hang_is_late(hang, now_ns, limit_ns))
		return HANG_NO;
	if (state == 'T' || state == 't')
		return HANG_STOPPED;
	if (!hang->work.has_task)
		return HANG_NO;
	if (hang_spent_ns(hang) > limit_ns)
		return HANG_LOOPS;
	return is_blocked(hang, now_ns, limit_ns, state) ? HANG_BLOCKED : HANG_NO;
}

uint64_t hang_allowance_ns(uint64_t pixels, uint64_t bytes)
{
	return BASE_MIN(pixels, OP_MAX_PIXELS) * PIXEL_NS + BASE_MIN(bytes, UINT32_MAX) * BYTE_NS;
}
