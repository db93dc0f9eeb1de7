/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What access-reader keeps, played: groups of values on a disk that outlives reader and accessd, with a limit, and at times it
 * takes nothing, or what is on it is damaged. Tables and write-back rings are the real ones. A value says whose it is: a sample's,
 * in a group, and of forms behind random ops of which instance.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/reader.h"
#include "storage/store.h"
#include "tests/daemon/bottle/bottle.h"

#define TRIES_S 60 /* a disk that takes nothing */

static uint64_t word_of(const struct hash_id *id)
{
	uint64_t word;

	memcpy(&word, id, sizeof(word));
	return word;
}

static uint32_t bytes_of(const struct hash_id *id, unsigned form, uint64_t sample)
{
	const struct philox row = philox_block(word_of(id), form, sample);

	return (uint32_t)sizeof(struct kept_value) +
	       row.word[0] % (form == LAYOUT_FORM_INDEXED ? 200 : 6000);
}

/* ---- for workers ---- */

/* Some samples have no such form. */
bool store_value(const struct bottle_queue *queue, unsigned form, const struct queue_task *task,
		 struct kept_value *ret)
{
	const struct kept_group *group = queue->kept[form];

	*ret = (struct kept_value){.sample = task->sample, .form = form};
	if (form == LAYOUT_FORM_AUGMENTED)
		ret->mark = mark_of(task);
	if (group)
		ret->group = word_of(&group->id);
	ret->bytes = group ? bytes_of(&group->id, form, task->sample) : sizeof(*ret);
	return (task->sample + form) % 13 != 0;
}

/* ---- groups ---- */

static struct kept_group *group_find(const struct hash_id *id)
{
	struct kept *kept = &bottle_now()->kept;
	struct kept_group *group = NULL;

	for (unsigned i = 0; i < BOTTLE_GROUPS; i++) {
		if (kept->group[i].is_used && memcmp(&kept->group[i].id, id, sizeof(*id)) == 0)
			return &kept->group[i];
		if (!kept->group[i].is_used)
			group = &kept->group[i];
	}
	if (!group)
		return NULL;
	*group = (struct kept_group){.is_used = true, .id = *id, .table = {.fd = -1}};
	return group;
}

static void forget_value(struct kept_group *group, uint64_t sample)
{
	struct kept *kept = &bottle_now()->kept;

	if (!group->value[sample].bytes)
		return;
	kept->used -= store_bytes_of(group->value[sample].bytes);
	kept->state.values--;
	group->value[sample].bytes = 0;
	if (group->table.cell)
		store_table_set(&group->table, sample, 0);
}

/* All of it is set aside, and begun anew. */
static void forget_all(void)
{
	struct kept *kept = &bottle_now()->kept;

	for (unsigned i = 0; i < BOTTLE_GROUPS; i++)
		for (unsigned s = 0; s < BOTTLE_SAMPLES; s++)
			forget_value(&kept->group[i], s);
}

/* ---- what it says ---- */

static void say_state(void)
{
	struct kept *kept = &bottle_now()->kept;
	struct wire_out out;

	kept->state.limit = kept->limit;
	kept->state.used = kept->state.file = kept->used;
	if (memcmp(&kept->state, &kept->said, sizeof(kept->said)) == 0)
		return;
	kept->said = kept->state;
	wire_out_init(&out, READER_STATE);
	wire_put_bytes(&out, READER_KEY_STATE, &kept->state, sizeof(kept->state));
	wire_put_string(&out, READER_KEY_TEXT, kept->state.mode == STORE_ON ? "" : "the disk");
	reader_say(&out);
}

