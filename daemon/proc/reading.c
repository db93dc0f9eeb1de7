/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader process, seen from accessd.
 *
 * Messages to it are few (opens, queues); a control socket that is full for a moment makes the send
 * fail with EAGAIN, which is treated as the reader's death: it is killed and a new one gets
 * everything again, so there is one path for every fault. When a reader died, the tasks it was
 * reading are QUEUED again by the streams (stream_reader_died) before the new one is attached. What it says is
 * from_children.c's.
 */
#include "daemon/proc/reading.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/wire.h"
#include "daemon/limits.h"
#include "storage/reader.h"

#define READING_PATIENCE_MS 6000 /* a little more than a store takes to close */
#define COMPARE_EACH 1000 /* of so many values that peers give one is compared with its source */

#define tell(reading, type, ...) keeper_tell(&(reading)->keeper, type, __VA_ARGS__)

/* Of what the page cache can be half is the jobs'. */
static uint64_t direct_above(const struct param *param)
{
	struct limits limits;

	if (param->direct)
		return param->direct;
	limits_read(&limits);
	return BASE_MIN(limits.ram, limits.memory) / 2;
}

void reading_store(struct reading *reading, const struct reading_place *place)
{
	tell(reading, READER_STORE, WIRE_U64(READER_KEY_LIMIT, place->limit),
	     WIRE_U64(READER_KEY_FORCE, reading->wants.param->cache_force),
	     WIRE_U64(READER_KEY_SUSPECT, place->is_suspect), WIRE_FD(place->folder_fd),
	     WIRE_STRING(READER_KEY_TEXT, place->folder_fd < 0 ? place->why : NULL));
}

void reading_form(struct reading *reading, uint32_t queue, unsigned form,
		  const struct hash_id *group, const char *note, bool is_shared)
{
	tell(reading, READER_FORM, WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_U64(READER_KEY_FORM, form), WIRE_BYTES(READER_KEY_GROUP, group, sizeof(*group)),
	     WIRE_STRING(READER_KEY_NOTE, note), WIRE_U64(READER_KEY_SHARED, is_shared));
}

void reading_spread(struct reading *reading, uint32_t queue, uint32_t number, uint32_t nodes)
{
	tell(reading, READER_SPREAD, WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_U64(READER_KEY_NUMBER, number), WIRE_U64(READER_KEY_NODES, nodes));
}

void reading_unmade(struct reading *reading, uint32_t queue, unsigned form, uint64_t sample)
{
	tell(reading, READER_UNMADE, WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_U64(READER_KEY_FORM, form), WIRE_U64(READER_KEY_SAMPLE, sample));
}

void reading_open(struct reading *reading, const struct reading_ask *ask, int index_fd)
{
	tell(reading, READER_OPEN, WIRE_U64(READER_KEY_ID, ask->id),
	     WIRE_STRING(READER_KEY_PATH, ask->path), WIRE_U64(READER_KEY_HOW, ask->how),
	     WIRE_U64(READER_KEY_LIMIT, ask->most), WIRE_FD(index_fd));
}

void reading_close(struct reading *reading, uint64_t id)
{
	tell(reading, READER_CANCEL, WIRE_U64(READER_KEY_ID, id));
}

void reading_attach(struct reading *reading, uint64_t id, uint32_t queue, int queue_fd,
		    int arena_fd)
{
	tell(reading, READER_ATTACH, WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_FD(queue_fd), WIRE_FD(arena_fd));
}

void reading_worth(struct reading *reading, uint32_t queue, unsigned form, double us_per_mib)
{
	tell(reading, READER_WORTH, WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_U64(READER_KEY_FORM, form),
	     WIRE_U64(READER_KEY_WORTH, (uint64_t)(us_per_mib * 1000)));
}

void reading_yield(struct reading *reading, uint32_t queue, unsigned form, bool yields)
{
	tell(reading, READER_YIELD, WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_U64(READER_KEY_FORM, form), WIRE_U64(READER_KEY_YIELDS, yields));
}

void reading_memory(struct reading *reading, uint64_t bytes, bool is_most)
{
	tell(reading, READER_MEMORY, WIRE_U64(READER_KEY_LIMIT, bytes),
	     WIRE_U64(READER_KEY_MOST, is_most));
}

void reading_unread(struct reading *reading, uint64_t question)
{
	tell(reading, READER_UNREAD, WIRE_U64(READER_KEY_ID, question));
}

