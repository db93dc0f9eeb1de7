/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two readers that are each other's peers: each file is read once and each form made once, whatever the net between them
 * does nobody gets a wrong byte, and no task is lost.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/philox.h"
#include "tests/storage/peers_rig.h"
#include "tests/suite.h"

#define IDLE_NS UINT64_C(500000000) /* who has nothing to do waits so long for who makes it */
#define TICK_NS UINT64_C(50000000)  /* PEERS_TICK_NS */

static struct tree tree;
static struct peers_node node[PEERS_NODES];
static struct peers_net net;
static uint64_t round_ns; /* how long the last round took */

static void begin(bool has_memory)
{
	tree_new(&tree);
	for (unsigned i = 0; i < PEERS_SAMPLES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%03u.jpg", i);
		tree_file(&tree, name, 1 + i * i % 7001);
	}
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_node_start(&node[i], i, &tree, has_memory);
	memset(&net, 0, sizeof(net));
}

static void connect_all(void)
{
	pthread_mutex_lock(&net.lock);
	peers_connect(&net, node, PEERS_NODES);
	pthread_mutex_unlock(&net.lock);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_settle(&net, &node[i]);
}

static void end(void)
{
	peers_net_stop(&net);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_node_stop(&node[i]);
	tree_remove(&tree);
}

static void round_of_one(struct peers_node *one)
{
	peers_queue(one);
	peers_wait(one, 1);
	peers_end_round(one);
}

static void round_of_all(void)
{
	const uint64_t since_ns = base_now_ns();

	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_queue(&node[i]);
	peers_wait(node, PEERS_NODES);
	round_ns = base_now_ns() - since_ns;
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_end_round(&node[i]);
}

/* Nothing wrong came, and each task was run: once, where no reader died. */
static void check_runs(bool once)
{
	for (unsigned i = 0; i < PEERS_NODES; i++) {
		ck_assert_uint_eq(node[i].wrong, 0);
		for (unsigned s = 0; s < PEERS_SAMPLES; s++) {
			ck_assert_uint_ge(node[i].runs[s], 1);
			if (once)
				ck_assert_uint_eq(node[i].runs[s], 1);
		}
	}
}

/* A machine that stood still for as long as anybody waits shows nothing of who reads what. */
static bool was_slow(void)
{
	return round_ns > IDLE_NS / 2;
}

/* Each is read at least as often as it must be; where a maker seemed to have passed one over, another has made it, too. */
static void check_files(unsigned unfit_every)
{
	unsigned more = 0;

	for (unsigned s = 0; s < PEERS_SAMPLES; s++) {
		const unsigned least = unfit_every && s % unfit_every == 0 ? PEERS_NODES : 1;
		const unsigned n = node[0].files[s] + node[1].files[s];

		ck_assert_msg(n >= least, "sample %u: %u, %u", s, node[0].files[s],
			      node[1].files[s]);
		more += n - least;
	}
	if (!was_slow())
		ck_assert_uint_le(more, PEERS_SAMPLES / 10);
}

/* In the last round all came from where it is kept. */
static void check_no_files(void)
{
	for (unsigned i = 0; i < PEERS_NODES && !was_slow(); i++)
		ck_assert_uint_eq(peers_files(&node[i]), 0);
}

START_TEST(each_file_is_read_once_and_each_form_made_once)
{
	begin(false);
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	check_runs(true);
	check_files(0);
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		for (unsigned i = 0; i < PEERS_NODES; i++)
			ck_assert_int_eq(counter_cell_get(&node[i].table[s]) > 0,
					 peers_owns(&node[i], &node[1 - i], s));
	round_of_all();
	check_runs(true);
	check_no_files();
	for (unsigned i = 0; i < PEERS_NODES && !was_slow(); i++) {
		unsigned own = 0;

		for (unsigned s = 0; s < PEERS_SAMPLES; s++)
			own += peers_owns(&node[i], &node[1 - i], s);
		ck_assert_uint_eq(node[i].from_where[LAYOUT_FROM_STORE], own);
		ck_assert_uint_eq(node[i].from_where[LAYOUT_FROM_PEER], PEERS_SAMPLES - own);
	}
	ck_assert_uint_eq(net.carried[VALUE_GROUP], 2);
	end();
}
END_TEST

