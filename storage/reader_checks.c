/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Are peers' values what their source says? One of many is not taken: it is made here from the source, as if nobody had
 * had it, and the two are compared byte for byte. A form is a function of its name, so one who gave another one lies, is
 * broken, or was lied to: he is not asked again. What he gave before is not looked for.
 *
 * Which one is drawn by chance, so that nobody can count to it. What the owner answers is compared. What others PUT to
 * him, or give in his place, is not: it is his from then on, and so is the blame for it.
 *
 * One at a time: the value is copied, and waits for the worker that makes the sample's form. Where that one is not made the
 * source has changed or the worker died, and nothing is said.
 */

#include "storage/reader_peers.h"

#include "base/log.h"
#include "base/philox.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHECKS_PATIENCE_NS UINT64_C(60000000000)

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	uint64_t each;            /* of so many values one is compared; 0: none */
	struct philox_seq chance; /* key 0: not begun */
	uint64_t compared, wrong;
	uint8_t *value; /* owned; NULL: none is under way */
	uint32_t bytes, peer;
	uint64_t node; /* the peer's id */
	struct hash_id group;
	uint64_t sample, until_ns;
} checks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void end_locked(void)
{
	free(checks.value);
	checks.value = NULL;
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

static bool begin_locked(const struct value_head *have, const uint8_t *value, uint64_t node)
{
	const uint64_t now_ns = base_now_ns();

	if (!is_drawn_locked())
		return false;
	if (checks.value && now_ns < checks.until_ns)
		return false;
	end_locked();
	checks.value = malloc(have->bytes);
	if (!checks.value)
		return false;
	memcpy(checks.value, value, have->bytes);
	checks.bytes = have->bytes;
	checks.peer = have->peer;
	checks.node = node;
	checks.group = have->group;
	checks.sample = have->sample;
	checks.until_ns = now_ns + CHECKS_PATIENCE_NS;
	return true;
}

void reader_checks_each(uint64_t each)
{
	pthread_mutex_lock(&checks.lock);
	checks.each = each;
	pthread_mutex_unlock(&checks.lock);
}

bool reader_checks_begin(const struct value_head *have, const uint8_t *value)
{
	const uint64_t node = reader_peers_id(have->peer);
	bool is_begun;

	pthread_mutex_lock(&checks.lock);
	is_begun = node && begin_locked(have, value, node);
	pthread_mutex_unlock(&checks.lock);
	return is_begun;
}

static bool is_that_locked(const struct hash_id *group, uint64_t sample)
{
	return checks.value && checks.sample == sample &&
	       memcmp(&checks.group, group, sizeof(*group)) == 0;
}

void reader_checks_made(const struct hash_id *group, const struct tray_item *item)
{
	uint64_t node = 0;
	uint32_t peer = 0;
	bool is_wrong = false;

	pthread_mutex_lock(&checks.lock);
	if (is_that_locked(group, item->sample)) {
		is_wrong = item->bytes != checks.bytes ||
			   memcmp(item->data, checks.value, checks.bytes) != 0;
		node = checks.node;
		peer = checks.peer;
		checks.compared++;
		checks.wrong += is_wrong;
		end_locked();
	}
	pthread_mutex_unlock(&checks.lock);
	if (!is_wrong)
		return;
	log_line(LOG_LEVEL_ERROR, "peer-value-wrong", "node=%016" PRIx64 " sample=%" PRIu64, node,
		 item->sample);
	if (reader_peers_id(peer) == node)
		reader_serve_distrust(peer);
	reader_say_wrong(node, item->sample);
}

void reader_checks_not_made(const struct hash_id *group, uint64_t sample)
{
	pthread_mutex_lock(&checks.lock);
	if (is_that_locked(group, sample))
		end_locked();
	pthread_mutex_unlock(&checks.lock);
}

void reader_checks_state(struct reader_state *ret)
{
	pthread_mutex_lock(&checks.lock);
	ret->peers_compared = checks.compared;
	ret->peers_wrong = checks.wrong;
	pthread_mutex_unlock(&checks.lock);
}
