/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * access-carrier from inside. One thread does all of it (carrier_main.c); another sleeps where the ring's reader rings,
 * and does nothing else (carrier_sleep.c).
 *
 *   carrier_main.c     the process, which waits
 *   carrier_turn.c     a turn of its loop
 *   carrier_control.c  what accessd and the gate say, and what they are told
 *   carrier_take.c     items of the reader's ring: to whom they go
 *   carrier_channel.c  a connection: its life, what it sends, its deadlines
 *   carrier_frame.c    what it receives
 *   carrier_path.c     by socket or by RDMA: what is agreed before all else
 *   carrier_sleep.c    waking up for the ring
 */

#include "cluster/alive.h"
#include "cluster/asked.h"
#include "cluster/breaker.h"
#include "cluster/carrier.h"
#include "cluster/names.h"
#include "cluster/outbox.h"
#include "cluster/seal.h"
#include "cluster/transport.h"
#include "cluster/transport_verbs.h"
#include "shmring/rings.h"

#define CARRIER_MOST_WAITING ((size_t)64 << 20) /* bytes that wait for a slow peer */
#define CARRIER_SMALL_WAITING ((size_t)1 << 20) /* and so many more of messages without a value */
/* A value that goes from and to the ring itself, if it can */
#define CARRIER_LONG ((size_t)32 << 10)
#define CARRIER_RETRY_NS UINT64_C(1000000) /* a full ring is looked at again */
#define CARRIER_STATE_NS UINT64_C(1000000000)
#define CARRIER_TRIES_NS UINT64_C(5000000000) /* a queue pair that must have come up */
/* A peer with whom nothing was agreed, and is lost */
#define CARRIER_MEETS_NS UINT64_C(20000000000)
#define CARRIER_SHUN_NS UINT64_C(60000000000) /* the socket is used where RDMA failed */

enum channel_phase {
	CHANNEL_FREE,
	CHANNEL_MEETS, /* agrees on how values go; nobody is told yet */
	CHANNEL_LIVES,
	CHANNEL_ENDS /* the reader is not told yet */
};

struct path {
	struct transport *verbs; /* owned: that is offered; NULL: none */
	bool heard_offer, heard_ready, heard_done, said_done;
	bool is_tried;   /* both have offered one */
	bool has_failed; /* why: values go over the socket */
	uint64_t begun_ns, until_ns;
	struct diag why;
};

struct path_failed {
	uint64_t id, until_ns; /* of a node; 0: nothing is noted */
	struct diag why;
};

struct intake { /* what was received and is not a whole frame yet */
	uint8_t *data;
	size_t size, begin, end;
	bool had_long; /* the frame before this one was a long one */
};

struct channel {
	enum channel_phase phase;
	uint32_t peer, weight;
	struct path path;
	uint64_t id, incarnation;
	struct transport *transport;
	struct seal *sends, *receives;
	struct outbox outbox;
	struct intake intake;
	struct names told, heard;
	struct asked asked;
	struct breaker breaker;
	struct alive alive;
	bool is_awake;    /* there is something to do that nothing wakes for */
	bool was_met;     /* accessd knows it */
	bool is_full;     /* the kernel took no more: waits for room */
	bool is_held;     /* the ring took no more: nothing is received */
	bool is_replaced; /* by a newer one to the same node, which goes by the same name */
	struct carrier_state state, said_state;
	struct diag why; /* it ended */
};

struct carrier {
	int epoll_fd, gate_fd; /* -1: there is no gate now */
	int arm_fd, wake_fd;   /* carrier_sleep.c */
	bool is_armed;         /* the other thread sleeps for us */
	struct rings from_reader, to_reader;
	struct channel channel[VALUE_MOST_PEERS];
	uint64_t now_ns, state_ns; /* states are told then */
	uint64_t serial;           /* of GETs */
	uint32_t chance;
	bool has_news; /* of states */
	bool is_held;  /* the reader takes nothing: look again */
	enum carrier_transport transport;
	struct verbs_pool *pool; /* NULL: for this reason */
	struct diag no_verbs;
	struct path_failed failed[VALUE_MOST_PEERS];
};

