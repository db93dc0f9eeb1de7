/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a store may lie, and who may have it.
 *
 * LMDB maps its file and keeps locks and a table of readers in a second, shared mapping. Both need one
 * kernel that sees all pages and all lockers, which a network file system does not have: there a
 * store would be damaged, not slow. So the kind of the file system decides, by its number. Kinds that
 * are known to be disks of this machine are taken, any other one is not, also one that nobody here
 * has heard of. An overlay is refused because what is under it is not told, and because it is usually a
 * container's, gone with it. A tmpfs works, but it is memory: a cache of disk size in there takes memory that
 * no budget of ours counts, from the jobs that it is for. `force` takes all of them.
 *
 * The folder itself is locked by flock(), not a file in it: who clears the folder does not clear the
 * lock. LMDB's own lock would let a second process in, and a second opening in one process breaks it.
 * Other programs of LMDB (mdb_stat, mdb_copy) do not ask for ours, and may read beside us.
 *
 * Of the folder's files only three names are ours; nothing else in it is ever touched.
 */

#include "storage/store_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "storage/store.h"
#include "storage/store_record.h"

#define PLACE_WAIT_MS 500
#define PLACE_LOCK_BYTES (32 << 10)
#define PLACE_STEP_MS 20
#define PLACE_NODE 64 /* of a value's entry in the tree: key, head, its share of what is above */

int (*store_place_statfs)(int fd, struct statfs *ret) = fstatfs;

static const struct place_kind {
	uint32_t type;
	bool is_good;
	const char *name;
} place_kinds[] = {
    {0x0000ef53, true, "ext4"},
    {0x58465342, true, "xfs"},
    {0x9123683e, true, "btrfs"},
    {0x2fc12fc1, true, "zfs"},
    {0xf2f52010, true, "f2fs"},
    {0xca451a4e, true, "bcachefs"},
    {0x52654973, true, "reiserfs"},
    {0x3153464a, true, "jfs"},
    {0x00003434, true, "nilfs"},
    {0x01021994, false, "tmpfs (that is memory)"},
    {0x858458f6, false, "ramfs (that is memory)"},
    {0x794c7630, false, "overlayfs"},
    {0x00006969, false, "NFS"},
    {0xff534d42, false, "CIFS"},
    {0xfe534d42, false, "SMB"},
    {0x0000517b, false, "SMB"},
    {0x65735546, false, "FUSE"},
    {0x01021997, false, "9p"},
    {0x0bd00bd0, false, "Lustre"},
    {0x00c36400, false, "Ceph"},
    {0x5346414f, false, "AFS"},
    {0x47504653, false, "GPFS"},
    {0x19830326, false, "BeeGFS"},
    {0x01161970, false, "GFS2"},
    {0x7461636f, false, "OCFS2"},
    {0x786f4256, false, "vboxsf"},
    {0x6a656a63, false, "virtiofs"},
    {0x73757245, false, "Coda"},
    {0xf15f, false, "eCryptfs"},
    {0x4d44, false, "FAT"},
    {0x2011bab0, false, "exFAT"},
};

/* The kind of a file system by its number in statfs(2): its name for people, or NULL, and whether a store
 * may lie there without force. */
static const char *store_place_kind(uint64_t type, bool *ret_is_good)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(place_kinds); i++) {
		if (place_kinds[i].type == type) {
			*ret_is_good = place_kinds[i].is_good;
			return place_kinds[i].name;
		}
	}
	*ret_is_good = false;
	return NULL;
}

int store_place_check(int folder_fd, bool force, struct diag *diag)
{
	struct statfs fs;
	const char *name;
	char number[48];
	bool is_good;

	if (store_place_statfs(folder_fd, &fs) < 0)
		return diag_fail(diag, -errno,
				 "the file system of the cache's folder cannot be asked: %s",
				 strerror(errno));
	name = store_place_kind((uint32_t)fs.f_type, &is_good);
	if (is_good || force)
		return 0;
	snprintf(number, sizeof(number), "of an unknown kind (0x%x)", (unsigned)fs.f_type);
	return diag_fail(
	    diag, STORE_E_REFUSED,
	    "the cache's folder lies on a file system that is no local disk: %s; set cache_dir to "
	    "a folder on one (ext4, xfs, btrfs, zfs, f2fs), or have this one by "
	    "cache_force = 1 (accessd.conf(5))",
	    name ? name : number);
}

