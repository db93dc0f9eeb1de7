/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's folder. The reader is the user, accessd's cache folder is accessd's alone: so the folder that a
 * tenant's store is in may be written by anybody, and lies in one that nobody but accessd can enter. The reader
 * gets it as a descriptor and cannot name it otherwise.
 *
 * A store that did not take what it was given is full, or its writer is behind: making more forms would be
 * work for nothing, so none are made for a while; of a full one for a longer while each time.
 */
#include "daemon/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/domain.h"
#include "daemon/node.h"
#include "daemon/stores.h"
#include "shmring/tray.h"
#include "storage/store.h"

#define SHELF_RING (UINT64_C(4) << 20) /* of a worker in the tray; a form is at most half of it */
#define SHELF_BEHIND_NS UINT64_C(250000000) /* until its writer has caught up */
#define SHELF_PAUSE_NS UINT64_C(2000000000)
#define SHELF_PAUSE_MOST_NS UINT64_C(300000000000)

int shelf_init(struct shelf *shelf, const struct domain *domain)
{
	const struct param *param = &domain->node->param;

	*shelf = (struct shelf){.tray_fd = -1};
	if (param->cache_size == 0)
		snprintf(shelf->why, sizeof(shelf->why), "cache_size is 0");
	else if (strcmp(param->cache_point, "none") == 0)
		snprintf(shelf->why, sizeof(shelf->why), "cache_point is none");
	else
		return tray_new(domain->node->workers, SHELF_RING, &shelf->tray_fd);
	return 0;
}