/* What a node makes in idle time is what it owns, once, and others that ask for it get that. */
START_TEST(what_a_node_owns_is_made_ahead)
{
	unsigned own = 0;

	begin(false);
	peers_net_start(&net, node);
	connect_all();
	peers_queue_ahead(&node[0]);
	peers_wait(node, 1);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++) {
		const unsigned is_own = peers_owns(&node[0], &node[1], s);

		ck_assert_uint_eq(node[0].files[s], is_own);
		ck_assert_uint_eq(node[0].runs[s], 1);
		own += is_own;
	}
	ck_assert_uint_eq(net.carried[VALUE_GET], 0);
	peers_end_round(&node[0]);
	peers_wait_kept(node, 1, own);
	round_of_one(&node[1]);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		ck_assert_uint_eq(node[1].files[s], !peers_owns(&node[0], &node[1], s));
	ck_assert_uint_eq(node[1].from_where[LAYOUT_FROM_PEER], own);
	peers_wait_kept(node, 2, PEERS_SAMPLES);
	peers_queue_ahead(&node[0]); /* once more: all is there */
	peers_wait(node, 1);
	ck_assert_uint_eq(peers_files(&node[0]), 0);
	ck_assert_uint_eq(node[0].wrong + node[1].wrong, 0);
	peers_end_round(&node[0]);
	end();
}
END_TEST

static unsigned all_from_memory(void)
{
	return node[0].from_where[LAYOUT_FROM_MEMORY] + node[1].from_where[LAYOUT_FROM_MEMORY];
}

static unsigned count_none(void *arg, unsigned from, struct value_head *head)
{
	(void)from;
	*(_Atomic unsigned *)arg += head->type == VALUE_PUT && head->bytes == 0;
	return 1;
}

/* Nobody waits for what cannot be made, and that is said. */
START_TEST(what_has_no_form_comes_as_its_file)
{
	_Atomic unsigned said = 0;
	unsigned expected = 0;

	begin(false);
	net.fate = count_none;
	net.arg = &said;
	for (unsigned i = 0; i < PEERS_NODES; i++)
		node[i].unfit_every = 10;
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	check_runs(true);
	check_files(10);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		for (unsigned i = 0; i < PEERS_NODES; i++)
			expected += s % 10 == 0 && peers_owns(&node[i], &node[1 - i], s);
	ck_assert_uint_eq(expected, PEERS_SAMPLES / 10);
	ck_assert_uint_ge(said, 1); /* by each that is not the owner, once he has tried */
	ck_assert_uint_le(said, PEERS_SAMPLES / 10);
	end();
}
END_TEST

/* What the reader hears of it is told to the owner, once. */
START_TEST(what_its_maker_dies_of_is_told)
{
	_Atomic unsigned said = 0;
	unsigned expected = 0;

	begin(false);
	net.fate = count_none;
	net.arg = &said;
	node[0].dies_every = 10;
	peers_net_start(&net, node);
	connect_all();
	round_of_one(&node[0]);
	for (unsigned times = 0; times < 2; times++)
		for (unsigned s = 0; s < PEERS_SAMPLES; s++)
			peers_unmade(&node[0], s);
	for (unsigned s = 0; s < PEERS_SAMPLES; s += 10)
		expected += peers_owns(&node[1], &node[0], s);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_wait_taken(&net, &node[i]);
	ck_assert_uint_eq(said, expected);
	round_of_one(&node[1]); /* and nobody waits for who is dead */
	for (unsigned s = 0; s < PEERS_SAMPLES; s += 10)
		ck_assert_uint_eq(node[1].files[s], 1);
	ck_assert_uint_eq(node[0].wrong + node[1].wrong, 0);
	end();
}
END_TEST

/* The keeper takes its time: there may be rounds in which not all is there yet. */
START_TEST(what_came_stays_in_memory)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	unsigned gets;

	begin(true);
	peers_net_start(&net, node);
	connect_all();
	do {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		round_of_all();
		check_runs(true);
	} while (all_from_memory() < PEERS_NODES * PEERS_SAMPLES);
	gets = net.carried[VALUE_GET];
	round_of_all();
	check_runs(true);
	ck_assert_uint_eq(all_from_memory(), PEERS_NODES * PEERS_SAMPLES);
	ck_assert_uint_eq(net.carried[VALUE_GET], gets);
	end();
}
END_TEST

