/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Zip archives, each with a tree of folders, of which all together are one tree. What is in one says scan_zip.c; here samples get the labels
 * and the order that they have where the tree is unpacked (scan.c, which says the rule):
 *
 * The root is the option `folder`, or else the folder that all have in common: the last such one below which some lie in another one. The
 * first folder below it is the class. Where there is a picture, sounds do not count, and videos where there is a sound.
 */

#include <stdio.h>

#include "storage/index.h"
#include "storage/reader_parts.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/scan/scan_zip.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

struct tree {
	unsigned kind;              /* of walk_kinds: what its samples are */
	char folder[SCAN_MOST_KEY]; /* the root, with a slash behind it, or "" */
	size_t folder_bytes;
	bool has_class; /* some have one: those without do not count */
};
struct leaf {
	const char *path;
	size_t root; /* bytes of it before what is below that */
	struct indexer_record record;
};

/* ---- the tree ---- */

/* What of a path is below the root; NULL: it is of another kind, or elsewhere. */
static const char *below(const struct tree *tree, const char *path)
{
	return walk_kind_of(path) == tree->kind &&
		       strncmp(path, tree->folder, tree->folder_bytes) == 0
		   ? path + tree->folder_bytes
		   : NULL;
}

/* The root is what the path begins with. */
static void set_folder(struct tree *tree, const char *path, size_t bytes)
{
	memmove(tree->folder, path, bytes);
	tree->folder[bytes] = '\0';
	tree->folder_bytes = bytes;
}

/* Bytes of the folder that is the last one before that byte, with its slash. */
static size_t folder_before(const char *path, size_t bytes)
{
	const char *slash = memrchr(path, '/', bytes);

	return slash ? (size_t)(slash + 1 - path) : 0;
}

typedef void (*path_fn)(struct tree *tree, const char *path);

static void each_path(struct tree *tree, const struct indexer_shard *shard, size_t n, path_fn call)
{
	for (size_t i = 0; i < n; i++) {
		const char *path = shard[i].keys;

		for (size_t k = 0; k < shard[i].n_records; k++, path += strlen(path) + 1)
			call(tree, path);
	}
}

static void look_at_kind(struct tree *tree, const char *path)
{
	tree->kind = BASE_MIN(tree->kind, walk_kind_of(path));
}

/* The first one, of that kind. */
static void begin_folder(struct tree *tree, const char *path)
{
	if (walk_kind_of(path) == tree->kind && !*tree->folder)
		set_folder(tree, path, folder_before(path, strlen(path)));
}

/* The root becomes what both have in common. */
static void look_at_folder(struct tree *tree, const char *path)
{
	size_t same = 0;

	if (walk_kind_of(path) != tree->kind)
		return;
	while (tree->folder[same] && path[same] == tree->folder[same])
		same++;
	set_folder(tree, tree->folder, folder_before(tree->folder, same));
}

static void look_at_class(struct tree *tree, const char *path)
{
	const char *rest = below(tree, path);

	tree->has_class = tree->has_class || (rest && strchr(rest, '/'));
}

static void find_tree(const struct reader_dataset *dataset, const struct indexer_shard *shard,
		      size_t n, struct tree *tree)
{
	const char *options = source_shards_options(dataset);
	char folder[SCAN_ZIP_FOLDER] = "", given[SCAN_ZIP_FOLDER];
	bool is_said;

	*tree = (struct tree){.kind = WALK_KINDS};
	/* "." is one, too: the top */
	is_said = scan_zip_folder(options, folder) &&
		  scan_option(options, "folder", given, sizeof(given)) && *given;
	set_folder(tree, folder, strlen(folder));
	each_path(tree, shard, n, look_at_kind);
	if (!is_said) {
		each_path(tree, shard, n, begin_folder);
		each_path(tree, shard, n, look_at_folder);
	}
	each_path(tree, shard, n, look_at_class);
	if (is_said || tree->has_class || !*tree->folder)
		return;
	set_folder(tree, tree->folder, folder_before(tree->folder, tree->folder_bytes - 1));
	tree->has_class = true; /* one, which is the folder that all are in */
}

/* ---- its order ---- */

static int compare_bytes(const char *one, size_t one_size, const char *other, size_t other_size)
{
	const int r = memcmp(one, other, BASE_MIN(one_size, other_size));

	return r ? r : (one_size > other_size) - (one_size < other_size);
}

/* By class, then by folder, then by name: folders of the index of a folder have this order. */
static int compare(const void *a, const void *b)
{
	const struct leaf *leaf[] = {a, b};
	const char *path[2], *name[2];
	int r;

	for (unsigned i = 0; i < 2; i++) {
		path[i] = leaf[i]->path + leaf[i]->root;
		name[i] = strrchr(path[i], '/');
		name[i] = name[i] ? name[i] : path[i];
	}
	r = compare_bytes(path[0], strcspn(path[0], "/"), path[1], strcspn(path[1], "/"));
	r = r ? r
	      : compare_bytes(path[0], (size_t)(name[0] - path[0]), path[1],
			      (size_t)(name[1] - path[1]));
	return r ? r : strcmp(name[0], name[1]);
}

