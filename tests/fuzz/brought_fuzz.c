/* SPDX-License-Identifier: Apache-2.0 */

/* A plan log that a client made up, as accessd reads it: the offsets and the first records are the input, its
 * sizes and its name are right. Reading ends, keeps to what a log may take, and gives all of it back; what it
 * says is left is what the entries that were good left. */

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/group_brought.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "sched/carousel.h"
#include "plan/population.h"
#include "tests/fuzz/forge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 100
#define CHUNK 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct node node = {.kept = {.fd = -1}, .memory = {.budget = UINT64_MAX / 2}};
static struct domain domain = {.node = &node, .kind = DOMAIN_OWN, .users = {.n = 1}};
static struct stream stream = {.node = &node, .geometry = {.n_samples = N, .chunk = CHUNK}};
static struct variant variant;
static struct conn conn = {
    .node = &node, .domain = &domain, .stream = &stream, .variant = &variant};

static void never(void *arg)
{
	(void)arg;
	abort(); /* the domain is in use */
}

static void begin_once(void)
{
	const struct carousel_config config = {
	    .n = N, .chunk = CHUNK, .slots = 4, .max_slots = 4, .producing = 1, .seed = 1};

	if (stream.carousel)
		return;
	log_init("brought_fuzz", LOG_LEVEL_ERROR);
	conn.request.job = (char *)(uintptr_t) "job";
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	if (carousel_new(&config, &stream.carousel) || loop_new(&node.loop) ||
	    loop_timer_new(node.loop, never, NULL, &domain.users.idle))
		abort();
	node.endings.loop = node.loop;
}

static void read_all(struct brought *log)
{
	const uint64_t most = plan_log_bytes(carousel_log_bytes(stream.carousel));
	unsigned steps = 0;
	int r;

	while ((r = brought_step(log)) == BROUGHT_E_MORE)
		if (++steps > 4 * 65536 || stream.bytes.all > most)
			abort();
	if (r == 0 && log->rest.samples !=
			  population_samples(log->set.permutation, log->set.bits, log->rest.need))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t even[2] = {UINT64_C(0x5555555555555555), UINT64_C(0x555555555)};
	const struct token token = {.n = N};
	const struct entry_rest all = {.need = NULL};
	const struct brought_from from = {.token = &token, .rest = &all};
	struct brought log;
	int fd;

	begin_once();
	fd = forge_plan_log(data, size, N);
	for (int is_part = 0; is_part < 2; is_part++) {
		const struct entry_set set = {.permutation = carousel_permutation(stream.carousel),
					      .bits = is_part ? even : NULL};

		if (!brought_begin(&log, &conn, fd, &from, &set))
			read_all(&log);
		brought_fini(&log);
		while (!LIST_EMPTY(&node.endings.list))
			if (loop_turn(node.loop))
				abort();
		if (stream.bytes.all || node.memory.used || domain.memory.used ||
		    domain.users.n != 1)
			abort();
	}
	close(fd);
	return 0;
}
