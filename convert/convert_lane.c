/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lane: a process of one thread that reads its share of the files, has their forms made, and sends the
 * results to the main process in their order.
 *
 * While its maker is at one file the lane reads the next one into the other room, so that the maker need
 * not wait for a disk. The pipe to the main process holds some pictures more; when it is full, the
 * lane waits until its turn comes.
 *
 * A sample is read and checked as access-reader does it (convert_source.c). A maker's answer is checked before it is used: an index must go
 * with the file's own bytes, which come from here, and coefficients must be a whole form. What does not
 * hold together is a fault of the maker, and the file stays as it is.
 */

#include "convert/convert.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/hash.h"
#include "pipeline/forms/form.h"

#define LANE_PIPE (1 << 20)
/* Memory of a room that is given back after a larger file */
#define LANE_KEEPS (UINT32_C(64) << 20)

struct lane_file {
	uint32_t size;
	char error[512]; /* "": it is in its room */
};

struct lane {
	const struct convert_source *source;
	struct convert_maker maker;
	struct lane_file file[2]; /* in the rooms */
	int fd;
};

/* ---- files ---- */

static void file_read(struct lane *lane, uint64_t sample, unsigned which)
{
	const struct dataset *dataset = lane->source->dataset;
	struct lane_file *file = &lane->file[which];
	char why[160];

	*file = (struct lane_file){.size = dataset_size_of(dataset, sample)};
	if (convert_source_read(lane->source, sample, lane->maker.room[which], why, sizeof(why)))
		return;
	snprintf(file->error, sizeof(file->error), "\"%s\" %s",
		 BASE_QUOTED(dataset_name_of(dataset, sample), 256), why);
}

/* ---- results ---- */

static void lane_write(const struct lane *lane, const void *data, size_t size)
{
	if (base_write_all(lane->fd, data, size))
		_exit(1); /* nobody listens any more */
}

static void lane_send(const struct lane *lane, struct convert_result *result, const uint8_t *bytes)
{
	result->sum = hash_checksum(bytes, result->size);
	lane_write(lane, result, sizeof(*result));
	lane_write(lane, bytes, result->size);
}

static _Noreturn void lane_give_up(const struct lane *lane, uint64_t sample, const char *text)
{
	struct convert_result result = {
	    .sample = sample,
	    .outcome = CONVERT_ENDED,
	    .size = (uint32_t)strlen(text),
	};

	lane_send(lane, &result, (const uint8_t *)text);
	_exit(1);
}

/* An index comes without its file. */
static int form_complete(const struct lane *lane, unsigned which, uint8_t **form, uint64_t *size)
{
	const struct lane_file *file = &lane->file[which];
	uint8_t *whole;

	if (lane->source->form != FORM_INDEXED)
		return 0;
	whole = realloc(*form, *size + file->size);
	if (!whole)
		return -ENOMEM;
	memcpy(whole + *size, lane->maker.room[which], file->size);
	*form = whole;
	*size += file->size;
	return 0;
}

static bool form_is_whole(const struct lane *lane, const uint8_t *bytes, uint64_t size)
{
	struct form form;

	return size < UINT32_MAX && form_read(bytes, size, &form) == 0 &&
	       form.kind == (enum form_kind)lane->source->form && form.index;
}

/* The form of the file in a room, or NULL. */
static uint8_t *form_take(struct lane *lane, uint64_t sample, unsigned which,
			  struct convert_result *result)
{
	_cleanup_free_ uint8_t *form = NULL;
	bool is_lost = false;
	uint64_t size = 0;

	if (convert_maker_take(&lane->maker, lane->file[which].size, &form, &size, &is_lost) ||
	    (form && form_complete(lane, which, &form, &size)))
		lane_give_up(lane, sample, "there is not enough memory; fewer --jobs need less");
	result->is_lost = is_lost || (form && !form_is_whole(lane, form, size));
	if (!form || result->is_lost)
		return NULL;
	result->size = (uint32_t)size;
	return base_take_ptr(form);
}

static void lane_finish(struct lane *lane, uint64_t sample, unsigned which)
{
	const struct lane_file *file = &lane->file[which];
	struct convert_result result = {.sample = sample, .source_size = file->size};
	_cleanup_free_ uint8_t *form =
	    lane->source->form ? form_take(lane, sample, which, &result) : NULL;

	result.outcome = form ? CONVERT_FORMED : CONVERT_KEPT;
	if (!form)
		result.size = file->size;
	lane_send(lane, &result, form ? form : lane->maker.room[which]);
	if (file->size > LANE_KEEPS)
		madvise(lane->maker.room[which], lane->maker.room_bytes, MADV_REMOVE);
}

/* ---- the process ---- */

static void lane_ask(struct lane *lane, uint64_t sample, unsigned which)
{
	const struct lane_file *file = &lane->file[which];
	int r;

	if (*file->error)
		lane_give_up(lane, sample, file->error);
	r = lane->source->form ? convert_maker_ask(&lane->maker, which, file->size) : 0;
	if (r)
		lane_give_up(lane, sample,
			     "a sandboxed process that makes forms cannot be started: does this "
			     "system allow seccomp filters and enough processes (ulimit -u)?");
}

static void lane_work(struct lane *lane, unsigned number, unsigned n)
{
	const uint64_t count = dataset_count(lane->source->dataset);
	unsigned which = 0;

	file_read(lane, number, which);
	for (uint64_t sample = number; sample < count; sample += n, which ^= 1) {
		lane_ask(lane, sample, which);
		if (count - sample > n)
			file_read(lane, sample + n, which ^ 1);
		lane_finish(lane, sample, which);
	}
}

static _Noreturn void lane_live(const struct convert_source *source, unsigned number, unsigned n,
				pid_t main_process, int fd)
{
	struct lane lane = {.source = source, .fd = fd};
	sigset_t none;

	signal(SIGINT, SIG_IGN); /* of the terminal: the main process decides */
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "convert-lane");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != main_process)
		_exit(1);
	if (convert_maker_init(&lane.maker, dataset_head(source->dataset)->largest_bytes,
			       source->form))
		lane_give_up(&lane, number, "there is not enough memory; fewer --jobs need less");
	lane_work(&lane, number, n);
	convert_maker_end(&lane.maker);
	_exit(0);
}

int convert_lane_start(struct convert_lane *lane, const struct convert_source *source,
		       unsigned number, unsigned n)
{
	const pid_t main_process = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[0], F_SETPIPE_SZ, LANE_PIPE); /* or as much as it has */
	lane->pid = fork();
	if (lane->pid == 0) {
		base_close(&ends[0]);
		lane_live(source, number, n, main_process, ends[1]);
	}
	base_close(&ends[1]);
	if (lane->pid < 0) {
		const int error = errno;

		base_close(&ends[0]);
		lane->pid = 0;
		return -error;
	}
	lane->fd = ends[0];
	return 0;
}

void convert_lane_end(struct convert_lane *lane)
{
	base_close(&lane->fd);
	base_kill(&lane->pid);
}
