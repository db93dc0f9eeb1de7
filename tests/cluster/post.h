/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An access-carrier with all that it has to do with: the test is its accessd, its gate and its reader. And a peer who is
 * no carrier, and may do what none does. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/wire.h"
#include "cluster/carrier.h"
#include "cluster/seal.h"
#include "shmring/rings.h"

struct post {
	pid_t pid;
	int control, gate;
	uint64_t weight; /* that its gate says of who is connected; post_start(): 512 */
	struct rings to_carrier, from_carrier;
	uint8_t *bytes; /* VALUE_MOST: of the message that post_next() gave last */
};

/* As the environment's OA_TEST_TRANSPORT says: tcp, auto or rdma; tcp if it says nothing. */
enum carrier_transport post_transport(void);
/* Starts one with rings and a gate. as: --as, or NULL. */
void post_start(struct post *post, const char *as);
void post_stop(struct post *post);
/* Kills it instead. */
void post_kill(struct post *post);
/* A START like the first one, with a new gate and no rings. */
void post_new_gate(struct post *post);

/* Its gate sends it that end of a connection. fd is closed here. */
void post_connect(struct post *post, uint64_t id, int fd, bool is_sealed,
		  const struct carrier_keys *keys);
/* Waits for accessd's next message of that type; earlier ones of others are passed over. The caller frees. */
void post_hear(struct post *post, uint16_t type, struct wire_in *ret);
/* Waits for MET; the number of the channel. */
uint32_t post_met(struct post *post);
/* The same of one whose values must go by RDMA, or not, for a reason with that text. */
uint32_t post_met_by(struct post *post, bool rdma, const char *why);
/* Waits for LOST of that channel, and ENDED at the gate; the reason has that text in it. */
void post_lost(struct post *post, uint32_t peer, const char *why);
/* Waits for REFUSED of that node, and ENDED at the gate: its channel ended before it was met, and the reason has that text. */
void post_refused(struct post *post, uint64_t id, const char *why);
/* Waits for ENDED at the gate alone. */
void post_ended(struct post *post, uint64_t id);
/* Waits for LOST alone, as the node has connected anew. */
void post_replaced(struct post *post, uint32_t peer);
/* Has it said nothing to its gate by now that was not heard? */
bool post_is_silent(const struct post *post);
/* Waits until the state of a channel has `least` at least at that offset of struct carrier_state. */
void post_state(struct post *post, uint32_t peer, size_t offset, uint64_t least);

/* The reader says something; waits for room. */
void post_say(struct post *post, const struct value_head *head, const void *bytes);
bool post_try_say(struct post *post, const struct value_head *head, const void *bytes);
/* The reader's next message, which is waited for; or whether there is one. */
void post_next(struct post *post, struct value_head *ret);
bool post_try_next(struct post *post, struct value_head *ret);

/* Keys of both ends of a connection. */
void post_keys(uint64_t seed, struct carrier_keys *ret, struct carrier_keys *ret_other);
/* Two ends of a connection of TCP on loopback. */
void post_tcp(int ret[2]);
/* The bytes of a value that is named so. */
void post_fill(uint64_t name, uint8_t *ret, uint32_t bytes);
struct value_head post_head(uint32_t type, uint32_t peer, uint64_t id, unsigned group,
			    uint64_t sample, uint32_t bytes);

/* ---- a peer who is no carrier ---- */

struct peer {
	int fd;
	struct seal *sends, *receives;
	uint8_t *frame; /* the last one that was made or came, whole */
	size_t bytes;
};

/* Connected to that carrier as a node of that id, without an RDMA device. */
void peer_connect(struct peer *peer, struct post *post, uint64_t id, bool is_sealed);
void peer_fini(struct peer *peer);
/* Makes a frame; does not send it. */
void peer_make(struct peer *peer, const struct frame *frame, const void *body, uint32_t bytes);
/* Sends the last one that was made, or `bytes` of it. A carrier that has ended the connection says so itself. */
void peer_send(struct peer *peer, size_t bytes);
void peer_say(struct peer *peer, const struct frame *frame, const void *body, uint32_t bytes);
/* That there is this group, of number 0 if it is the first. */
void peer_group(struct peer *peer, uint32_t number, unsigned group);
/* Waits for a frame of that type; those that say that it lives, or how values go, are passed over, unless asked for. */
void peer_hear(struct peer *peer, uint8_t type, struct frame *ret);
