/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Indexes of others beside shards that were scanned just now: DALI's (dali.h), one a shard, and those of wids (wids.h), one for many
 * tar shards. Each is read once, when the shards' own index is made, and compared with what was found. None is needed: one that
 * disagrees, or that nobody understands, is set aside, and the first of these is told, with how many there are.
 *
 * Which are there says one listing of each folder that has shards, so that shards without an index cost nothing.
 *
 * The text is a stranger's, and is looked at here, not in a sandbox as shards are: words and numbers in one pass without memory of
 * its own, or JSON, which the daemon takes from any client by the same parser. Its size is bounded, and what comes of it by the data
 * set's room (tests/fuzz/scan_fuzz.c).
 */

#include "storage/source/source_bytes.h"
#include "storage/source/scan/dali.h"
#include "storage/source/scan/index_json.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/scan/wids.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DALI_MOST_TEXT (UINT64_C(1) << 28)

struct beside {
	const struct reader_dataset *dataset;
	const struct scan_progress *progress;
	uint64_t memory; /* that is taken: of the shards, and of a folder's names */
	uint64_t aside;  /* indexes */
	char first[512]; /* of them, and why */
};

BASE_PRINTF(3, 4)
static void set_aside(struct beside *beside, const char *name, const char *fmt, ...)
{
	char why[320];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	if (beside->aside++ == 0)
		snprintf(beside->first, sizeof(beside->first), "%s%s", BASE_QUOTED(name, 128), why);
}

/* May so much be taken beside what is? */
static bool takes(const struct beside *beside, uint64_t bytes)
{
	return scan_takes(beside->progress, beside->memory + bytes);
}

static bool is_cancelled(const struct beside *beside)
{
	const struct scan_progress *progress = beside->progress;

	return progress && progress->cancelled && progress->cancelled(progress->arg);
}

/* ---- files ---- */

/* Its text, which the caller frees; NULL where there is none, or it was set aside. */
static char *read_text(struct beside *beside, const char *name, uint64_t most, size_t *ret_size)
{
	_cleanup_close_ int fd = source_open_file(beside->dataset, beside->dataset->root_fd, name);
	struct source_from from = {.dataset = beside->dataset, .name = name, .fd = fd};
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == -ENOENT || (!r && !S_ISREG(st.st_mode)))
		return NULL;
	if (!r && (uint64_t)st.st_size > most)
		r = -EFBIG;
	if (!r && !takes(beside, (uint64_t)st.st_size))
		r = -ENOMEM;
	if (!r && !(text = malloc((size_t)st.st_size + 1)))
		r = -ENOMEM;
	r = r ? r : source_read(&from, text, (uint64_t)st.st_size, 0);
	if (r) {
		set_aside(beside, name, " cannot be read: %s", source_why(&from, r));
		return NULL;
	}
	*ret_size = (size_t)st.st_size;
	return base_take_ptr(text);
}

static bool is_there(const struct shard_names *names, const char *name)
{
	const uint64_t i = BASE_SEARCH(at, 0, names->n, strcmp(names->name[at], name) < 0);

	return i < names->n && strcmp(names->name[i], name) == 0;
}

/* ---- DALI's ---- */

static struct dali_found found_at(const void *arg, size_t i)
{
	const struct indexer_shard *shard = arg;

	return (struct dali_found){shard->record[i].at, shard->record[i].bytes};
}

/* NAME.idx of NAME.tar, or of a NAME that tells without a suffix what it is. false: it is too long. */
static bool name_of(const struct source_shards *kind, const char *shard, char ret[PATH_MAX])
{
	const char *suffix = source_shards_suffix(shard, kind->suffixes);
	const size_t length = strlen(shard) - (suffix ? strlen(suffix) : 0);

	if (length + sizeof(".idx") > PATH_MAX)
		return false;
	memcpy(ret, shard, length);
	strcpy(ret + length, ".idx");
	return true;
}

static void check_dali(struct beside *beside, const struct indexer_shard *shard,
		       const struct shard_names *names, size_t folder)
{
	const struct dali_shard of = {shard->bytes, shard->n_records, found_at, shard};
	const struct source_shards *kind = beside->dataset->ops->shards;
	_cleanup_free_ char *text = NULL;
	char name[PATH_MAX], quoted[128];
	const char *why;
	uint64_t line = 0;
	size_t size = 0;

	if (!name_of(kind, shard->name, name) || !is_there(names, name + folder) ||
	    !(text = read_text(beside, name, DALI_MOST_TEXT, &size)))
		return;
	why = kind->dali(text, size, &of, &line);
	base_quote(shard->name, quoted, sizeof(quoted));
	if (why && line)
		set_aside(beside, name, ":%llu %s in %s", (unsigned long long)line, why, quoted);
	else if (why)
		set_aside(beside, name, " %s of %s", why, quoted);
}

/* ---- wids' ---- */

