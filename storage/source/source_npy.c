/* SPDX-License-Identifier: Apache-2.0 */

/* Opening a .npy that lies beside others: series, starts of them, arrays of fields. */

#include "storage/source/source_npy.h"

#include "storage/openness.h"
#include "storage/source/source_kind.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Is it there to be read, and open to everybody where that matters? As probe(). */
static int look_at(const struct scan_progress *progress, int folder_fd, const char *name, int fd,
		   struct stat *ret, struct diag *why)
{
	struct stat link;

	if (fd < 0 || fstat(fd, ret) < 0)
		return diag_fail(why, DATASET_E_REFUSED, "its file \"%s\": %s",
				 BASE_QUOTED(name, 200), strerror(fd < 0 ? -fd : errno));
	if (!S_ISREG(ret->st_mode))
		return diag_fail(why, DATASET_E_REFUSED, "\"%s\" is no regular file",
				 BASE_QUOTED(name, 200));
	if (progress->open_only &&
	    (strchr(name, '/') || fstatat(folder_fd, name, &link, AT_SYMLINK_NOFOLLOW) < 0 ||
	     !openness_of_file(folder_fd, name, &link) || !openness_is_there(&link)))
		return diag_fail(why, DATASET_E_CLOSED,
				 "not all files of the dataset are open to everybody");
	return 0;
}

static int read_head(struct source_npy *file, struct diag *why)
{
	_cleanup_free_ uint8_t *head = malloc(NPY_MOST_HEAD);
	struct diag text = {.text = ""};
	ssize_t got;
	int r;

	if (!head)
		return -ENOMEM;
	got = source_read_begin(&file->from, head, NPY_MOST_HEAD);
	if (got < 0)
		return source_read_failed(&file->from, (int)got, why);
	r = npy_read(head, (size_t)got, file->bytes, &file->npy, &text);
	if (r)
		return diag_fail(why, DATASET_E_REFUSED, "\"%s\": %s",
				 BASE_QUOTED(file->from.name, 200),
				 r == NPY_E_NONE ? "it is no .npy" : text.text);
	return 0;
}

int source_npy_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		    int folder_fd, const char *name, struct source_npy *ret, struct diag *why)
{
	struct stat st;
	int r;

	*ret = (struct source_npy){.from = {.dataset = dataset,
					    .name = name,
					    .fd = source_open_file(dataset, folder_fd, name)}};
	r = look_at(progress, folder_fd, name, ret->from.fd, &st, why);
	if (r)
		return r;
	ret->bytes = (uint64_t)st.st_size;
	ret->mtime_ns = walk_mtime_ns(&st);
	return read_head(ret, why);
}

void source_npy_close(struct source_npy *npy)
{
	base_close(&npy->from.fd);
}