START_TEST(with_nobody_there_all_is_as_ever)
{
	begin(true);
	peers_net_start(&net, node);
	round_of_all();
	check_runs(true);
	for (unsigned i = 0; i < PEERS_NODES; i++) {
		ck_assert_uint_eq(peers_files(&node[i]), PEERS_SAMPLES);
		peers_wait_kept(&node[i], 1, PEERS_SAMPLES);
	}
	connect_all();
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_members(&node[i], NULL);
	round_of_all();
	check_runs(true);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		ck_assert_uint_eq(peers_files(&node[i]), 0);
	for (unsigned type = 0; type < BASE_ARRAY_LEN(net.carried); type++)
		ck_assert_uint_eq(net.carried[type], 0);
	end();
}
END_TEST

/* Whoever was alone has all of it, and who comes then gets it from him, also what he owns from now on. */
START_TEST(who_comes_later_gets_what_is_there)
{
	unsigned owned = 0;

	begin(_i == 1);
	peers_net_start(&net, node);
	peers_queue(&node[0]);
	peers_wait(node, 1);
	peers_end_round(&node[0]);
	peers_wait_kept(node, 1, PEERS_SAMPLES);
	connect_all();
	round_of_all();
	check_runs(true);
	check_no_files();
	if (!was_slow())
		ck_assert_uint_eq(node[1].from_where[LAYOUT_FROM_PEER], PEERS_SAMPLES);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		owned += peers_owns(&node[1], &node[0], s);
	peers_wait_kept(&node[1], 1, owned);
	end();
}
END_TEST

/* ---- a net that misbehaves ---- */

struct mischief {
	struct philox_seq seq;
	_Atomic unsigned lost, twice,
	    damaged; /* counted by the thread that carries, read by the test */
	bool silent; /* of what is lost nobody is told */
};

static void miss(unsigned from, const struct value_head *get)
{
	const struct value_head head = {.magic = VALUE_MAGIC,
					.type = VALUE_MISS,
					.id = get->id,
					.sample = get->sample,
					.group = get->group};
	uint8_t *at = rings_begin(&node[from].from, 0, sizeof(head));

	if (!at)
		return;
	memcpy(at, &head, sizeof(head));
	rings_end(&node[from].from, 0, &(struct rings_item){.bytes = sizeof(head)});
}

/* A carrier answers each question, itself if it must. */
static unsigned lose(struct mischief *mischief, unsigned from, const struct value_head *head)
{
	mischief->lost++;
	if (mischief->silent)
		return 0;
	if (head->type == VALUE_GET)
		miss(from, head);
	else if (head->type == VALUE_HAVE || head->type == VALUE_MISS)
		miss(1 - from, head);
	return 0;
}

/* What a sender could say that means no good: nothing of it may reach a task. */
static void damage(struct mischief *mischief, struct value_head *head)
{
	switch (philox_below(&mischief->seq, 8)) {
	case 0:
		head->magic ^= 1;
		break;
	case 1:
		head->type = (uint32_t)philox_below(&mischief->seq, 100) + 7;
		break;
	case 2:
		head->reserved[0] = head->bytes;
		head->bytes = 0;
		break;
	case 3:
		head->id ^= UINT64_C(1) << philox_below(&mischief->seq, 64);
		break;
	case 4:
		head->group.bytes[philox_below(&mischief->seq, 32)] ^= 4;
		break;
	case 5:
		head->form ^= 1;
		break;
	case 6:
		head->reserved[1] = 1;
		break;
	default:
		head->peer = 3;
	}
}

static unsigned misbehave(void *arg, unsigned from, struct value_head *head)
{
	struct mischief *mischief = arg;
	const struct value_head before = *head;

	switch (philox_below(&mischief->seq, 10)) {
	case 0:
		return lose(mischief, from, head);
	case 1:
		mischief->twice++;
		return 2;
	case 2:
		damage(mischief, head);
		mischief->damaged++;
		lose(mischief, from, &before);
		return 1;
	default:
		return 1;
	}
}

