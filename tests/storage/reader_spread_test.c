/* SPDX-License-Identifier: Apache-2.0 */

/* Of spreads so many are known: what a peer says never makes this node forget one of its own. */

#include <stdlib.h>

#include "base/hash.h"
#include "cluster/promise.h"
#include "storage/reader_peers.h"
#include "tests/suite.h"

#define MOST 32 /* SPREADS_MOST */
#define PEER 3

struct reader_shared *reader_peers_share(const struct hash_id *id, uint64_t samples, unsigned form,
					 const char *note)
{
	struct reader_shared *shared = calloc(1, sizeof(*shared) + 1);

	(void)note;
	ck_assert_ptr_nonnull(shared);
	shared->id = *id;
	shared->samples = samples;
	shared->form = form;
	return shared;
}

void reader_peers_tell_spreads(void)
{
}

bool reader_tell_group(struct reader_shared *shared, uint32_t peer)
{
	(void)shared;
	(void)peer;
	return true;
}

static struct hash_id id_of(unsigned number)
{
	struct hash_id id;

	hash_of(&number, sizeof(number), &id);
	return id;
}

/* Each group is spread over one node: this one, or the peer. */
static void take(unsigned number)
{
	const struct reader_shared of = {.id = id_of(number), .samples = 1};

	reader_spread_take(&of, 1, 0, 1);
}

static void hear(unsigned number)
{
	reader_spread_heard(&(struct value_head){
	    .type = VALUE_SPREAD, .peer = PEER, .id = 1, .room = 1, .group = id_of(number)});
}

static void check_owner(unsigned number, uint32_t owner)
{
	const struct hash_id id = id_of(number);
	bool is_in;

	ck_assert_uint_eq(reader_spread_owner(&id, 0, &is_in), owner);
	ck_assert_int_eq(is_in, owner == PROMISE_SELF);
}

START_TEST(others_make_room_for_others)
{
	take(0);
	for (unsigned i = 1; i <= MOST; i++)
		hear(i);
	check_owner(0, PROMISE_SELF);
	check_owner(1, READER_SPREAD_NOBODY);
	for (unsigned i = 2; i <= MOST; i++)
		check_owner(i, PEER);
}
END_TEST

START_TEST(own_ones_make_room_for_own_alone)
{
	for (unsigned i = 0; i < MOST; i++)
		take(i);
	hear(MOST);
	check_owner(MOST, READER_SPREAD_NOBODY);
	for (unsigned i = 0; i < MOST; i++)
		check_owner(i, PROMISE_SELF);
	take(MOST);
	check_owner(0, READER_SPREAD_NOBODY);
	for (unsigned i = 1; i <= MOST; i++)
		check_owner(i, PROMISE_SELF);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, others_make_room_for_others);
	tcase_add_test(tcase, own_ones_make_room_for_own_alone);
}

int main(void)
{
	return suite_run("reader_spread", add);
}