/* carrier_control.c */
_Noreturn void control_fatal(const char *event, const char *text);
/* The first message of accessd: rings, and perhaps a gate. */
void control_begin(struct carrier *carrier);
void control_receive(struct carrier *carrier);
void control_gate(struct carrier *carrier);
void control_met(struct carrier *carrier, const struct channel *channel);
void control_lost(struct carrier *carrier, const struct channel *channel);
void control_states(struct carrier *carrier);
/* Tags of what epoll says; channels have their number. */
enum {
	CONTROL_TAG_ACCESSD = VALUE_MOST_PEERS,
	CONTROL_TAG_GATE,
	CONTROL_TAG_WAKE,
	CONTROL_TAG_DEVICE
};
int control_watch(const struct carrier *carrier, int fd, uint64_t tag);

/* carrier_turn.c. true: items of the reader's were taken, and there may be more. */
bool turn_take(struct carrier *carrier);
void turn_tick(struct carrier *carrier);             /* what is due by now */
uint64_t turn_due_ns(const struct carrier *carrier); /* when the next is; UINT64_MAX: nothing */
void turn_woke(struct carrier *carrier, struct channel *channel, uint32_t events);

/* carrier_take.c: one item of the reader's. false: it must wait, as the reader has to be told something. */
bool take_item(struct carrier *carrier, const struct rings_item *item);
/* A message without bytes to our reader. false: its ring is full. */
bool take_tell(struct carrier *carrier, const struct value_head *head);
/* That this GET is a miss. */
bool take_miss(struct carrier *carrier, uint32_t peer, uint64_t id, const struct hash_id *group,
	       uint64_t sample);

/* carrier_channel.c */
struct channel_new {
	uint64_t id, incarnation;
	uint32_t weight; /* at least 1 */
	int fd;          /* taken */
	bool is_sealed;
	const struct carrier_keys *keys;
};
/* One begins, and the one before to the same node is lost. 0 or negative errno. */
int channel_meet(struct carrier *carrier, const struct channel_new *from);
/* A free one begins. 0 or negative errno. */
int channel_begin(struct carrier *carrier, struct channel *channel, const struct channel_new *from);
/* It ends, for that reason; the reader, accessd and the gate are told as soon as the reader has room. */
void channel_lose(struct carrier *carrier, struct channel *channel, const char *fmt, ...)
    BASE_PRINTF(3, 4);
/* The same, of its transport: what it was doing, and an errno. */
void channel_fail(struct carrier *carrier, struct channel *channel, const char *doing, int error);
/* Puts a message into what it sends. false: it has no room, or has ended of it. */
bool channel_say(struct carrier *carrier, struct channel *channel, const struct frame *frame,
		 const struct hash_id *hash, const uint8_t *body, uint32_t bytes);
void channel_flush(struct carrier *carrier, struct channel *channel);
/* Has epoll say what it waits for. */
void channel_wait(struct carrier *carrier, struct channel *channel);
/* What is due by now. */
void channel_tick(struct carrier *carrier, struct channel *channel);
/* When the next is; UINT64_MAX: nothing. */
uint64_t channel_due_ns(const struct channel *channel);

/* It has a transport. */
static inline bool channel_is_open(const struct channel *channel)
{
	return channel->phase == CHANNEL_MEETS || channel->phase == CHANNEL_LIVES;
}

/* carrier_path.c. Before the sandbox: */
void path_open(struct carrier *carrier);
/* The device has said something. */
void path_device(struct carrier *carrier);
void path_begin(struct carrier *carrier, struct channel *channel);
void path_fini(struct channel *channel);
/* NULL, or what is wrong with the message. */
const char *path_heard(struct carrier *carrier, struct channel *channel, const uint8_t *body);
/* Of one that meets: something was done, or is due. */
void path_woke(struct carrier *carrier, struct channel *channel);
void path_tick(struct carrier *carrier, struct channel *channel);
uint64_t path_due_ns(const struct channel *channel);
/* A way that was taken has failed. */
void path_has_failed(struct carrier *carrier, const struct channel *channel, const char *why);

/* carrier_frame.c: takes what came, some of it; epoll says if there is more. */
void frame_receive(struct carrier *carrier, struct channel *channel);
void frame_fini(struct intake *intake);

/* carrier_sleep.c. 0 or negative errno; the thread has begun. */
int sleep_init(struct carrier *carrier);
/* Wakes the loop when the ring's sequence is not `seen` any more. */
void sleep_arm(struct carrier *carrier, uint32_t seen);
void sleep_woke(struct carrier *carrier);
