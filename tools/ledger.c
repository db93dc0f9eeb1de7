/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ledger is a redo log of one entry. Two records take turns; record k % 2 is filled, then the
 * word `committed` becomes k, then the ids of record k are applied to the counters:
 *
 *   fill record k ... | committed = k | apply ids of record k ... | fill record k + 1 ...
 *        ^ killed: k never was          ^ killed: the next one to open it applies k again
 *
 * Applying is idempotent: an id of epoch e sets its counter to at least e + 1. It therefore may be
 * done twice and stop anywhere. A record is filled again only when the one after it is applied.
 * Because totals, token and ids lie in one record, they change in one store.
 *
 * Concurrency: the job alone writes while it lives; the next owner (the job's next life, or the
 * parent) opens the memory after it has waited for the death of the one before. What remains is
 * the order of stores of a process that dies between them, which L1 and L2 below keep.
 *
 * Why counters of epochs rather than of deliveries: "twice in the first epoch, never in the second"
 * must not look like "once in each".
 */

#include "tools/ledger.h"

#include "base/bits.h"
#include "base/counter.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEDGER_MAGIC UINT64_C(0x3147444c21214f) /* "O!!LDG1" */
#define LEDGER_MAX_SAMPLES (UINT64_C(1) << 40)
#define LEDGER_NOBODYS UINT16_MAX /* counter of a sample that is none of the job's */

struct ledger_record { /* followed by int64_t ids[batch] and the token */
	struct ledger_totals totals;
	uint64_t epoch;
	uint32_t count, token_size;
};

struct ledger_map {
	struct counter magic; /* stored last: the ledger is made */
	uint64_t n;
	uint32_t batch, token_capacity;
	struct counter committed; /* number of the last record that counts, from 1 */
};

struct ledger_places { /* of the parts, in bytes from the start */
	uint64_t record, record_stride, counters, size;
};

static void ledger_plan(uint64_t n, uint32_t batch, uint32_t token_capacity,
			struct ledger_places *ret)
{
	ret->record = base_align_up(sizeof(struct ledger_map), BASE_CACHE_LINE);
	ret->record_stride = base_align_up(sizeof(struct ledger_record) +
					       (uint64_t)batch * sizeof(int64_t) + token_capacity,
					   BASE_CACHE_LINE);
	ret->counters = ret->record + 2 * ret->record_stride;
	ret->size = base_align_up(ret->counters + n * sizeof(uint16_t), base_page_size());
}

static struct ledger_record *ledger_record_of(const struct ledger *ledger, uint64_t number)
{
	struct ledger_places places;

	ledger_plan(ledger->n, ledger->batch, ledger->token_capacity, &places);
	return (void *)((char *)ledger->map + places.record + number % 2 * places.record_stride);
}

static int64_t *ledger_ids_of(struct ledger_record *record)
{
	return (int64_t *)(record + 1);
}

static uint16_t *ledger_counters_of(const struct ledger *ledger)
{
	struct ledger_places places;

	ledger_plan(ledger->n, ledger->batch, ledger->token_capacity, &places);
	return (void *)((char *)ledger->map + places.counters);
}

static uint64_t ledger_committed(const struct ledger *ledger)
{
	/* L2: acquire, pairs with the release L1: the record is whole */
	return counter_get(&ledger->map->committed);
}

static bool ledger_is_id(const struct ledger *ledger, int64_t id)
{
	return id >= 0 && (uint64_t)id < ledger->n;
}

static void ledger_apply(struct ledger *ledger, struct ledger_record *record)
{
	uint16_t *counters = ledger_counters_of(ledger);
	uint16_t next = (uint16_t)BASE_MIN(record->epoch + 1, (uint64_t)LEDGER_NOBODYS - 1);
	const int64_t *ids = ledger_ids_of(record);

	for (uint32_t i = 0; i < BASE_MIN(record->count, ledger->batch); i++)
		if (ledger_is_id(ledger, ids[i]) && counters[ids[i]] < next)
			counters[ids[i]] = next;
}

int ledger_memory(void)
{
	int fd = memfd_create("oneaccess-bench-ledger", MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int ledger_map_size(int fd, uint64_t size, struct ledger *ledger)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	ledger->map = map;
	ledger->size = size;
	return 0;
}

static int ledger_finish_open(struct ledger *ledger, struct ledger *ret)
{
	ledger->batch_seen = calloc(bits_words(ledger->n) + 1, sizeof(uint64_t));
	if (!ledger->batch_seen) {
		munmap(ledger->map, ledger->size);
		return -ENOMEM;
	}
	*ret = *ledger;
	return 0;
}

int ledger_make(int fd, uint64_t n, uint32_t batch, uint32_t token_capacity, struct ledger *ret)
{
	struct ledger ledger = {.n = n, .batch = batch, .token_capacity = token_capacity};
	struct ledger_places places;
	int r;

	if (n > LEDGER_MAX_SAMPLES)
		return -EFBIG;
	ledger_plan(n, batch, token_capacity, &places);
	if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)places.size) < 0)
		return -errno;
	r = ledger_map_size(fd, places.size, &ledger);
	if (r)
		return r;
	ledger.map->n = n;
	ledger.map->batch = batch;
	ledger.map->token_capacity = token_capacity;
	/* L3: release, pairs with the acquire in ledger_open(): the head is whole */
	counter_set(&ledger.map->magic, LEDGER_MAGIC);
	return ledger_finish_open(&ledger, ret);
}

