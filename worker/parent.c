/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The worker parent: one thread, one poll() on two descriptors, accessd's messages and SIGCHLD.
 * It exists because slots memory can be mapped writable only before accessd seals it, and because
 * forking workers from accessd would copy everything that accessd knows into the sandboxes.
 *
 *   START -> ADD -> ADDED -> (accessd seals) -> GO -> STARTED ...  -> REMOVE -> EXITED ... ->
 * REMOVED
 *
 * Generations: ADD makes a queue, or a variant of one, that workers of the next generation know; GO
 * begins that one, unless an earlier GO or REMOVE has. So any number of ADDs costs one change of
 * workers.
 *
 * Backpressure: while accessd does not read what it is told, no command is read and no worker is
 * started, so at most N deaths and one answer wait.
 *
 * Its end is the end of its workers (PDEATHSIG), and accessd's end is its own: by PDEATHSIG, by
 * the hang-up of descriptor 3, and by getppid() for the moment in which neither was there yet. It
 * never touches a sample's bytes. It ignores the signals that end services: accessd drains first.
 */

#include "worker/parent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wire.h"
#include "worker/birth.h"
#include "shmring/rings.h"
#include "worker/pool.h"

#define ITEMS_TABLE "worker/parent_tbl.h"
#define ITEMS_STRUCT(name) parent_##name
#define ITEMS_UNION parent_command
#define ITEMS_KEY(KEY) PARENT_KEY_##KEY
#define ITEMS_TYPE(NAME) PARENT_##NAME
#define ITEMS_WHOSE "accessd's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

struct parent_letter { /* a message that waits for room in the socket */
	struct parent_letter *next;
	struct wire_out out;
};

struct parent {
	int signals; /* signalfd: SIGCHLD */
	bool is_started, is_over;
	int failure; /* why it is over: 0, or negative errno */
	struct pool_settings settings;
	struct layout_doorbell *doorbell;
	struct rings rings;       /* with a ring for each worker, or none */
	struct resident resident; /* read-only, or none */
	struct pool pool;
	struct workset workset;
	struct parent_letter *first, *last;
};

static void parent_end(struct parent *parent, int failure)
{
	parent->is_over = true;
	if (parent->failure == 0)
		parent->failure = failure;
}

/* ---- sending ---- */

/* A new letter at the end of the queue. Without memory the parent is over. */
static void parent_write_of(struct parent *parent, enum parent_message type,
			    const struct wire_part *parts)
{
	struct parent_letter *letter = calloc(1, sizeof(*letter));

	if (letter == NULL) {
		parent_end(parent, -ENOMEM);
		return;
	}
	wire_out_make_of(&letter->out, (uint16_t)type, parts);
	if (parent->last != NULL)
		parent->last->next = letter;
	else
		parent->first = letter;
	parent->last = letter;
}

#define parent_write(parent, type, ...) parent_write_of(parent, type, WIRE_PARTS(__VA_ARGS__))

static void parent_drop_letter(struct parent *parent)
{
	struct parent_letter *letter = parent->first;

	parent->first = letter->next;
	if (parent->first == NULL)
		parent->last = NULL;
	wire_out_fini(&letter->out);
	free(letter);
}

static void parent_flush(struct parent *parent)
{
	while (parent->first != NULL) {
		int rc = wire_send(PARENT_CONTROL_FD, &parent->first->out, MSG_DONTWAIT);

		if (rc == -EAGAIN || rc == -ENOBUFS)
			return;
		if (rc != 0)
			parent_end(parent, rc == WIRE_E_CLOSED ? 0 : rc);
		parent_drop_letter(parent);
	}
}

/* variant: WORKSET_ALL for the queue as a whole. */
static void parent_tell_queue(struct parent *parent, enum parent_message type, uint64_t number,
			      uint64_t variant, const char *text)
{
	parent_write(parent, type, WIRE_U64(PARENT_KEY_QUEUE, number),
		     WIRE_U64_IF(variant != WORKSET_ALL, PARENT_KEY_VARIANT, variant),
		     WIRE_STRING(PARENT_KEY_TEXT, text));
}

