/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader process, seen from accessd.
 *
 * Messages to it are few (opens, lanes); a control socket that is full for a moment makes the send
 * fail with EAGAIN, which is treated as the reader's death: it is killed and a new one gets
 * everything again, so there is one path for every fault. When a reader died, the tasks it was
 * reading are QUEUED again by the streams (stream_reader_died) before the new one is attached.
 */
#include "daemon/reading.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/wire.h"
#include "daemon/chores.h"
#include "daemon/limits.h"
#include "daemon/node.h"
#include "daemon/source.h"
#include "daemon/stores.h"
#include "daemon/stream.h"
#include "storage/reader.h"

#define READING_PATIENCE_MS 6000 /* a little more than a store takes to close */

static void send_message(struct reading *reading, struct wire_out *out)
{
	int r = reading->child.sock >= 0 ? wire_send(reading->child.sock, out, MSG_DONTWAIT) : 0;

	if (r && reading->child.pid > 0) {
		log_line(LOG_LEVEL_WARN, "reader-unreachable", "error=%d", r);
		kill(reading->child.pid, SIGKILL);
	}
	wire_out_fini(out);
}

static void send_start(struct reading *reading)
{
	struct wire_out out;

	wire_out_init(&out, READER_START);
	wire_put_fd(&out, reading->domain->bell_fd);
	wire_put_fd(&out, reading->domain->event_fd);
	if (reading->domain->shelf.tray_fd >= 0)
		wire_put_fd(&out, reading->domain->shelf.tray_fd);
	if (reading->domain->hoard.fd >= 0)
		wire_put_fd(&out, reading->domain->hoard.fd);
	send_message(reading, &out);
}

void reading_store(struct reading *reading)
{
	struct domain *domain = reading->domain;
	_cleanup_close_ int fd = shelf_open_folder(&domain->shelf, domain);
	struct wire_out out;

	if (domain->shelf.tray_fd < 0)
		return;
	wire_out_init(&out, READER_STORE);
	wire_put_u64(&out, READER_KEY_LIMIT, domain->shelf.limit);
	wire_put_u64(&out, READER_KEY_FORCE, domain->node->param.cache_force);
	wire_put_u64(&out, READER_KEY_SUSPECT, domain->shelf.suspect);
	if (fd >= 0)
		wire_put_fd(&out, fd);
	else
		wire_put_string(&out, READER_KEY_TEXT, domain->shelf.why);
	send_message(reading, &out);
}

void reading_form(struct reading *reading, uint32_t lane, unsigned form,
		  const struct hash_id *group, const char *note)
{
	struct wire_out out;

	wire_out_init(&out, READER_FORM);
	wire_put_u64(&out, READER_KEY_LANE, lane);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_bytes(&out, READER_KEY_GROUP, group, sizeof(*group));
	wire_put_string(&out, READER_KEY_NOTE, note);
	send_message(reading, &out);
}

void reading_open(struct reading *reading, const struct source *source, int index_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, source->id);
	wire_put_string(&out, READER_KEY_PATH, source->path);
	wire_put_u64(&out, READER_KEY_HOW, source->how);
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

void reading_attach(struct reading *reading, uint64_t id, uint32_t lane, int lane_fd, int arena_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_ATTACH);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_LANE, lane);
	wire_put_fd(&out, lane_fd);
	wire_put_fd(&out, arena_fd);
	send_message(reading, &out);
}

void reading_worth(struct reading *reading, uint32_t lane, unsigned form, double us_per_mib)
{
	struct wire_out out;

	wire_out_init(&out, READER_WORTH);
	wire_put_u64(&out, READER_KEY_LANE, lane);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_u64(&out, READER_KEY_WORTH, (uint64_t)(us_per_mib * 1000));
	send_message(reading, &out);
}

