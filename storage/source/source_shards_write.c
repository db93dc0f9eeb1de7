/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data sets that lie in shards: the index of what was found in them.
 *
 * The option leave_out takes samples out of it whose records cannot be taken out of their shard just now.
 *
 * Labels are numbers, or words. Where one is a word all are, the numbers by their digits: classes are then the words in
 * their order as bytes, as folders are.
 */

#include "storage/source/source_shards.h"

#include "storage/index.h"
#include "storage/source/numbered.h"
#include "storage/source/scan/scan_option.h"
#include "storage/reader_parts.h"
#include "storage/source/source_indexer.h"

#include <limits.h>
#include <stdio.h>

struct found { /* all shards, scanned */
	const struct reader_dataset *dataset;
	struct indexer_shard *shard;
	size_t n;
	bool has_labels;
	uint32_t largest_label;
	struct words words;     /* labels, if there are words among them */
	const char **class_;    /* owned; the words in their order */
	struct index_head head; /* its numbers */
};

/* ---- labels ---- */

/* Where a sample is told: "shard:byte (key)", or "manifest:line (file)". */
static void place_text(const struct found *found, const struct indexer_shard *shard, size_t record,
		       const char *key, char ret[320])
{
	const struct source_shards *kind = found->dataset->ops->shards;
	const uint64_t at = source_shards_at(kind, shard->record[record].at);

	snprintf(ret, 320, "%s:%llu (%s)", BASE_QUOTED(shard->name, 150),
		 (unsigned long long)(kind->resolve
					  ? source_manifest_line(found->dataset, shard->name, at)
					  : at),
		 BASE_QUOTED(key, 120));
}

/* The first sample that has a label, or has none; false: there is no such. */
static bool find_labelled(const struct found *found, bool has_label, char ret[320])
{
	for (size_t i = 0; i < found->n; i++) {
		const struct indexer_shard *shard = &found->shard[i];
		const char *key = shard->keys;

		for (size_t k = 0; k < shard->n_records; k++, key += strlen(key) + 1)
			if ((shard->record[k].label != SCAN_NO_LABEL) == has_label) {
				place_text(found, shard, k, key, ret);
				return true;
			}
	}
	return false;
}

/* All samples have one, or none has. */
static int check_labels(struct found *found, struct diag *diag)
{
	char with[320], without[320];

	found->has_labels = find_labelled(found, true, with);
	if (!found->has_labels || !find_labelled(found, false, without))
		return 0;
	return diag_fail(
	    diag, DATASET_E_REFUSED,
	    "dataset \"%s\" is refused: sample %s has no label, and %s has one: give all "
	    "samples a label, or none",
	    BASE_QUOTED(found->dataset->shown, 200), without, with);
}

static int add_word(struct found *found, const char *word, uint32_t *label, struct diag *diag)
{
	const int r = words_add(&found->words, word, label);

	if (r != -E2BIG)
		return r;
	return diag_fail(diag, DATASET_E_REFUSED, "the data set is refused: it " WORDS_TOO_MANY);
}

/* The number of each label's word among those of all shards, in its place. */
static int gather_words(struct found *found, struct indexer_shard *shard, struct diag *diag)
{
	_cleanup_free_ uint32_t *own = calloc(shard->words.n + 1, sizeof(*own));
	char number[16];
	int r = own ? 0 : -ENOMEM;

	for (size_t i = 0; i < shard->words.n && !r; i++)
		r = add_word(found, words_of(&shard->words, (uint32_t)i), &own[i], diag);
	for (size_t i = 0; i < shard->n_records && !r; i++) {
		uint32_t *label = &shard->record[i].label;

		if (*label >= INDEXER_WORDS) {
			*label = own[*label - INDEXER_WORDS];
		} else {
			snprintf(number, sizeof(number), "%u", *label);
			r = add_word(found, number, label, diag);
		}
	}
	return r;
}

/* From numbers of words to their places in the order of the classes. */
static int order_classes(struct found *found)
{
	_cleanup_free_ uint32_t *order = words_order(&found->words);

	found->class_ = calloc(found->words.n, sizeof(*found->class_));
	if (!order || !found->class_)
		return -ENOMEM;
	for (size_t i = 0; i < found->words.n; i++)
		found->class_[order[i]] = words_of(&found->words, (uint32_t)i);
	for (size_t i = 0; i < found->n; i++)
		for (size_t k = 0; k < found->shard[i].n_records; k++)
			found->shard[i].record[k].label = order[found->shard[i].record[k].label];
	return 0;
}