/* Those of the shard that are samples of the tree. Returns how many. */
static size_t gather(const struct tree *tree, const struct indexer_shard *shard, struct leaf *leaf)
{
	const char *path = shard->keys;
	size_t n = 0;

	for (size_t i = 0; i < shard->n_records; i++, path += strlen(path) + 1) {
		const char *rest = below(tree, path);

		if (rest && (!tree->has_class || strchr(rest, '/')))
			leaf[n++] = (struct leaf){path, tree->folder_bytes, shard->record[i]};
	}
	return n;
}

static int refuse_twice(const struct reader_dataset *dataset, const struct indexer_shard *shard,
			const char *path, struct diag *diag)
{
	return diag_fail(diag, DATASET_E_REFUSED,
			 "dataset \"%s\" is refused: archive \"%s\" has two files \"%s\": write it "
			 "anew, with each name once",
			 BASE_QUOTED(dataset->shown, 200), BASE_QUOTED(shard->name, 150),
			 BASE_QUOTED(path, 200));
}

static int add_class(const struct leaf *leaf, struct words *words, uint32_t *ret)
{
	const char *class_ = leaf->path + leaf->root;
	const size_t bytes = strcspn(class_, "/");
	char word[SCAN_MOST_KEY];
	uint32_t number;
	int r;

	memcpy(word, class_, bytes);
	word[bytes] = '\0';
	r = words_add(words, word, &number);
	if (r == 0)
		*ret = INDEXER_WORDS + number;
	return r;
}

/* The shard's records are these from now on. keys: as large as theirs. */
static int put(const struct tree *tree, struct indexer_shard *shard, const struct leaf *leaf,
	       size_t n, char *keys)
{
	size_t bytes = 0;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		const size_t size = strlen(leaf[i].path) + 1;

		memcpy(keys + bytes, leaf[i].path, size);
		bytes += size;
		shard->record[i] = leaf[i].record;
		if (tree->has_class)
			r = add_class(&leaf[i], &shard->words, &shard->record[i].label);
	}
	memcpy(shard->keys, keys, bytes);
	shard->keys_bytes = bytes;
	shard->n_records = n;
	return r;
}

static int arrange_shard(const struct reader_dataset *dataset, const struct tree *tree,
			 struct indexer_shard *shard, struct diag *diag)
{
	_cleanup_free_ struct leaf *leaf = calloc(shard->n_records, sizeof(*leaf));
	_cleanup_free_ char *keys = malloc(shard->keys_bytes);
	size_t n;
	int r;

	if (!leaf || !keys)
		return -ENOMEM;
	n = gather(tree, shard, leaf);
	qsort(leaf, n, sizeof(*leaf), compare);
	for (size_t i = 1; i < n; i++)
		if (strcmp(leaf[i - 1].path, leaf[i].path) == 0)
			return refuse_twice(dataset, shard, leaf[i].path, diag);
	r = put(tree, shard, leaf, n, keys);
	if (r == -E2BIG)
		return diag_fail(diag, DATASET_E_REFUSED,
				 "dataset \"%s\" is refused: archive \"%s\" has more than 65536 "
				 "folders that are classes; name the one that has the classes by "
				 "?folder=PATH",
				 BASE_QUOTED(dataset->shown, 200), BASE_QUOTED(shard->name, 150));
	return r;
}

/* As the scan makes them, each folder with a name; who makes up others is no scan. */
static bool is_key(const char *path)
{
	for (const char *from = path;; from++) {
		const size_t length = strcspn(from, "/");

		if (length == 0)
			return false;
		from += length;
		if (!*from)
			return true;
	}
}

static bool are_keys(const struct indexer_shard *shard)
{
	const char *path = shard->keys;

	for (size_t i = 0; i < shard->n_records; i++, path += strlen(path) + 1)
		if (!is_key(path))
			return false;
	return true;
}

static int zip_arrange(const struct reader_dataset *dataset, struct indexer_shard *shard, size_t n,
		       const struct scan_progress *progress, struct diag *diag)
{
	const uint64_t memory = source_shards_memory(dataset, shard, n);
	struct tree tree;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (!are_keys(&shard[i]))
			return diag_fail(diag, DATASET_E_REFUSED,
					 "shard \"%s\" of dataset \"%s\" has a sample that is in a "
					 "folder without a name",
					 BASE_QUOTED(shard[i].name, 150),
					 BASE_QUOTED(dataset->shown, 200));
	find_tree(dataset, shard, n, &tree);
	for (size_t i = 0; i < n && !r; i++) {
		if (!shard[i].n_records)
			continue;
		if (!scan_takes(progress, memory + shard[i].keys_bytes +
					      shard[i].n_records * sizeof(struct leaf)))
			return DATASET_E_ROOM;
		r = arrange_shard(dataset, &tree, &shard[i], diag);
	}
	return r;
}

static const struct source_shards zip_shards = {
    .what = "zip archives",
    .suffixes = ".zip\0",
    .compressed = "",
    .gives_way = true,
    .scan = &scan_zip,
    .arrange = zip_arrange,
    .empty = "files count whose names end in " WALK_PICTURE_SUFFIXES
	     ", or of sounds in " WALK_SOUND_SUFFIXES ", or of videos in " WALK_VIDEO_SUFFIXES
	     ", or of point clouds in " WALK_CLOUD_SUFFIXES
	     " (any case), below the option folder, if that is given",
};

const struct source_ops source_zip = {
    .name = "zip",
    .kind = INDEX_OF_ZIP,
    .shards = &zip_shards,
    .options = "folder\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
