/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's folder. The reader is the user, accessd's cache folder is accessd's alone: so the folder that a
 * tenant's store is in may be written by anybody, and lies in one that nobody but accessd can enter. The reader
 * gets it as a descriptor and cannot name it otherwise.
 *
 * A store of which readers die is begun anew once. The file is the user's, who may cut it under each reader:
 * then it is given up, and jobs go on, before readers have died so often that nobody starts another.
 *
 * A store that did not take what it was given is full, or its writer is behind: making more forms would be
 * work for nothing, so none are made for a while; of a full one for a longer while each time.
 */
#include "daemon/cache/disk_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/net/porter.h"
#include "daemon/param.h"
#include "shmring/rings.h"
#include "storage/store.h"

/* Of a worker in the write-back ring; a form is at most half of it */
#define DISK_CACHE_RING (UINT64_C(4) << 20)
#define DISK_CACHE_BEHIND_NS UINT64_C(250000000) /* until its writer has caught up */
#define DISK_CACHE_PAUSE_NS UINT64_C(2000000000)
#define DISK_CACHE_PAUSE_MOST_NS UINT64_C(300000000000)
#define DISK_CACHE_DEATHS 2 /* of readers, then it is given up */
#define DISK_CACHE_FORGIVES_NS UINT64_C(600000000000)

bool disk_cache_may_keep(const struct param *param)
{
	return param->cache_size > 0 && strcmp(param->cache_point, "none") != 0;
}

int disk_cache_init(struct disk_cache *disk_cache, const struct param *param, unsigned workers)
{
	*disk_cache = (struct disk_cache){.rings_fd = -1};
	if (disk_cache_may_keep(param))
		return rings_new(workers, DISK_CACHE_RING, &disk_cache->rings_fd);
	snprintf(disk_cache->why, sizeof(disk_cache->why), "%s",
		 param->cache_size ? "cache_point is none" : "cache_size is 0");
	return 0;
}

void disk_cache_fini(struct disk_cache *disk_cache, struct porters *porters)
{
	porter_close(porters, PORTER_OWN, &disk_cache->rings_fd);
}

/* ---- the folder ---- */

static int make_folder(int parent, const char *name, mode_t mode)
{
	int fd;

	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Not by mkdir(), which the umask has a say in; and only if it is ours. */
static int set_mode(int fd, mode_t mode)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid())
		return -EPERM;
	return (status.st_mode & 07777) == mode || fchmod(fd, mode) == 0 ? 0 : -errno;
}

