/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of stored indexes. All lie in one folder that nobody but accessd can enter, and have names that we make
 * ourselves, which say whose they are:
 *
 *	<key of a domain>-<hash>		an index; our own user's: <hash> alone, as those that were stored
 *						before names said so
 *	tmp-<key>-<process>-<number>		being written
 *	tmp-<key>-<process>-<number>.old	was an index, until there was a better one
 *
 * Who may be how many is bounded, what one user's files make of it, too: as with stores, one may have a part, so that
 * whoever makes many loses his own. An index is cheap to lose: the folder is listed anew.
 *
 * Whoever writes a file or uses it holds a lock on it (flock), which goes with him. So what is locked stays and counts,
 * also where its name is one of a temporary file; a temporary one without a lock was left behind. That is
 * why an index in use is renamed and not unlinked: it would take the disk's room and be counted nowhere.
 *
 * When an index was used is its file's time, which accessd sets.
 */
#include "daemon/cache/index_prune.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/place.h"

#define HEX 64

struct stored {
	char name[INDEX_PRUNE_NAME_MAX];
	struct timespec used;
	uint64_t bytes;
	bool is_his, is_temporary, stays; /* stays: it is in use */
};

struct stored_all {
	struct stored *file; /* owned */
	size_t n;
	uint64_t bytes, his;
};

/* ---- names ---- */

void index_prune_name(const char *key, const struct hash_id *id, char ret[INDEX_PRUNE_NAME_MAX])
{
	char hex[HEX + 1];

	snprintf(ret, INDEX_PRUNE_NAME_MAX, "%s%s%s", key, *key ? "-" : "", hash_hex(id, hex));
}

void index_prune_temporary(const char *key, uint64_t number, bool is_old,
			   char ret[INDEX_PRUNE_NAME_MAX])
{
	snprintf(ret, INDEX_PRUNE_NAME_MAX, PLACE_TEMPORARY "%s-%ld-%llu%s", key, (long)getpid(),
		 (unsigned long long)number, is_old ? ".old" : "");
}

static bool is_temporary(const char *name)
{
	return strncmp(name, PLACE_TEMPORARY, strlen(PLACE_TEMPORARY)) == 0;
}

static bool is_ours(const char *name)
{
	const char *dash = strrchr(name, '-'), *hash = dash ? dash + 1 : name;

	return is_temporary(name) ||
	       (strlen(hash) == HEX && strspn(hash, "0123456789abcdef") == HEX);
}

/* The part of a key that is of its user: that of a gid is not. */
static size_t user_of(const char *key, size_t size)
{
	unsigned colons = 0;

	for (size_t i = 0; i < size; i++)
		if (key[i] == ':' && ++colons == 2)
			return i;
	return size;
}

static bool is_his(const char *name, const char *key)
{
	const char *owner = is_temporary(name) ? name + strlen(PLACE_TEMPORARY) : name;
	const char *dash = strchr(owner, '-');
	const size_t size = user_of(owner, dash ? (size_t)(dash - owner) : 0);

	return size == user_of(key, strlen(key)) && memcmp(owner, key, size) == 0;
}

/* ---- looking ---- */

static int stored_add(struct stored_all *all, int folder, const char *name, const char *key)
{
	struct stored *more;
	struct stat st;

	if (!is_ours(name) || strlen(name) >= sizeof(more->name) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	more = realloc(all->file, (all->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	all->file = more;
	more += all->n++;
	*more = (struct stored){.used = st.st_mtim,
				.bytes = (uint64_t)st.st_size,
				.is_his = is_his(name, key),
				.is_temporary = is_temporary(name)};
	strcpy(more->name, name);
	all->bytes += more->bytes;
	all->his += more->is_his ? more->bytes : 0;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct stored *x = a, *y = b;

	if (x->is_temporary != y->is_temporary)
		return x->is_temporary ? -1 : 1;
	return base_compare_times(&x->used, &y->used);
}

/* ---- deleting ---- */

static void stored_delete(struct stored_all *all, int folder, struct stored *file)
{
	_cleanup_close_ int fd =
	    openat(folder, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	file->stays = true; /* or is gone, and looked at no more */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || unlinkat(folder, file->name, 0))
		return;
	all->bytes -= file->bytes;
	all->his -= file->is_his ? file->bytes : 0;
}

/* From those used longest ago, what is left of writers before them. */
static void stored_make_room(struct stored_all *all, int folder,
			     const struct index_prune_rule *rule, uint64_t bytes)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->file[i].is_temporary ||
		    (all->file[i].is_his && all->his + bytes > rule->most))
			stored_delete(all, folder, &all->file[i]);
	for (size_t i = 0; i < all->n && all->bytes + bytes > rule->size; i++)
		if (!all->file[i].stays)
			stored_delete(all, folder, &all->file[i]);
}

int index_prune(const char *path, const char *key, const struct index_prune_rule *rule,
		uint64_t bytes)
{
	DIR *folder = opendir(path);
	struct stored_all all = {.n = 0};
	const struct dirent *entry;
	int r = folder ? 0 : -errno;

	if (bytes > rule->most || bytes > rule->size)
		r = -ENOSPC;
	while (!r && (entry = readdir(folder)))
		r = stored_add(&all, dirfd(folder), entry->d_name, key);
	if (!r && all.n > 0) {
		qsort(all.file, all.n, sizeof(*all.file), compare);
		stored_make_room(&all, dirfd(folder), rule, bytes);
	}
	if (!r && (all.his + bytes > rule->most || all.bytes + bytes > rule->size))
		r = -ENOSPC;
	free(all.file);
	if (folder)
		closedir(folder);
	return r;
}

bool index_prune_hold(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}
