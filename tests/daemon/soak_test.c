/* SPDX-License-Identifier: Apache-2.0 */

/* 2,000 opens of all sorts, one in five of which succeeds: afterwards accessd has no more descriptors,
 * memory, processes and blocks of its heap than before. */

#include "tests/daemon/raw.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

#define IDLE_CHILDREN 2      /* the reader and the worker parent */
#define HEAP_ALLOWED 16000.0 /* 8 bytes an open would be more */

struct state {
	unsigned fds, children, maps;
	double streams, memory, heap;
};

static char heap_path[512];

/* From accessd's start on bench/heap.c counts what of its heap is in use. */
static void count_heap(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("not tested: the heap: a sanitizer has its own\n");
#else
	const char *build = getenv("top_builddir");
	char library[512];

	snprintf(library, sizeof(library), "%s/bench/.libs/heap.so", build ? build : ".");
	if (access(library, R_OK)) {
		printf("not tested: the heap: built without shared libraries\n");
		return;
	}
	setenv("LD_PRELOAD", library, 1);
	snprintf(heap_path, sizeof(heap_path), "%s", rig_path("heap"));
	setenv("ACCESS_HEAP", heap_path, 1);
#endif
}

/* Bytes; 0 where it is not counted. */
static double heap_in_use(void)
{
	int64_t bytes = 0;
	FILE *file;

	if (!*heap_path)
		return 0;
	file = fopen(heap_path, "re");
	ck_assert_msg(file != NULL, "%s: accessd does not count its heap", heap_path);
	ck_assert_uint_eq(fread(&bytes, sizeof(bytes), 1, file), 1);
	fclose(file);
	return (double)bytes;
}

/* Waits for accessd's descriptors until they are no more than most_fds. */
static struct state look(unsigned most_fds)
{
	return (struct state){
	    .streams = rig_status("streams"),
	    .memory = rig_status("node.memory_used"),
	    .children = count_children(rig_host.pid),
	    .maps = rig_count_maps(rig_pid("node.parent_pid")),
	    .fds = rig_settled_fds(most_fds),
	    .heap = heap_in_use(),
	};
}

static bool is_at_most(const struct state *now, const struct state *most)
{
	return now->streams <= most->streams && now->memory <= most->memory &&
	       now->children <= most->children && now->maps <= most->maps &&
	       now->fds <= most->fds && now->heap <= most->heap;
}

/* What a client leaves goes a moment after him, however long such a moment is here: looks until
 * nothing is more than it may be. */
static void expect_at_most(const char *when, const struct state *most)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;
	struct state now = look(most->fds);

	while (!is_at_most(&now, most) && base_now_ns() < end_ns) {
		rig_sleep_ms(50);
		now = look(most->fds);
	}
	ck_assert_msg(is_at_most(&now, most),
		      "%s, long after it: streams %g (at most %g), memory_used %g (%g), "
		      "children %u (%u), maps of the worker parent %u (%u), descriptors %u (%u), "
		      "bytes of the heap %g (%g)",
		      when, now.streams, most->streams, now.memory, most->memory, now.children,
		      most->children, now.maps, most->maps, now.fds, most->fds, now.heap,
		      most->heap);
}

static void hear_and_close(int sock, uint16_t type)
{
	struct wire_in in;

	ck_assert_int_eq(raw_hear(sock, 0, &in), 0);
	ck_assert_uint_eq(in.type, type);
	wire_in_fini(&in);
	close(sock);
}

static void open_somehow(const char *dataset, const char *unseen, unsigned i)
{
	struct raw_open open = {
	    .dataset = dataset, .pipeline = "imagenet-eval-u8", .batch = 8, .chunk = 8};

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
	case 3: /* a slot that no budget holds; of a dataset that no stream has, for it would join */
		open.dataset = unseen;
		open.chunk = 65536;
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
	const char *unseen = rig_pictures("unseen", 40, 2, 32);
	struct state most = {
	    .children = IDLE_CHILDREN, .maps = UINT32_MAX, .fds = UINT32_MAX, .heap = INFINITY};

	count_heap();
	rig_start("workers=1", "linger_s=0", "memory=256M", NULL);
	unsetenv("LD_PRELOAD");
	for (unsigned i = 0; i < 20; i++)
		open_somehow(dataset, unseen, i);
	expect_at_most("after 20 opens", &most);
	most.maps = look(UINT32_MAX).maps + MAPS_ALLOWED;
	most.fds = rig_settled_fds(0);
	most.heap = heap_in_use() + HEAP_ALLOWED;
	for (unsigned i = 0; i < OPENS; i++)
		open_somehow(dataset, unseen, i);
	expect_at_most("after 2000 more", &most);
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