static int ledger_check_head(struct ledger *ledger)
{
	struct ledger_places places;

	if (counter_get(&ledger->map->magic) != LEDGER_MAGIC)
		return LEDGER_E_EMPTY;
	ledger->n = ledger->map->n;
	ledger->batch = ledger->map->batch;
	ledger->token_capacity = ledger->map->token_capacity;
	if (ledger->n > LEDGER_MAX_SAMPLES)
		return LEDGER_E_BAD;
	ledger_plan(ledger->n, ledger->batch, ledger->token_capacity, &places);
	return places.size == ledger->size ? 0 : LEDGER_E_BAD;
}

int ledger_open(int fd, struct ledger *ret)
{
	struct ledger ledger = {0};
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return LEDGER_E_EMPTY;
	if ((uint64_t)st.st_size < sizeof(struct ledger_map))
		return LEDGER_E_BAD;
	r = ledger_map_size(fd, (uint64_t)st.st_size, &ledger);
	if (r)
		return r;
	r = ledger_check_head(&ledger);
	if (r) {
		munmap(ledger.map, ledger.size);
		return r;
	}
	if (ledger_committed(&ledger) > 0)
		ledger_apply(&ledger, ledger_record_of(&ledger, ledger_committed(&ledger)));
	return ledger_finish_open(&ledger, ret);
}

void ledger_close(struct ledger *ledger)
{
	if (ledger->map)
		munmap(ledger->map, ledger->size);
	free(ledger->batch_seen);
	*ledger = (struct ledger){0};
}

const struct ledger_totals *ledger_totals(const struct ledger *ledger)
{
	/* before the first commit this is record 0, all zeros */
	return &ledger_record_of(ledger, ledger_committed(ledger))->totals;
}

const void *ledger_token(const struct ledger *ledger, size_t *ret_size)
{
	struct ledger_record *record = ledger_record_of(ledger, ledger_committed(ledger));

	*ret_size = BASE_MIN(record->token_size, ledger->token_capacity);
	return ledger_ids_of(record) + ledger->batch;
}

void ledger_count(struct ledger *ledger, uint64_t epoch, const int64_t *ids, uint32_t count,
		  struct ledger_totals *totals)
{
	const uint16_t *counters = ledger_counters_of(ledger);

	for (uint32_t i = 0; i < count; i++) {
		if (!ledger_is_id(ledger, ids[i]) || counters[ids[i]] == LEDGER_NOBODYS) {
			totals->strange++;
			continue;
		}
		if (counters[ids[i]] > epoch || bits_test(ledger->batch_seen, (uint64_t)ids[i])) {
			totals->duplicates++;
			continue;
		}
		totals->missing += epoch - counters[ids[i]];
		bits_set(ledger->batch_seen, (uint64_t)ids[i]);
	}
	for (uint32_t i = 0; i < count; i++)
		if (ledger_is_id(ledger, ids[i]))
			bits_clear(ledger->batch_seen, (uint64_t)ids[i]);
}

void *ledger_token_room(struct ledger *ledger)
{
	return ledger_ids_of(ledger_record_of(ledger, ledger_committed(ledger) + 1)) +
	       ledger->batch;
}

void ledger_commit(struct ledger *ledger, uint64_t epoch, const int64_t *ids, uint32_t count,
		   const struct ledger_totals *totals, uint32_t token_size)
{
	uint64_t number = ledger_committed(ledger) + 1;
	struct ledger_record *record = ledger_record_of(ledger, number);

	record->totals = *totals;
	record->epoch = epoch;
	record->count = BASE_MIN(count, ledger->batch);
	record->token_size = token_size;
	memcpy(ledger_ids_of(record), ids, record->count * sizeof(*ids));
	/* L1: release, pairs with L2: who sees the number sees the record */
	counter_set(&ledger->map->committed, number);
	ledger_apply(ledger, record);
}

uint16_t ledger_epochs_of(const struct ledger *ledger, uint64_t sample)
{
	uint16_t epochs = ledger_counters_of(ledger)[sample];

	return epochs == LEDGER_NOBODYS ? 0 : epochs;
}

void ledger_exclude(struct ledger *ledger, uint64_t sample)
{
	ledger_counters_of(ledger)[sample] = LEDGER_NOBODYS;
}

uint64_t ledger_missing(const struct ledger *ledger, uint64_t epochs, uint64_t samples,
			uint64_t *ret_strange)
{
	uint64_t missing = 0, came = 0;

	for (uint64_t i = 0; i < ledger->n; i++) {
		uint64_t seen = ledger_epochs_of(ledger, i);

		came += seen > 0;
		missing += seen && seen < epochs ? epochs - seen : 0;
	}
	*ret_strange = came > samples ? came - samples : 0;
	return missing + (came < samples ? (samples - came) * epochs : 0);
}