START_TEST(a_net_that_loses_repeats_and_damages)
{
	struct mischief mischief = {.lost = 0};

	begin(_i == 1);
	philox_seq_init(&mischief.seq, 17, 0, 0);
	net.fate = misbehave;
	net.arg = &mischief;
	peers_net_start(&net, node);
	connect_all();
	for (unsigned round = 0; round < 3; round++) {
		round_of_all();
		check_runs(true);
	}
	ck_assert_uint_gt(mischief.lost, 0);
	ck_assert_uint_gt(mischief.twice, 0);
	ck_assert_uint_gt(mischief.damaged, 0);
	end();
}
END_TEST

static unsigned swallow(void *arg, unsigned from, struct value_head *head)
{
	(void)arg;
	(void)from;
	return head->type == VALUE_GROUP;
}

/* Even without a word of the carrier: in the readers' own patience. */
START_TEST(a_net_that_swallows_all)
{
	begin(true);
	net.fate = swallow;
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	check_runs(true);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		ck_assert_uint_eq(peers_files(&node[i]), PEERS_SAMPLES);
	end();
}
END_TEST

/* Node 1 makes all, and lies of what node `liable` owns, PEERS_NODES: of nothing. Of what it says node 0 compares one of
 * so many, so of what is put there one may not be kept yet. */
static void begin_with_liar(unsigned liable, bool lies[PEERS_SAMPLES], unsigned compare_each)
{
	begin(false);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		lies[s] = liable < PEERS_NODES && peers_owns(&node[liable], &node[1 - liable], s);
	node[1].lies = lies;
	node[0].compare_each = compare_each;
	peers_net_start(&net, node);
	connect_all();
	round_of_one(&node[1]);
}

static unsigned count_owned(unsigned i)
{
	unsigned n = 0;

	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		n += peers_owns(&node[i], &node[1 - i], s);
	return n;
}

/* Some values, drawn by chance, are made here, too; whoever gave another one is not believed any more. */
START_TEST(who_gives_what_the_source_does_not_say_is_found_out)
{
	bool lies[PEERS_SAMPLES];
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	unsigned wrong;

	begin_with_liar(1, lies, 100);
	peers_wait_kept(&node[1], 1, count_owned(1));
	while (!node[0].said_wrong) {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		round_of_one(&node[0]);
	}
	wrong = node[0].wrong;
	round_of_one(&node[0]);
	ck_assert_uint_eq(node[0].wrong, wrong);
	end();
}
END_TEST

/* One, here the first, is not kept until a task of the owner's own has had it made. */
START_TEST(what_is_put_to_an_owner_is_compared)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	const unsigned wrong = _i == 1;
	bool lies[PEERS_SAMPLES];

	begin_with_liar(wrong ? 0 : PEERS_NODES, lies, 1);
	peers_wait_kept(node, 1, count_owned(0) - 1);
	do {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		round_of_one(&node[0]);
	} while (node[0].said_wrong < wrong);
	peers_wait_kept(node, 1, count_owned(0));
	ck_assert_uint_eq(node[0].said_wrong, wrong);
	end();
}
END_TEST

/* Once in a while; of what has changed it gives nothing. */
static void look_at_sources(unsigned recheck_s)
{
	unsigned at = 0;
	char name[32];

	begin(false);
	node[1].recheck_s = recheck_s;
	peers_net_start(&net, node);
	connect_all();
	round_of_one(&node[1]); /* alone: nobody asks it yet, or a look would be remembered */
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	while (!peers_owns(&node[1], &node[0], at))
		at++;
	snprintf(name, sizeof(name), "%03u.jpg", at);
	tree_file(&tree, name, 7001);
	round_of_one(&node[0]);
	ck_assert_uint_eq(node[0].wrong, 0);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		ck_assert_uint_eq(node[0].runs[s], s != at || recheck_s == 0);
	end();
}

START_TEST(an_owner_looks_whether_the_source_is_as_it_was)
{
	look_at_sources(1000);
	look_at_sources(0);
}
END_TEST

/* ---- deaths ---- */