static void parent_tell_started(struct parent *parent, const struct pool_event *event)
{
	parent_write(parent, PARENT_STARTED, WIRE_U64(PARENT_KEY_WORKER, event->owner),
		     WIRE_U64(PARENT_KEY_INDEX, event->index),
		     WIRE_U64(PARENT_KEY_PID, (uint64_t)event->pid));
}

static void parent_tell_exited(struct parent *parent, const struct pool_event *event)
{
	parent_write(parent, PARENT_EXITED, WIRE_U64(PARENT_KEY_WORKER, event->owner),
		     WIRE_U64(PARENT_KEY_INDEX, event->index),
		     WIRE_U64(PARENT_KEY_STATUS, (uint64_t)event->status),
		     WIRE_U64(PARENT_KEY_CPU_NS, event->cpu_ns));
}

/* ---- commands ---- */

/* 0, or RINGS_E_BAD, or negative errno. */
static int parent_take_rings(struct parent *parent, int fd)
{
	int rc = rings_attach(fd, &parent->rings);

	if (rc == 0 && parent->rings.n_rings < parent->settings.n_workers) {
		rings_detach(&parent->rings);
		return RINGS_E_BAD;
	}
	return rc;
}

static void parent_on_start(struct parent *parent, struct wire_in *message,
			    const struct parent_start *start)
{
	_cleanup_close_ int doorbell = wire_take_fd(message, start->doorbell_fd);
	_cleanup_close_ int event = wire_take_fd(message, start->event_fd);
	_cleanup_close_ int rings = wire_take_fd(message, start->rings_fd);
	_cleanup_close_ int resident = wire_take_fd(message, start->resident_fd);
	int rc = parent->is_started ? -EPROTO : doorbell_attach(doorbell, &parent->doorbell);

	if (rc == 0 && dup3(event, WORKER_EVENT_FD, O_CLOEXEC) < 0)
		rc = -errno;
	if (rc == 0 && rings >= 0)
		rc = parent_take_rings(parent, rings);
	if (rc == 0 && resident >= 0)
		rc = resident_attach(resident, false, &parent->resident);
	if (rc == 0)
		rc = pool_init(&parent->pool, &parent->settings, parent->doorbell,
			       parent->rings.head ? &parent->rings : NULL, &parent->resident,
			       &parent->workset);
	if (rc != 0)
		parent_end(parent, rc > 0 ? -EPROTO : rc);
	else
		parent->is_started = true;
}

static void parent_on_add(struct parent *parent, struct wire_in *message,
			  const struct parent_add *add)
{
	_cleanup_close_ int slots = wire_take_fd(message, add->slots_fd);
	_cleanup_close_ int queue = wire_take_fd(message, add->tasks_fd);
	_cleanup_close_ int arena = wire_take_fd(message, add->arena_fd);
	const struct workset_request request = {
	    .number = add->queue,
	    .variant = add->variant,
	    .stride = add->stride,
	    .slots_bytes = add->slots_bytes,
	    .spec = add->spec,
	    .offsets = add->offsets.data,
	    .offsets_size = add->offsets.size,
	    .slots_fd = slots,
	    .queue_fd = queue,
	    .arena_fd = arena,
	};
	struct diag diag = {""};
	int rc = workset_add(&parent->workset, &request, parent->pool.generation + 1, &diag);

	if (rc < 0)
		diag_set(&diag, "the workers have no memory for another stream: %s", strerror(-rc));
	parent_tell_queue(parent, rc ? PARENT_REFUSED : PARENT_ADDED, add->queue, add->variant,
			  rc ? diag.text : NULL);
}

