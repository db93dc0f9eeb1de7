/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What two gates tell each other once TLS has proved that both have the key: 512 bytes each way, little endian.
 *
 *   0 magic u32   4 version u32   8 type u32   12 answer u32   16 incarnation u64   24 weight u64
 *  32 sealed u32  36 port u32     40 cluster[72]   112 node[72]   184 domain[256]   440 zeros
 *
 * The caller says CALL; who was called says ANSWER; where that was YES, the caller says GO, 16 bytes, and both leave
 * TLS. Magic, version and the 512 bytes stay in all versions, so that another version is told from garbage.
 */

#include "base/base.h"

#define GATE_HELLO_BYTES 512
#define GATE_HELLO_GO_BYTES 16
#define GATE_HELLO_VERSION 3
#define GATE_HELLO_NAME 64 /* most bytes of a node's or a cluster's name */
#define GATE_HELLO_DOMAIN 255

enum gate_hello_type { GATE_HELLO_CALL = 1, GATE_HELLO_ANSWER = 2, GATE_HELLO_GO = 3 };

enum gate_answer {
	GATE_ANSWER_NONE, /* of a CALL or a GO */
	GATE_ANSWER_YES,
	GATE_ANSWER_NO_DOMAIN, /* nobody uses that domain there yet: it will call when that changes */
	GATE_ANSWER_CROSSED,   /* it calls itself at this moment, and has the smaller id */
	GATE_ANSWER_CONNECTED, /* it has a channel that lives as far as it knows */
	GATE_ANSWER_SELF,      /* that was a call to oneself */
	GATE_ANSWER_FULL,      /* it has as many peers as a cell may have */
	/* of these on, nothing will connect the two until a person has mended it */
	GATE_ANSWER_CLUSTER,
	GATE_ANSWER_VERSION,
	GATE_ANSWER_SAME_NAME,
	GATE_ANSWER_CERTIFICATE,
	GATE_ANSWER_SEALED,
	GATE_ANSWERS,
};

struct gate_hello {
	uint32_t version, type, answer;
	uint32_t port; /* on which its node listens */
	uint64_t incarnation, weight;
	bool is_sealed;
	char cluster[GATE_HELLO_NAME + 1], node[GATE_HELLO_NAME + 1], domain[GATE_HELLO_DOMAIN + 1];
};

enum { GATE_HELLO_E_BAD = 1, GATE_HELLO_E_VERSION = 2 };

/* Is it a node's or a cluster's name: [A-Za-z0-9._-]{1,64}, and no dot first? */
bool gate_hello_is_name(const char *text);
/* Texts that are too long are cut: check them before. */
void gate_hello_write(const struct gate_hello *hello, uint8_t ret[GATE_HELLO_BYTES]);
void gate_hello_write_go(uint8_t ret[GATE_HELLO_GO_BYTES]);
/* The other side's, hostile. 0; GATE_HELLO_E_VERSION: of another version, only that is set; GATE_HELLO_E_BAD. */
int gate_hello_read(const uint8_t from[GATE_HELLO_BYTES], enum gate_hello_type type,
		    struct gate_hello *ret);
bool gate_hello_is_go(const uint8_t from[GATE_HELLO_GO_BYTES]);