/* Lets so many answers pass, and then nothing: what is asked waits. */
struct valve {
	_Atomic unsigned left;
	_Atomic bool is_shut;
};

static unsigned pass_some(void *arg, unsigned from, struct value_head *head)
{
	struct valve *valve = arg;

	(void)from;
	if (head->type != VALUE_HAVE && head->type != VALUE_MISS)
		return 1;
	if (valve->left == 0) {
		valve->is_shut = true;
		return 0;
	}
	valve->left--;
	return 1;
}

static void wait_shut(struct valve *valve)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	while (!valve->is_shut) {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		usleep(200);
	}
}

static void say_gone(struct peers_node *to)
{
	const struct value_head gone = {.magic = VALUE_MAGIC, .type = VALUE_GONE};

	peers_say(&net, to, &gone, NULL);
}

START_TEST(a_reader_that_dies_loses_no_task)
{
	struct valve valve = {.left = 40};

	begin(true);
	net.fate = pass_some;
	net.arg = &valve;
	peers_net_start(&net, node);
	connect_all();
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_queue(&node[i]);
	wait_shut(&valve);
	pthread_mutex_lock(&net.lock);
	net.fate = NULL;
	peers_node_die(&node[1]);
	peers_connect(&net, &node[1], 1);
	pthread_mutex_unlock(&net.lock);
	say_gone(&node[0]);
	peers_wait(node, PEERS_NODES);
	check_runs(false);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_end_round(&node[i]);
	round_of_all();
	check_runs(true);
	end();
}
END_TEST

START_TEST(a_carrier_that_dies_loses_no_task)
{
	struct valve valve = {.left = 40};

	begin(_i == 1);
	net.fate = pass_some;
	net.arg = &valve;
	peers_net_start(&net, node);
	connect_all();
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_queue(&node[i]);
	wait_shut(&valve);
	pthread_mutex_lock(&net.lock);
	net.fate = NULL;
	peers_connect(&net, node, PEERS_NODES); /* what was in the old rings is lost */
	pthread_mutex_unlock(&net.lock);
	peers_wait(node, PEERS_NODES);
	check_runs(true);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_end_round(&node[i]);
	round_of_all();
	check_runs(true);
	end();
}
END_TEST

/* Members go, and the carrier says so, in whichever order. */
START_TEST(a_member_that_leaves_is_asked_no_more)
{
	struct valve valve = {.left = 40};
	unsigned gets;

	begin(true);
	net.fate = pass_some;
	net.arg = &valve;
	peers_net_start(&net, node);
	connect_all();
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_queue(&node[i]);
	wait_shut(&valve);
	for (unsigned i = 0; i < PEERS_NODES; i++) {
		if (_i == 1)
			say_gone(&node[i]);
		peers_members(&node[i], NULL);
		if (_i == 0)
			say_gone(&node[i]);
	}
	peers_wait(node, PEERS_NODES);
	check_runs(true);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_end_round(&node[i]);
	gets = net.carried[VALUE_GET];
	round_of_all();
	check_runs(true);
	ck_assert_uint_eq(net.carried[VALUE_GET], gets);
	end();
}
END_TEST

/* A channel is lost and there is another one with its number, before members say either. */
START_TEST(late_members_forget_nothing_of_a_new_channel)
{
	begin(false);
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		say_gone(&node[i]);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_wait_taken(&net, &node[i]);
	round_of_all();
	ck_assert_uint_eq(net.carried[VALUE_GROUP], 4);
	peers_members(&node[0], NULL);
	peers_members(&node[0], &node[1]);
	round_of_all();
	check_runs(true);
	check_no_files();
	end();
}
END_TEST

/* ---- jobs whose samples are spread ---- */

static void wait_told(unsigned n)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	while (net.carried[VALUE_SPREAD] < n) {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		usleep(1000);
	}
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_wait_taken(&net, &node[i]);
}

/* The other way round than the nodes are numbered otherwise. */
static void spread_all(void)
{
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_spread(&node[i], 1 - i, PEERS_NODES);
	wait_told(PEERS_NODES);
}

static bool is_spread_to(unsigned i, uint64_t sample)
{
	return peers_number_of(&node[i], sample, PEERS_NODES) == 1 - i;
}