/* 0 where there are none. */
static int name_classes(struct found *found, struct diag *diag)
{
	bool has_words = false;
	int r = 0;

	for (size_t i = 0; i < found->n; i++)
		has_words = has_words || found->shard[i].words.n > 0;
	for (size_t i = 0; i < found->n && has_words && !r; i++)
		r = gather_words(found, &found->shard[i], diag);
	if (!r && has_words)
		r = order_classes(found);
	if (r < 0)
		diag_set(diag, "not enough memory for the classes of the dataset");
	return r;
}

/* ---- names ---- */

/* What stands before a sample's key: "SHARD:"; before a file's, that is not whole, the manifest's folder. ret: room for any.
 * Returns its bytes. */
static size_t put_prefix(const struct found *found, const struct indexer_shard *shard,
			 const char *key, char *ret)
{
	const char *slash = strrchr(shard->name, '/');

	if (!found->dataset->ops->shards->resolve)
		return (size_t)(stpcpy(stpcpy(ret, shard->name), ":") - ret);
	if (*key == '/' || !slash)
		return 0;
	memcpy(ret, shard->name, (size_t)(slash + 1 - shard->name));
	return (size_t)(slash + 1 - shard->name);
}

/* ---- samples that are left out ---- */

/* A shard's records of that key. */
static void take_out(struct indexer_shard *shard, const char *wanted, size_t bytes)
{
	char *key = shard->keys, *kept = key;
	size_t n = 0;

	for (size_t i = 0; i < shard->n_records; i++) {
		const size_t size = strlen(key) + 1;

		if (size != bytes + 1 || memcmp(key, wanted, bytes) != 0) {
			memmove(kept, key, size);
			kept += size;
			shard->record[n++] = shard->record[i];
		}
		key += size;
	}
	shard->keys_bytes = (size_t)(kept - shard->keys);
	shard->n_records = n;
}

/* The sample "SHARD:KEY". false: there is none. */
static bool leave_out_one(const struct found *found, const char *name, size_t bytes)
{
	size_t before = 0, after = 0;

	for (size_t i = 0; i < found->n; i++) {
		struct indexer_shard *shard = &found->shard[i];
		const size_t size = strlen(shard->name);

		if (bytes <= size || memcmp(name, shard->name, size) != 0 || name[size] != ':')
			continue;
		before += shard->n_records;
		take_out(shard, name + size + 1, bytes - size - 1);
		after += shard->n_records;
	}
	return after < before;
}

/* Is the name at `at` one of those before it? */
static bool is_named_before(const char *names, size_t at, size_t bytes)
{
	for (size_t i = 0, size; i < at; i += size + 1) {
		size = strcspn(names + i, ";,");
		if (size == bytes && memcmp(names + i, names + at, bytes) == 0)
			return true;
	}
	return false;
}

/* What is no sample's name would leave in what was to go. */
static int leave_out_names(const struct found *found, const char *names, size_t all,
			   struct diag *diag)
{
	char text[512];

	for (size_t at = 0, bytes; at < all; at += bytes + 1) {
		const char *name = names + at;

		bytes = strcspn(name, ";,");
		if (is_named_before(names, at, bytes) || leave_out_one(found, name, bytes))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)bytes, name);
		return diag_fail(
		    diag, DATASET_E_REFUSED,
		    "dataset \"%s\" is refused: leave_out: there is no sample \"%s\": "
		    "names are SHARD:KEY, as access-ctl bad shows them, with ; between; a name "
		    "with , ; or ? cannot be given: write its shard anew without it",
		    BASE_QUOTED(found->dataset->shown, 200), BASE_QUOTED(text, 400));
	}
	return 0;
}

static int leave_out(const struct found *found, struct diag *diag)
{
	static const char key[] = "leave_out";
	const char *at = found->dataset->options;
	struct scan_option option;
	int r = 0;

	while (!r && scan_option_next(&at, &option))
		if (option.key_bytes == strlen(key) &&
		    memcmp(option.key, key, option.key_bytes) == 0)
			r = leave_out_names(found, option.value, option.value_bytes, diag);
	return r;
}

/* ---- the index ---- */

/* Of all samples, also those that are left out: classes keep their numbers. */
static void find_largest_label(struct found *found)
{
	for (size_t i = 0; i < found->n && found->has_labels; i++)
		for (size_t k = 0; k < found->shard[i].n_records; k++)
			found->largest_label =
			    BASE_MAX(found->largest_label, found->shard[i].record[k].label);
}

