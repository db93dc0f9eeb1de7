/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/daemon/role.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "shmring/queue.h"
#include "storage/dataset.h"
#include "storage/index.h"
#include "storage/reader.h"
#include "worker/parent.h"
#include "tests/invariants/invariants.h"

/* ---- the data set ---- */

void role_index(const uint32_t *sizes, unsigned n, int *ret_fd, uint8_t ret_version[32])
{
	static const char *const folders[] = {"a", "b"};
	const struct index_head head = {.n_samples = n,
					.names_bytes = n * sizeof("a/000.jpg"),
					.n_classes = 2,
					.classes_bytes = 2 * sizeof("a"),
					.n_folders = 3,
					.folders_bytes = 1 + 2 * sizeof("a"),
					.label_rule = INDEX_LABELS_FOLDERS};
	struct index_writer writer;
	struct dataset *dataset;

	if (index_new(&writer, &head))
		abort();
	for (unsigned i = 0; i < n; i++) {
		const struct index_record record = {
		    .mtime_ns = 1, .size = sizes[i], .label = i >= n / 2};
		char name[16];

		snprintf(name, sizeof(name), "%03u.jpg", i);
		index_add_sample(&writer, folders[record.label], name, &record);
	}
	for (unsigned i = 0; i < 2; i++)
		index_add_class(&writer, folders[i]);
	index_add_folder(&writer, "", &(struct index_folder){1, 1, 1});
	for (unsigned i = 0; i < 2; i++)
		index_add_folder(&writer, folders[i], &(struct index_folder){1, 1, 2 + i});
	if (index_seal(&writer, ret_fd))
		abort();
	index_drop(&writer);
	if (dataset_map(*ret_fd, &dataset))
		abort();
	memcpy(ret_version, dataset_version(dataset), 32);
	dataset_unmap(dataset);
}

/* ---- what is said ---- */

uint64_t role_number(const struct wire_in *in, uint16_t key)
{
	uint64_t number = UINT64_MAX;

	wire_get_u64(in, key, &number);
	return number;
}

void role_answer(struct wire_out *out, uint16_t type, const struct wire_in *in, uint16_t key)
{
	wire_out_init(out, type);
	wire_put_u64(out, key, role_number(in, key));
}

void role_put_fd(struct wire_out *out, uint16_t key, int fd)
{
	wire_put_u64(out, key, 1);
	wire_put_fd(out, fd);
}

void role_opened(struct wire_out *out, const struct wire_in *in, bool is_fleeting, int index_fd)
{
	role_answer(out, READER_OPENED, in, READER_KEY_ID);
	wire_put_u64(out, READER_KEY_DEVICE, 1);
	wire_put_u64(out, READER_KEY_INODE, 1);
	wire_put_u64(out, READER_KEY_FLEETING, is_fleeting);
	if (!in->n_fds)
		role_put_fd(out, READER_KEY_INDEX, index_fd);
}

void role_queue(struct wire_out *out, uint16_t type, const struct wire_in *in)
{
	const uint64_t variant = role_number(in, PARENT_KEY_VARIANT);

	role_answer(out, type, in, PARENT_KEY_QUEUE);
	if (variant != UINT64_MAX)
		wire_put_u64(out, PARENT_KEY_VARIANT, variant);
}

void role_worker(struct wire_out *out, uint16_t type, uint64_t owner, uint64_t index)
{
	wire_out_init(out, type);
	wire_put_u64(out, PARENT_KEY_WORKER, owner);
	wire_put_u64(out, PARENT_KEY_INDEX, index);
}

void role_send(int sock, struct wire_out *out)
{
	if (sock >= 0 && !out->error)
		wire_send(sock, out, MSG_DONTWAIT);
	wire_out_fini(out);
}

bool role_is_told(int sock)
{
	return recv(sock, NULL, 0, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

int role_hear(const int *sock, void (*fn)(struct wire_in *in))
{
	struct wire_in in;
	int r = 0;

	while (!r && *sock >= 0) {
		wire_in_init(&in);
		r = role_is_told(*sock) ? wire_recv(*sock, &in, MSG_DONTWAIT) : -EAGAIN;
		if (!r)
			fn(&in);
		wire_in_fini(&in);
	}
	return r;
}

/* ---- reserving ---- */

bool role_reserve(struct variant *variant, uint32_t to, pid_t pid)
{
	struct reserve *reserve = &variant->reserve;

	if (reserve->pid || to <= variant->slots)
		return false;
	reserve->pid = pid;
	reserve->from = variant->slots;
	reserve->to = to;
	variant_account(variant,
			(int64_t)((to - variant->slots) * variant->table.geometry.slot_stride));
	return true;
}

static const struct variant *reserving(const struct node *node, pid_t pid)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
				if (stream->variant[i] && stream->variant[i]->reserve.pid == pid)
					return stream->variant[i];
	return NULL;
}

int role_reserved(const struct node *node, pid_t pid)
{
	const struct variant *variant = reserving(node, pid);
	uint32_t n, done = 0;

	if (!variant)
		return -1;
	n = variant->reserve.to - variant->reserve.from;
	while (done < n && slots_reserve(variant->slots_fd, &variant->table.geometry,
					 variant->reserve.from + done) == 0)
		done++;
	return W_EXITCODE((int)done, 0);
}

/* ---- what a process has ---- */

unsigned role_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[64];
	unsigned n = 0;

	if (!folder)
		abort();
	while ((entry = readdir(folder)))
		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target)) > 4)
			n += memcmp(target, "pipe", 4) != 0;
	closedir(folder);
	return n;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	return remove(path);
}

void role_remove(const char *folder)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- what must hold ---- */

static const char *check_stream(const struct stream *stream, bool with_queues)
{
	const char *broken = stream->carousel ? carousel_check(stream->carousel) : NULL;

	if (!broken)
		broken = arena_check(&stream->shared.arena);
	if (!broken && with_queues && stream->state == STREAM_RUNS)
		broken = queue_check(&stream->shared.queue);
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS && !broken; i++)
		if (stream->users.job[i])
			broken = grant_check(&stream->users.job[i]->grants);
	return broken;
}

const char *role_check(const struct node *node, bool with_queues)
{
	uint64_t memory = node->memory.catalogs;
	const char *broken = NULL;
	unsigned conns = 0;

	BASE_EACH(domain, &node->domains, link) {
		BASE_EACH(stream, &domain->streams, link) {
			if (!broken)
				broken = check_stream(stream, with_queues);
			memory += stream->bytes.all;
		}
		BASE_EACH(source, &domain->sources, link)
			memory += source->memory;
	}
	BASE_EACH(conn, &node->clients.list, link)
		conns++;
	if (!broken && conns != node->clients.n)
		broken = "connections are miscounted";
	if (!broken && memory != node->memory.used)
		broken = "memory is miscounted";
	if (!broken && memory > node->memory.budget)
		broken = "more memory than the budget";
	return broken;
}
