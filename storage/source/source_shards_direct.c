/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a large data set in shards, several at once, past the page cache, right into the arena.
 *
 * What is larger than the page cache can be gets nothing from it: each epoch pushes out what it read in the one before, and
 * what others have there. So its shards are opened with O_DIRECT where the file system says how that is to be read (statx;
 * tmpfs, network file systems and old kernels do not), samples lie in the arena as in their shards (dataset_is_placed()),
 * and batches of both ways are measured (direct.h). Whatever cannot be read so is left to source_shards_read(): a sample without
 * room on both sides, a short read, a shard that changed, is gone, or lies on another file system. It comes by itself, by
 * whichever thread has time, so that one that hangs holds up no other.
 */

#include "storage/source/direct.h"
#include "storage/reader_parts.h"
#include "storage/source/source_shards.h"

#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define DIRECT_AGAIN_NS UINT64_C(60000000000)
#define DIRECT_REFUSALS 8 /* then the file system does not do what it says */

struct shards_direct {
	uint32_t align;
	int root_fd;                          /* owned; of a data set that is one shard, else -1 */
	const struct reader_dataset *dataset; /* whose it is */

	pthread_mutex_t lock;
	/* under the lock */
	struct direct_choice choice;
	unsigned refusals;
	bool is_off;
	uint64_t again_ns; /* it is off until then; 0: for good */
	struct
	{ /* of samples that came through the page cache, until they are as many as a batch */
		unsigned n;
		uint64_t bytes, cpu_ns, from_disk;
	} pages;
};

static uint64_t direct_above = UINT64_MAX; /* written before any data set is opened */

void source_direct_above(uint64_t bytes)
{
	direct_above = bytes;
}

static void tell(const struct reader_dataset *dataset, bool is_direct, const char *why)
{
	log_line(LOG_LEVEL_INFO, "shards-read", "path=\"%s\" past_page_cache=%s why=\"%s\"",
		 BASE_QUOTED(dataset->shown, 512), is_direct ? "yes" : "no", why);
}

/* ---- opening ---- */

/* The root, which is the one shard, once more: the same file, whatever has its name by now. */
static int open_root(const struct reader_dataset *dataset)
{
	char self[32];
	const int fd = dataset->root_fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, (fcntl(fd, F_GETFL) & O_NOATIME) | O_RDONLY | O_CLOEXEC | O_DIRECT);
}

/* How the first shard's file system has files read; the others' most likely have the same. */
static uint32_t align_of(const struct reader_dataset *dataset)
{
	const struct shards *shards = dataset->source;
	_cleanup_close_ int fd = -1;

	if (!dataset->is_folder)
		return direct_align(dataset->root_fd);
	fd = source_open_file(dataset, dataset->root_fd, shards->names.name[0]);
	return fd < 0 ? 0 : direct_align(fd);
}

struct shards_direct *source_direct_new(const struct reader_dataset *dataset)
{
	struct shards_direct *direct;
	uint32_t align;

	if (dataset->bucket || dataset_head(dataset->index)->sum_bytes <= direct_above ||
	    !dataset_is_placed(dataset->index))
		return NULL;
	align = align_of(dataset);
	if (!align || align > DATASET_PLACE) {
		tell(dataset, false, "the file system or the kernel does not say how to (statx)");
		return NULL;
	}
	direct = calloc(1, sizeof(*direct));
	if (!direct)
		return NULL;
	direct->align = align;
	direct->dataset = dataset;
	direct->root_fd = dataset->is_folder ? -1 : open_root(dataset);
	pthread_mutex_init(&direct->lock, NULL);
	if (!dataset->is_folder && direct->root_fd < 0) {
		tell(dataset, false, strerror(errno));
		direct->is_off = true;
	}
	return direct;
}

void source_direct_free(struct shards_direct *direct)
{
	if (!direct)
		return;
	base_close(&direct->root_fd);
	pthread_mutex_destroy(&direct->lock);
	free(direct);
}

/* ---- which way ---- */

unsigned source_direct_most(const struct reader_dataset *dataset, const struct reader_link *link)
{
	struct shards_direct *direct = ((const struct shards *)dataset->source)->direct;
	bool is_off;

	(void)link;
	if (!direct)
		return 1;
	BASE_HOLD(&direct->lock);
	if (direct->is_off && direct->again_ns && base_now_ns() >= direct->again_ns)
		direct->is_off = false;
	is_off = direct->is_off;
	return is_off ? 1 : DIRECT_DEEP;
}

