/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replies of access-reader. Any thread may send: a datagram is sent whole or not at all. accessd
 * reads its end of the pair in its loop, so a blocking send waits for a moment at most. A
 * connection that is gone means that accessd is gone: there is nobody to read for, the process
 * ends.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"

#include "base/log.h"
#include "base/wire.h"

#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn void reader_say_fatal(const char *event, const char *text)
{
	log_line(LOG_LEVEL_ERROR, event, "text=\"%s\"", text);
	_exit(1);
}

/* Progress alone may be left out when accessd is busy. */
static void say_of(int flags, enum reader_message type, const struct wire_part *parts)
{
	const int r = wire_tell_of(READER_CONTROL_FD, flags, (uint16_t)type, parts);

	if (r == WIRE_E_CLOSED)
		_exit(0);
	if (r == -EAGAIN && flags)
		return;
	if (r)
		reader_say_fatal("reply-lost", strerror(-r));
}

#define say(type, ...) say_of(0, type, WIRE_PARTS(__VA_ARGS__))
#define ITEM_FD(KEY, fd) WIRE_NONZERO(KEY, (fd) >= 0), WIRE_FD(fd) /* -1: none */

void reader_say_progress(uint64_t id, uint64_t folders, uint64_t files)
{
	say_of(MSG_DONTWAIT, READER_PROGRESS,
	       WIRE_PARTS(WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_FOLDERS, folders),
			  WIRE_U64(READER_KEY_FILES, files)));
}

/* As the kernel knows it: no link and no name of a user's leads elsewhere. NULL: there is none. */
static const char *way_to(const struct reader_dataset *dataset, char way[PATH_MAX])
{
	char self[32];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dataset->root_fd);
	n = readlink(self, way, PATH_MAX - 1);
	if (n <= 0 || (size_t)n >= PATH_MAX - 1)
		return NULL;
	way[n] = '\0';
	return way;
}

void reader_say_opened(const struct reader_dataset *dataset, int index_fd)
{
	char way[PATH_MAX];

	say(READER_OPENED, WIRE_U64(READER_KEY_ID, dataset->id),
	    WIRE_U64(READER_KEY_DEVICE, dataset->root.device),
	    WIRE_U64(READER_KEY_INODE, dataset->root.inode),
	    WIRE_U64_IF(!dataset->is_folder, READER_KEY_STAMP, dataset->root.stamp),
	    WIRE_U64(READER_KEY_FLEETING, dataset->ops->is_fleeting),
	    WIRE_U64(READER_KEY_MADE, dataset->ops->make != NULL),
	    WIRE_STRING(READER_KEY_WAY,
			dataset->how == READER_HOW_OPEN_ONLY ? way_to(dataset, way) : NULL),
	    WIRE_STRING(READER_KEY_SHOWN, dataset->bucket ? dataset->shown : NULL),
	    ITEM_FD(READER_KEY_INDEX, index_fd));
}

void reader_say_looked(uint64_t id, uint64_t device, uint64_t inode, bool is_open)
{
	say(READER_LOOKED, WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_DEVICE, device),
	    WIRE_U64(READER_KEY_INODE, inode), WIRE_U64(READER_KEY_OPENNESS, is_open));
}

void reader_say_refused(uint64_t id, const uint64_t *queue, int code, const char *text)
{
	say(READER_REFUSED, WIRE_U64(READER_KEY_ID, id),
	    WIRE_U64_IF(queue, READER_KEY_QUEUE, *queue),
	    WIRE_U64(READER_KEY_CODE, (uint64_t)(int64_t)code), WIRE_STRING(READER_KEY_TEXT, text));
}

void reader_say_queue(enum reader_message type, uint64_t queue)
{
	say(type, WIRE_U64(READER_KEY_QUEUE, queue));
}

void reader_say_state(const struct reader_state *state, const char *why)
{
	say(READER_STATE, WIRE_BYTES(READER_KEY_STATE, state, sizeof(*state)),
	    WIRE_STRING(READER_KEY_TEXT, why));
}

void reader_say_formed(uint64_t queue, unsigned form, int table_fd, const char *why)
{
	say(READER_FORMED, WIRE_U64(READER_KEY_QUEUE, queue), WIRE_U64(READER_KEY_FORM, form),
	    ITEM_FD(READER_KEY_TABLE, table_fd),
	    WIRE_STRING(READER_KEY_TEXT, table_fd < 0 ? why : NULL));
}

void reader_say_ask_unread(uint64_t question)
{
	say(READER_ASK_UNREAD, WIRE_U64(READER_KEY_ID, question));
}

void reader_say_chore_progress(uint64_t id, uint64_t done, uint64_t total)
{
	say_of(MSG_DONTWAIT, READER_CHORE_PROGRESS,
	       WIRE_PARTS(WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_FILES, done),
			  WIRE_U64(READER_KEY_FOLDERS, total)));
}

void reader_say_chore(uint64_t id, int code, const char *text, int fd)
{
	say(READER_CHORE_DONE, WIRE_U64(READER_KEY_ID, id),
	    WIRE_U64(READER_KEY_CODE, (uint64_t)(int64_t)code), WIRE_STRING(READER_KEY_TEXT, text),
	    ITEM_FD(READER_KEY_LIST, fd));
}

void reader_say_wrong(uint64_t node, uint64_t sample)
{
	say(READER_WRONG, WIRE_U64(READER_KEY_ID, node), WIRE_U64(READER_KEY_SAMPLE, sample));
}

void reader_say_revisited(uint64_t id, uint64_t queue, bool is_same)
{
	say(READER_REVISITED, WIRE_U64(READER_KEY_ID, id), WIRE_U64(READER_KEY_QUEUE, queue),
	    WIRE_U64(READER_KEY_CODE, !is_same));
}

void reader_say_failed(uint64_t queue, const struct queue_task *task)
{
	say(READER_FAILED, WIRE_U64(READER_KEY_QUEUE, queue), WIRE_U64(READER_KEY_ROW, task->row),
	    WIRE_U64(READER_KEY_TASK, task->index), WIRE_U64(READER_KEY_SAMPLE, task->sample));
}
