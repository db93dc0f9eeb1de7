/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/source_index_json.h"

#include "storage/source/source_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int source_index_json_refuse(const struct reader_dataset *dataset, const char *shard,
			     const char *what, struct diag *diag)
{
	return diag_fail(diag, DATASET_E_REFUSED,
			 "dataset \"%s\" is refused: shard \"%s\" %s; copy the data set anew",
			 BASE_QUOTED(dataset->shown, 256), BASE_QUOTED(shard, 128), what);
}

int source_index_json_check(const struct reader_dataset *dataset, const struct index_json *index,
			    bool is_less, struct diag *diag)
{
	for (size_t i = 0; i < index->n; i++) {
		const struct index_json_shard *shard = &index->shard[i];
		struct stat st;

		if (fstatat(dataset->root_fd, shard->name, &st, 0) < 0)
			return source_index_json_refuse(dataset, shard->name,
							"is not there, but " INDEX_JSON " names it",
							diag);
		if ((uint64_t)st.st_size != shard->bytes &&
		    (!is_less || (uint64_t)st.st_size != shard->bytes + 4 * (shard->samples + 2)))
			return source_index_json_refuse(dataset, shard->name,
							"has not the size that " INDEX_JSON " says",
							diag);
	}
	return 0;
}

/* Its text; 0 and NULL where there is none. */
static int read_text(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     uint64_t held, char **ret, size_t *ret_size, struct diag *diag)
{
	_cleanup_close_ int fd = source_open_file(dataset, dataset->root_fd, INDEX_JSON);
	struct source_from from = {.dataset = dataset, .name = INDEX_JSON, .fd = fd};
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return source_read_failed(&from, fd < 0 ? fd : -errno, diag);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	if ((uint64_t)st.st_size > INDEX_JSON_MOST_TEXT)
		return source_read_failed(&from, -EFBIG, diag);
	if (!scan_takes(progress, held + (uint64_t)st.st_size))
		return DATASET_E_ROOM;
	text = malloc((size_t)st.st_size);
	r = text ? source_read(&from, text, (uint64_t)st.st_size, 0) : -ENOMEM;
	if (r)
		return source_read_failed(&from, r, diag);
	*ret = base_take_ptr(text);
	*ret_size = (size_t)st.st_size;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct index_json_shard *)a)->name,
		      ((const struct index_json_shard *)b)->name);
}

int source_index_json(const struct reader_dataset *dataset, const struct scan_progress *progress,
		      uint64_t held, source_index_json_fn parse, void *arg, struct index_json *ret,
		      struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	struct diag why = {.text = ""};
	size_t size = 0;
	int r = read_text(dataset, progress, held, &text, &size, diag);

	*ret = (struct index_json){.n = 0};
	if (r)
		return r;
	if (text && !scan_takes(progress, held + index_json_weight(text, size)))
		return DATASET_E_ROOM;
	if (text)
		r = parse(text, size, arg, ret, &why);
	if (r == INDEX_JSON_E_BAD)
		return diag_fail(diag, DATASET_E_REFUSED, "dataset \"%s\" is refused: %s",
				 BASE_QUOTED(dataset->shown, 256), why.text);
	if (r < 0)
		diag_set(diag, "cannot read " INDEX_JSON " of the dataset: %s", strerror(-r));
	else if (ret->n)
		qsort(ret->shard, ret->n, sizeof(*ret->shard), compare);
	return r == INDEX_JSON_E_NONE ? 0 : r;
}