/* ---- the folder ---- */

static const char *const place_names[] = {STORE_PLACE_DATA, STORE_PLACE_ASIDE, STORE_PLACE_LOCK};

int store_place_lock(int dir_fd)
{
	const struct timespec step = {.tv_nsec = PLACE_STEP_MS * 1000000L};

	for (unsigned waited = 0; waited <= PLACE_WAIT_MS; waited += PLACE_STEP_MS) {
		if (flock(dir_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&step, NULL);
	}
	return -EBUSY;
}

/* Links would lead out of the folder. */
static const char *place_stranger(int dir_fd)
{
	struct stat st;

	for (size_t i = 0; i < BASE_ARRAY_LEN(place_names); i++) {
		if (fstatat(dir_fd, place_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISREG(st.st_mode))
			return place_names[i];
	}
	return NULL;
}

int store_place_open(int folder_fd, int *ret_fd, struct diag *diag)
{
	/* a description of our own: the lock lives as long as it, whatever becomes of the caller's */
	_cleanup_close_ int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *stranger;
	int r;

	if (fd < 0) {
		r = -errno;
		return diag_fail(diag, r, "the cache's folder cannot be opened: %s", strerror(-r));
	}
	r = store_place_lock(fd);
	if (r == -EBUSY)
		diag_set(diag, "another process has the cache's folder open; each accessd needs a "
			       "cache_dir of its own");
	else if (r)
		diag_set(diag, "the cache's folder cannot be locked: %s", strerror(-r));
	if (r)
		return r;
	stranger = place_stranger(fd);
	if (stranger)
		return diag_fail(diag, -ENOTSUP,
				 "\"%s\" in the cache's folder is no file; remove it", stranger);
	*ret_fd = base_take_fd(&fd);
	return 0;
}

int store_place_reserve(int dir_fd)
{
	_cleanup_close_ int fd =
	    openat(dir_fd, STORE_PLACE_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (fallocate(fd, 0, 0, PLACE_LOCK_BYTES) < 0 && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

int store_place_set_aside(int dir_fd, uint64_t keep_bytes)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (renameat(dir_fd, STORE_PLACE_DATA, dir_fd, STORE_PLACE_ASIDE) < 0 && errno != ENOENT)
		return -errno;
	if (unlinkat(dir_fd, STORE_PLACE_LOCK, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir_fd, STORE_PLACE_ASIDE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if ((uint64_t)st.st_size > keep_bytes && ftruncate(fd, (off_t)keep_bytes) < 0)
		return -errno;
	return 0;
}

/* Holes take nothing. */
uint64_t store_place_bytes(int dir_fd)
{
	struct stat st;
	uint64_t bytes = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(place_names); i++) {
		if (fstatat(dir_fd, place_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	return bytes;
}

void store_place_remove(int dir_fd)
{
	struct stat st;

	for (size_t i = 0; i < BASE_ARRAY_LEN(place_names); i++) {
		if (fstatat(dir_fd, place_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			unlinkat(dir_fd, place_names[i], 0);
	}
}

uint64_t store_place_aside_bytes(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, STORE_PLACE_ASIDE, &st, AT_SYMLINK_NOFOLLOW) == 0
		   ? (uint64_t)st.st_size
		   : 0;
}

/* ---- what a value takes of the disk ---- */

/* Pages half full, as a tree of random insertions has them, are a half more than what is in them. */
static uint64_t bytes_in_leaf(uint64_t bytes)
{
	return bytes + bytes / 2;
}

/* A large value has pages of its own behind its entry in the tree, a small one lies in the tree. */
uint64_t store_bytes_of(uint64_t size)
{
	const uint64_t page = base_page_size(), sealed = size + STORE_RECORD_SEAL;

	if (sealed + PLACE_NODE <= page / 2)
		return bytes_in_leaf(sealed + PLACE_NODE);
	return base_align_up(sealed + 16, page) + bytes_in_leaf(PLACE_NODE);
}
