/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading one sample, as its kind of data set does (source/source_kind.h), and what holds for all kinds.
 *
 * Errors that network file systems give once and not again (ESTALE after a server's fail-over, EIO)
 * are tried again twice, from the open, after a short pause. All others are the sample's outcome.
 *
 * Names are looked up below the root that was opened. Where a data set was made anew (removed and copied back), that
 * folder is empty for ever, and who has the path now is another one. So what differs or is gone is
 * looked for once more below the folder that has the path now. Where the sample there is the one
 * of the index, that folder takes the root's place, in one step for all threads: dup3() exchanges what the descriptor
 * means. Names, sizes and times are a data set's version, and each sample is compared with them when it is read, so the
 * job goes on with what it asked for; what differs there has changed.
 *
 * Not so where users share: whoever joined has seen by a reader of his own that he may open the root, that root.
 * Who opens the path then gets another stream (daemon/serve/source.c). A data set that is one file keeps it.
 */

#include "storage/source/source_bytes.h"

#include "base/log.h"
#include "storage/source/source_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why it differs from the index: damaged entries read as nothing, and stand for more than one file. */
static void judge_changed(const struct reader_dataset *dataset, uint64_t sample,
			  struct reader_outcome *ret)
{
	if (ret->stage == LAYOUT_FAIL_CHANGED && !dataset_has(dataset->index, sample))
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
				   READ_INDEX_DAMAGED);
}

/* ---- a root that was made anew ---- */

/* May what is not below the root be below the path? */
static bool may_be_anew(const struct reader_dataset *dataset, const struct reader_outcome *outcome)
{
	return dataset->is_folder && dataset->how != READER_HOW_OPEN_ONLY &&
	       (outcome->stage == LAYOUT_FAIL_CHANGED ||
		(outcome->stage == LAYOUT_FAIL_OPEN && outcome->code == ESTALE));
}

/* Any thread may be using the root meanwhile: it finds the one or the other. */
static void take_root(const struct reader_dataset *dataset, int fd)
{
	struct stat now, root;
	char path[512];

	if (fstat(fd, &now) == 0 && fstat(dataset->root_fd, &root) == 0 &&
	    root.st_dev == now.st_dev && root.st_ino == now.st_ino)
		return; /* another thread was here */
	if (dup3(fd, dataset->root_fd, O_CLOEXEC) >= 0)
		log_line(LOG_LEVEL_INFO, "root-made-anew", "path=\"%s\"",
			 base_quote(dataset->root_path, path, sizeof(path)));
}

/* Whether path and root are the same is not asked before the second look: another thread may have exchanged
 * the root since the first one. */
static void look_once(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct reader_outcome *ret)
{
	_cleanup_close_ int fd = -1;

	source_sample_read(dataset, dataset->root_fd, sample, buffer, ret);
	if (may_be_anew(dataset, ret))
		fd = open(dataset->root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	source_sample_read(dataset, fd, sample, buffer, ret);
	if (ret->stage == LAYOUT_FAIL_NONE)
		take_root(dataset, fd);
}

/* ---- samples ---- */

void reader_read_sample(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct reader_outcome *ret)
{
	static const long pause_ns[] = {20000000, 200000000};

	for (size_t i = 0;; i++) {
		look_once(dataset, sample, buffer, ret);
		judge_changed(dataset, sample, ret);
		if (ret->stage == LAYOUT_FAIL_NONE || (ret->code != EIO && ret->code != ESTALE) ||
		    i == BASE_ARRAY_LEN(pause_ns))
			return;
		nanosleep(&(struct timespec){.tv_nsec = pause_ns[i]}, NULL);
	}
}

void reader_check_sample(const struct reader_dataset *dataset, uint64_t sample,
			 struct reader_outcome *ret)
{
	look_once(dataset, sample, NULL, ret);
	judge_changed(dataset, sample, ret);
}