void reading_yield(struct reading *reading, uint32_t lane, unsigned form, bool yields)
{
	struct wire_out out;

	wire_out_init(&out, READER_YIELD);
	wire_put_u64(&out, READER_KEY_LANE, lane);
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

void reading_detach(struct reading *reading, uint32_t lane)
{
	struct wire_out out;

	wire_out_init(&out, READER_DETACH);
	wire_put_u64(&out, READER_KEY_LANE, lane);
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

/* ---- from the reader ---- */

static void on_refused(struct domain *domain, const struct wire_in *in, uint64_t id)
{
	uint64_t lane = 0, code = 0;
	const char *text = "refused without a reason";

	wire_get_u64(in, READER_KEY_CODE, &code);
	wire_get_string(in, READER_KEY_TEXT, &text);
	if (wire_get_u64(in, READER_KEY_LANE, &lane) == 0)
		stream_lane_refused(domain, (uint32_t)lane, text);
	else
		source_refused(domain, id, text);
}

static void on_opened(struct domain *domain, struct wire_in *in, uint64_t id)
{
	uint64_t unchanged = 0, root[2] = {0, 0};

	wire_get_u64(in, READER_KEY_UNCHANGED, &unchanged);
	wire_get_u64(in, READER_KEY_DEVICE, &root[0]);
	wire_get_u64(in, READER_KEY_INODE, &root[1]);
	source_opened(domain, id, unchanged != 0, root, wire_take_fd(in, 0));
}

static void on_looked(struct domain *domain, const struct wire_in *in, uint64_t id)
{
	uint64_t root[2] = {0, 0}, is_open = 0;

	wire_get_u64(in, READER_KEY_DEVICE, &root[0]);
	wire_get_u64(in, READER_KEY_INODE, &root[1]);
	wire_get_u64(in, READER_KEY_OPENNESS, &is_open);
	source_looked(domain, id, root, is_open != 0);
}

static void on_progress(struct domain *domain, const struct wire_in *in, uint64_t id)
{
	uint64_t folders = 0, files = 0;

	wire_get_u64(in, READER_KEY_FOLDERS, &folders);
	wire_get_u64(in, READER_KEY_FILES, &files);
	source_progress(domain, id, folders, files);
}

static void on_failed(struct domain *domain, const struct wire_in *in, uint32_t lane)
{
	uint64_t block = UINT64_MAX, task = UINT64_MAX, sample = UINT64_MAX;

	wire_get_u64(in, READER_KEY_BLOCK, &block);
	wire_get_u64(in, READER_KEY_TASK, &task);
	wire_get_u64(in, READER_KEY_SAMPLE, &sample);
	stream_read_failed(domain, lane, block, task, sample);
}

static void on_state(struct domain *domain, const struct wire_in *in)
{
	struct reader_state state;
	const char *why = "";
	const void *data;
	size_t size;

	if (wire_get_bytes(in, READER_KEY_STATE, &data, &size) || size != sizeof(state))
		return;
	memcpy(&state, data, sizeof(state));
	wire_get_string(in, READER_KEY_TEXT, &why);
	shelf_said(&domain->shelf, &state, why);
	hoard_said(domain, &state);
}

static void on_formed(struct domain *domain, struct wire_in *in, uint32_t lane)
{
	struct stream *stream = stream_of_lane(domain, lane);
	_cleanup_close_ int table_fd = wire_take_fd(in, 0);
	const char *why = "";
	uint64_t form = 0;

	wire_get_u64(in, READER_KEY_FORM, &form);
	wire_get_string(in, READER_KEY_TEXT, &why);
	if (stream)
		cache_formed(stream, form, table_fd, why);
}

static void on_chore_progress(struct domain *domain, const struct wire_in *in, uint64_t id)
{
	uint64_t done = 0, total = 0;

	wire_get_u64(in, READER_KEY_FILES, &done);
	wire_get_u64(in, READER_KEY_FOLDERS, &total);
	chores_progress(domain, id, done, total);
}

static void on_chore_done(struct domain *domain, struct wire_in *in, uint64_t id)
{
	_cleanup_close_ int fd = wire_take_fd(in, 0);
	const char *text = "no answer";
	uint64_t code = 1;

	wire_get_u64(in, READER_KEY_CODE, &code);
	wire_get_string(in, READER_KEY_TEXT, &text);
	chores_done(domain, id, code, text, fd);
}

static void dispatch(struct domain *domain, struct wire_in *in)
{
	uint64_t id = 0, lane = 0;

	wire_get_u64(in, READER_KEY_ID, &id);
	wire_get_u64(in, READER_KEY_LANE, &lane);
	switch (in->type) {
	case READER_PROGRESS:
		on_progress(domain, in, id);
		break;
	case READER_OPENED:
		on_opened(domain, in, id);
		break;
	case READER_LOOKED:
		on_looked(domain, in, id);
		break;
	case READER_REFUSED:
		on_refused(domain, in, id);
		break;
	case READER_ATTACHED:
		stream_lane_attached(domain, (uint32_t)lane);
		break;
	case READER_DETACHED:
		break;
	case READER_STATE:
		on_state(domain, in);
		break;
	case READER_FORMED:
		on_formed(domain, in, (uint32_t)lane);
		break;
	case READER_CHORE_PROGRESS:
		on_chore_progress(domain, in, id);
		break;
	case READER_CHORE_DONE:
		on_chore_done(domain, in, id);
		break;
	case READER_ASK_UNREAD:
		hoard_asked(domain, id);
		break;
	case READER_FAILED:
		on_failed(domain, in, (uint32_t)lane);
		break;
	default:
		log_line(LOG_LEVEL_WARN, "reader-message", "type=%u unknown", in->type);
	}
}

static void on_readable(void *arg)
{
	struct reading *reading = arg;

	for (;;) {
		struct wire_in in;
		int r;

		wire_in_init(&in);
		r = loop_recv(reading->child.sock, &in);
		if (r == 0)
			dispatch(reading->domain, &in);
		wire_in_fini(&in);
		if (r == -EAGAIN || r == -EINTR)
			return;
		if (r) { /* hang-up or nonsense: its death follows, or is made to follow */
			loop_unwatch(&reading->watch);
			kill(reading->child.pid, SIGKILL);
			return;
		}
	}
}

/* ---- life ---- */

static int start_process(struct reading *reading, struct diag *diag)
{
	struct node *node = reading->domain->node;
	char path[PATH_MAX], threads[24], as[IDENTITY_TEXT_MAX];
	char *argv[] = {(char *)"access-reader", (char *)"--threads", threads, NULL, NULL, NULL};
	int r = child_find("access-reader", node->place.is_private, path, sizeof(path), diag);

	if (r)
		return r;
	snprintf(threads, sizeof(threads), "%llu", (unsigned long long)node->param.readers);
	if (domain_identity(reading->domain, true, as)) {
		argv[3] = (char *)"--as";
		argv[4] = as;
	}
	r = child_start(path, argv, &reading->child);
	if (!r)
		r = loop_watch_fd(node->loop, reading->child.sock, on_readable, reading,
				  &reading->watch);
	if (r) {
		diag_set(diag, "cannot start %s: %s", path, strerror(-r));
		child_end(&reading->child);
		return r;
	}
	child_luck_start(&reading->luck, base_now_ns());
	send_start(reading);
	if (reading->domain->shelf.share == SHELF_HAS)
		reading_store(reading);
	else
		stores_ask(reading->domain);
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
	snprintf(
	    text, sizeof(text),
	    "accessd has no reader: %d in a row failed at once, the last one %s; accessd's log "
	    "has more; open again when that is mended",
	    CHILD_HOPELESS, why);
	log_line(LOG_LEVEL_ERROR, "reader-hopeless", "text=\"%s\"", text);
	source_reader_failed(reading->domain, text);
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
	source_reader_started(reading->domain);
}

int reading_start(struct reading *reading, struct domain *domain, struct diag *diag)
{
	int r;

	*reading = (struct reading){.domain = domain, .child = {.sock = -1}};
	r = loop_timer_new(domain->node->loop, restart, reading, &reading->restart);
	return r ? r : start_process(reading, diag);
}

void reading_stop(struct reading *reading, bool waits)
{
	loop_unwatch(&reading->watch);
	loop_unwatch(&reading->restart);
	if (waits)
		child_leave(&reading->child, READING_PATIENCE_MS);
	else
		child_abandon(&reading->child);
}

void reading_died(struct reading *reading, int status, uint64_t cpu_ns)
{
	char how[96];

	log_line(LOG_LEVEL_ERROR, "reader-died",
		 "pid=%ld how=\"%s\" text=\"another one is started\"", (long)reading->child.pid,
		 child_describe_end(status, how, sizeof(how)));
	reading->cpu_ns += cpu_ns;
	loop_unwatch(&reading->watch);
	reading->child.pid = 0;
	base_close(&reading->child.sock);
	reading->domain->node->counters.reader_restarts++;
	reading->domain->reader_restarts++;
	shelf_reader_died(&reading->domain->shelf, status);
	hoard_reader_died(reading->domain);
	stream_reader_died(reading->domain);
	chores_fail(reading->domain, "the reader died meanwhile: try again");
	start_later(reading, how);
}

uint64_t reading_cpu_ns(const struct reading *reading)
{
	return reading->cpu_ns + limits_cpu_ns(reading->child.pid);
}