void shelf_fini(struct shelf *shelf)
{
	base_close(&shelf->tray_fd);
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

const char *shelf_key(const struct domain *domain, char ret[IDENTITY_TEXT_MAX])
{
	domain_key(domain, ret);
	if (!*ret)
		snprintf(ret, IDENTITY_TEXT_MAX, "own");
	return ret;
}

void shelf_touch(const struct domain *domain)
{
	char name[IDENTITY_TEXT_MAX];
	_cleanup_close_ int stores =
	    open(domain->node->place.stores, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (stores >= 0)
		utimensat(stores, shelf_key(domain, name), NULL, AT_SYMLINK_NOFOLLOW);
}

/* <stores>/<domain>, and for somebody else's reader a folder in it that he can write to. */
static int open_folder(const struct domain *domain)
{
	_cleanup_close_ int stores =
	    open(domain->node->place.stores, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	char name[IDENTITY_TEXT_MAX];
	_cleanup_close_ int own = -1;
	int fd, r;

	if (stores < 0)
		return -errno;
	own = make_folder(stores, shelf_key(domain, name), 0700);
	if (own < 0)
		return own;
	r = set_mode(own, 0700);
	if (r)
		return r;
	if (domain->kind == DOMAIN_OWN)
		return base_take_fd(&own);
	fd = make_folder(own, "store", 0700);
	r = fd < 0 ? fd : set_mode(fd, 0777);
	if (r)
		base_close(&fd);
	return r ? r : fd;
}

int shelf_open_folder(struct shelf *shelf, const struct domain *domain)
{
	int fd;

	if (shelf->tray_fd < 0)
		return -1;
	shelf->is_told = true;
	if (shelf->limit == 0)
		return -1;
	fd = open_folder(domain);
	shelf->has_folder = fd >= 0;
	if (fd >= 0) {
		shelf_touch(domain);
		return fd;
	}
	snprintf(shelf->why, sizeof(shelf->why), "its folder in %.128s cannot be made: %s",
		 domain->node->place.stores, strerror(-fd));
	return -1;
}

/* ---- what the reader says ---- */

static void note_writing(struct shelf *shelf, const struct reader_state *now)
{
	const struct reader_state *before = &shelf->state;
	const double bytes = (double)(now->write_bytes - before->write_bytes);

	if (now->write_bytes <= before->write_bytes || now->write_ns < before->write_ns ||
	    now->write_cpu_ns < before->write_cpu_ns)
		return;
	shelf->write_ns = (double)(now->write_ns - before->write_ns) / bytes;
	shelf->write_cpu_ns = (double)(now->write_cpu_ns - before->write_cpu_ns) / bytes;
	shelf->has_written = true;
}

bool shelf_write_us(const struct shelf *shelf, uint64_t bytes, double *ret_us, double *ret_cpu_us)
{
	const double of_disk = (double)store_bytes_of(bytes);

	*ret_us = of_disk * shelf->write_ns / 1000;
	*ret_cpu_us = of_disk * shelf->write_cpu_ns / 1000;
	return shelf->has_written;
}

void shelf_said(struct shelf *shelf, const struct reader_state *state, const char *why)
{
	uint64_t now_ns = base_now_ns();

	if (shelf->is_known && state->not_taken > shelf->state.not_taken) {
		bool is_full = state->full > shelf->state.full;

		shelf->pause_ns =
		    BASE_MIN(BASE_MAX(2 * shelf->pause_ns, SHELF_PAUSE_NS), SHELF_PAUSE_MOST_NS);
		if (!is_full)
			shelf->pause_ns = SHELF_BEHIND_NS;
		shelf->full_until_ns = now_ns + shelf->pause_ns;
	} else if (now_ns > shelf->full_until_ns && state->kept > shelf->state.kept) {
		shelf->pause_ns = 0;
	}
	note_writing(shelf, state);
	shelf->state = *state;
	shelf->is_known = true;
	snprintf(shelf->why, sizeof(shelf->why), "%s", why);
}

/* May it have opened its store, or have been about to? One that is off it has said so. */
static bool has_store(const struct shelf *shelf)
{
	return shelf->has_folder && !(shelf->is_known && (shelf->state.mode == STORE_OFF ||
							  shelf->state.mode == READER_MODE_MEMORY));
}

void shelf_reader_died(struct shelf *shelf, int status)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	bool fits = false;

	for (size_t i = 0; i < BASE_ARRAY_LEN(signals); i++)
		fits = fits || (WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
	shelf->suspect = fits && has_store(shelf);
	shelf->has_folder = shelf->is_told = shelf->is_known = false;
	shelf->state = (struct reader_state){.mode = STORE_OFF};
}

void shelf_has_room(struct shelf *shelf)
{
	shelf->full_until_ns = shelf->pause_ns = 0;
}

bool shelf_gives(const struct shelf *shelf)
{
	return shelf->is_known && shelf->state.mode != STORE_OFF;
}

bool shelf_is_memory(const struct shelf *shelf)
{
	return shelf->is_known && shelf->state.mode == READER_MODE_MEMORY;
}

bool shelf_takes(const struct shelf *shelf, uint64_t now_ns)
{
	return (shelf_is_memory(shelf) || (shelf->is_known && shelf->state.mode == STORE_ON)) &&
	       now_ns >= shelf->full_until_ns;
}

/* ---- for people ---- */

void shelf_describe(const struct domain *domain, struct json_out *out)
{
	static const char *const modes[] = {"on", "read-only", "off", "memory"};
	const struct shelf *shelf = &domain->shelf;
	const struct reader_state *state = &shelf->state;
	const struct stores_rule rule = stores_rule_of(domain);
	uint64_t mode =
	    shelf_gives(shelf) ? BASE_MIN(state->mode, (uint64_t)READER_MODE_MEMORY) : STORE_OFF;

	json_out_object_begin(out);
	json_out_member_u64(out, "uid", domain->who.uid);
	json_out_member_u64(out, "gid", domain->who.gid);
	json_out_member_bool(out, "public", domain->kind == DOMAIN_PUBLIC);
	json_out_member_string(out, "mode", modes[mode]);
	json_out_member_string(out, "why", shelf->why);
	json_out_member_u64(out, "limit", shelf_is_memory(shelf) ? 0 : shelf->limit);
	json_out_member_u64(out, "sure", shelf->tray_fd < 0 ? 0 : stores_sure(&rule));
	json_out_member_u64(out, "most", shelf->tray_fd < 0 ? 0 : rule.most);
	json_out_member_u64(out, "used", state->used);
	json_out_member_u64(out, "file", state->file);
	json_out_member_u64(out, "groups", state->groups);
	json_out_member_u64(out, "values", state->values);
	json_out_member_u64(out, "hits", state->hits);
	json_out_member_u64(out, "misses", state->misses);
	json_out_member_u64(out, "kept", state->kept);
	json_out_member_u64(out, "not_taken", state->not_taken);
	json_out_member_u64(out, "full", state->full);
	json_out_member_u64(out, "damaged", state->damaged);
	json_out_member_u64(out, "evicted", state->evicted);
	json_out_member_u64(out, "set_aside", state->set_aside);
	json_out_member_u64(out, "write_errors", state->write_errors);
	json_out_member_double(out, "write_us_per_mib", shelf->write_ns * 1048.576);
	json_out_member_double(out, "write_cpu_us_per_mib", shelf->write_cpu_ns * 1048.576);
	json_out_member_u64(out, "memory_limit", domain->hoard.fd < 0 ? 0 : hoard_most(domain));
	json_out_member_u64(out, "memory_used", state->memory_used);
	json_out_member_u64(out, "memory_values", state->memory_values);
	json_out_member_u64(out, "memory_hits", state->memory_hits);
	json_out_object_end(out);
}
