/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/daemon/bottle/bottle.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node_life.h"
#include "daemon/tenant/domain.h"

static struct bottle *now; /* the one that there is */

struct bottle *bottle_now(void)
{
	return now;
}

/* ---- chance, time, and what came of it ---- */

uint64_t bottle_below(uint64_t bound)
{
	return philox_below(&now->chance, bound);
}

uint64_t bottle_between(uint64_t least, uint64_t most)
{
	return least + bottle_below(most - least);
}

bool bottle_chance(unsigned one_in)
{
	return bottle_below(one_in) == 0;
}

void bottle_after(uint64_t delay_ns, clock_fn *fn, void *arg, uint64_t a, uint64_t b)
{
	clock_at(&now->clock, now->clock.now_ns + delay_ns, fn, arg, a, b);
}

void bottle_run(uint64_t until_ns)
{
	while (!now->broken[0] && clock_go(&now->clock, until_ns))
		continue;
}

void bottle_note(uint64_t what, uint64_t a, uint64_t b)
{
	const struct philox row =
	    philox_block(now->sum ^ what, now->clock.now_ns, a << 32 ^ b << 1);

	now->sum = (uint64_t)row.word[0] << 32 | row.word[1];
	if (now->is_traced)
		printf("%12.6f %c %llu %llu\n", (double)now->clock.now_ns / 1e9, (char)what,
		       (unsigned long long)a, (unsigned long long)b);
}

void bottle_break(const char *fmt, ...)
{
	va_list args;
	int n;

	if (now->broken[0])
		return;
	n = snprintf(now->broken, sizeof(now->broken),
		     "after %.6f s: ", (double)now->clock.now_ns / 1e9);
	va_start(args, fmt);
	vsnprintf(now->broken + n, sizeof(now->broken) - (size_t)n, fmt, args);
	va_end(args);
}

uint64_t __wrap_base_now_ns(void);
int __wrap_base_random(void *ret, size_t size);
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
    BASE_PRINTF(3, 4);

uint64_t __wrap_base_now_ns(void)
{
	return now->clock.now_ns;
}

static void draw(void *ret, size_t size)
{
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		const uint64_t chance = philox_u64(&now->chance);

		memcpy((uint8_t *)ret + at, &chance, BASE_MIN(size - at, sizeof(chance)));
	}
}

int __wrap_base_random(void *ret, size_t size)
{
	draw(ret, size);
	return 0;
}

void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	va_list args;

	if (!now->is_traced)
		return;
	printf("%12.6f %d %s ", (double)now->clock.now_ns / 1e9, (int)level, event);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

/* ---- invariants ---- */

void bottle_check(void)
{
	const struct node *node = now->node;
	const char *broken;

	if (!node || now->turns % 4)
		return;
	broken = role_check(node, true);
	if (broken)
		bottle_break("%s", broken);
	if (node->counters.waits_on_dead)
		bottle_break("a living job waited for a dead one");
}

/* ---- accessd ---- */

static void set_up(struct node *node, uint64_t chance)
{
	static const char *const points[] = {"auto",   "auto", "deepest", "auto",
					     "packed", "auto", "indexed"};

	node->porters.program = NULL; /* descriptors are closed at once */
	param_init(&node->param);
	node->param.memory = UINT64_C(64) << 20;
	node->param.cache_size = chance % 5 ? UINT64_C(1) << (20 + chance % 3) : 0;
	snprintf(node->param.cache_point, sizeof(node->param.cache_point), "%s",
		 points[chance % BASE_ARRAY_LEN(points)]);
	node->param.arena = UINT64_C(1) << 20;
	node->param.huge_pages = HUGE_PAGES_OFF;
	node->param.numa = NUMA_OFF;
	node->param.workers = 1 + chance % BOTTLE_WORKERS;
	node->param.slots = chance % 3 ? 0 : 2 * BOTTLE_JOBS + chance % 7;
	node->param.producing = 1 + chance % 3;
	node->param.max_clients = 64;
	node->param.linger_s = chance % 2 ? 0 : 3;
	node->param.idle_exit_s = 0;
	node->param.seed = 1 + chance;
	snprintf(node->param.cache_dir, sizeof(node->param.cache_dir), "%s/cache", now->folder);
}

void accessd_start(void)
{
	struct diag diag = {""};
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		abort();
	now->node = node;
	now->life++;
	now->is_poked = false;
	set_up(node, now->seed % 1000);
	if (place_open(&node->place, &node->param, true, now->folder, -1, &diag) ||
	    node_init(node, &diag))
		bottle_break("accessd does not start: %s", diag.text);
	if (!node->machine.arithmetic != (node->own->disk_cache.rings_fd < 0))
		bottle_break("arithmetic is found out where something may be kept, else not");
}

void accessd_stop(void)
{
	if (!now->node)
		return;
	now->until_ns = 0;
	node_fini(now->node);
	free(now->node);
	now->node = NULL;
	process_end();
	training_wake();
}

/* ---- a life ---- */

static void make_index(void)
{
	uint32_t sizes[BOTTLE_SAMPLES];

	for (unsigned i = 0; i < now->samples; i++)
		sizes[i] = (uint32_t)bottle_between(16, 3000);
	role_index(sizes, now->samples, &now->index_fd, now->version);
}

static uint64_t host_now_ns(void)
{
	return now->clock.now_ns;
}

static enum mutant host_mutant(void)
{
	return now->mutant;
}

static const struct client_host host = {host_now_ns, draw, training_wait, training_pause,
					host_mutant};

void bottle_begin(struct bottle *bottle, uint64_t seed, enum mutant mutant,
		  const struct client_calls *client, const char *folder)
{
	memset(bottle, 0, sizeof(*bottle));
	now = bottle;
	bottle->seed = seed;
	bottle->mutant = mutant;
	bottle->is_traced = getenv("BOTTLE_TRACE");
	bottle->client = client;
	bottle->folder = folder;
	bottle->clock.now_ns = SECOND;
	philox_seq_init(&bottle->chance, seed, 0x626f74746c65, 1);
	bottle->samples = (unsigned)bottle_between(30, BOTTLE_SAMPLES);
	bottle->read_us = bottle_between(20, 3000);
	bottle->work_us = bottle_between(100, 20000);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(bottle->permille); i++)
		bottle->permille[i] = (unsigned)bottle_between(50, 1300);
	for (unsigned i = 0; i < BOTTLE_SAMPLES && bottle_chance(2); i++) {
		const bool is_bad = bottle_chance(20);

		bottle->is_bad[bottle_below(bottle->samples)] |= is_bad;
	}
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		bottle->job[i] = (struct training){.bottle = bottle, .number = i, .fd = -1};
	make_index();
	client->begin(&host);
	accessd_start();
}

void bottle_end(struct bottle *bottle)
{
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		training_kill(&bottle->job[i]);
	accessd_stop();
	base_close(&bottle->index_fd);
	clock_end(&bottle->clock);
	now = NULL;
}