void reading_revisit(struct reading *reading, uint32_t queue, uint64_t id, const uint64_t *samples,
		     unsigned n)
{
	tell(reading, READER_REVISIT, WIRE_U64(READER_KEY_ID, id),
	     WIRE_U64(READER_KEY_QUEUE, queue),
	     WIRE_BYTES(READER_KEY_SAMPLES, samples, n * sizeof(*samples)));
}

void reading_detach(struct reading *reading, uint32_t queue)
{
	tell(reading, READER_DETACH, WIRE_U64(READER_KEY_QUEUE, queue));
}

void reading_peers(struct reading *reading, uint64_t self, int to_fd, int from_fd)
{
	reading->peers = 0; /* until it is said who is connected to this carrier */
	tell(reading, READER_PEERS, WIRE_U64(READER_KEY_SELF, self),
	     WIRE_U64(READER_KEY_RECHECK, reading->wants.param->peer_recheck),
	     WIRE_U64(READER_KEY_COMPARE, COMPARE_EACH), WIRE_FD(to_fd), WIRE_FD(from_fd));
}

void reading_members(struct reading *reading, uint32_t weight, const struct reader_member *members,
		     unsigned n)
{
	reading->peers = n;
	tell(reading, READER_MEMBERS, WIRE_U64(READER_KEY_WEIGHT, weight),
	     WIRE_BYTES(READER_KEY_MEMBERS, members, n * sizeof(*members)));
}

void reading_chore(struct reading *reading, uint64_t id, uint64_t verb, const struct hash_id *group)
{
	tell(reading, READER_CHORE, WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_VERB, verb),
	     WIRE_BYTES(READER_KEY_GROUP, group, sizeof(*group)));
}

void reading_chore_cancel(struct reading *reading, uint64_t id)
{
	tell(reading, READER_CHORE_CANCEL, WIRE_U64(READER_KEY_ID, id));
}

/* ---- life ---- */

static int start_process(void *arg, struct diag *diag)
{
	struct reading *reading = arg;
	const struct child_wants *wants = &reading->wants;
	char threads[24];
	const char *const arguments[] = {"access-reader", "--threads", threads, NULL};
	int r;

	snprintf(threads, sizeof(threads), "%llu", (unsigned long long)wants->param->readers);
	r = keeper_start(&reading->keeper, arguments, diag);
	if (r)
		return r;
	tell(reading, READER_START, WIRE_U64(READER_KEY_DIRECT, direct_above(wants->param)),
	     WIRE_U64(READER_KEY_HUGE, wants->param->huge_pages != HUGE_PAGES_OFF),
	     CHILD_FDS(wants));
	reading->calls->started(reading->domain);
	return 0;
}

static bool on_message(void *arg, struct wire_in *in)
{
	const struct reading *reading = arg;

	return reading->calls->said(reading->domain, in);
}

static void on_died(void *arg, int status, uint64_t cpu_ns)
{
	struct reading *reading = arg;

	keeper_died(&reading->keeper, status);
	reading->cpu_ns += cpu_ns;
	reading->peers = 0;
	reading->calls->died(reading->domain, status);
	keeper_again(&reading->keeper);
}

static void on_restarted(void *arg)
{
	const struct reading *reading = arg;

	reading->calls->restarted(reading->domain);
}

static void on_hopeless(void *arg, const char *text)
{
	const struct reading *reading = arg;

	reading->calls->hopeless(reading->domain, text);
}

int reading_start(struct reading *reading, const struct child_wants *wants,
		  const struct reading_calls *calls, struct domain *domain, struct diag *diag)
{
	static const struct keeper_kind kind = {
	    .name = "reader",
	    .lacks = "reader",
	    .each = "",
	    .then = "another one is started",
	    .fetches = true,
	    .start = start_process,
	    .end = "end of a reader",
	    .said = on_message,
	    .died = on_died,
	    .restarted = on_restarted,
	    .hopeless = on_hopeless,
	};
	int r;

	*reading = (struct reading){.calls = calls, .domain = domain, .wants = *wants};
	r = keeper_begin(&reading->keeper, &kind, reading, &reading->wants);
	return r ? r : start_process(reading, diag);
}

void reading_stop(struct reading *reading, bool waits)
{
	if (!reading->calls)
		return; /* it was never started */
	keeper_end(&reading->keeper);
	if (waits)
		child_leave(&reading->keeper.child, READING_PATIENCE_MS);
	else
		child_abandon(&reading->keeper.child, reading->wants.reaper);
}

uint64_t reading_cpu_ns(const struct reading *reading)
{
	return reading->cpu_ns + limits_cpu_ns(reading->keeper.child.pid);
}
