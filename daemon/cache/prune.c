/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was kept for users who are gone. Only by names that we make ourselves, below a folder that nobody
 * but accessd can enter: <stores>/<key of a domain>[/store]/<the three files of a store>. Each folder on the way
 * must be ours and no link; files are looked at by their names alone, never opened, so what a user's reader
 * may have put there instead, a link, a pipe, a folder, a file of another name, is not followed and stays. The
 * files are the user's, the folder that they are in is accessd's: that is enough to delete them, without any
 * capability.
 *
 * A store is deleted under the lock that its reader holds while it has it open: one that another accessd
 * uses, or a reader that has not ended yet, is never touched. Whole stores go, since LMDB gives no page back to
 * the disk.
 *
 * When a store was used is the time of its folder, which accessd sets when its user comes and when he goes: a
 * user has no say in it.
 */
#include "daemon/cache/prune.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity.h"
#include "daemon/tenant/named.h"
#include "storage/store_place.h"

struct resting { /* a store whose user is not served */
	char key[IDENTITY_TEXT_MAX];
	struct timespec used;
	uint64_t bytes;
};

struct found {
	struct resting *store; /* owned */
	size_t n;
	uint64_t bytes;
};

/* ---- names and folders ---- */

/* The keys of domains, for our own user what stands for none, and "public" of an accessd before, whose reader was
 * accessd's own user. */
static bool is_key(const char *name)
{
	char again[IDENTITY_TEXT_MAX], set[NAMED_NAME_MAX];
	unsigned uid, gid;

	if (strcmp(name, "own") == 0 || strcmp(name, "public") == 0)
		return true;
	if (sscanf(name, "user:%u:%u", &uid, &gid) == 2)
		snprintf(again, sizeof(again), "user:%u:%u", uid, gid);
	else if (sscanf(name, "public:%u", &uid) == 1)
		snprintf(again, sizeof(again), "public:%u", uid);
	else if (sscanf(name, "name:%31[^:]:%u", set, &uid) == 2)
		snprintf(again, sizeof(again), "name:%s:%u", set, uid);
	else
		return false;
	return strcmp(name, again) == 0;
}

/* -1: it is not there, or not ours. */
static int open_ours(int parent, const char *name, struct stat *ret)
{
	_cleanup_close_ int fd =
	    openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, ret) < 0 || ret->st_uid != geteuid())
		return -1;
	return base_take_fd(&fd);
}

/* The folder that the files are in; *ret: the time of the domain's. -1: there is none. */
static int open_store(int stores, const char *key, struct stat *ret)
{
	_cleanup_close_ int own = open_ours(stores, key, ret);
	struct stat inner;

	if (own < 0 || strcmp(key, "own") == 0)
		return base_take_fd(&own);
	return open_ours(own, "store", &inner);
}

/* ---- looking ---- */

static int note(struct found *found, int stores, const char *key)
{
	struct resting *more;
	struct stat status;
	_cleanup_close_ int fd = open_store(stores, key, &status);

	if (fd < 0)
		return 0;
	more = realloc(found->store, (found->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	found->store = more;
	more += found->n++;
	*more = (struct resting){.used = status.st_mtim, .bytes = store_place_bytes(fd)};
	memcpy(more->key, key, strlen(key) + 1); /* is_key(): it fits */
	found->bytes += more->bytes;
	return 0;
}

static int find(DIR *stores, prune_is_served_fn is_served, void *arg, struct found *ret)
{
	const struct dirent *entry;
	int r = 0;

	while (!r && (entry = readdir(stores)))
		if (is_key(entry->d_name) && !is_served(arg, entry->d_name))
			r = note(ret, dirfd(stores), entry->d_name);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct resting *x = a, *y = b;

	return base_compare_times(&x->used, &y->used);
}

/* ---- deleting ---- */

/* Folders that something else is in stay, too. */
static void remove_folders(int stores, const char *key)
{
	struct stat status;
	_cleanup_close_ int own = open_ours(stores, key, &status);

	if (own >= 0 && strcmp(key, "own") != 0)
		unlinkat(own, "store", AT_REMOVEDIR);
	unlinkat(stores, key, AT_REMOVEDIR);
}

/* Bytes that it takes now. */
static uint64_t delete_store(int stores, const struct resting *store)
{
	struct stat status;
	_cleanup_close_ int fd = open_store(stores, store->key, &status);
	uint64_t left;

	if (fd < 0 || store_place_lock(fd))
		return store->bytes;
	store_place_remove(fd);
	left = store_place_bytes(fd);
	if (left == 0)
		remove_folders(stores, store->key);
	return left;
}

int prune_stores(const char *folder, uint64_t most, prune_is_served_fn is_served, void *arg,
		 struct prune_report *ret)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *stores = fd < 0 ? NULL : fdopendir(fd);
	struct found found = {.n = 0};
	int r = stores ? find(stores, is_served, arg, &found) : -errno;

	if (!stores && fd >= 0)
		close(fd);
	if (found.n > 0)
		qsort(found.store, found.n, sizeof(*found.store), compare);
	*ret = (struct prune_report){.resting = found.bytes};
	for (size_t i = 0; !r && i < found.n && ret->resting > most; i++) {
		uint64_t left = delete_store(fd, &found.store[i]);
		uint64_t gone = found.store[i].bytes - BASE_MIN(left, found.store[i].bytes);

		ret->resting -= gone;
		ret->bytes += gone;
		ret->stores += gone > 0;
	}
	free(found.store);
	if (stores)
		closedir(stores);
	return r;
}
