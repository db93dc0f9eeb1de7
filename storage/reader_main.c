/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-reader: the one program of ours that opens user data, with the user's own uid and groups.
 *
 * accessd starts it with the control socket at descriptor 3. A system accessd says whom it reads for
 * (--as), and to become that user is its first act (base/started.h, which says how it ends with accessd).
 *
 * The main thread receives control messages and never touches user data; see reader_parts.h for the
 * other threads. accessd is trusted for what it asks, but a message that makes no sense means that
 * the two are not of one version or one of them is broken: it is logged, and the process ends.
 * accessd starts a new one and puts the tasks that were being read back in the queue.
 */

#include "storage/reader_parts.h"

#include "base/log.h"
#include "base/started.h"
#include "base/wire.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"

#include <getopt.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define READER_THREADS 4
#define READER_MAX_THREADS 64

/* ---- messages ---- */

static _Noreturn void message_bad(const struct wire_in *in, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "message %u of accessd: %s", in->type, what);
	reader_say_fatal("message-bad", text);
}

static uint64_t message_u64(const struct wire_in *in, uint16_t key, const char *name)
{
	uint64_t value;

	if (wire_get_u64(in, key, &value))
		message_bad(in, name);
	return value;
}

static void on_start(struct wire_in *in, unsigned threads)
{
	static bool started;
	_cleanup_close_ int doorbell_fd = wire_take_fd(in, 0);
	const int event_fd = wire_take_fd(in, 1); /* kept for ever */
	_cleanup_close_ int rings_fd = wire_take_fd(in, 2);
	_cleanup_close_ int resident_fd = wire_take_fd(in, 3);
	struct layout_doorbell *doorbell;
	uint64_t direct, may_be_huge = 1;

	if (started || doorbell_fd < 0 || event_fd < 0)
		message_bad(in, "needs a doorbell and an eventfd, once");
	if (doorbell_attach(doorbell_fd, &doorbell))
		message_bad(in, "the doorbell cannot be mapped");
	if (rings_fd >= 0 && reader_keep_init(rings_fd))
		message_bad(in, "the write-back ring cannot be mapped");
	if (resident_fd >= 0 && reader_resident_init(resident_fd))
		message_bad(in, "the resident memory cannot be mapped");
	base_take_fd(&resident_fd); /* kept for ever */
	if (wire_get_u64(in, READER_KEY_DIRECT, &direct) == 0)
		source_direct_above(direct);
	wire_get_u64(in, READER_KEY_HUGE, &may_be_huge);
	started = true;
	reader_queue_init(threads, doorbell, event_fd, may_be_huge != 0);
}

static void on_store(struct wire_in *in)
{
	const uint64_t limit = message_u64(in, READER_KEY_LIMIT, "needs a LIMIT");
	const uint64_t force = message_u64(in, READER_KEY_FORCE, "needs FORCE");
	const uint64_t suspect = message_u64(in, READER_KEY_SUSPECT, "needs SUSPECT");
	const int folder_fd = wire_take_fd(in, 0);
	const char *why = "";

	if ((folder_fd < 0 && wire_get_string(in, READER_KEY_TEXT, &why)) ||
	    !reader_keep_store(folder_fd, limit, force != 0, suspect != 0, why))
		message_bad(in, "needs a folder or why there is none, and START with a write-back "
				"ring before it, once");
}

static void on_form(struct wire_in *in)
{
	const uint64_t queue = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	const uint64_t form = message_u64(in, READER_KEY_FORM, "needs a FORM");
	uint64_t is_shared = 0;
	struct hash_id group;
	const char *note;
	const void *id;
	size_t size;

	if (wire_get_bytes(in, READER_KEY_GROUP, &id, &size) || size != sizeof(group) ||
	    wire_get_string(in, READER_KEY_NOTE, &note))
		message_bad(in, "needs a GROUP and a NOTE");
	memcpy(&group, id, sizeof(group));
	wire_get_u64(in, READER_KEY_SHARED, &is_shared);
	if (form >= LAYOUT_FORMS ||
	    !reader_keep_form(queue, (unsigned)form, &group, note, is_shared != 0))
		message_bad(in, "needs STORE before it, and a form that there is");
}

static void on_spread(struct wire_in *in)
{
	const uint64_t queue = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	const uint64_t number = message_u64(in, READER_KEY_NUMBER, "needs a NUMBER");
	const uint64_t nodes = message_u64(in, READER_KEY_NODES, "needs NODES");

	if (number >= nodes || nodes > UINT32_MAX ||
	    !reader_keep_spread(queue, (uint32_t)number, (uint32_t)nodes))
		message_bad(in, "needs STORE before it, and a node that there is");
}