static void parent_on_go(struct parent *parent, struct wire_in *message, const struct parent_go *go)
{
	const struct workset_queue *queue = workset_find(&parent->workset, go->queue);

	(void)message;
	if (queue == NULL || queue->is_leaving)
		log_line(LOG_LEVEL_WARN, "parent-no-queue", "message=go queue=%llu",
			 (unsigned long long)go->queue);
	else if (workset_has_news(queue, parent->pool.generation))
		pool_retire(&parent->pool);
}

/* Also for a queue that was refused or never came: no worker maps it, so that is the answer. */
static void parent_on_remove(struct parent *parent, struct wire_in *message,
			     const struct parent_remove *remove)
{
	const uint64_t leaves = parent->pool.generation + 1;
	const uint64_t variant = remove->has_variant ? remove->variant : WORKSET_ALL;
	struct workset_queue *queue = workset_find(&parent->workset, remove->queue);

	(void)message;
	if (queue != NULL && queue->is_leaving)
		return;
	if (queue == NULL ||
	    (variant != WORKSET_ALL && !workset_unmap_variant(queue, variant, leaves))) {
		parent_tell_queue(parent, PARENT_REMOVED, remove->queue, variant, NULL);
		return;
	}
	if (variant == WORKSET_ALL)
		workset_unmap(queue, leaves);
	pool_retire(&parent->pool);
}

static void parent_on_kill(struct parent *parent, struct wire_in *message,
			   const struct parent_kill *kill)
{
	(void)message;
	if (pool_kill(&parent->pool, kill->worker))
		log_line(LOG_LEVEL_DEBUG, "worker-kill", "worker=%llu",
			 (unsigned long long)kill->worker);
}

static void parent_on_size(struct parent *parent, struct wire_in *message,
			   const struct parent_size *size)
{
	const uint64_t most = parent->rings.head ? parent->rings.n_rings : LAYOUT_MAX_WORKERS;

	(void)message;
	if (size->workers == 0 || size->workers > BASE_MIN(most, (uint64_t)LAYOUT_MAX_WORKERS))
		parent_end(parent, -EPROTO);
	else
		pool_resize(&parent->pool, (unsigned)size->workers);
}

static void parent_obey(struct parent *parent, struct wire_in *message)
{
	union parent_command command;
	struct diag diag;

	if (!parent->is_started && message->type != PARENT_START) {
		parent_end(parent, -EPROTO);
	} else if (!items_name(items_types, BASE_ARRAY_LEN(items_types), message->type)) {
		log_line(LOG_LEVEL_WARN, "parent-unknown-message", "type=%u", message->type);
	} else if (items_read(message, items_types, BASE_ARRAY_LEN(items_types), &command, &diag)) {
		log_line(LOG_LEVEL_ERROR, "parent-message", "text=\"%s\"", diag.text);
		parent_end(parent, -EPROTO);
	} else {
		switch (message->type) {
#define MESSAGE(name, NAME, asks)                                 \
	case PARENT_##NAME:                                       \
		parent_on_##name(parent, message, &command.name); \
		break;
#include "base/items_skip_tbl.h"
#include "worker/parent_tbl.h"
#include "base/items_end_tbl.h"
		}
	}
}

static void parent_read(struct parent *parent)
{
	while (!parent->is_over && parent->first == NULL) {
		_cleanup_(wire_in_fini) struct wire_in message;
		int rc;

		wire_in_init(&message);
		rc = wire_recv(PARENT_CONTROL_FD, &message, MSG_DONTWAIT);
		if (rc == -EAGAIN)
			return;
		if (rc == 0 || rc == WIRE_E_TRUNCATED_FDS)
			parent_obey(parent, &message);
		else
			parent_end(parent, rc == WIRE_E_CLOSED ? 0
					   : rc == WIRE_E_BAD  ? -EPROTO
							       : rc);
		parent_flush(parent);
	}
}

/* ---- the pool's news ---- */