static void measure(struct found *found, char *name)
{
	struct index_head *head = &found->head;

	head->kind = found->dataset->ops->kind;
	head->n_folders = found->n;
	for (size_t i = 0; i < found->n; i++) {
		const struct indexer_shard *shard = &found->shard[i];
		const char *key = shard->keys;

		head->youngest_ns = BASE_MAX(head->youngest_ns, shard->ctime_ns);
		head->folders_bytes += strlen(shard->name) + 1;
		head->n_samples += shard->n_records;
		head->names_bytes += shard->keys_bytes;
		for (size_t k = 0; k < shard->n_records; k++, key += strlen(key) + 1)
			head->names_bytes += put_prefix(found, shard, key, name);
	}
	head->label_rule = found->has_labels ? INDEX_LABELS_OWN : INDEX_LABELS_FLAT;
	head->n_classes = found->has_labels ? (uint64_t)found->largest_label + 1 : 0;
	head->classes_bytes =
	    found->class_ ? found->words.text_bytes : numbered_bytes(head->n_classes, 1);
}

/* name: room for the longest. */
static void write_shard(struct index_writer *writer, const struct found *found,
			const struct indexer_shard *shard, char *name)
{
	const char *key = shard->keys;

	index_add_shard(writer, shard->name, shard->bytes, shard->mtime_ns);
	for (size_t i = 0; i < shard->n_records; i++, key += strlen(key) + 1) {
		const struct indexer_record *record = &shard->record[i];
		const struct index_record is = {
		    .mtime_ns = (int64_t)record->at,
		    .size = record->bytes,
		    .label = found->has_labels ? record->label : 0,
		};

		strcpy(name + put_prefix(found, shard, key, name), key);
		index_add_sample(writer, "", name, &is);
	}
}

static void write_classes(struct index_writer *writer, const struct found *found)
{
	char name[24];

	for (uint64_t i = 0; i < found->head.n_classes; i++) {
		snprintf(name, sizeof(name), "%llu", (unsigned long long)i);
		index_add_class(writer, found->class_ ? found->class_[i] : name);
	}
}

static int write_all(struct found *found, char *name, int *ret_fd, struct diag *diag)
{
	struct index_writer writer;
	int r = index_new(&writer, &found->head);

	if (r)
		return diag_fail(diag, r,
				 "cannot make the index of dataset \"%s\" (%llu samples): %s",
				 BASE_QUOTED(found->dataset->shown, 256),
				 (unsigned long long)found->head.n_samples, strerror(-r));
	index_add_options(&writer, source_shards_options(found->dataset));
	for (size_t i = 0; i < found->n; i++)
		write_shard(&writer, found, &found->shard[i], name);
	write_classes(&writer, found);
	r = index_seal(&writer, ret_fd);
	index_drop(&writer);
	return r;
}

static int refuse_empty(const struct reader_dataset *dataset, struct diag *diag)
{
	return diag_fail(diag, DATASET_E_EMPTY, "no sample found in the %s of dataset \"%s\": %s",
			 dataset->ops->shards->what, BASE_QUOTED(dataset->shown, 256),
			 dataset->ops->shards->empty);
}

static int write_found(struct found *found, unsigned threads, const struct scan_progress *progress,
		       int *ret_fd, struct diag *diag)
{
	const struct source_shards *kind = found->dataset->ops->shards;
	_cleanup_free_ char *name = malloc(PATH_MAX + SCAN_MOST_KEY);
	int r = name ? 0 : -ENOMEM;

	if (!r && kind->arrange)
		r = kind->arrange(found->dataset, found->shard, found->n, progress, diag);
	r = r ? r : check_labels(found, diag);
	r = r ? r : name_classes(found, diag);
	if (r)
		return r;
	find_largest_label(found);
	r = leave_out(found, diag);
	if (!r && kind->resolve)
		r = kind->resolve(found->dataset, found->shard, found->n, threads, progress, diag);
	if (r)
		return r;
	measure(found, name);
	if (!found->head.n_samples)
		return refuse_empty(found->dataset, diag);
	if (!scan_takes(progress, source_shards_memory(found->dataset, found->shard, found->n) +
				      index_bytes(&found->head)))
		return DATASET_E_ROOM;
	return write_all(found, name, ret_fd, diag);
}

uint64_t source_shards_memory(const struct reader_dataset *dataset,
			      const struct indexer_shard *shard, size_t n)
{
	return ((const struct shards *)dataset->source)->names.bytes +
	       source_indexer_memory(shard, n);
}

int source_shards_write(const struct reader_dataset *dataset, struct indexer_shard *shard, size_t n,
			unsigned threads, const struct scan_progress *progress, int *ret_fd,
			struct diag *diag)
{
	struct found found = {.dataset = dataset, .shard = shard, .n = n};
	const int r = write_found(&found, threads, progress, ret_fd, diag);

	words_fini(&found.words);
	free(found.class_);
	return r;
}
