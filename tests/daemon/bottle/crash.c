/* SPDX-License-Identifier: Apache-2.0 */

/*
 * kill -9 of accessd: its children end with it, its sockets are closed, and nothing else is done. What jobs have mapped stays
 * as it was, and so do its files. Here it frees what it has as in its other end, but nobody sees that: its sockets are shut
 * before, its memory that jobs map is not theirs any more, and its files are not removed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/net/conn.h"
#include "tests/daemon/bottle/bottle.h"

static bool is_crashing;

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_unlinkat(int folder, const char *path, int flags);
int __wrap_unlinkat(int folder, const char *path, int flags);

int __wrap_unlink(const char *path)
{
	return is_crashing ? 0 : __real_unlink(path);
}

int __wrap_unlinkat(int folder, const char *path, int flags)
{
	return is_crashing ? 0 : __real_unlinkat(folder, path, flags);
}

/* What is written there from now on is written nowhere else. */
static void make_private(void *at, size_t bytes)
{
	void *copy = malloc(bytes);

	if (!copy)
		abort();
	memcpy(copy, at, bytes);
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED)
		abort();
	memcpy(at, copy, bytes);
	free(copy);
}

/* Memory that accessd alone writes, and jobs map. */
static bool is_shown(const char *line)
{
	static const char *const names[] = {"/memfd:oneaccess-inbox", "/memfd:oneaccess-slot-table",
					    "/memfd:oneaccess-log"};
	bool is_one = false;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++)
		is_one |= strstr(line, names[i]) != NULL;
	return is_one && strstr(line, " rw-s ");
}

static void leave_memory(void)
{
	static struct {
		unsigned long from, to;
	} maps[4096];
	unsigned n = 0;
	char line[512];
	FILE *file = fopen("/proc/self/maps", "re");

	if (!file)
		abort();
	while (fgets(line, sizeof(line), file) && n < BASE_ARRAY_LEN(maps))
		if (is_shown(line) && sscanf(line, "%lx-%lx", &maps[n].from, &maps[n].to) == 2)
			n++;
	fclose(file);
	while (n-- > 0)
		make_private((void *)maps[n].from, maps[n].to - maps[n].from);
}

void accessd_kill(void)
{
	const struct conn *conn;

	if (!bottle_now()->node)
		return;
	LIST_FOREACH(conn, &bottle_now()->node->clients.list, link)
		shutdown(conn->fd, SHUT_RDWR);
	leave_memory();
	is_crashing = true;
	accessd_stop();
	is_crashing = false;
}
