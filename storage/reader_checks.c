/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Are peers' values what their source says? One of many is not taken: it is made here from the source, as if nobody had
 * had it, and the two are compared byte for byte. A form is a function of its name, so one who gave another one lies, is
 * broken, or was lied to: he is not asked again. What he gave before is not looked for.
 *
 * Which one is drawn by chance, so that nobody can count to it. It is copied, and waits for the worker that makes the
 * sample's form: one that was asked for by a task, which is read from the source now, and one that was put here, for a
 * task that comes by. Until then nothing is kept of the sample. Where its form is not made the source has changed or the
 * worker died, and nothing is said.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

#include "base/log.h"
#include "base/philox.h"

#include <inttypes.h>

#define CHECKS_PATIENCE_NS UINT64_C(60000000000)      /* a task that begins at once */
#define CHECKS_PUT_PATIENCE_NS UINT64_C(600000000000) /* one of an epoch's */

enum { CHECKS_HAD, CHECKS_PUT, CHECKS };

struct check {          /* one at a time */
	uint8_t *value; /* owned; NULL: none is under way */
	uint32_t bytes, peer;
	uint64_t node; /* the peer's id */
	struct hash_id group;
	uint64_t sample, until_ns;
};

static struct {
	_Atomic bool has_put; /* for eyes: the lock says what */
	pthread_mutex_t lock;
	/* under the lock */
	uint64_t each;            /* of so many values one is compared; 0: none */
	struct philox_seq chance; /* key 0: not begun */
	uint64_t compared, wrong;
	struct check check[CHECKS];
} checks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void end_locked(struct check *check)
{
	free(check->value);
	check->value = NULL;
	if (check == &checks.check[CHECKS_PUT])
		atomic_store_explicit(&checks.has_put, false, memory_order_relaxed);
}

/* false, too, where the kernel gives no seed: then another time. */
static bool is_drawn_locked(void)
{
	uint64_t seed = 0;

	if (checks.each == 0)
		return false;
	if (!checks.chance.key && base_random(&seed, sizeof(seed)) == 0)
		philox_seq_init(&checks.chance, seed, 0, 0);
	return checks.chance.key && philox_below(&checks.chance, checks.each) == 0;
}

static bool is_of(const struct check *check, const struct hash_id *group, uint64_t sample)
{
	return check->value && check->sample == sample &&
	       memcmp(&check->group, group, sizeof(*group)) == 0;
}

static bool is_late(const struct check *check)
{
	return base_now_ns() >= check->until_ns;
}

static bool begin_locked(const struct value_head *head, const uint8_t *value, uint64_t node)
{
	const bool is_put = head->type == VALUE_PUT;
	struct check *check = &checks.check[is_put ? CHECKS_PUT : CHECKS_HAD];

	if (check->value && !is_late(check))
		return is_put && is_of(check, &head->group, head->sample);
	if (!is_drawn_locked())
		return false;
	end_locked(check);
	check->value = malloc(head->bytes);
	if (!check->value)
		return false;
	memcpy(check->value, value, head->bytes);
	check->bytes = head->bytes;
	check->peer = head->peer;
	check->node = node;
	check->group = head->group;
	check->sample = head->sample;
	check->until_ns = base_now_ns() + (is_put ? CHECKS_PUT_PATIENCE_NS : CHECKS_PATIENCE_NS);
	if (is_put)
		atomic_store_explicit(&checks.has_put, true, memory_order_relaxed);
	return true;
}

void reader_checks_each(uint64_t each)
{
	BASE_HOLD(&checks.lock);
	checks.each = each;
}

bool reader_checks_begin(const struct value_head *head, const uint8_t *value)
{
	const uint64_t node = reader_peers_id(head->peer);

	BASE_HOLD(&checks.lock);
	return node && begin_locked(head, value, node);
}

bool reader_checks_waits(const struct hash_id *group, uint64_t sample)
{
	const struct check *put = &checks.check[CHECKS_PUT];

	if (!atomic_load_explicit(&checks.has_put, memory_order_relaxed))
		return false;
	BASE_HOLD(&checks.lock);
	return is_of(put, group, sample) && !is_late(put);
}

/* false: it is as it was said. */
static bool compare_locked(struct check *check, const struct rings_item *item)
{
	const bool is_wrong =
	    item->bytes != check->bytes || memcmp(item->data, check->value, check->bytes) != 0;

	checks.compared++;
	checks.wrong += is_wrong;
	end_locked(check);
	return is_wrong;
}

static void blame(const struct check *check)
{
	log_line(LOG_LEVEL_ERROR, "peer-value-wrong", "node=%.16" PRIx64 " sample=%" PRIu64,
		 check->node, check->sample);
	if (reader_peers_id(check->peer) == check->node)
		reader_serve_distrust(check->peer);
	reader_say_wrong(check->node, check->sample);
}

void reader_checks_made(const struct hash_id *group, const struct rings_item *item)
{
	for (unsigned i = 0; i < CHECKS; i++) {
		struct check check;
		bool is_wrong;

		pthread_mutex_lock(&checks.lock);
		check = checks.check[i];
		is_wrong =
		    is_of(&check, group, item->sample) && compare_locked(&checks.check[i], item);
		pthread_mutex_unlock(&checks.lock);
		if (is_wrong)
			blame(&check);
	}
}

void reader_checks_not_made(const struct hash_id *group, uint64_t sample)
{
	BASE_HOLD(&checks.lock);
	for (unsigned i = 0; i < CHECKS; i++)
		if (is_of(&checks.check[i], group, sample))
			end_locked(&checks.check[i]);
}

void reader_checks_state(struct reader_state *ret)
{
	BASE_HOLD(&checks.lock);
	ret->peers_compared = checks.compared;
	ret->peers_wrong = checks.wrong;
}
