/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader process, seen from accessd.
 *
 * Messages to it are few (opens, lanes); a control socket that is full for a moment makes the send
 * fail with EAGAIN, which is treated as the reader's death: it is killed and a new one gets
 * everything again, so there is one path for every fault. When a reader died, the tasks it was
 * reading are QUEUED again by the streams (stream_reader_died) before the new one is attached.
 */
#include "daemon/proc/reading.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/cache/chores.h"
#include "daemon/cache/stores.h"
#include "daemon/cluster/everywhere.h"
#include "daemon/limits.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/index_room.h"
#include "storage/reader.h"

#define ITEMS_TABLE "daemon/proc/reading_tbl.h"
#define ITEMS_STRUCT(name) reading_##name
#define ITEMS_KEY(KEY) READER_KEY_##KEY
#define ITEMS_TYPE(NAME) READER_##NAME
#define ITEMS_WHOSE "reader's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

union reading_message {
	struct reading_progress progress;
	struct reading_opened opened;
	struct reading_looked looked;
	struct reading_refused refused;
	struct reading_attached attached;
	struct reading_detached detached;
	struct reading_state state;
	struct reading_formed formed;
	struct reading_chore_progress chore_progress;
	struct reading_chore_done chore_done;
	struct reading_ask_unread ask_unread;
	struct reading_wrong wrong;
	struct reading_failed failed;
};

#define READING_PATIENCE_MS 6000 /* a little more than a store takes to close */
#define COMPARE_EACH 1000 /* of so many values that peers give one is compared with its source */

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
	wire_put_fd(&out, reading->domain->doorbell_fd);
	wire_put_fd(&out, reading->domain->event_fd);
	if (reading->domain->disk_cache.tray_fd >= 0)
		wire_put_fd(&out, reading->domain->disk_cache.tray_fd);
	if (reading->domain->ram_cache.fd >= 0)
		wire_put_fd(&out, reading->domain->ram_cache.fd);
	send_message(reading, &out);
}

void reading_store(struct reading *reading)
{
	struct domain *domain = reading->domain;
	_cleanup_close_ int fd = disk_cache_open_folder(&domain->disk_cache, domain);
	struct wire_out out;

	if (domain->disk_cache.tray_fd < 0)
		return;
	wire_out_init(&out, READER_STORE);
	wire_put_u64(&out, READER_KEY_LIMIT, domain->disk_cache.limit);
	wire_put_u64(&out, READER_KEY_FORCE, domain->node->param.cache_force);
	wire_put_u64(&out, READER_KEY_SUSPECT, domain->disk_cache.suspect);
	if (fd >= 0)
		wire_put_fd(&out, fd);
	else
		wire_put_string(&out, READER_KEY_TEXT, domain->disk_cache.why);
	send_message(reading, &out);
}

void reading_form(struct reading *reading, uint32_t lane, unsigned form,
		  const struct hash_id *group, const char *note, bool is_shared)
{
	struct wire_out out;

	wire_out_init(&out, READER_FORM);
	wire_put_u64(&out, READER_KEY_LANE, lane);
	wire_put_u64(&out, READER_KEY_FORM, form);
	wire_put_bytes(&out, READER_KEY_GROUP, group, sizeof(*group));
	wire_put_string(&out, READER_KEY_NOTE, note);
	wire_put_u64(&out, READER_KEY_SHARED, is_shared);
	send_message(reading, &out);
}

void reading_open(struct reading *reading, const struct source *source, int index_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, source->id);
	wire_put_string(&out, READER_KEY_PATH, source->path);
	wire_put_u64(&out, READER_KEY_HOW, source->how);
	wire_put_u64(&out, READER_KEY_LIMIT, index_room_most(reading->domain));
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

