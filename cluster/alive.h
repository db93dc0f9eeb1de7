/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is the other end of a connection still there, and does it know that we are? Who owes answers says now and then that it
 * lives; who was asked and says nothing, does not end a frame, or takes nothing, is lost.
 * Arithmetic: time is an argument.
 */

#include "base/base.h"

#define ALIVE_SAY_NS UINT64_C(25000000)
#define ALIVE_OWES_NS UINT64_C(2500000000)   /* a GET that no reader answers is forgotten */
#define ALIVE_SILENT_NS UINT64_C(2000000000) /* a peer who owes an answer, and is lost */
#define ALIVE_WHOLE_NS UINT64_C(10000000000) /* a frame that does not end: its length was changed */
#define ALIVE_STUCK_NS UINT64_C(30000000000) /* a peer who takes nothing, and is lost */

struct alive {
	uint64_t heard_ns;       /* something came last */
	uint64_t whole_ns;       /* a frame was whole last, or none had begun */
	uint64_t said_ns;        /* something went last */
	uint64_t sent_ns;        /* the kernel took something last, or nothing waited */
	uint64_t silent_from_ns; /* a GET went out, and nothing came since; 0: no */
	uint64_t owes;           /* GETs of the peer that our reader has */
	uint64_t owes_until_ns;  /* it is believed that they will be answered */
};

struct alive_now {
	bool is_held;   /* nothing is received for a while, whatever comes */
	bool has_begun; /* a part of a frame has come */
	size_t waiting; /* bytes that are to go */
};

struct alive alive_from(uint64_t now_ns); /* of a connection that begins */
/* What happened. */
void alive_heard(struct alive *alive, uint64_t now_ns);
void alive_asks(struct alive *alive, uint64_t now_ns); /* a GET went out */
void alive_is_asked(struct alive *alive, uint64_t now_ns);
void alive_answers(struct alive *alive);
/* Are we to say that we live? Then that counts as said. */
bool alive_is_to_say(struct alive *alive, const struct alive_now *now, uint64_t now_ns);
/* Is it lost, and why? */
bool alive_is_lost(const struct alive *alive, const struct alive_now *now, uint64_t now_ns,
		   struct diag *ret_why);
/* When one of these is due. */
uint64_t alive_due_ns(const struct alive *alive, const struct alive_now *now);