/* Each node keeps what the spread gives it, and nothing else; also over a new channel. */
START_TEST(what_a_spread_gives_a_node_is_kept_there)
{
	begin(false);
	peers_net_start(&net, node);
	connect_all();
	spread_all();
	round_of_all();
	check_runs(true);
	check_files(0);
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		for (unsigned i = 0; i < PEERS_NODES; i++)
			ck_assert_int_eq(counter_cell_get(&node[i].table[s]) > 0,
					 is_spread_to(i, s));
	for (unsigned i = 0; i < PEERS_NODES; i++)
		say_gone(&node[i]);
	wait_told(2 * PEERS_NODES);
	round_of_all();
	check_runs(true);
	check_no_files();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	end();
}
END_TEST

/* A carrier that has no such node says so to all that is told it: that is not told at full speed again. The first time may
 * be at once. */
START_TEST(a_spread_is_told_anew_once_a_tick)
{
	const unsigned times = 6;
	uint64_t begin_ns;

	begin(false);
	peers_net_start(&net, node);
	connect_all();
	spread_all();
	begin_ns = base_now_ns();
	for (unsigned i = 1; i <= times; i++) {
		say_gone(&node[0]);
		wait_told(PEERS_NODES + i);
	}
	ck_assert_uint_ge(base_now_ns() - begin_ns, (times - 2) * TICK_NS);
	end();
}
END_TEST

/* It was kept by those who own it otherwise: from there it comes to whom it is given, and no file is read. */
START_TEST(a_spread_finds_what_was_kept_before)
{
	unsigned kept = PEERS_SAMPLES;

	begin(false);
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	spread_all();
	round_of_all();
	check_runs(true);
	check_no_files();
	for (unsigned s = 0; s < PEERS_SAMPLES; s++)
		kept += is_spread_to(0, s) != peers_owns(&node[0], &node[1], s);
	if (!was_slow())
		peers_wait_kept(node, PEERS_NODES, kept);
	end();
}
END_TEST

/* Jobs for which it is no form came, and have gone. */
START_TEST(a_form_that_is_asked_for_again_is_the_one_there_is)
{
	begin(false);
	peers_net_start(&net, node);
	round_of_one(&node[0]);
	peers_wait_kept(&node[0], 1, PEERS_SAMPLES);
	peers_form(&node[0]);
	peers_wait_kept(&node[0], 1, PEERS_SAMPLES);
	end();
}
END_TEST

/* A node that is none of the job's makes what it would own, and gives it to whose it is. */
START_TEST(who_is_in_no_spread_makes_for_those_who_are)
{
	unsigned own = 0;

	begin(false);
	peers_net_start(&net, node);
	connect_all();
	peers_spread(&node[0], 0, 1);
	wait_told(1);
	peers_queue_ahead(&node[1]);
	peers_wait(&node[1], 1);
	for (unsigned s = 0; s < PEERS_SAMPLES; s++) {
		const unsigned is_own = peers_owns(&node[1], &node[0], s);

		ck_assert_uint_eq(node[1].files[s], is_own);
		own += is_own;
	}
	peers_end_round(&node[1]);
	peers_wait_kept(&node[0], 1, own);
	end();
}
END_TEST

/* ---- groups that peers name ---- */

static struct value_head head_of(enum value_type type, unsigned number)
{
	struct value_head head = {.magic = VALUE_MAGIC, .type = type};

	memset(&head.group, 0xe0, sizeof(head.group));
	memcpy(&head.group, &number, sizeof(number));
	return head;
}

/* Many others that are asked about, one sample each. */
static void crowd(struct peers_node *to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct value_head group = head_of(VALUE_GROUP, i), get = head_of(VALUE_GET, i);

		group.samples = 1;
		group.form = PEERS_FORM;
		get.room = PEERS_VALUE_MOST;
		peers_say(&net, to, &group, NULL);
		peers_say(&net, to, &get, NULL);
	}
}