/* That the thread had read from disks so far; 0: the kernel does not count. */
static uint64_t disk_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (uint64_t)usage.ru_inblock * 512;
}

/* Under the lock: one through the page cache. */
static void note_one_locked(struct shards_direct *direct, uint64_t bytes, uint64_t cpu_ns,
			    uint64_t from_disk)
{
	direct->pages.n++;
	direct->pages.bytes += bytes;
	direct->pages.cpu_ns += cpu_ns;
	direct->pages.from_disk += from_disk;
	if (direct->pages.n < DIRECT_DEEP)
		return;
	direct_choice_note(&direct->choice, false, direct->pages.bytes, direct->pages.cpu_ns,
			   direct->pages.from_disk);
	memset(&direct->pages, 0, sizeof(direct->pages));
}

static struct direct_meter meter_now(void)
{
	return (struct direct_meter){.cpu_ns = base_cpu_ns(), .disk_bytes = disk_bytes()};
}

/* Of what was read since then. */
static void note(struct shards_direct *direct, bool is_direct, uint64_t bytes,
		 const struct direct_meter *since)
{
	const struct direct_meter now = meter_now();
	const uint64_t cpu_ns = now.cpu_ns - since->cpu_ns;
	const uint64_t from_disk = now.disk_bytes - since->disk_bytes;
	struct direct_choice choice;
	char why[96];
	bool is_new;

	pthread_mutex_lock(&direct->lock);
	if (is_direct)
		direct_choice_note(&direct->choice, true, bytes, cpu_ns, from_disk);
	else
		note_one_locked(direct, bytes, cpu_ns, from_disk);
	is_new = direct_choice_says(&direct->choice, base_now_ns());
	choice = direct->choice;
	pthread_mutex_unlock(&direct->lock);
	if (!is_new)
		return;
	snprintf(why, sizeof(why), "%.0f us of CPU a MiB, through the page cache %.0f%s",
		 direct_choice_us(&choice, true), direct_choice_us(&choice, false),
		 choice.is_direct ? "" : ", or that has the bytes already");
	tell(direct->dataset, choice.is_direct, why);
}

/* It was refused: now and then that is the one shard's affair. */
static void refuse(struct shards_direct *direct, int error)
{
	bool is_new;

	pthread_mutex_lock(&direct->lock);
	is_new = !direct->is_off && ++direct->refusals == DIRECT_REFUSALS;
	if (is_new)
		direct->again_ns = 0;
	direct->is_off |= is_new;
	pthread_mutex_unlock(&direct->lock);
	if (is_new)
		tell(direct->dataset, false, strerror(error));
}

/* There is no queue: for good, as where a container forbids it, or as long as others have all that there are. */
static void stop(struct shards_direct *direct, int error)
{
	char why[160];
	bool is_new;

	pthread_mutex_lock(&direct->lock);
	is_new = !direct->is_off && !direct->again_ns;
	direct->is_off = true;
	direct->again_ns = error == EAGAIN ? base_now_ns() + DIRECT_AGAIN_NS : 0;
	pthread_mutex_unlock(&direct->lock);
	snprintf(why, sizeof(why), "io_setup: %s%s", strerror(error),
		 error == EAGAIN ? ": others have all requests of the node; raise it by sysctl "
				   "fs.aio-max-nr=1048576; tried again each minute"
				 : "");
	if (is_new)
		tell(direct->dataset, false, why);
}

/* ---- a batch ---- */

struct batch {
	struct shards_direct *direct;
	struct reader_many *many;
	struct shard_files *files;
	struct shard_read shard[DIRECT_DEEP];
	struct shard_file *file[DIRECT_DEEP]; /* in use; NULL: of the root */
	struct direct_span span[DIRECT_DEEP];
	struct reader_wanted *wanted[DIRECT_DEEP];
	struct direct_read read[DIRECT_DEEP];
	unsigned n;
};

static bool is_aligned(const uint8_t *to, uint32_t align)
{
	return ((uintptr_t)to & (align - 1)) == 0;
}