void reading_peers(struct reading *reading, uint64_t self, int to_fd, int from_fd)
{
	struct wire_out out;

	reading->peers = 0; /* until it is said who is connected to this carrier */
	wire_out_init(&out, READER_PEERS);
	wire_put_u64(&out, READER_KEY_SELF, self);
	wire_put_u64(&out, READER_KEY_RECHECK, reading->domain->node->param.peer_recheck);
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

/* ---- from the reader ---- */

static void on_opened(struct domain *domain, const struct reading_opened *opened,
		      struct wire_in *in)
{
	struct source_root root = {.device = opened->device,
				   .inode = opened->inode,
				   .is_file = opened->has_stamp,
				   .stamp = opened->has_stamp ? opened->stamp : 0};
	int fd = opened->has_index ? wire_take_fd(in, opened->index_fd) : -1;

	root.is_everywhere = domain->kind == DOMAIN_PUBLIC && opened->way &&
			     everywhere_has(domain->node->param.cluster_paths, opened->way);
	if (root.is_everywhere)
		hash_of(opened->way, strlen(opened->way), &root.way);
	source_opened(domain, opened->id, fd < 0, opened->is_fleeting != 0, &root, fd);
}

static void on_looked(struct domain *domain, const struct reading_looked *looked)
{
	const struct source_root root = {.device = looked->device, .inode = looked->inode};

	source_looked(domain, looked->id, &root, looked->is_open != 0);
}

static void on_refused(struct domain *domain, const struct reading_refused *refused)
{
	if (refused->has_lane)
		stream_lane_refused(domain, refused->lane, refused->text);
	else
		source_refused(domain, refused->id, refused->text);
}

static void on_state(struct domain *domain, const struct reading_state *said)
{
	struct reader_state state;

	memcpy(&state, said->state, sizeof(state));
	disk_cache_said(&domain->disk_cache, &state, said->why);
	ram_cache_said(domain, &state);
}

static void on_formed(struct domain *domain, const struct reading_formed *formed,
		      struct wire_in *in)
{
	struct stream *stream = stream_of_lane(domain, formed->lane);
	_cleanup_close_ int fd = formed->has_table ? wire_take_fd(in, formed->table_fd) : -1;

	if (stream)
		cache_formed(stream, formed->form, fd, formed->why ? formed->why : "");
}

static void on_chore_done(struct domain *domain, const struct reading_chore_done *done,
			  struct wire_in *in)
{
	int fd = done->has_list ? wire_take_fd(in, done->list_fd) : -1;

	chores_done(domain, done->id, done->code, done->text, fd);
	porter_close(&domain->node->porters, domain->who.uid, &fd);
}

static void on_failed(struct domain *domain, const struct reading_failed *failed)
{
	stream_read_failed(domain, failed->lane, failed->block, failed->task, failed->sample);
}

static bool on_message(void *arg, struct wire_in *in)
{
	struct reading *reading = arg;
	struct domain *domain = reading->domain;
	union reading_message message;
	struct diag diag = {""};

	if (items_read(in, items_types, BASE_ARRAY_LEN(items_types), &message, &diag)) {
		log_line(LOG_LEVEL_WARN, "reader-message", "text=\"%s\"", diag.text);
		return false;
	}
	loop_is_about(domain->node->loop,
		      items_name(items_types, BASE_ARRAY_LEN(items_types), in->type));
	switch (in->type) {
	case READER_PROGRESS:
		source_progress(domain, message.progress.id, message.progress.folders,
				message.progress.files);
		break;
	case READER_OPENED:
		on_opened(domain, &message.opened, in);
		break;
	case READER_LOOKED:
		on_looked(domain, &message.looked);
		break;
	case READER_REFUSED:
		on_refused(domain, &message.refused);
		break;
	case READER_ATTACHED:
		stream_lane_attached(domain, message.attached.lane);
		break;
	case READER_DETACHED:
		break;
	case READER_STATE:
		on_state(domain, &message.state);
		break;
	case READER_FORMED:
		on_formed(domain, &message.formed, in);
		break;
	case READER_CHORE_PROGRESS:
		chores_progress(domain, message.chore_progress.id, message.chore_progress.done,
				message.chore_progress.total);
		break;
	case READER_CHORE_DONE:
		on_chore_done(domain, &message.chore_done, in);
		break;
	case READER_ASK_UNREAD:
		ram_cache_asked(domain, message.ask_unread.id);
		break;
	case READER_WRONG:
		carrying_distrust(&domain->carrying, message.wrong.id, message.wrong.sample);
		break;
	case READER_FAILED:
		on_failed(domain, &message.failed);
		break;
	default: /* of no type in the table */
		return false;
	}
	return true;
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
	r = child_start(path, argv, (enum cpu_priority)node->param.cpu_priority, &reading->child);
	if (!r)
		r = hearing_begin(&reading->hearing, node->loop, &reading->child, on_message,
				  reading);
	if (!r)
		hearing_fetches(&reading->hearing, &node->porters, reading->domain->who.uid);
	if (r) {
		diag_set(diag, "cannot start %s: %s", path, strerror(-r));
		child_end(&reading->child);
		return r;
	}
	child_luck_start(&reading->luck, base_now_ns());
	send_start(reading);
	carrying_reader_started(&reading->domain->carrying);
	if (reading->domain->disk_cache.share == DISK_CACHE_HAS)
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
	snprintf(text, sizeof(text),
		 "accessd has no reader: %d in a row failed at once, the last one %s; accessd's "
		 "log (%s) "
		 "has more; open again when that is mended",
		 CHILD_HOPELESS, why, log_place());
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

static void hang_up(struct reading *reading)
{
	const struct domain *domain = reading->domain;

	hearing_end(&reading->hearing);
	porter_close(&domain->node->porters, domain->who.uid, &reading->child.sock);
}

void reading_stop(struct reading *reading, bool waits)
{
	loop_unwatch(&reading->restart);
	hang_up(reading);
	if (waits)
		child_leave(&reading->child, READING_PATIENCE_MS);
	else
		child_abandon(&reading->child, &reading->domain->node->reaper);
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
	reading->domain->node->counters.reader_restarts++;
	reading->domain->reader_restarts++;
	disk_cache_reader_died(&reading->domain->disk_cache, status);
	ram_cache_reader_died(reading->domain);
	carrying_reader_died(&reading->domain->carrying);
	stream_reader_died(reading->domain);
	chores_fail(reading->domain, "the reader died meanwhile: try again");
	start_later(reading, how);
}

uint64_t reading_cpu_ns(const struct reading *reading)
{
	return reading->cpu_ns + limits_cpu_ns(reading->child.pid);
}
