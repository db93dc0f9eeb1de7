/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/cluster/fake_verbs.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PAIRS = 64, POSTS = 32, DONES = 64 };

struct post_one {
	uint64_t id;
	uint8_t *place;
	uint32_t bytes, said;
};

struct fake_pair {
	struct verbs *verbs; /* NULL: there is none of this number */
	unsigned to;         /* number of the other end; 0: not connected */
	bool is_ready, is_armed;
	int done_fd;
	unsigned n_receives, n_sends, n_dones;
	struct post_one receives[POSTS], sends[POSTS];
	struct verbs_done dones[DONES];
};

struct verbs {
	int event_fd;
	unsigned n, most_sends, most_receives;
	unsigned number[PAIRS]; /* of its pairs */
};

static struct fake_pair pairs[PAIRS];
static enum fake_fault fault;
static unsigned unmet, devices;

void fake_set(enum fake_fault to)
{
	fault = to;
}

unsigned fake_in_use(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PAIRS; i++)
		n += pairs[i].is_ready;
	return n;
}

unsigned fake_unmet(void)
{
	return unmet;
}

unsigned fake_open_devices(void)
{
	return devices;
}

/* ---- what a device does ---- */

static void done(struct fake_pair *pair, const struct verbs_done *what)
{
	const uint64_t one = 1;

	if (pair->n_dones == DONES)
		abort(); /* its queue has room for two of all posts */
	pair->dones[pair->n_dones] = *what;
	if (fault == FAKE_SEND_FAILS)
		pair->dones[pair->n_dones].wrong = "transport retry counter exceeded";
	pair->n_dones++;
	if (pair->is_armed && write(pair->done_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	pair->is_armed = false;
}

static struct post_one take(struct post_one *posts, unsigned *n)
{
	const struct post_one first = posts[0];

	memmove(posts, posts + 1, --*n * sizeof(*posts));
	return first;
}

/* All that is posted and can be carried, to where that pair sends. */
static void carry(struct fake_pair *from)
{
	struct fake_pair *to = &pairs[from->to];

	while (from->to && from->n_sends && fault != FAKE_BLACK_HOLE && to->is_ready) {
		struct post_one send, receive;

		if (to->n_receives == 0) {
			unmet++;
			return;
		}
		send = take(from->sends, &from->n_sends);
		receive = take(to->receives, &to->n_receives);
		if (receive.bytes < send.bytes)
			abort();
		memcpy(receive.place, send.place, send.bytes);
		done(to,
		     &(struct verbs_done){.id = receive.id,
					  .bytes = send.bytes,
					  .said = fault == FAKE_WILD_CREDITS ? 1000 : send.said});
		done(from, &(struct verbs_done){.id = send.id});
	}
}

/* ---- the table ---- */

static int fake_open(void *memory, size_t bytes, unsigned n, unsigned sends, unsigned receives,
		     struct verbs **ret, struct diag *why)
{
	struct verbs *verbs;

	(void)memory;
	(void)bytes;
	if (fault == FAKE_NO_DEVICE) {
		diag_set(why, "there is no RDMA device");
		return -ENODEV;
	}
	verbs = calloc(1, sizeof(*verbs));
	if (!verbs)
		return -ENOMEM;
	verbs->event_fd = eventfd(0, EFD_NONBLOCK);
	verbs->most_sends = sends;
	verbs->most_receives = receives;
	for (unsigned i = 2; i < PAIRS && verbs->n < n; i++)
		if (!pairs[i].verbs) {
			pairs[i] =
			    (struct fake_pair){.verbs = verbs, .done_fd = eventfd(0, EFD_NONBLOCK)};
			verbs->number[verbs->n++] = i;
		}
	if (verbs->n < n || sends > POSTS || receives > POSTS)
		abort();
	devices++;
	*ret = verbs;
	return 0;
}

static void fake_close(struct verbs *verbs)
{
	for (unsigned i = 0; i < verbs->n; i++) {
		close(pairs[verbs->number[i]].done_fd);
		pairs[verbs->number[i]] = (struct fake_pair){.verbs = NULL};
	}
	close(verbs->event_fd);
	devices--;
	free(verbs);
}

static const char *fake_name(const struct verbs *verbs)
{
	(void)verbs;
	return "fake0";
}

static int fake_event_fd(const struct verbs *verbs)
{
	return verbs->event_fd;
}

static bool fake_broken(struct verbs *verbs)
{
	(void)verbs;
	return fault == FAKE_DEVICE_GONE;
}

static struct fake_pair *pair_of(const struct verbs *verbs, unsigned i)
{
	return &pairs[verbs->number[i]];
}

static int fake_address(struct verbs *verbs, unsigned i, struct path_address *ret, struct diag *why)
{
	if (fault == FAKE_NO_ADDRESS) {
		diag_set(why, "port 1 of fake0 is down");
		return -ENETDOWN;
	}
	ret->number = verbs->number[i];
	ret->lid = 1;
	ret->mtu = 5;
	return 0;
}

static int fake_prepare(struct verbs *verbs, unsigned i)
{
	pair_of(verbs, i)->is_ready = true;
	return 0;
}

static int fake_connect(struct verbs *verbs, unsigned i, const struct path_address *ours,
			const struct path_address *theirs, struct diag *why)
{
	(void)ours;
	if (fault == FAKE_NO_CONNECT || theirs->number >= PAIRS) {
		diag_set(why, "fake0 cannot reach the other end");
		return -EHOSTUNREACH;
	}
	pair_of(verbs, i)->to = theirs->number;
	return 0;
}

static void give_up(struct fake_pair *pair, const struct post_one *posts, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		done(pair, &(struct verbs_done){.id = posts[k].id, .wrong = "flushed"});
}

/* What was posted is given back. */
static void fake_stop(struct verbs *verbs, unsigned i)
{
	struct fake_pair *pair = pair_of(verbs, i);

	pair->is_ready = false;
	pair->to = 0;
	give_up(pair, pair->receives, pair->n_receives);
	give_up(pair, pair->sends, pair->n_sends);
	pair->n_receives = pair->n_sends = 0;
}

static void fake_heard(struct verbs *verbs, unsigned i);

static int fake_reset(struct verbs *verbs, unsigned i)
{
	struct fake_pair *pair = pair_of(verbs, i);

	if (pair->is_ready)
		abort(); /* it was not stopped */
	pair->n_dones = 0;
	fake_heard(verbs, i);
	return fault == FAKE_NO_RESET ? -EIO : 0;
}

static int add(struct post_one *posts, unsigned *n, unsigned most, const struct post_one *one)
{
	if (fault == FAKE_POST_FAILS)
		return -EIO;
	if (*n == most)
		return -ENOMEM;
	posts[(*n)++] = *one;
	return 0;
}

static int fake_post_receive(struct verbs *verbs, unsigned i, uint64_t id, void *place,
			     uint32_t bytes)
{
	struct fake_pair *pair = pair_of(verbs, i);

	return add(pair->receives, &pair->n_receives, verbs->most_receives,
		   &(struct post_one){.id = id, .place = place, .bytes = bytes});
}

static int fake_post_send(struct verbs *verbs, unsigned i, uint64_t id, const void *place,
			  uint32_t bytes, uint32_t said)
{
	struct fake_pair *pair = pair_of(verbs, i);
	int r = add(
	    pair->sends, &pair->n_sends, verbs->most_sends,
	    &(struct post_one){.id = id, .place = (uint8_t *)place, .bytes = bytes, .said = said});

	carry(pair);
	return r;
}

static int fake_poll(struct verbs *verbs, unsigned i, struct verbs_done *ret, unsigned most)
{
	struct fake_pair *pair = pair_of(verbs, i);
	const unsigned n = BASE_MIN(most, pair->n_dones);

	memcpy(ret, pair->dones, n * sizeof(*ret));
	pair->n_dones -= n;
	memmove(pair->dones, pair->dones + n, pair->n_dones * sizeof(*ret));
	return (int)n;
}

static int fake_done_fd(const struct verbs *verbs, unsigned i)
{
	return pair_of(verbs, i)->done_fd;
}

static int fake_arm(struct verbs *verbs, unsigned i)
{
	pair_of(verbs, i)->is_armed = true;
	return 0;
}

static void fake_heard(struct verbs *verbs, unsigned i)
{
	uint64_t n;

	if (read(fake_done_fd(verbs, i), &n, sizeof(n)) < 0 && errno != EAGAIN)
		abort();
}

const struct verbs_ops fake_verbs = {
    .open = fake_open,
    .close = fake_close,
    .name = fake_name,
    .device_fd = fake_event_fd,
    .event_fd = fake_event_fd,
    .broken = fake_broken,
    .address = fake_address,
    .connect = fake_connect,
    .prepare = fake_prepare,
    .stop = fake_stop,
    .reset = fake_reset,
    .post_receive = fake_post_receive,
    .post_send = fake_post_send,
    .poll = fake_poll,
    .done_fd = fake_done_fd,
    .arm = fake_arm,
    .heard = fake_heard,
};
