/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which files are a data set's shards.
 *
 * A folder is one of shards if some of its files have a shard's suffix, and it has neither a picture nor a
 * folder: with one of these it is a folder of pictures, as it always was, whatever else lies there. Hidden files do
 * not count. Compressed shards are refused, but where only those of another kind are whole: these are the data set, and the
 * archive beside them is not. Kinds that give way are asked behind all other shards. A list of shards has braces, as the webdataset
 * package takes them: {000..123}, {train,val}.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define PATTERN_MOST_GROUPS 16

void source_shards_names_free(struct shard_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct shard_names){.name = NULL};
}

static const char *suffix_of(const char *name, size_t length, const char *suffixes)
{
	for (const char *suffix = suffixes; *suffix; suffix += strlen(suffix) + 1) {
		const size_t size = strlen(suffix);

		if (length > size && !strncasecmp(name + length - size, suffix, size))
			return suffix;
	}
	return NULL;
}

const char *source_shards_suffix(const char *name, const char *suffixes)
{
	return suffix_of(name, strlen(name), suffixes);
}

/* The bytes before "-00000-of-00128", in which the name ends; in a list before "-{00000..00127}-of-00128". 0: it does not. */
static size_t before_number(const char *name)
{
	const char *of = strstr(name, "-of-"), *at;

	for (const char *next = of; next; next = strstr(of + 1, "-of-"))
		of = next;
	if (!of || of == name || !strchr("0123456789}", of[-1]) || !of[4] ||
	    of[4 + strspn(of + 4, "0123456789")])
		return 0;
	for (at = of; at > name && strchr("0123456789{}.,", at[-1]); at--)
		;
	return at > name + 1 && at[-1] == '-' ? (size_t)(at - 1 - name) : (size_t)(of - name);
}

bool source_shards_has_name(const struct source_shards *kind, const char *name)
{
	const size_t before = before_number(name);

	return source_shards_suffix(name, kind->suffixes) ||
	       suffix_of(name, before, kind->suffixes) ||
	       (kind->is_numbered && before && !source_is_of_others(kind, name, true));
}

int source_shards_refuse_compressed(const struct reader_dataset *dataset, const char *name,
				    struct diag *diag)
{
	static const char unpacked[] =
	    ".gz\0.tgz\0.zlib\0.zst\0.zstd\0"; /* by access-ctl convert */
	const bool is_unpacked =
	    source_shards_suffix(name, unpacked) && !dataset->ops->shards->resolve;
	char path[200], mend[300];

	base_quote(dataset->shown, path, sizeof(path));
	if (is_unpacked)
		snprintf(mend, sizeof(mend),
			 "write plain shards with access-ctl convert \"%s\" NEW.tar", path);
	else
		snprintf(mend, sizeof(mend),
			 "unpack it (gunzip, bunzip2, unxz) and give the plain %s",
			 dataset->ops->shards->what);
	diag_set(diag,
		 "dataset \"%s\" is refused: \"%s\" is compressed, so that no sample of it can be "
		 "read alone: %s; pictures are compressed already",
		 path, BASE_QUOTED(name, 150), mend);
	return is_unpacked ? DATASET_E_COMPRESSED : DATASET_E_REFUSED;
}

static int refuse(const struct reader_dataset *dataset, int code, const char *what,
		  struct diag *diag)
{
	return diag_fail(diag, code, "the list of shards \"%s\" cannot be used: %s",
			 BASE_QUOTED(dataset->shown, 400), what);
}

int source_shards_add(struct shard_names *names, const char *name)
{
	const uint64_t bytes =
	    strlen(name) + 1 + sizeof(*names->name) + sizeof(struct indexer_shard);
	char *copy;

	if (names->n == SHARDS_MOST)
		return -E2BIG;
	if (names->bytes + bytes > SHARDS_MOST_BYTES)
		return -EOVERFLOW;
	if (!base_grow(&names->name, &names->room, names->n + 1, sizeof(*names->name)))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	names->name[names->n++] = copy;
	names->bytes += bytes;
	return 0;
}

