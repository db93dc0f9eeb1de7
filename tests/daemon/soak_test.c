/* SPDX-License-Identifier: Apache-2.0 */

/* 2,000 opens of all sorts, one in five of which succeeds: afterwards accessd has the descriptors,
 * the memory and the processes that it had before. */

#include "tests/daemon/raw.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPENS 2000

/* Processes whose parent is pid. */
static unsigned count_children(int pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		char path[300];
		int parent = -1;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = strchr("123456789", entry->d_name[0]) ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1)
			n += parent == pid;
		fclose(file);
	}
	closedir(dir);
	return n;
}

/* A sanitizer's allocator maps and keeps memory as it likes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAPS_ALLOWED 1000
#else
#define MAPS_ALLOWED 4
#endif

struct state {
	unsigned fds, children, maps;
	double memory;
};

static struct state look_once(void)
{
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("node.clients", 1, 1));
	return (struct state){
	    .fds = rig_count_fds(rig_host.pid),
	    .children = count_children(rig_host.pid),
	    .maps = rig_count_maps((int)rig_status("node.parent_pid")),
	    .memory = rig_status("node.memory_used"),
	};
}

/* When nothing moves any more: what a client leaves goes a moment after him. */
static struct state look(void)
{
	struct state last, now = look_once();

	do {
		last = now;
		rig_sleep_ms(200);
		now = look_once();
	} while (now.fds != last.fds || now.children != last.children || now.maps != last.maps);
	return now;
}

static void hear_and_close(int sock, uint16_t type)
{
	struct wire_in in;

	ck_assert_int_eq(raw_hear(sock, 0, &in), 0);
	ck_assert_uint_eq(in.type, type);
	wire_in_fini(&in);
	close(sock);
}

static void open_somehow(const char *dataset, unsigned i)
{
	struct raw_open open = {
	    .dataset = dataset, .pipeline = "imagenet-eval-u8", .batch = 8, .hand = 8};

	switch (i % 5) {
	case 0:
		hear_and_close(raw_ask(&open), PROTO_OPENED);
		break;
	case 1: /* gone at any stage: the answer comes after some milliseconds */
	{
		int sock = raw_ask(&open);

		usleep(i * 7 % 12000);
		close(sock);
	} break;
	case 2:
		open.dataset = "/nonexistent/folder";
		hear_and_close(raw_ask(&open), PROTO_REFUSED);
		break;
	case 3: /* a slot that no budget holds; of a stream that nobody has */
		open.pipeline = "imagenet-train-u8";
		open.hand = 65536;
		hear_and_close(raw_ask(&open), PROTO_REFUSED);
		break;
	default:
		open.pipeline = "[{\"op\":\"no_such_op\"}]";
		hear_and_close(raw_ask(&open), PROTO_REFUSED);
	}
}

START_TEST(everything_comes_back)
{
	const char *dataset = rig_pictures("soak", 40, 2, 32);
	struct state before, after;

	rig_start("workers=1", "linger_s=0", "memory=256M", NULL);
	for (unsigned i = 0; i < 20; i++)
		open_somehow(dataset, i);
	before = look();
	for (unsigned i = 0; i < OPENS; i++)
		open_somehow(dataset, i);
	after = look();
	ck_assert_uint_eq(after.fds, before.fds);
	ck_assert_uint_eq(after.children, before.children);
	ck_assert_uint_le(after.maps, before.maps + MAPS_ALLOWED);
	ck_assert_double_eq(after.memory, 0);
	ck_assert_double_eq(before.memory, 0);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, everything_comes_back);
}

int main(void)
{
	return rig_main("soak", add);
}
