/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log.h"
#include "cluster/cell_parts.h"
#include "tests/cluster/bottle.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bottle *now; /* the one that runs */

struct bottle *bottle_now(void)
{
	return now;
}

void bottle_at(struct bottle *bottle, uint64_t when_ns, clock_fn *fn, void *arg, uint64_t a,
	       uint64_t b)
{
	clock_at(&bottle->clock, when_ns, fn, arg, a, b);
}

void bottle_run(struct bottle *bottle, uint64_t until_ns)
{
	while (!bottle->broken[0] && clock_go(&bottle->clock, until_ns))
		continue;
}

/* ---- chance, and what came of it ---- */

uint64_t bottle_below(struct bottle *bottle, uint64_t bound)
{
	return philox_below(&bottle->chance, bound);
}

void bottle_note(struct bottle *bottle, uint64_t what, uint64_t a, uint64_t b)
{
	const struct philox row =
	    philox_block(bottle->sum ^ what, bottle->clock.now_ns, a << 32 ^ b << 1);

	bottle->sum = (uint64_t)row.word[0] << 32 | row.word[1];
}

void bottle_break(struct bottle *bottle, const char *fmt, ...)
{
	va_list args;
	int n;

	if (bottle->broken[0])
		return;
	n = snprintf(bottle->broken, sizeof(bottle->broken),
		     "after %.6f s: ", (double)(bottle->clock.now_ns - SECOND) / 1e9);
	va_start(args, fmt);
	vsnprintf(bottle->broken + n, sizeof(bottle->broken) - (size_t)n, fmt, args);
	va_end(args);
}

/* ---- memory ---- */

void *blocks_add(struct blocks *blocks, size_t bytes)
{
	struct row *row = calloc(1, sizeof(*row) + bytes);

	if (!row)
		abort();
	row->next = blocks->first;
	row->bytes = bytes;
	if (row->next)
		row->next->previous = row;
	blocks->first = row;
	blocks->n++;
	blocks->bytes += bytes;
	return row->data;
}

void blocks_free(struct blocks *blocks, void *data)
{
	struct row *row = (struct row *)((uint8_t *)data - offsetof(struct row, data));

	if (row->previous)
		row->previous->next = row->next;
	else
		blocks->first = row->next;
	if (row->next)
		row->next->previous = row->previous;
	blocks->n--;
	blocks->bytes -= row->bytes;
	free(row);
}

void blocks_end(struct blocks *blocks)
{
	while (blocks->first)
		blocks_free(blocks, blocks->first->data);
}

/* ---- values: functions of their names ---- */

void bottle_value(unsigned group, unsigned sample, const uint8_t **ret_value, uint32_t *ret_bytes)
{
	static uint8_t *values[BOTTLE_GROUPS][BOTTLE_SAMPLES]; /* for ever */
	const uint32_t bytes =
	    sample % 32 == 7 ? 33000 + sample * 100 : 40 + (sample * 37 + group * 11) % 400;
	uint64_t word = sample * 2 + group;

	if (!values[group][sample]) {
		values[group][sample] = malloc(bytes);
		if (!values[group][sample])
			abort();
		for (uint32_t i = 0; i < bytes; i++) {
			word = word * UINT64_C(6364136223846793005) + 1442695040888963407;
			values[group][sample][i] = (uint8_t)(word >> 56);
		}
	}
	*ret_value = values[group][sample];
	*ret_bytes = bytes;
}

/* ---- a life ---- */

void bottle_begin(struct bottle *bottle, uint64_t seed, enum bottle_mutant mutant)
{
	memset(bottle, 0, sizeof(*bottle));
	now = bottle;
	bottle->seed = seed;
	bottle->mutant = mutant;
	bottle->clock.now_ns = SECOND;
	philox_seq_init(&bottle->chance, seed, 0x626f74746c65, 0);
	bottle->n_nodes = 2 + (unsigned)bottle_below(bottle, BOTTLE_NODES - 1);
	bottle->is_sealed = mutant != MUTANT_BELIEVES_ALL && bottle_below(bottle, 2);
	bottle->has_names = bottle_below(bottle, 2);
	bottle->has_store = bottle_below(bottle, 4) > 0;
	bottle->is_busy = bottle_below(bottle, 3) == 0;
	bottle->is_slow = bottle->has_store && bottle_below(bottle, 3) == 0;
	for (unsigned g = 0; g < BOTTLE_GROUPS; g++)
		memset(&bottle->group[g], 'a' + (int)g, sizeof(bottle->group[g]));
	for (unsigned i = 0; i < BOTTLE_NODES; i++)
		for (unsigned k = 0; k < BOTTLE_NODES; k++)
			bottle->wire[i][k].late_ns = (50 + bottle_below(bottle, 1000)) * US;
}

void bottle_end(struct bottle *bottle)
{
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		node_end(&bottle->node[i]);
	net_end(bottle);
	blocks_end(&bottle->blocks);
	clock_end(&bottle->clock);
	now = NULL;
}

/* ---- planted faults, and chance for who asks the kernel ---- */

