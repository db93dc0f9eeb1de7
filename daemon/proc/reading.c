/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader process, seen from accessd.
 *
 * Messages to it are few (opens, queues); a control socket that is full for a moment makes the send
 * fail with EAGAIN, which is treated as the reader's death: it is killed and a new one gets
 * everything again, so there is one path for every fault. When a reader died, the tasks it was
 * reading are QUEUED again by the streams (stream_reader_died) before the new one is attached. What it says is
 * from_reader.c's.
 */
#include "daemon/proc/reading.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/limits.h"
#include "daemon/net/porter.h"
#include "storage/reader.h"

#define READING_PATIENCE_MS 6000 /* a little more than a store takes to close */
#define COMPARE_EACH 1000 /* of so many values that peers give one is compared with its source */

static void send_message(struct reading *reading, struct wire_out *out)
{
	child_say(&reading->child, out, "reader-unreachable");
}

/* Of what the page cache can be half is the jobs'. */
static uint64_t direct_above(const struct param *param)
{
	struct limits limits;

	if (param->direct)
		return param->direct;
	limits_read(&limits);
	return BASE_MIN(limits.ram, limits.memory) / 2;
}

static void send_start(struct reading *reading)
{
	const struct child_wants *wants = &reading->wants;
	struct wire_out out;

	wire_out_init(&out, READER_START);
	wire_put_u64(&out, READER_KEY_DIRECT, direct_above(wants->param));
	wire_put_u64(&out, READER_KEY_HUGE, wants->param->huge_pages != HUGE_PAGES_OFF);
	child_put_fds(&out, wants);
	send_message(reading, &out);
}

void reading_store(struct reading *reading, const struct reading_place *place)
{
	struct wire_out out;

	wire_out_init(&out, READER_STORE);
	wire_put_u64(&out, READER_KEY_LIMIT, place->limit);
	wire_put_u64(&out, READER_KEY_FORCE, reading->wants.param->cache_force);
	wire_put_u64(&out, READER_KEY_SUSPECT, place->is_suspect);
	if (place->folder_fd >= 0)
		wire_put_fd(&out, place->folder_fd);
	else
		wire_put_string(&out, READER_KEY_TEXT, place->why);
	send_message(reading, &out);
}

void reading_form(struct reading *reading, uint32_t queue, unsigned form,
		  const struct hash_id *group, const char *note, bool is_shared)
{
	struct wire_out out;

	wire_out_init(&out, READER_FORM);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_bytes(&out, READER_KEY_GROUP, group, sizeof(*group));
	wire_put_string(&out, READER_KEY_NOTE, note);
	wire_put_u64(&out, READER_KEY_SHARED, is_shared);
	send_message(reading, &out);
}

void reading_spread(struct reading *reading, uint32_t queue, uint32_t number, uint32_t nodes)
{
	struct wire_out out;

	wire_out_init(&out, READER_SPREAD);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_NUMBER, number);
	wire_put_u64(&out, READER_KEY_NODES, nodes);
	send_message(reading, &out);
}

void reading_unmade(struct reading *reading, uint32_t queue, unsigned form, uint64_t sample)
{
	struct wire_out out;

	wire_out_init(&out, READER_UNMADE);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_u64(&out, READER_KEY_SAMPLE, sample);
	send_message(reading, &out);
}

void reading_open(struct reading *reading, const struct reading_ask *ask, int index_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, ask->id);
	wire_put_string(&out, READER_KEY_PATH, ask->path);
	wire_put_u64(&out, READER_KEY_HOW, ask->how);
	wire_put_u64(&out, READER_KEY_LIMIT, ask->most);
	if (index_fd >= 0)
		wire_put_fd(&out, index_fd);
	send_message(reading, &out);
}

void reading_close(struct reading *reading, uint64_t id)
{
	struct wire_out out;

	wire_out_init(&out, READER_CANCEL);
	wire_put_u64(&out, READER_KEY_ID, id);
	send_message(reading, &out);
}

void reading_attach(struct reading *reading, uint64_t id, uint32_t queue, int queue_fd,
		    int arena_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_ATTACH);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_fd(&out, queue_fd);
	wire_put_fd(&out, arena_fd);
	send_message(reading, &out);
}

void reading_worth(struct reading *reading, uint32_t queue, unsigned form, double us_per_mib)
{
	struct wire_out out;

	wire_out_init(&out, READER_WORTH);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_u64(&out, READER_KEY_WORTH, (uint64_t)(us_per_mib * 1000));
	send_message(reading, &out);
}

void reading_yield(struct reading *reading, uint32_t queue, unsigned form, bool yields)
{
	struct wire_out out;

	wire_out_init(&out, READER_YIELD);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_u64(&out, READER_KEY_YIELDS, yields);
	send_message(reading, &out);
}

void reading_memory(struct reading *reading, uint64_t bytes, bool is_most)
{
	struct wire_out out;

	wire_out_init(&out, READER_MEMORY);
	wire_put_u64(&out, READER_KEY_LIMIT, bytes);
	wire_put_u64(&out, READER_KEY_MOST, is_most);
	send_message(reading, &out);
}

void reading_unread(struct reading *reading, uint64_t question)
{
	struct wire_out out;

	wire_out_init(&out, READER_UNREAD);
	wire_put_u64(&out, READER_KEY_ID, question);
	send_message(reading, &out);
}

void reading_detach(struct reading *reading, uint32_t queue)
{
	struct wire_out out;

	wire_out_init(&out, READER_DETACH);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	send_message(reading, &out);
}

