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

#include "base/started.h"
#include "base/wire.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define ITEMS_TABLE "storage/reader_tbl.h"
#define ITEMS_STRUCT(name) asked_##name
#define ITEMS_UNION asked
#define ITEMS_KEY(KEY) READER_KEY_##KEY
#define ITEMS_TYPE(NAME) READER_##NAME
#define ITEMS_WHOSE "accessd's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

#define READER_THREADS 4
#define READER_MAX_THREADS 64

static unsigned reader_threads = READER_THREADS;
static bool is_started;

/* ---- messages ---- */

static _Noreturn void message_bad(const struct wire_in *in, const char *what)
{
	struct diag diag;

	diag_set(&diag, "message %u of accessd: %s", in->type, what);
	reader_say_fatal("message-bad", diag.text);
}

static unsigned form_of(const struct wire_in *in, uint64_t form)
{
	if (form >= LAYOUT_FORMS)
		message_bad(in, "needs a form that there is");
	return (unsigned)form;
}

static void on_start(struct wire_in *in, const struct asked_start *start)
{
	_cleanup_close_ int doorbell_fd = wire_take_fd(in, start->doorbell_fd);
	const int event_fd = wire_take_fd(in, start->event_fd); /* kept for ever */
	_cleanup_close_ int rings_fd = wire_take_fd(in, start->rings_fd);
	_cleanup_close_ int resident_fd = wire_take_fd(in, start->resident_fd);
	struct layout_doorbell *doorbell;

	if (is_started)
		message_bad(in, "comes twice");
	if (doorbell_attach(doorbell_fd, &doorbell))
		message_bad(in, "the doorbell cannot be mapped");
	if (rings_fd >= 0 && reader_keep_init(rings_fd))
		message_bad(in, "the write-back ring cannot be mapped");
	if (resident_fd >= 0 && reader_resident_init(resident_fd))
		message_bad(in, "the resident memory cannot be mapped");
	base_take_fd(&resident_fd); /* kept for ever */
	if (start->has_direct)
		source_direct_above(start->direct);
	is_started = true;
	reader_queue_init(reader_threads, doorbell, event_fd,
			  !start->has_may_be_huge || start->may_be_huge);
}

static void on_store(struct wire_in *in, const struct asked_store *store)
{
	const int folder_fd = wire_take_fd(in, store->folder_fd);

	if ((folder_fd < 0 && !store->why) ||
	    !reader_keep_store(folder_fd, store->limit, store->force != 0, store->suspect != 0,
			       store->why ? store->why : ""))
		message_bad(in, "needs a folder or why there is none, and START with a write-back "
				"ring before it, once");
}

static void on_form(struct wire_in *in, const struct asked_form *form)
{
	struct hash_id group;

	memcpy(&group, form->group, sizeof(group));
	if (!reader_keep_form(form->queue, form_of(in, form->form), &group, form->note,
			      form->is_shared != 0))
		message_bad(in, "needs STORE before it, and a form that there is");
}

static void on_spread(struct wire_in *in, const struct asked_spread *spread)
{
	if (spread->number >= spread->nodes ||
	    !reader_keep_spread(spread->queue, (uint32_t)spread->number, spread->nodes))
		message_bad(in, "needs STORE before it, and a node that there is");
}

static void on_unmade(struct wire_in *in, const struct asked_unmade *unmade)
{
	reader_queue_unmade(unmade->queue, form_of(in, unmade->form), unmade->sample);
}

static void on_revisit(struct wire_in *in, const struct asked_revisit *revisit)
{
	if (revisit->samples.size % sizeof(uint64_t))
		message_bad(in, "SAMPLES are no numbers");
	reader_queue_revisit(revisit->queue, revisit->id, revisit->samples.data,
			     revisit->samples.size / sizeof(uint64_t));
}

static void on_chore(struct wire_in *in, const struct asked_chore *chore)
{
	struct hash_id group;

	memcpy(&group, chore->group, sizeof(group));
	if (chore->verb >= READER_VERBS ||
	    !reader_chores_ask(chore->id, (unsigned)chore->verb, &group))
		message_bad(in, "VERB is unknown");
}

static void on_chore_cancel(struct wire_in *in, const struct asked_chore_cancel *chore_cancel)
{
	(void)in;
	reader_chores_cancel(chore_cancel->id);
}

static void on_worth(struct wire_in *in, const struct asked_worth *worth)
{
	reader_queue_worth(worth->queue, form_of(in, worth->form), (double)worth->worth / 1000);
}