/* Its name is said once a connection, so it must not be forgotten when others make it close its tables. */
START_TEST(a_group_that_others_crowd_out_comes_back)
{
	begin(false);
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		crowd(&node[i], 100);
	round_of_all();
	check_runs(true);
	check_no_files();
	ck_assert_uint_eq(net.carried[VALUE_GROUP], 2);
	end();
}
END_TEST

/* Who seemed to be late may still be on his way. */
static void wait_for_haves(unsigned n)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;

	while (net.carried[VALUE_HAVE] < n && base_now_ns() < end_ns)
		usleep(1000);
	ck_assert_uint_eq(net.carried[VALUE_HAVE], n);
}

/* A peer that says names without end, more than can be known, crowds out his own alone. */
START_TEST(names_without_end_are_their_speakers)
{
	unsigned gets, haves;

	begin(false);
	peers_net_start(&net, node);
	connect_all();
	round_of_all();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		crowd(&node[i], 600);
	for (unsigned i = 0; i < PEERS_NODES; i++)
		peers_wait_taken(&net, &node[i]);
	gets = net.carried[VALUE_GET];
	haves = net.carried[VALUE_HAVE];
	round_of_all();
	check_runs(true);
	ck_assert_uint_gt(net.carried[VALUE_GET], gets);
	wait_for_haves(haves + net.carried[VALUE_GET] - gets);
	end();
}
END_TEST

/* This node's own streams know better, and who tells the truth is not shut out. */
START_TEST(a_peer_that_lies_about_a_group_is_not_believed)
{
	begin(false);
	peers_net_start(&net, node);
	connect_all();
	for (unsigned i = 0; i < PEERS_NODES; i++) {
		struct value_head group = head_of(VALUE_GROUP, 0), get = head_of(VALUE_GET, 0);

		get.group = group.group = node[i].group;
		group.samples = 1;
		group.form = PEERS_FORM;
		get.room = PEERS_VALUE_MOST;
		peers_say(&net, &node[i], &group, NULL);
		peers_say(&net, &node[i], &get, NULL);
	}
	round_of_all();
	peers_wait_kept(node, PEERS_NODES, PEERS_SAMPLES);
	round_of_all();
	check_runs(true);
	check_no_files();
	end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_file_is_read_once_and_each_form_made_once);
	tcase_add_test(tcase, what_a_node_owns_is_made_ahead);
	tcase_add_test(tcase, what_has_no_form_comes_as_its_file);
	tcase_add_test(tcase, what_its_maker_dies_of_is_told);
	tcase_add_test(tcase, what_came_stays_in_memory);
	tcase_add_test(tcase, an_owner_looks_whether_the_source_is_as_it_was);
	tcase_add_test(tcase, who_gives_what_the_source_does_not_say_is_found_out);
	tcase_add_loop_test(tcase, what_is_put_to_an_owner_is_compared, 0, 2);
	tcase_add_test(tcase, with_nobody_there_all_is_as_ever);
	tcase_add_loop_test(tcase, who_comes_later_gets_what_is_there, 0, 2);
	tcase_add_loop_test(tcase, a_net_that_loses_repeats_and_damages, 0, 2);
	tcase_add_test(tcase, a_net_that_swallows_all);
	tcase_add_test(tcase, a_reader_that_dies_loses_no_task);
	tcase_add_loop_test(tcase, a_carrier_that_dies_loses_no_task, 0, 2);
	tcase_add_loop_test(tcase, a_member_that_leaves_is_asked_no_more, 0, 2);
	tcase_add_test(tcase, late_members_forget_nothing_of_a_new_channel);
	tcase_add_test(tcase, what_a_spread_gives_a_node_is_kept_there);
	tcase_add_test(tcase, a_spread_is_told_anew_once_a_tick);
	tcase_add_test(tcase, a_spread_finds_what_was_kept_before);
	tcase_add_test(tcase, a_form_that_is_asked_for_again_is_the_one_there_is);
	tcase_add_test(tcase, who_is_in_no_spread_makes_for_those_who_are);
	tcase_add_test(tcase, a_group_that_others_crowd_out_comes_back);
	tcase_add_test(tcase, names_without_end_are_their_speakers);
	tcase_add_test(tcase, a_peer_that_lies_about_a_group_is_not_believed);
}

int main(void)
{
	return suite_run("reader_peers", add);
}