/* false: it cannot be read directly. */
static bool add(struct batch *batch, const struct reader_dataset *dataset,
		struct reader_wanted *wanted)
{
	const struct shards_direct *direct = batch->direct;
	const unsigned i = batch->n;
	struct shard_read *shard = &batch->shard[i];
	struct direct_span *span = &batch->span[i];
	int fd = direct->root_fd;

	batch->file[i] = NULL;
	if (!source_shard_place(dataset, dataset->root_fd, wanted->task->sample, wanted->buffer,
				&wanted->outcome, shard) ||
	    !direct_span(shard->at, shard->bytes, direct->align, wanted->before, wanted->behind,
			 span) ||
	    !is_aligned(wanted->buffer - span->before, direct->align))
		return false;
	if (shard->has_name && !(batch->file[i] = source_shard_take_direct(shard, &fd)))
		return false;
	batch->wanted[i] = wanted;
	batch->read[i] = (struct direct_read){
	    .fd = fd, .to = wanted->buffer - span->before, .at = span->at, .bytes = span->bytes};
	batch->n++;
	return true;
}

/* A short one at the file's end has all that is wanted, any other one is left to who can say why. */
static void settle(const struct batch *batch, unsigned i)
{
	const struct direct_read *read = &batch->read[i];
	const uint32_t needs = batch->span[i].before + batch->shard[i].bytes;
	struct reader_wanted *wanted = batch->wanted[i];
	bool is_there = true;

	if (read->result >= 0 && (uint32_t)read->result >= needs) {
		is_there = source_shard_judge(&batch->shard[i], read->fd, 0);
		wanted->is_settled = is_there && wanted->outcome.stage == LAYOUT_FAIL_NONE;
	} else if (read->result < 0 && read->result != -EIO) {
		refuse(batch->direct, -read->result);
	}
	wanted->is_left = !wanted->is_settled;
	if (batch->file[i])
		source_shard_release(batch->files, batch->file[i], !is_there);
}

static void ended(void *arg, const unsigned *number, unsigned n)
{
	const struct batch *batch = arg;

	for (unsigned i = 0; i < n; i++)
		settle(batch, number[i]);
	batch->many->tell(batch->many);
}

/* What cannot be read directly is others' before this thread waits for the rest. */
static void read_direct(const struct reader_dataset *dataset, struct shards_direct *direct,
			struct reader_many *many)
{
	struct batch batch = {.direct = direct,
			      .many = many,
			      .files = ((const struct shards *)dataset->source)->files};
	int r;

	for (unsigned i = 0; i < many->n; i++)
		many->wanted[i].is_left = !add(&batch, dataset, &many->wanted[i]);
	many->tell(many);
	r = direct_queue_read(&many->link->direct,
			      &(struct direct_batch){batch.read, batch.n, ended, &batch});
	if (!r)
		return;
	stop(direct, -r);
	for (unsigned i = 0; i < batch.n; i++) {
		batch.wanted[i]->is_left = true;
		if (batch.file[i])
			source_shard_release(batch.files, batch.file[i], false);
	}
}

void source_direct_many(const struct reader_dataset *dataset, struct reader_many *many)
{
	struct shards_direct *direct = ((const struct shards *)dataset->source)->direct;
	struct direct_meter meter;
	uint64_t bytes = 0;
	bool is_direct;

	pthread_mutex_lock(&direct->lock);
	is_direct = !direct->is_off && direct_choice_next(&direct->choice);
	pthread_mutex_unlock(&direct->lock);
	for (unsigned i = 0; i < many->n; i++)
		many->wanted[i].is_left = !is_direct;
	if (!is_direct)
		return;
	meter = meter_now();
	read_direct(dataset, direct, many);
	for (unsigned i = 0; i < many->n; i++)
		bytes += many->wanted[i].is_settled ? many->wanted[i].task->bytes : 0;
	if (bytes)
		note(direct, true, bytes, &meter);
}

bool source_direct_begin(struct shards_direct *direct, struct direct_meter *ret)
{
	bool is_off;

	if (!direct)
		return false;
	pthread_mutex_lock(&direct->lock);
	is_off = direct->is_off;
	pthread_mutex_unlock(&direct->lock);
	if (!is_off)
		*ret = meter_now();
	return !is_off;
}

void source_direct_end(struct shards_direct *direct, const struct direct_meter *meter,
		       uint64_t bytes)
{
	if (bytes)
		note(direct, false, bytes, meter);
}