/* Each once. */
static void sort(struct shard_names *names)
{
	size_t kept = 0;

	if (names->n)
		qsort(names->name, names->n, sizeof(*names->name), base_compare_texts);
	for (size_t i = 0; i < names->n; i++)
		if (kept && !strcmp(names->name[kept - 1], names->name[i]))
			free(names->name[i]);
		else
			names->name[kept++] = names->name[i];
	names->n = kept;
}

/* ---- a folder ---- */

struct look { /* at a folder's names */
	const struct source_shards *kind;
	struct shard_names names;
	char compressed[NAME_MAX + 1]; /* the first such, or "" */
	bool has_others;               /* shards of another kind */
};

static unsigned char type_of(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(fd, entry->d_name, &st, 0) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static int look_at(void *arg, int fd, const struct dirent *entry)
{
	struct look *look = arg;
	const char *name = entry->d_name;
	unsigned char type;

	if (*name == '.')
		return 0;
	type = type_of(fd, entry);
	if (type == DT_DIR ||
	    walk_kind_of(name) < (look->kind->gives_way ? WALK_CLOUDS : WALK_SOUNDS))
		return SOURCE_E_NONE;
	if (type == DT_REG && source_shards_has_name(look->kind, name))
		return source_shards_add(&look->names, name);
	if (type == DT_REG && source_is_of_others(look->kind, name, false))
		look->has_others = true;
	if (type == DT_REG && !*look->compressed &&
	    source_shards_suffix(name, look->kind->compressed))
		snprintf(look->compressed, sizeof(look->compressed), "%s", name);
	return 0;
}

typedef int (*name_fn)(void *arg, int fd, const struct dirent *entry);

/* Each name of a folder below root_fd, until a call does not return 0. That, or negative errno. */
static int each_name(int root_fd, const char *folder, name_fn call, void *arg)
{
	int fd = openat(root_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!stream) {
		r = -errno;
		base_close(&fd);
		return r;
	}
	do {
		errno = 0;
		entry = readdir(stream);
		r = entry ? call(arg, fd, entry) : -errno;
	} while (entry && !r);
	closedir(stream);
	return r;
}

int source_shards_list(const struct reader_dataset *dataset, struct shard_names *ret,
		       struct diag *diag)
{
	struct look look = {.kind = dataset->ops->shards};
	int r = each_name(dataset->root_fd, ".", look_at, &look);

	if (!r && *look.compressed && (look.names.n || !look.has_others))
		r = source_shards_refuse_compressed(dataset, look.compressed, diag);
	else if (!r && (!look.names.n || (look.kind->gives_way && look.has_others)))
		r = SOURCE_E_NONE;
	else if (r < 0)
		refuse(dataset, r, strerror(-r), diag);
	if (r) {
		source_shards_names_free(&look.names);
		return r;
	}
	sort(&look.names);
	*ret = look.names;
	return 0;
}

struct beside { /* names that end so */
	const char *suffixes;
	struct shard_names names;
};

static int add_beside(void *arg, int fd, const struct dirent *entry)
{
	struct beside *beside = arg;

	(void)fd;
	if (entry->d_name[0] == '.' || !source_shards_suffix(entry->d_name, beside->suffixes))
		return 0;
	return source_shards_add(&beside->names, entry->d_name);
}

int source_shards_beside(int root_fd, const char *folder, const char *suffixes,
			 struct shard_names *ret)
{
	struct beside beside = {.suffixes = suffixes};
	const int r = each_name(root_fd, folder, add_beside, &beside);

	if (r) {
		source_shards_names_free(&beside.names);
		return r;
	}
	sort(&beside.names);
	*ret = beside.names;
	return 0;
}

/* ---- a list ---- */

struct range { /* {first..last} */
	uint64_t first, last;
	int width;
};

static bool parse_range(const char *text, size_t size, struct range *ret)
{
	const char *end = text, *second;

	if (!base_parse_number(&end, UINT32_MAX, &ret->first) || strncmp(end, "..", 2) != 0)
		return false;
	ret->width = (int)(end - text);
	second = end + 2;
	end = second;
	if (!base_parse_number(&end, UINT32_MAX, &ret->last) || end != text + size ||
	    ret->last < ret->first)
		return false;
	if (*text != '0' && *second != '0') /* filled up with zeros only where one of them is */
		ret->width = 1;
	ret->width = BASE_MAX(ret->width, *second == '0' ? (int)(end - second) : 1);
	return true;
}

static int expand(struct shard_names *names, char *text, size_t used, const char *rest,
		  unsigned groups);

/* One way to fill in a group, behind what is in the text already. */
static int expand_with(struct shard_names *names, char *text, size_t used, const char *part,
		       size_t size, const char *rest, unsigned groups)
{
	if (used + size >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(text + used, part, size);
	return expand(names, text, used + size, rest, groups);
}

static int expand_range(struct shard_names *names, char *text, size_t used,
			const struct range *range, const char *rest, unsigned groups)
{
	char number[64];
	int r = 0;

	for (uint64_t i = range->first; i <= range->last && !r; i++) {
		const int size = snprintf(number, sizeof(number), "%0*llu",
					  BASE_MIN(range->width, 20), (unsigned long long)i);

		r = expand_with(names, text, used, number, (size_t)size, rest, groups);
	}
	return r;
}

static int expand_choice(struct shard_names *names, char *text, size_t used, const char *from,
			 const char *end, const char *rest, unsigned groups)
{
	int r = 0;

	for (const char *comma; !r; from = comma + 1) {
		comma = memchr(from, ',', (size_t)(end - from));
		if (!comma)
			return expand_with(names, text, used, from, (size_t)(end - from), rest,
					   groups);
		r = expand_with(names, text, used, from, (size_t)(comma - from), rest, groups);
	}
	return r;
}

/* text: PATH_MAX bytes, of which so many are used. -EINVAL: the braces are wrong. */
static int expand(struct shard_names *names, char *text, size_t used, const char *rest,
		  unsigned groups)
{
	const size_t plain = strcspn(rest, "{}");
	const char *from = rest + plain + 1, *end;
	struct range range;

	if (used + plain >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(text + used, rest, plain);
	used += plain;
	if (!rest[plain]) {
		text[used] = '\0';
		return source_shards_add(names, text);
	}
	end = rest[plain] == '{' ? strchr(from, '}') : NULL;
	if (!end || groups == 0 || memchr(from, '{', (size_t)(end - from)))
		return -EINVAL;
	if (parse_range(from, (size_t)(end - from), &range))
		return expand_range(names, text, used, &range, end + 1, groups - 1);
	if (!memchr(from, ',', (size_t)(end - from)))
		return -EINVAL;
	return expand_choice(names, text, used, from, end, end + 1, groups - 1);
}

/* Relative, and nothing that leads elsewhere. */
static bool is_below(const char *name)
{
	size_t length;

	for (const char *from = name;; from += length + 1) {
		length = strcspn(from, "/");
		if (length == 0 ||
		    (from[0] == '.' && (length == 1 || (length == 2 && from[1] == '.'))))
			return false;
		if (!from[length])
			return true;
	}
}

int source_shards_expand(const struct reader_dataset *dataset, struct shard_names *ret,
			 struct diag *diag)
{
	struct shard_names names = {.name = NULL};
	char text[PATH_MAX];
	int r = expand(&names, text, 0, dataset->pattern, PATTERN_MOST_GROUPS);

	for (size_t i = 0; i < names.n && !r; i++)
		if (!is_below(names.name[i]))
			r = -EINVAL;
	if (r) {
		source_shards_names_free(&names);
		if (r == -E2BIG)
			return refuse(dataset, DATASET_E_REFUSED, "it has more than 1048576 names",
				      diag);
		if (r == -EOVERFLOW)
			return refuse(
			    dataset, DATASET_E_REFUSED,
			    "its names take more than 256 MiB: give shorter or fewer ones", diag);
		if (r == -EINVAL)
			return refuse(
			    dataset, DATASET_E_REFUSED,
			    "write {000..123} or {one,other} in the path, not within "
			    "each other, the smaller number first, and no \"..\" as a folder",
			    diag);
		return refuse(dataset, r, strerror(-r), diag);
	}
	sort(&names);
	*ret = names;
	return 0;
}
