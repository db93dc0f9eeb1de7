/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which tokens of a .bin count for the loss: a .loss of the same name, with a byte for each token, 0 where it does not. A label is
 * the next token, so it is LOSS_IGNORED where that one does not count.
 *
 * The .loss is a stranger's: that it has as many bytes as the .bin has tokens is checked when it is opened, and that it is
 * still the same file behind each read. Its bytes may be any.
 */

#include "storage/source/source_rows.h"

#include "base/little.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

struct loss {
	int fd;     /* owned */
	char *name; /* owned; below the root's folder */
	uint64_t bytes;
	int64_t mtime_ns;
};

int source_loss_open(const struct reader_dataset *dataset, uint64_t tokens, struct loss **ret,
		     struct diag *why)
{
	const char *path = dataset->name;
	const size_t stem = strlen(path) - BASE_MIN(strlen(path), strlen(".bin"));
	_cleanup_close_ int fd = -1;
	char name[PATH_MAX];
	struct loss *loss;
	struct stat st;

	if (strcmp(path + stem, ".bin") != 0 ||
	    snprintf(name, sizeof(name), "%.*s.loss", (int)stem, path) >= (int)sizeof(name))
		return diag_fail(why, DATASET_E_REFUSED,
				 "loss is of a .bin, with a .loss beside it");
	fd = source_open_file(dataset, AT_FDCWD, name);
	if (fd == -ENOENT)
		return diag_fail(
		    why, DATASET_E_REFUSED,
		    "there is no .loss beside it, with a byte for each token; "
		    "oneaccess.tokenize() writes it with prompt=, messages= or render=");
	if (fd < 0 || fstat(fd, &st) < 0)
		return diag_fail(why, DATASET_E_REFUSED, "its .loss: %s",
				 strerror(fd < 0 ? -fd : errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != tokens)
		return diag_fail(
		    why, DATASET_E_REFUSED,
		    "its .loss is no file of %llu bytes, one for each token: they do not "
		    "belong together, or one is cut off",
		    (unsigned long long)tokens);
	loss = calloc(1, sizeof(*loss));
	if (loss)
		loss->name = strdup(strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	if (!loss || !loss->name) {
		free(loss);
		return -ENOMEM;
	}
	loss->fd = base_take_fd(&fd);
	loss->bytes = tokens;
	loss->mtime_ns = walk_mtime_ns(&st);
	*ret = loss;
	return 0;
}

void source_loss_free(struct loss *loss)
{
	if (!loss)
		return;
	base_close(&loss->fd);
	free(loss->name);
	free(loss);
}

int64_t source_loss_stamp(const struct loss *loss)
{
	return loss->mtime_ns;
}

int source_loss_fetch(const struct loss *loss, const struct reader_dataset *dataset,
		      const struct source_piece *piece, unsigned n)
{
	struct source_from from = {.dataset = dataset, .name = loss->name, .fd = loss->fd};
	int r = 0;

	if (dataset->bucket)
		return source_bytes_fetch(&from, piece, n);
	for (unsigned i = 0; i < n && !r; i++)
		r = base_read_at(loss->fd, piece[i].to, piece[i].bytes, piece[i].at);
	return r;
}

void source_loss_mark(const uint8_t *counts, uint64_t n, uint8_t *labels)
{
	for (uint64_t i = 0; i < n; i++)
		if (!counts[i + 1])
			little_put_64(labels + 8 * i, (uint64_t)LOSS_IGNORED);
}

int source_loss_read(const struct rows *rows, const struct reader_dataset *dataset, uint64_t sample,
		     uint8_t *ret)
{
	const uint64_t length = rows->values / LOSS_ROWS, bytes = number_bytes(rows->number);
	_cleanup_free_ uint8_t *raw = malloc((length + 1) * bytes), *counts = malloc(length + 1);
	const struct source_piece piece = {counts, length + 1, sample * length};
	struct source_from from = {.dataset = dataset, .fd = dataset->root_fd};
	uint8_t *labels = ret + 8 * length;
	int r = raw && counts ? source_read(&from, raw, (length + 1) * bytes,
					    rows->at + sample * rows->stride)
			      : -ENOMEM;

	if (!r)
		r = source_loss_fetch(rows->loss, dataset, &piece, 1);
	if (r)
		return r;
	number_widen(rows->number, raw, length, ret);
	number_widen(rows->number, raw + bytes, length, labels);
	source_loss_mark(counts, length, labels);
	return 0;
}

bool source_loss_is_same(const struct loss *loss)
{
	struct stat st;

	return fstat(loss->fd, &st) == 0 && walk_is_same(&st, loss->bytes, loss->mtime_ns);
}