void disk_cache_touch(const struct disk_cache_at *at)
{
	_cleanup_close_ int stores =
	    open(at->stores, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (stores >= 0)
		utimensat(stores, at->key, NULL, AT_SYMLINK_NOFOLLOW);
}

/* <stores>/<domain>, and for somebody else's reader a folder in it that he can write to. */
static int open_folder(const struct disk_cache_at *at)
{
	_cleanup_close_ int stores =
	    open(at->stores, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int own = -1;
	int fd, r;

	if (stores < 0)
		return -errno;
	own = make_folder(stores, at->key, 0700);
	if (own < 0)
		return own;
	r = set_mode(own, 0700);
	if (r)
		return r;
	if (at->is_own)
		return base_take_fd(&own);
	fd = make_folder(own, "store", 0700);
	r = fd < 0 ? fd : set_mode(fd, 0777);
	if (r)
		base_close(&fd);
	return r ? r : fd;
}

int disk_cache_open_folder(struct disk_cache *disk_cache, const struct disk_cache_at *at)
{
	int fd;

	if (disk_cache->rings_fd < 0)
		return -1;
	disk_cache->is_told = true;
	if (disk_cache->limit == 0)
		return -1;
	if (disk_cache->deaths >= DISK_CACHE_DEATHS) {
		snprintf(disk_cache->why, sizeof(disk_cache->why),
			 "%d readers died of its file, which was cut or damaged while they read "
			 "it: nothing is kept on the disk until accessd has ended this user's "
			 "processes, or itself; see that nobody writes to it",
			 DISK_CACHE_DEATHS);
		return -1;
	}
	fd = open_folder(at);
	disk_cache->has_folder = fd >= 0;
	if (fd >= 0) {
		disk_cache_touch(at);
		return fd;
	}
	snprintf(disk_cache->why, sizeof(disk_cache->why),
		 "its folder in %.128s cannot be made: %s", at->stores, strerror(-fd));
	return -1;
}

/* ---- what the reader says ---- */

static void note_writing(struct disk_cache *disk_cache, const struct reader_state *now)
{
	const struct reader_state *before = &disk_cache->state;
	const double bytes = (double)(now->write_bytes - before->write_bytes);

	if (now->write_bytes <= before->write_bytes || now->write_ns < before->write_ns ||
	    now->write_cpu_ns < before->write_cpu_ns)
		return;
	disk_cache->write_ns = (double)(now->write_ns - before->write_ns) / bytes;
	disk_cache->write_cpu_ns = (double)(now->write_cpu_ns - before->write_cpu_ns) / bytes;
	disk_cache->has_written = true;
}

bool disk_cache_write_us(const struct disk_cache *disk_cache, uint64_t bytes, double *ret_us,
			 double *ret_cpu_us)
{
	const double of_disk = (double)store_bytes_of(bytes);

	*ret_us = of_disk * disk_cache->write_ns / 1000;
	*ret_cpu_us = of_disk * disk_cache->write_cpu_ns / 1000;
	return disk_cache->has_written;
}

void disk_cache_said(struct disk_cache *disk_cache, const struct reader_state *state,
		     const char *why)
{
	uint64_t now_ns = base_now_ns();

	if (disk_cache->is_known && state->not_taken > disk_cache->state.not_taken) {
		bool is_full = state->full > disk_cache->state.full;

		disk_cache->pause_ns =
		    BASE_MIN(BASE_MAX(2 * disk_cache->pause_ns, DISK_CACHE_PAUSE_NS),
			     DISK_CACHE_PAUSE_MOST_NS);
		if (!is_full)
			disk_cache->pause_ns = DISK_CACHE_BEHIND_NS;
		disk_cache->full_until_ns = now_ns + disk_cache->pause_ns;
	} else if (now_ns > disk_cache->full_until_ns && state->kept > disk_cache->state.kept) {
		disk_cache->pause_ns = 0;
	}
	note_writing(disk_cache, state);
	disk_cache->state = *state;
	disk_cache->is_known = true;
	snprintf(disk_cache->why, sizeof(disk_cache->why), "%s", why);
}

/* May it have opened its store, or have been about to? One that is off it has said so. */
static bool has_store(const struct disk_cache *disk_cache)
{
	return disk_cache->has_folder &&
	       !(disk_cache->is_known && (disk_cache->state.mode == STORE_OFF ||
					  disk_cache->state.mode == READER_MODE_MEMORY));
}

void disk_cache_reader_died(struct disk_cache *disk_cache, int status)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	uint64_t now_ns = base_now_ns();
	bool fits = false;

	for (size_t i = 0; i < BASE_ARRAY_LEN(signals); i++)
		fits = fits || (WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
	disk_cache->suspect = fits && has_store(disk_cache);
	if (disk_cache->suspect) {
		disk_cache->deaths = now_ns - disk_cache->died_ns < DISK_CACHE_FORGIVES_NS
					 ? disk_cache->deaths + 1
					 : 1;
		disk_cache->died_ns = now_ns;
	}
	disk_cache->has_folder = disk_cache->is_told = disk_cache->is_known = false;
	disk_cache->state = (struct reader_state){.mode = STORE_OFF};
}

void disk_cache_has_room(struct disk_cache *disk_cache)
{
	disk_cache->full_until_ns = disk_cache->pause_ns = 0;
}

bool disk_cache_gives(const struct disk_cache *disk_cache)
{
	return disk_cache->is_known && disk_cache->state.mode != STORE_OFF;
}

bool disk_cache_is_memory(const struct disk_cache *disk_cache)
{
	return disk_cache->is_known && disk_cache->state.mode == READER_MODE_MEMORY;
}

bool disk_cache_takes(const struct disk_cache *disk_cache, uint64_t now_ns)
{
	return (disk_cache_is_memory(disk_cache) ||
		(disk_cache->is_known && disk_cache->state.mode == STORE_ON)) &&
	       now_ns >= disk_cache->full_until_ns;
}