static void on_unmade(struct wire_in *in)
{
	const uint64_t queue = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	const uint64_t form = message_u64(in, READER_KEY_FORM, "needs a FORM");
	const uint64_t sample = message_u64(in, READER_KEY_SAMPLE, "needs a SAMPLE");

	if (form >= LAYOUT_FORMS)
		message_bad(in, "needs a form that there is");
	reader_queue_unmade(queue, (unsigned)form, sample);
}

static void on_chore(struct wire_in *in)
{
	const uint64_t id = message_u64(in, READER_KEY_ID, "needs an ID");
	const uint64_t verb = message_u64(in, READER_KEY_VERB, "needs a VERB");
	struct hash_id group = {{0}};
	const void *data;
	size_t size;

	if (wire_get_bytes(in, READER_KEY_GROUP, &data, &size) == 0 && size == sizeof(group))
		memcpy(&group, data, sizeof(group));
	if (verb >= READER_VERBS || !reader_chores_ask(id, (unsigned)verb, &group))
		message_bad(in, "VERB is unknown");
}

static void on_worth(struct wire_in *in)
{
	const uint64_t queue = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	const uint64_t form = message_u64(in, READER_KEY_FORM, "needs a FORM");
	const uint64_t worth = message_u64(in, READER_KEY_WORTH, "needs a WORTH");

	if (form >= LAYOUT_FORMS)
		message_bad(in, "needs a form that there is");
	reader_queue_worth(queue, (unsigned)form, (double)worth / 1000);
}

static void on_yield(struct wire_in *in)
{
	const uint64_t queue = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	const uint64_t form = message_u64(in, READER_KEY_FORM, "needs a FORM");
	const uint64_t yields = message_u64(in, READER_KEY_YIELDS, "needs YIELDS");

	if (form >= LAYOUT_FORMS)
		message_bad(in, "needs a form that there is");
	reader_queue_yield(queue, (unsigned)form, yields != 0);
}

static void on_memory(struct wire_in *in)
{
	const uint64_t limit = message_u64(in, READER_KEY_LIMIT, "needs a LIMIT");

	reader_resident_limit(limit, message_u64(in, READER_KEY_MOST, "needs MOST") != 0);
}

static void on_open(struct wire_in *in)
{
	const uint64_t id = message_u64(in, READER_KEY_ID, "needs an ID");
	uint64_t how = READER_HOW_ALL, most = UINT64_MAX;
	const char *path;

	if (wire_get_string(in, READER_KEY_PATH, &path))
		message_bad(in, "needs a PATH");
	wire_get_u64(in, READER_KEY_HOW, &how);
	wire_get_u64(in, READER_KEY_LIMIT, &most);
	if (how > READER_HOW_NAMED)
		message_bad(in, "HOW is unknown");
	if (!reader_open_request(id, path, (enum reader_how)how, most, wire_take_fd(in, 0)))
		message_bad(in, "ID is in use");
}

static void on_attach(struct wire_in *in, bool started)
{
	const uint64_t id = message_u64(in, READER_KEY_ID, "needs an ID");
	const uint64_t number = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");
	_cleanup_close_ int queue_fd = wire_take_fd(in, 0);
	_cleanup_close_ int arena_fd = wire_take_fd(in, 1);
	struct reader_dataset *dataset;
	struct diag diag;
	int r;

	if (!started || queue_fd < 0 || arena_fd < 0)
		message_bad(in, "needs START before it, a task queue and an arena");
	dataset = reader_open_ref(id);
	if (!dataset) {
		reader_say_refused(id, &number, -EBADF, "the reader has no such open dataset");
		return;
	}
	r = reader_queue_attach(number, dataset, queue_fd, arena_fd, &diag);
	if (r) {
		reader_open_unref(dataset);
		reader_say_refused(id, &number, r, diag.text);
		return;
	}
	reader_say_queue(READER_ATTACHED, number);
}

static void on_detach(struct wire_in *in)
{
	const uint64_t number = message_u64(in, READER_KEY_QUEUE, "needs a QUEUE");

	if (!reader_queue_detach(number)) /* it was refused: nothing touches it */
		reader_say_queue(READER_DETACHED, number);
}

static void on_peers(struct wire_in *in)
{
	const uint64_t self = message_u64(in, READER_KEY_SELF, "needs SELF");
	_cleanup_close_ int to_fd = wire_take_fd(in, 0);
	_cleanup_close_ int from_fd = wire_take_fd(in, 1);

	uint64_t recheck_s = 0, compare_each = 0;

	wire_get_u64(in, READER_KEY_COMPARE, &compare_each);
	reader_checks_each(compare_each);
	wire_get_u64(in, READER_KEY_RECHECK, &recheck_s);
	reader_guests_recheck(BASE_MIN(recheck_s, UINT64_C(1000000)) * UINT64_C(1000000000));
	if (to_fd < 0 || from_fd < 0 || !reader_peers_carrier(self, to_fd, from_fd))
		message_bad(in, "needs two rings that can be mapped");
	reader_peers_start();
}