/* A descriptor of a table is the reader's, until it dies. */
static void serve_wishes(struct bottle_queue *queue)
{
	const bool is_on = bottle_now()->kept.state.mode != STORE_OFF;

	for (unsigned form = 0; form < LAYOUT_FORMS; form++) {
		struct kept_group *group;
		struct wire_out out;

		if (!queue->wishes[form])
			continue;
		queue->wishes[form] = false;
		group = is_on ? group_find(&queue->wish[form]) : NULL;
		if (group && !group->table.cell) {
			if (store_table_new(BOTTLE_SAMPLES, &group->table))
				abort();
			for (unsigned s = 0; s < BOTTLE_SAMPLES; s++)
				store_table_set(&group->table, s, group->value[s].bytes);
		}
		queue->kept[form] = group;
		wire_out_init(&out, READER_FORMED);
		wire_put_u64(&out, READER_KEY_QUEUE, queue->number);
		wire_put_u64(&out, READER_KEY_FORM, form);
		if (group) {
			role_put_fd(&out, READER_KEY_TABLE, group->table.fd);
		} else {
			wire_put_string(&out, READER_KEY_TEXT, "there is no room for a group");
		}
		reader_say(&out);
	}
}

static void on_opened(void *arg, uint64_t life, uint64_t has_folder)
{
	struct bottle *bottle = arg;
	struct kept *kept = &bottle->kept;

	if (!bottle->reader.pid || bottle->reader.life != life)
		return;
	if (bottle->clock.now_ns < bottle->reader.until_ns) {
		clock_at(&bottle->clock, bottle->reader.until_ns, on_opened, bottle, life,
			 has_folder);
		return;
	}
	kept->is_open = true;
	kept->state.mode = has_folder ? STORE_ON : STORE_OFF;
	say_state();
	for (unsigned i = 0; i < BOTTLE_QUEUES; i++)
		if (bottle->queue[i].is_used && bottle->queue[i].has_reader)
			serve_wishes(&bottle->queue[i]);
}

/* ---- what comes from workers ---- */

static bool takes(const struct kept *kept)
{
	return kept->state.mode == STORE_ON && bottle_now()->clock.now_ns >= kept->until_ns;
}

static void put(struct kept_group *group, const struct rings_item *item)
{
	struct kept *kept = &bottle_now()->kept;
	const uint64_t more = store_bytes_of(item->bytes);
	struct kept_value value;

	memcpy(&value, item->data, sizeof(value));
	if (value.sample != item->sample || value.form != item->form || value.bytes != item->bytes)
		bottle_break("the ring has a form of sample %llu in the place of %llu",
			     (unsigned long long)value.sample, (unsigned long long)item->sample);
	if (item->form == LAYOUT_FORM_AUGMENTED)
		forget_value(group, item->sample);
	if (group->value[item->sample].bytes)
		return;
	if (!takes(kept) || kept->used + more > kept->limit) {
		kept->state.not_taken++;
		kept->state.full += takes(kept);
		kept->state.write_errors += !takes(kept);
		return;
	}
	value.group = word_of(&group->id);
	group->value[item->sample] = value;
	group->value[item->sample].is_rotten = bottle_now()->is_wild && bottle_chance(60);
	kept->used += more;
	kept->state.values++;
	kept->state.kept++;
	kept->state.write_ns += 20000;
	kept->state.write_cpu_ns += 5000;
	kept->state.write_bytes += more;
	store_table_set(&group->table, item->sample, item->bytes);
}

static void take(const struct rings_item *item)
{
	struct bottle_queue *queue = queue_find(item->queue);
	const uint64_t sample = item->sample;

	if (!queue || !queue->has_reader || item->form >= LAYOUT_FORMS ||
	    sample >= bottle_now()->samples || !queue->expected[sample])
		return;
	queue->expected[sample] = false;
	if (queue->kept[item->form] && item->bytes)
		put(queue->kept[item->form], item);
}

static void on_turn(void *arg, uint64_t life, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct kept *kept = &bottle->kept;
	struct rings_item item;
	bool bad;

	(void)unused;
	if (!bottle->reader.pid || bottle->reader.life != life || !kept->rings.head)
		return;
	if (bottle->clock.now_ns < bottle->reader.until_ns) {
		clock_at(&bottle->clock, bottle->reader.until_ns, on_turn, bottle, life, 0);
		return;
	}
	kept->is_due = false;
	for (uint32_t ring = 0; ring < kept->rings.n_rings; ring++)
		while (rings_look(&kept->rings, ring, &item, &bad)) {
			take(&item);
			rings_pass(&kept->rings, ring, &item);
		}
	if (kept->is_open && kept->state.mode != STORE_OFF)
		kept->state.mode =
		    bottle->clock.now_ns < kept->until_ns ? STORE_READ_ONLY : STORE_ON;
	say_state();
	if (kept->state.mode == STORE_READ_ONLY)
		store_stir();
}