/* Of so many shards, which are one folder's, so that the last parts of their names are sorted. NULL: it is none of them. */
static const struct indexer_shard *shard_called(const struct indexer_shard *shard, size_t n,
						size_t folder, const char *name)
{
	const uint64_t i = BASE_SEARCH(at, 0, n, strcmp(shard[at].name + folder, name) < 0);

	return i < n && strcmp(shard[i].name + folder, name) == 0 ? &shard[i] : NULL;
}

/* Samples without a picture are no samples here, but where these are all of their files. */
static void compare_wids(struct beside *beside, const char *name, const struct wids *wids,
			 const struct indexer_shard *shard, size_t n, size_t folder)
{
	bool is_whole = false;

	scan_option_members(beside->dataset->options, &is_whole);
	for (size_t i = 0; i < wids->n; i++) {
		const struct wids_shard *says = &wids->shard[i];
		const struct indexer_shard *is = shard_called(shard, n, folder, says->name);
		char quoted[128];

		base_quote(says->name, quoted, sizeof(quoted));
		if (!is && !beside->dataset->pattern)
			set_aside(beside, name, " names %s, which is not there", quoted);
		else if (is && says->bytes > 0 && says->bytes != is->bytes)
			set_aside(beside, name, " says %llu bytes of %s, which has %llu",
				  (unsigned long long)says->bytes, quoted,
				  (unsigned long long)is->bytes);
		else if (is && (is->n_records > says->samples ||
				(is_whole && is->n_records != says->samples)))
			set_aside(beside, name, " says %llu samples of %s, which has %zu",
				  (unsigned long long)says->samples, quoted, is->n_records);
		else
			continue;
		return;
	}
}

static void check_wids(struct beside *beside, const char *name, const struct indexer_shard *shard,
		       size_t n, size_t folder)
{
	_cleanup_free_ char *text = NULL;
	struct wids wids = {.n = 0};
	size_t size = 0;
	int r;

	if (!(text = read_text(beside, name, WIDS_MOST_TEXT, &size)))
		return;
	r = takes(beside, index_json_weight(text, size)) ? wids_parse(text, size, &wids) : -ENOMEM;
	if (r == WIDS_E_BAD)
		set_aside(beside, name, " has a shard without \"url\" or \"nsamples\"");
	else if (r < 0)
		set_aside(beside, name, " cannot be read: %s", strerror(-r));
	else if (r == 0)
		compare_wids(beside, name, &wids, shard, n, folder);
	wids_fini(&wids);
}

/* ---- folders ---- */

/* Bytes of the name that are its folder's, with the slash. */
static size_t folder_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? (size_t)(slash + 1 - name) : 0;
}

/* 0 or DATASET_E_CANCELLED. */
static int check_names(struct beside *beside, const struct indexer_shard *shard, size_t n,
		       const struct shard_names *names, size_t folder)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < n && !is_cancelled(beside); i++)
		check_dali(beside, &shard[i], names, folder);
	for (size_t i = 0; i < names->n && !is_cancelled(beside); i++) {
		const int size = snprintf(path, sizeof(path), "%.*s%s", (int)folder, shard->name,
					  names->name[i]);

		if (source_shards_suffix(names->name[i], ".json\0") && size > 0 &&
		    (size_t)size < sizeof(path))
			check_wids(beside, path, shard, n, folder);
	}
	return is_cancelled(beside) ? DATASET_E_CANCELLED : 0;
}

/* Of shards that are in one folder. 0, DATASET_E_CANCELLED or -ENOMEM. */
static int check_folder(struct beside *beside, const struct indexer_shard *shard, size_t n,
			size_t folder)
{
	const bool has_wids = beside->dataset->ops->shards->has_wids;
	struct shard_names names = {.name = NULL};
	char path[PATH_MAX] = ".";
	int r, checked = 0;

	if (folder >= sizeof(path))
		return 0;
	if (folder > 0)
		snprintf(path, sizeof(path), "%.*s", (int)folder, shard->name);
	r = source_shards_beside(beside->dataset->root_fd, path,
				 has_wids ? ".idx\0.json\0" : ".idx\0", &names);
	if (!r && takes(beside, names.bytes)) {
		beside->memory += names.bytes;
		checked = check_names(beside, shard, n, &names, folder);
		beside->memory -= names.bytes;
	}
	source_shards_names_free(&names);
	return r == -ENOMEM ? r : checked; /* one that may not be listed has none */
}

int source_beside_check(const struct reader_dataset *dataset, const struct indexer_shard *shard,
			size_t n, const struct scan_progress *progress)
{
	struct beside beside = {dataset, progress, source_shards_memory(dataset, shard, n), 0, ""};
	int r = 0;

	if (!dataset->ops->shards->dali || !dataset->is_folder)
		return 0;
	for (size_t i = 0, end; i < n && !r; i = end) {
		const size_t folder = folder_of(shard[i].name);

		end = i + 1;
		while (end < n && folder_of(shard[end].name) == folder &&
		       memcmp(shard[end].name, shard[i].name, folder) == 0)
			end++;
		r = check_folder(&beside, &shard[i], end - i, folder);
	}
	if (beside.aside && progress && progress->aside)
		progress->aside(progress->arg, beside.aside, beside.first);
	return r;
}