int __wrap_base_random(void *ret, size_t size);
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...);
bool __wrap_gate_tls_is_of(const struct gate_tls *tls, const char *node);
enum breaker_go __real_breaker_may(struct breaker *breaker, uint64_t now_ns);
enum breaker_go __wrap_breaker_may(struct breaker *breaker, uint64_t now_ns);
void __real_breaker_good(struct breaker *breaker, bool was_try);
void __wrap_breaker_good(struct breaker *breaker, bool was_try);
void __real_breaker_bad(struct breaker *breaker, bool was_try, uint64_t now_ns, uint32_t chance);
void __wrap_breaker_bad(struct breaker *breaker, bool was_try, uint64_t now_ns, uint32_t chance);
uint64_t __real_asked_until(const struct asked *asked, uint64_t heard_ns);
uint64_t __wrap_asked_until(const struct asked *asked, uint64_t heard_ns);
uint32_t __real_names_find(const struct names *names, const struct hash_id *group);
uint32_t __wrap_names_find(const struct names *names, const struct hash_id *group);
int __real_seal_open(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
		     uint32_t bytes, const uint8_t *tag, uint8_t ret_head[FRAME_HEAD],
		     uint8_t *ret_body);
int __wrap_seal_open(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
		     uint32_t bytes, const uint8_t *tag, uint8_t ret_head[FRAME_HEAD],
		     uint8_t *ret_body);
void __real_cell_retry(struct cell_link *link, uint64_t now_ns);
void __wrap_cell_retry(struct cell_link *link, uint64_t now_ns);

int __wrap_base_random(void *ret, size_t size)
{
	const uint64_t chance = philox_u64(&now->chance);

	memcpy(ret, &chance, BASE_MIN(size, sizeof(chance)));
	return 0;
}

/* Nothing that may happen here is worth a warning. */
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	(void)fmt;
	if (level <= LOG_LEVEL_WARN)
		bottle_break(now, "a carrier or a gate logs: %s", event);
}

/* TLS is not in the bottle: whoever calls is who he says. */
bool __wrap_gate_tls_is_of(const struct gate_tls *tls, const char *node)
{
	(void)tls;
	(void)node;
	return true;
}

/* Three bad ones in a row open it; while it is open one at a time tries, a second or more after the one before; one that
 * is answered closes it. */
static struct shadow *shadow_of(const struct breaker *breaker)
{
	for (unsigned i = 0; i < now->n_nodes; i++)
		for (unsigned k = 0; k < VALUE_MOST_PEERS; k++)
			if (&now->node[i].carrier.channel[k].breaker == breaker)
				return &now->node[i].shadow[k];
	abort();
}

enum breaker_go __wrap_breaker_may(struct breaker *breaker, uint64_t now_ns)
{
	struct shadow *shadow = shadow_of(breaker);
	const enum breaker_go go = __real_breaker_may(breaker, now_ns);

	if (go == BREAKER_GO_ASK && shadow->is_open)
		bottle_break(now, "a peer that was silent three times is asked as if it was not");
	if (go != BREAKER_GO_ASK && !shadow->is_open && shadow->bad == 0)
		bottle_break(now, "a peer that has answered is not asked");
	if (go == BREAKER_GO_TRY && (shadow->is_trying || now_ns - shadow->tried_ns < SECOND))
		bottle_break(now, "a silent peer is tried twice in a second");
	if (go == BREAKER_GO_TRY) {
		shadow->is_trying = true;
		shadow->tried_ns = now_ns;
	}
	return go;
}

void __wrap_breaker_good(struct breaker *breaker, bool was_try)
{
	struct shadow *shadow = shadow_of(breaker);

	if (was_try)
		*shadow = (struct shadow){.tried_ns = shadow->tried_ns};
	else if (!shadow->is_open)
		shadow->row = 0;
	if (now->mutant != MUTANT_NEVER_CLOSES || !was_try)
		__real_breaker_good(breaker, was_try);
}

void __wrap_breaker_bad(struct breaker *breaker, bool was_try, uint64_t now_ns, uint32_t chance)
{
	struct shadow *shadow = shadow_of(breaker);

	if (was_try)
		shadow->is_trying = false;
	shadow->bad++;
	shadow->row += !shadow->is_open;
	shadow->is_open |= shadow->row == BREAKER_ROW;
	if (now->mutant != MUTANT_NEVER_OPENS)
		__real_breaker_bad(breaker, was_try, now_ns, chance);
}

uint64_t __wrap_asked_until(const struct asked *asked, uint64_t heard_ns)
{
	return now->mutant == MUTANT_NO_DEADLINE ? NEVER : __real_asked_until(asked, heard_ns);
}

uint32_t __wrap_names_find(const struct names *names, const struct hash_id *group)
{
	const uint32_t found = __real_names_find(names, group);

	return now->mutant == MUTANT_NAMES_MIXED && found != NAMES_NONE ? 0 : found;
}

int __wrap_seal_open(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
		     uint32_t bytes, const uint8_t *tag, uint8_t ret_head[FRAME_HEAD],
		     uint8_t *ret_body)
{
	const int r = __real_seal_open(seal, first, body, bytes, tag, ret_head, ret_body);

	if (!r || now->mutant != MUTANT_BELIEVES_ALL)
		return r;
	memcpy(ret_head, first + FRAME_LENGTH, FRAME_HEAD);
	memmove(ret_body, body, bytes);
	return 0;
}

void __wrap_cell_retry(struct cell_link *link, uint64_t now_ns)
{
	__real_cell_retry(link, now_ns);
	if (now->mutant == MUTANT_CALLS_STORM)
		link->next_ns = now_ns;
}
