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
static void say(struct wire_out *out, int flags)
{
	const int r = wire_send(READER_CONTROL_FD, out, flags);

	wire_out_fini(out);
	if (r == WIRE_E_CLOSED)
		_exit(0);
	if (r == -EAGAIN && flags)
		return;
	if (r)
		reader_say_fatal("reply-lost", strerror(-r));
}

/* fd: -1 for none. */
static void put_fd(struct wire_out *out, uint16_t key, int fd)
{
	if (fd < 0)
		return;
	wire_put_u64(out, key, 1);
	wire_put_fd(out, fd);
}

void reader_say_progress(uint64_t id, uint64_t folders, uint64_t files)
{
	struct wire_out out;

	wire_out_init(&out, READER_PROGRESS);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_FOLDERS, folders);
	wire_put_u64(&out, READER_KEY_FILES, files);
	say(&out, MSG_DONTWAIT);
}

/* As the kernel knows it: no link and no name of a user's leads elsewhere. */
static void put_way(struct wire_out *out, const struct reader_dataset *dataset)
{
	char self[32], way[PATH_MAX];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dataset->root_fd);
	n = readlink(self, way, sizeof(way) - 1);
	if (n <= 0 || (size_t)n >= sizeof(way) - 1)
		return;
	way[n] = '\0';
	wire_put_string(out, READER_KEY_WAY, way);
}

void reader_say_opened(const struct reader_dataset *dataset, int index_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPENED);
	wire_put_u64(&out, READER_KEY_ID, dataset->id);
	wire_put_u64(&out, READER_KEY_DEVICE, dataset->device);
	wire_put_u64(&out, READER_KEY_INODE, dataset->inode);
	if (!dataset->is_folder)
		wire_put_u64(&out, READER_KEY_STAMP, dataset->stamp);
	wire_put_u64(&out, READER_KEY_FLEETING, dataset->ops->is_fleeting);
	wire_put_u64(&out, READER_KEY_MADE, dataset->ops->make != NULL);
	if (dataset->how == READER_HOW_OPEN_ONLY)
		put_way(&out, dataset);
	put_fd(&out, READER_KEY_INDEX, index_fd);
	say(&out, 0);
}

void reader_say_looked(uint64_t id, uint64_t device, uint64_t inode, bool is_open)
{
	struct wire_out out;

	wire_out_init(&out, READER_LOOKED);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_DEVICE, device);
	wire_put_u64(&out, READER_KEY_INODE, inode);
	wire_put_u64(&out, READER_KEY_OPENNESS, is_open);
	say(&out, 0);
}

void reader_say_refused(uint64_t id, const uint64_t *queue, int code, const char *text)
{
	struct wire_out out;

	wire_out_init(&out, READER_REFUSED);
	wire_put_u64(&out, READER_KEY_ID, id);
	if (queue)
		wire_put_u64(&out, READER_KEY_QUEUE, *queue);
	wire_put_u64(&out, READER_KEY_CODE, (uint64_t)(int64_t)code);
	wire_put_string(&out, READER_KEY_TEXT, text);
	say(&out, 0);
}

void reader_say_queue(enum reader_message type, uint64_t queue)
{
	struct wire_out out;

	wire_out_init(&out, (uint16_t)type);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	say(&out, 0);
}

void reader_say_state(const struct reader_state *state, const char *why)
{
	struct wire_out out;

	wire_out_init(&out, READER_STATE);
	wire_put_bytes(&out, READER_KEY_STATE, state, sizeof(*state));
	wire_put_string(&out, READER_KEY_TEXT, why);
	say(&out, 0);
}

void reader_say_formed(uint64_t queue, unsigned form, int table_fd, const char *why)
{
	struct wire_out out;

	wire_out_init(&out, READER_FORMED);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_FORM, form);
	put_fd(&out, READER_KEY_TABLE, table_fd);
	if (table_fd < 0)
		wire_put_string(&out, READER_KEY_TEXT, why);
	say(&out, 0);
}

void reader_say_ask_unread(uint64_t question)
{
	struct wire_out out;

	wire_out_init(&out, READER_ASK_UNREAD);
	wire_put_u64(&out, READER_KEY_ID, question);
	say(&out, 0);
}

void reader_say_chore_progress(uint64_t id, uint64_t done, uint64_t total)
{
	struct wire_out out;

	wire_out_init(&out, READER_CHORE_PROGRESS);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_FILES, done);
	wire_put_u64(&out, READER_KEY_FOLDERS, total);
	say(&out, MSG_DONTWAIT);
}

void reader_say_chore(uint64_t id, int code, const char *text, int fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_CHORE_DONE);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_CODE, (uint64_t)(int64_t)code);
	wire_put_string(&out, READER_KEY_TEXT, text);
	put_fd(&out, READER_KEY_LIST, fd);
	say(&out, 0);
}

void reader_say_wrong(uint64_t node, uint64_t sample)
{
	struct wire_out out;

	wire_out_init(&out, READER_WRONG);
	wire_put_u64(&out, READER_KEY_ID, node);
	wire_put_u64(&out, READER_KEY_SAMPLE, sample);
	say(&out, 0);
}

void reader_say_failed(uint64_t queue, const struct queue_task *task)
{
	struct wire_out out;

	wire_out_init(&out, READER_FAILED);
	wire_put_u64(&out, READER_KEY_QUEUE, queue);
	wire_put_u64(&out, READER_KEY_ROW, task->row);
	wire_put_u64(&out, READER_KEY_TASK, task->index);
	wire_put_u64(&out, READER_KEY_SAMPLE, task->sample);
	say(&out, 0);
}