void store_stir(void)
{
	struct bottle *bottle = bottle_now();

	if (bottle->kept.is_due || !bottle->kept.is_open)
		return;
	bottle->kept.is_due = true;
	bottle_after(bottle_between(MS, SECOND), on_turn, bottle, bottle->reader.life, 0);
}

/* ---- for the reader ---- */

/* Bytes that came, head first; 0: it is not there. */
uint32_t store_bring(struct bottle_queue *queue, const struct queue_task *task, uint8_t *buffer)
{
	struct kept_group *group = task->want ? queue->kept[task->want] : NULL;
	struct kept_value *value = group ? &group->value[task->sample] : NULL;
	const uint32_t behind = task->want == LAYOUT_FORM_INDEXED ? task->bytes : 0;

	if (!value || !value->bytes || value->bytes + behind > task->room)
		return 0;
	if (bottle_now()->is_wild && bottle_chance(200)) {
		bottle_now()->kept.state.damaged++;
		forget_value(group, task->sample);
		return 0;
	}
	memset(buffer, (int)task->sample, value->bytes);
	memcpy(buffer, value, sizeof(*value));
	bottle_now()->kept.state.hits++;
	bottle_now()->hits++;
	return value->bytes;
}

void store_start(struct wire_in *in)
{
	bottle_now()->kept.state.mode = STORE_OFF;
	if (in->n_fds > 2 && rings_attach(in->fds[2], &bottle_now()->kept.rings))
		abort();
}

void store_open_at(const struct wire_in *in)
{
	struct bottle *bottle = bottle_now();
	struct kept *kept = &bottle->kept;

	wire_get_u64(in, READER_KEY_LIMIT, &kept->limit);
	if (bottle->is_wild && bottle_chance(8))
		forget_all();
	bottle_after(bottle_between(MS, 2 * SECOND), on_opened, bottle, bottle->reader.life,
		     in->n_fds > 0);
}

void store_form(const struct wire_in *in)
{
	struct bottle_queue *queue;
	uint64_t number = 0, form = 0;
	const void *id;
	size_t size;

	wire_get_u64(in, READER_KEY_QUEUE, &number);
	wire_get_u64(in, READER_KEY_FORM, &form);
	queue = queue_find(number);
	if (!queue || form >= LAYOUT_FORMS || wire_get_bytes(in, READER_KEY_GROUP, &id, &size) ||
	    size != sizeof(queue->wish[form]))
		return;
	if (queue->kept[form] && memcmp(&queue->kept[form]->id, id, size) != 0)
		bottle_break("form %llu of a queue is to be of two groups",
			     (unsigned long long)form);
	memcpy(&queue->wish[form], id, size);
	queue->wishes[form] = true;
	if (bottle_now()->kept.is_open)
		serve_wishes(queue);
}

/* The disk takes nothing for a while. */
void store_fail(void)
{
	struct bottle *bottle = bottle_now();

	bottle->kept.until_ns = bottle->clock.now_ns + bottle_below(TRIES_S * SECOND);
	store_stir();
}

/* Its reader has died; what is on the disk stays. */
void store_close_down(void)
{
	struct kept *kept = &bottle_now()->kept;
	const uint64_t values = kept->state.values;

	for (unsigned i = 0; i < BOTTLE_GROUPS; i++)
		if (kept->group[i].is_used)
			store_table_free(&kept->group[i].table);
	if (kept->rings.head)
		rings_detach(&kept->rings);
	kept->is_open = kept->is_due = false;
	kept->said = kept->state = (struct reader_state){.mode = STORE_OFF};
	kept->state.values = values;
}