static void parent_log_setup(const struct pool_event *event)
{
	if (!WIFEXITED(event->status))
		return;
	if (WEXITSTATUS(event->status) == WORKER_EXIT_SANDBOX)
		log_line(
		    LOG_LEVEL_ERROR, "worker-sandbox",
		    "text=\"a worker could not enter its sandbox and ran nothing; the kernel needs "
		    "CONFIG_SECCOMP_FILTER, and a container must allow seccomp()\"");
	if (WEXITSTATUS(event->status) == WORKER_EXIT_SETUP)
		log_line(LOG_LEVEL_ERROR, "worker-setup",
			 "text=\"a worker could not set itself up; look for limits on memory\"");
}

static void parent_populate(struct parent *parent)
{
	while (!parent->is_over && parent->first == NULL) {
		struct pool_event event;
		int rc = pool_start(&parent->pool, base_now_ns(), &event);

		if (rc == POOL_E_NONE)
			return;
		if (rc == 0) {
			parent_tell_started(parent, &event);
			parent_flush(parent);
		} else if (rc == POOL_E_SPENT) {
			log_line(
			    LOG_LEVEL_WARN, "parent-spent",
			    "text=\"worker numbers are used up; accessd starts another parent\"");
			parent_end(parent, 0);
		} else {
			log_line(LOG_LEVEL_ERROR, "worker-fork",
				 "error=\"%s\" text=\"look at the limit of processes (TasksMax, "
				 "ulimit -u)\"",
				 strerror(-rc));
		}
	}
}

/* ---- the loop ---- */

static int parent_timeout_ms(const struct parent *parent)
{
	uint64_t wait_ns;

	if (!parent->is_started || parent->first != NULL)
		return -1;
	wait_ns = pool_wait_ns(&parent->pool, base_now_ns());
	return wait_ns == UINT64_MAX ? -1 : (int)((wait_ns + 999999) / 1000000);
}

static void parent_turn(struct parent *parent)
{
	struct pollfd polled[] = {
	    {PARENT_CONTROL_FD, parent->first == NULL ? POLLIN : POLLOUT, 0},
	    {parent->signals, POLLIN, 0},
	};
	struct signalfd_siginfo info[8];
	struct pool_event event;
	uint32_t number, variant;

	if (poll(polled, BASE_ARRAY_LEN(polled), parent_timeout_ms(parent)) < 0 && errno != EINTR)
		parent_end(parent, -errno);
	if (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		parent_end(parent, 0);
	if (polled[1].revents & POLLIN && read(parent->signals, info, sizeof(info)) < 0)
		parent_end(parent, -errno);
	parent_flush(parent);
	parent_read(parent);
	if (!parent->is_started)
		return;
	while (pool_reap(&parent->pool, base_now_ns(), &event) == 0) {
		parent_log_setup(&event);
		parent_tell_exited(parent, &event);
	}
	while (workset_forget(&parent->workset, pool_oldest(&parent->pool), &number, &variant))
		parent_tell_queue(parent, PARENT_REMOVED, number, variant, NULL);
	parent_flush(parent);
	parent_populate(parent);
}

int parent_run(const struct pool_settings *settings)
{
	struct parent *parent = calloc(1, sizeof(*parent));
	pid_t accessd = getppid();
	int rc = parent == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		parent->settings = *settings;
		rc = birth_of_parent(accessd, &parent->settings, &parent->signals);
	}
	if (rc < 0) {
		log_line(LOG_LEVEL_ERROR, "parent-setup", "error=\"%s\"", strerror(-rc));
		free(parent);
		return EXIT_FAILURE;
	}
	while (!parent->is_over)
		parent_turn(parent);
	rc = parent->failure;
	if (rc < 0)
		log_line(LOG_LEVEL_ERROR, "parent-end",
			 "error=\"%s\" text=\"accessd starts another parent\"", strerror(-rc));
	if (parent->is_started) {
		pool_fini(&parent->pool);
		workset_fini(&parent->workset);
		doorbell_detach(parent->doorbell);
		rings_detach(&parent->rings);
		resident_detach(&parent->resident);
	}
	while (parent->first != NULL)
		parent_drop_letter(parent);
	free(parent);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
