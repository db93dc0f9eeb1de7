/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All bytes of a data set's files come by these functions: from the disk, or from an object store, where the files that are open are
 * placeholders without any (shmring/bucket.h).
 */

#include "storage/reader_parts.h"
#include "storage/source/source_bucket.h"

struct source_from { /* a file, which is open */
	const struct reader_dataset *dataset;
	const char *name; /* below the root's folder; NULL: the root, which is a file */
	int fd;
	char why[SOURCE_WHY]; /* of the last error that the store knows more of; "" */
};
struct source_piece {
	void *to;
	uint64_t bytes, at;
};

/* Of an object store. */
int source_bytes_fetch(struct source_from *from, const struct source_piece *piece, unsigned n);

/* Exactly these bytes of it. 0; -ENODATA: it has fewer; negative errno, of an object -ESTALE: it is another one by now. */
static inline int source_read(struct source_from *from, void *to, uint64_t bytes, uint64_t at)
{
	const struct source_piece piece = {to, bytes, at};

	if (!from->dataset->bucket)
		return base_read_at(from->fd, to, bytes, at);
	return source_bytes_fetch(from, &piece, 1);
}
/* As much of its begin as there is: bytes. Or as above. */
ssize_t source_read_begin(struct source_from *from, void *to, size_t size);
/* All of it in memory: a descriptor, whose file has the time of change of that one. Or as above. */
int source_read_all(struct source_from *from);
/* Why it failed. */
const char *source_why(const struct source_from *from, int result);
/* Says so of one that is being opened. The result. */
int source_read_failed(const struct source_from *from, int result, struct diag *diag);

/* ---- samples ---- */

/* As ops->read(), wherever bytes are. */
void source_sample_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret);
/* As ops->threads(); 0: as many as others have. */
unsigned source_sample_threads(const struct reader_dataset *dataset);
/* As ops->most() and ops->many(), wherever bytes are. */
unsigned source_sample_most(const struct reader_dataset *dataset, const struct reader_link *link);
void source_sample_many(const struct reader_dataset *dataset, struct reader_many *many);