void reading_peers(struct reading *reading, uint64_t self, int to_fd, int from_fd)
{
	struct wire_out out;

	reading->peers = 0; /* until it is said who is connected to this carrier */
	wire_out_init(&out, READER_PEERS);
	wire_put_u64(&out, READER_KEY_SELF, self);
	wire_put_u64(&out, READER_KEY_RECHECK, reading->wants.param->peer_recheck);
	wire_put_u64(&out, READER_KEY_COMPARE, COMPARE_EACH);
	wire_put_fd(&out, to_fd);
	wire_put_fd(&out, from_fd);
	send_message(reading, &out);
}

void reading_members(struct reading *reading, uint32_t weight, const struct reader_member *members,
		     unsigned n)
{
	struct wire_out out;

	reading->peers = n;
	wire_out_init(&out, READER_MEMBERS);
	wire_put_u64(&out, READER_KEY_WEIGHT, weight);
	wire_put_bytes(&out, READER_KEY_MEMBERS, members, n * sizeof(*members));
	send_message(reading, &out);
}

void reading_chore(struct reading *reading, uint64_t id, uint64_t verb, const struct hash_id *group)
{
	struct wire_out out;

	wire_out_init(&out, READER_CHORE);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_VERB, verb);
	wire_put_bytes(&out, READER_KEY_GROUP, group, sizeof(*group));
	send_message(reading, &out);
}

void reading_chore_cancel(struct reading *reading, uint64_t id)
{
	struct wire_out out;

	wire_out_init(&out, READER_CHORE_CANCEL);
	wire_put_u64(&out, READER_KEY_ID, id);
	send_message(reading, &out);
}

/* ---- life ---- */

static int start_process(struct reading *reading, struct diag *diag)
{
	struct child_wants *wants = &reading->wants;
	char threads[24];
	char *argv[] = {(char *)"access-reader", (char *)"--threads", threads, NULL, NULL, NULL};
	const struct hearing_program program = {
	    .argv = argv,
	    .is_private = wants->is_private,
	    .priority = (enum cpu_priority)wants->param->cpu_priority,
	    .loop = wants->loop,
	    .fn = reading->calls->said,
	    .arg = reading->arg,
	};
	int r;

	snprintf(threads, sizeof(threads), "%llu", (unsigned long long)wants->param->readers);
	if (*wants->as) {
		argv[3] = (char *)"--as";
		argv[4] = wants->as;
	}
	r = hearing_start(&reading->hearing, &reading->child, &program, diag);
	if (r)
		return r;
	hearing_fetches(&reading->hearing, wants->porters, wants->uid);
	child_luck_start(&reading->luck, base_now_ns());
	send_start(reading);
	reading->calls->started(reading->arg);
	return 0;
}

/* Plans the next start; who waits for a reader that does not get on its feet is told why. */
static void start_later(struct reading *reading, const char *why)
{
	uint64_t pause_ns = child_luck_failure(&reading->luck, base_now_ns());
	char text[1024];

	loop_timer_set(reading->restart, pause_ns);
	if (!child_luck_is_hopeless(&reading->luck))
		return;
	snprintf(text, sizeof(text),
		 "accessd has no reader: %d in a row failed at once, the last one %s; accessd's "
		 "log (%s) "
		 "has more; open again when that is mended",
		 CHILD_HOPELESS, why, log_place());
	log_line(LOG_LEVEL_ERROR, "reader-hopeless", "text=\"%s\"", text);
	reading->calls->hopeless(reading->arg, text);
}

static void restart(void *arg)
{
	struct reading *reading = arg;
	struct diag diag = {""};

	if (start_process(reading, &diag)) {
		log_line(LOG_LEVEL_ERROR, "reader-start", "error=\"%s\"", diag.text);
		start_later(reading, diag.text);
		return;
	}
	reading->calls->restarted(reading->arg);
}

int reading_start(struct reading *reading, const struct child_wants *wants,
		  const struct reading_calls *calls, void *arg, struct diag *diag)
{
	int r;

	*reading =
	    (struct reading){.calls = calls, .arg = arg, .wants = *wants, .child = {.sock = -1}};
	r = loop_timer_new(wants->loop, restart, reading, &reading->restart);
	return r ? r : start_process(reading, diag);
}

static void hang_up(struct reading *reading)
{
	hearing_end(&reading->hearing);
	porter_close(reading->wants.porters, reading->wants.uid, &reading->child.sock);
}

void reading_stop(struct reading *reading, bool waits)
{
	if (!reading->calls)
		return; /* it was never started */
	loop_unwatch(&reading->restart);
	hang_up(reading);
	if (waits)
		child_leave(&reading->child, READING_PATIENCE_MS);
	else
		child_abandon(&reading->child, reading->wants.reaper);
}

void reading_died(struct reading *reading, int status, uint64_t cpu_ns)
{
	char how[96];

	log_line(LOG_LEVEL_ERROR, "reader-died",
		 "pid=%ld how=\"%s\" text=\"another one is started\"", (long)reading->child.pid,
		 child_describe_end(status, how, sizeof(how)));
	reading->cpu_ns += cpu_ns;
	hang_up(reading);
	reading->child.pid = 0;
	reading->peers = 0;
	reading->calls->died(reading->arg, status);
	start_later(reading, how);
}

uint64_t reading_cpu_ns(const struct reading *reading)
{
	return reading->cpu_ns + limits_cpu_ns(reading->child.pid);
}