static void on_yield(struct wire_in *in, const struct asked_yield *yield)
{
	reader_queue_yield(yield->queue, form_of(in, yield->form), yield->yields != 0);
}

static void on_memory(struct wire_in *in, const struct asked_memory *memory)
{
	(void)in;
	reader_resident_limit(memory->limit, memory->is_most != 0);
}

static void on_unread(struct wire_in *in, const struct asked_unread *unread)
{
	(void)in;
	reader_resident_unread(unread->id);
}

static void on_open(struct wire_in *in, const struct asked_open *open)
{
	if (open->how > READER_HOW_NAMED)
		message_bad(in, "HOW is unknown");
	if (!reader_open_request(open->id, open->path, (enum reader_how)open->how,
				 open->has_most ? open->most : UINT64_MAX,
				 wire_take_fd(in, open->stored_fd)))
		message_bad(in, "ID is in use");
}

static void on_cancel(struct wire_in *in, const struct asked_cancel *cancel)
{
	(void)in;
	reader_open_cancel(cancel->id);
}

static void on_attach(struct wire_in *in, const struct asked_attach *attach)
{
	const uint64_t id = attach->id, number = attach->queue;
	_cleanup_close_ int queue_fd = wire_take_fd(in, attach->queue_memory_fd);
	_cleanup_close_ int arena_fd = wire_take_fd(in, attach->arena_fd);
	struct reader_dataset *dataset;
	struct diag diag;
	int r;

	if (!is_started)
		message_bad(in, "needs START before it");
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

static void on_detach(struct wire_in *in, const struct asked_detach *detach)
{
	const uint64_t number = detach->queue;

	(void)in;
	if (!reader_queue_detach(number)) /* it was refused: nothing touches it */
		reader_say_queue(READER_DETACHED, number);
}

static void on_peers(struct wire_in *in, const struct asked_peers *peers)
{
	_cleanup_close_ int to_fd = wire_take_fd(in, peers->to_fd);
	_cleanup_close_ int from_fd = wire_take_fd(in, peers->from_fd);

	reader_checks_each(peers->compare_each);
	reader_guests_recheck(BASE_MIN(peers->recheck_s, UINT64_C(1000000)) * UINT64_C(1000000000));
	if (!reader_peers_carrier(peers->self, to_fd, from_fd))
		message_bad(in, "needs two rings that can be mapped");
	reader_peers_start();
}

static void on_members(struct wire_in *in, const struct asked_members *members)
{
	const struct items_bytes *said = &members->members;
	struct reader_member list[READER_MOST_MEMBERS];

	memcpy(list, said->data, said->size);
	if (said->size % sizeof(*list) ||
	    !reader_peers_members((uint32_t)BASE_MIN(members->weight, UINT32_MAX), list,
				  (unsigned)(said->size / sizeof(*list))))
		message_bad(in, "needs PEERS before it, and MEMBERS that differ");
}

static void on_message(struct wire_in *in)
{
	union asked asked;
	struct diag diag;

	if (items_read(in, items_types, BASE_ARRAY_LEN(items_types), &asked, &diag))
		message_bad(in, diag.text);
	switch (in->type) {
#define MESSAGE(name, NAME, asks)           \
	case READER_##NAME:                 \
		on_##name(in, &asked.name); \
		break;
#include "base/items_skip_tbl.h"
#include "storage/reader_tbl.h"
#include "base/items_end_tbl.h"
	}
}

static int run(void)
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
		on_message(&in);
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

static void take_threads(const char *text)
{
	const char *end = text;
	uint64_t value;

	if (!base_parse_number(&end, READER_MAX_THREADS, &value) || *end || value < 1) {
		fprintf(stderr, "access-reader: --threads %s: must be 1 to %d\n", text,
			READER_MAX_THREADS);
		exit(2);
	}
	reader_threads = (unsigned)value;
}

int main(int argc, char **argv)
{
	int status = source_indexing_main(argc, argv);

	if (status >= 0)
		return status;
	started_options(
	    "access-reader", argc, argv,
	    "access-reader [--threads N] [--as UID:GID[:groups]]: reads files for accessd, which "
	    "starts it with the control socket at descriptor 3\n",
	    "threads", take_threads);

	started_confine("access-reader");
	raise_most_files();
	started_follow("access-reader");
	source_shards_threads(reader_threads);
	reader_open_init(reader_threads);
	status = run();
	reader_keep_end();
	_exit(status); /* the other threads are in the middle of something */
}
