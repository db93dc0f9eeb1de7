/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of kinds, and what all of them do with an index.
 */

#include "storage/source/source_kind.h"

#include "storage/reader_parts.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/source_bucket.h"
#include "storage/source/source_shards.h"

#include <fcntl.h>
#include <stdio.h>

static const struct source_ops *const kinds[] = {
#define SOURCE(name) &source_##name,
#include "storage/source/source_tbl.h"
#undef SOURCE
};

/* Of a list "one\0other\0". */
static bool has_word(const char *words, const char *word, size_t length)
{
	for (; words && *words; words += strlen(words) + 1)
		if (strlen(words) == length && memcmp(words, word, length) == 0)
			return true;
	return false;
}

static int refuse_options(const struct reader_dataset *dataset, struct diag *diag)
{
	char list[200] = "none";
	size_t used = 0;

	for (const char *word = dataset->ops->options; word && *word && used < sizeof(list);
	     word += strlen(word) + 1)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
					 word);
	return diag_fail(
	    diag, DATASET_E_REFUSED,
	    "the options of dataset \"%s\" cannot be used: they are written PATH?key=value,"
	    "key=value, each once, and for a data set of this kind (%s) there are: %s",
	    BASE_QUOTED(dataset->shown, 400), dataset->ops->name, list);
}

/* Is there one of that key before it? */
static bool is_second(const char *options, const struct scan_option *option)
{
	struct scan_option before;

	while (scan_option_next(&options, &before) && before.key < option->key)
		if (before.key_bytes == option->key_bytes &&
		    memcmp(before.key, option->key, before.key_bytes) == 0)
			return true;
	return false;
}

/* Each is one that the kind takes, once, and has a value; what that is worth, the kind says. */
static int check_options(const struct reader_dataset *dataset, struct diag *diag)
{
	const char *at = dataset->options;
	const size_t length = strlen(at);
	struct scan_option option;

	if (length && at[length - 1] == ',')
		return refuse_options(dataset, diag);
	while (scan_option_next(&at, &option))
		if (!option.value_bytes ||
		    !has_word(dataset->ops->options, option.key, option.key_bytes) ||
		    is_second(dataset->options, &option))
			return refuse_options(dataset, diag);
	return 0;
}

int source_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		 struct diag *diag)
{
	int r = dataset->bucket ? source_bucket_check(dataset, diag) : 0;

	if (r)
		return r;
	r = SOURCE_E_NONE;
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds) && r == SOURCE_E_NONE; i++) {
		dataset->ops = kinds[i];
		r = kinds[i]->probe(dataset, progress, diag);
	}
	return r ? r : check_options(dataset, diag);
}

bool source_is_of_others(const struct source_shards *shards, const char *name, bool may_give_way)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		if (kinds[i]->shards && kinds[i]->shards != shards &&
		    (shards->gives_way || !kinds[i]->shards->resolve) &&
		    (may_give_way || !kinds[i]->shards->gives_way) &&
		    source_shards_has_name(kinds[i]->shards, name))
			return true;
	return false;
}

void reader_outcome_set(struct reader_outcome *ret, enum layout_fail stage, int code,
			const char *text)
{
	ret->stage = stage;
	ret->code = code;
	snprintf(ret->text, sizeof(ret->text), "%s", text);
}

static int open_once(int root_fd, const char *name, int more)
{
	int fd;

	do
		fd = openat(root_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | more);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int source_open_file(const struct reader_dataset *dataset, int root_fd, const char *name)
{
	const bool no_atime = dataset->no_atime;
	int fd;

	if (dataset->bucket) /* it has no bytes: what would read it shall fail */
		return open_once(root_fd, name, O_PATH);
	fd = open_once(root_fd, name, O_NONBLOCK | (no_atime ? O_NOATIME : 0));
	if (fd == -EPERM && no_atime) /* a file of another owner */
		fd = open_once(root_fd, name, O_NONBLOCK);
	if (fd == -EAGAIN) /* a lease is being broken: wait for it */
		fd = open_once(root_fd, name, 0);
	return fd;
}

int source_open_shard(const struct reader_dataset *dataset, const char *name)
{
	int fd;

	if (dataset->is_folder)
		return source_open_file(dataset, dataset->root_fd, name);
	fd = fcntl(dataset->root_fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

void source_unmap(struct reader_dataset *dataset)
{
	dataset_unmap(dataset->index);
	dataset->index = NULL;
}

bool source_map_stored(struct reader_dataset *dataset)
{
	if (dataset->stored_fd < 0 || dataset_map(dataset->stored_fd, &dataset->index))
		return false;
	if (dataset_kind(dataset->index) == dataset->ops->kind)
		return true;
	source_unmap(dataset);
	return false;
}

int source_map_new(struct reader_dataset *dataset, int *fd, struct diag *diag)
{
	const int r = dataset_map(*fd, &dataset->index);

	if (!r)
		return 0;
	diag_set(diag, "the new index of the dataset cannot be mapped: %s",
		 r < 0 ? strerror(-r) : "damaged");
	base_close(fd);
	return r;
}