static void on_members(struct wire_in *in)
{
	const uint64_t weight = message_u64(in, READER_KEY_WEIGHT, "needs a WEIGHT");
	struct reader_member members[READER_MOST_MEMBERS];
	const void *data;
	size_t size;

	if (wire_get_bytes(in, READER_KEY_MEMBERS, &data, &size) || size % sizeof(*members) ||
	    size > sizeof(members))
		message_bad(in, "needs MEMBERS, at most 15");
	memcpy(members, data, size);
	if (!reader_peers_members((uint32_t)BASE_MIN(weight, UINT32_MAX), members,
				  (unsigned)(size / sizeof(*members))))
		message_bad(in, "needs PEERS before it, and MEMBERS that differ");
}

static void on_message(struct wire_in *in, unsigned threads)
{
	static bool started;

	switch (in->type) {
	case READER_START:
		on_start(in, threads);
		started = true;
		break;
	case READER_OPEN:
		on_open(in);
		break;
	case READER_CANCEL:
		reader_open_cancel(message_u64(in, READER_KEY_ID, "needs an ID"));
		break;
	case READER_ATTACH:
		on_attach(in, started);
		break;
	case READER_DETACH:
		on_detach(in);
		break;
	case READER_STORE:
		on_store(in);
		break;
	case READER_FORM:
		on_form(in);
		break;
	case READER_SPREAD:
		on_spread(in);
		break;
	case READER_UNMADE:
		on_unmade(in);
		break;
	case READER_CHORE:
		on_chore(in);
		break;
	case READER_CHORE_CANCEL:
		reader_chores_cancel(message_u64(in, READER_KEY_ID, "needs an ID"));
		break;
	case READER_MEMORY:
		on_memory(in);
		break;
	case READER_UNREAD:
		reader_resident_unread(message_u64(in, READER_KEY_ID, "needs an ID"));
		break;
	case READER_WORTH:
		on_worth(in);
		break;
	case READER_YIELD:
		on_yield(in);
		break;
	case READER_PEERS:
		on_peers(in);
		break;
	case READER_MEMBERS:
		on_members(in);
		break;
	default:
		message_bad(in, "unknown");
	}
}

static int run(unsigned threads)
{
	for (;;) {
		_cleanup_(wire_in_fini) struct wire_in in;
		int r;

		wire_in_init(&in);
		r = wire_recv(READER_CONTROL_FD, &in, 0);
		if (r == -EINTR)
			continue;
		if (r == WIRE_E_CLOSED)
			return 0;
		if (r == WIRE_E_TRUNCATED_FDS)
			reader_say_fatal("descriptors-full",
					 "too many open files; raise LimitNOFILE of accessd");
		if (r)
			reader_say_fatal("receive", r < 0 ? strerror(-r) : "damaged message");
		on_message(&in, threads);
	}
}

/* ---- the process ---- */

static void raise_most_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static unsigned parse_threads(const char *text)
{
	const char *end = text;
	uint64_t value;

	if (!base_parse_number(&end, READER_MAX_THREADS, &value) || *end || value < 1) {
		fprintf(stderr, "access-reader: --threads %s: must be 1 to %d\n", text,
			READER_MAX_THREADS);
		exit(2);
	}
	return (unsigned)value;
}

static unsigned parse_options(int argc, char **argv)
{
	static const struct option options[] = {
	    {"as", required_argument, NULL, 'a'},
	    {"threads", required_argument, NULL, 't'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	static const char usage[] = "access-reader [--threads N] [--as UID:GID[:groups]]: reads "
				    "files for accessd, which starts it with the control "
				    "socket at descriptor 3\n";
	unsigned threads = READER_THREADS;
	const char *as = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 't') {
			threads = parse_threads(optarg);
		} else if (option == 'a') {
			as = optarg;
		} else {
			fputs(usage, option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		}
	}
	if (as)
		started_become("access-reader", as);
	return threads;
}

int main(int argc, char **argv)
{
	unsigned threads;
	int status;

	if (argc == 5 && strcmp(argv[1], INDEXER_OPTION) == 0)
		return source_indexing_main(argv + 2);
	threads = parse_options(argc, argv);

	started_confine("access-reader");
	raise_most_files();
	started_follow("access-reader");
	source_shards_threads(threads);
	reader_open_init(threads);
	status = run(threads);
	reader_keep_end();
	_exit(status); /* the other threads are in the middle of something */
}
