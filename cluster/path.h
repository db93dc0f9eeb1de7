/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What two carriers say to each other before all else on a connection, to agree on how values go: the body of a frame of
 * type FRAME_PATH, which is sealed as all are.
 *
 *   OFFER   first, by both: yes: my end of a queue pair; no: why I have none     any no: values go over the socket, at once
 *   READY   by who connected his end to the other's
 *   DONE    by both, once: yes: a message came through it, and mine arrived; no: why not
 *
 * Two times DONE with yes: all that follows goes through the queue pairs. Otherwise it stays with the socket. Nothing else
 * is said before that.
 */

#include <stdbool.h>
#include <stdint.h>

#define PATH_BYTES 256
#define PATH_TEXT 216 /* of a reason, NUL included */

enum path_step { PATH_OFFER = 1, PATH_READY = 2, PATH_DONE = 3 };

struct path_address {           /* of an end of a queue pair */
	uint32_t number, first; /* 24 bits: QPN; PSN */
	uint16_t lid;           /* 0: there is none */
	uint8_t mtu;            /* enum ibv_mtu: 256 << (mtu - 1) bytes, 1 to 5 */
	bool is_ethernet;       /* RoCE: it is found by its GID */
	uint8_t gid[16];
};

struct path_message {
	enum path_step step;
	bool yes;
	struct path_address address; /* of an OFFER with yes */
	char text[PATH_TEXT];        /* of a no */
};

void path_write(const struct path_message *message, uint8_t ret[PATH_BYTES]);
/* false: it makes no sense. */
bool path_read(const uint8_t from[PATH_BYTES], struct path_message *ret);
