/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages made of a fuzzer's bytes. A mutation of a message's own bytes seldom leaves it well formed, so
 * what lies behind the first checks is seldom reached that way; here each byte is a choice: which message,
 * which items, of which kind, how long, what is in them, which descriptors. An honest message is the
 * shortest choice, and whatever is not honest is put before it, for of two items with one key the first one
 * counts.
 */

#include "base/base.h"
#include "base/wire.h"

struct grammar { /* bytes that are not read yet; after the last one come zeros */
	const uint8_t *at;
	size_t left;
};

struct grammar_world { /* what an honest client knows */
	const char *dataset;
	uint8_t version[32];
	uint64_t samples;     /* less than 64 */
	const uint8_t *nonce; /* of WELCOME, 16 bytes */
	uint64_t job;         /* of OPENED; 0: of none */
};

uint8_t grammar_byte(struct grammar *grammar);
/* A number of less than `below`. */
uint32_t grammar_below(struct grammar *grammar, uint32_t below);
/* Any number: most are small, or beside something that is a limit. */
uint64_t grammar_number(struct grammar *grammar);
/* Bytes, of the usual size or of another one; borrowed until the next call. */
size_t grammar_bytes(struct grammar *grammar, size_t usual, const void **ret);

/* A client's message, out of wire_out_init() or not. */
void grammar_message(struct grammar *grammar, const struct grammar_world *world,
		     struct wire_out *ret);
/* A message of that type in which any item may be anything: for protocols that have no honest form here. */
void grammar_any(struct grammar *grammar, uint16_t type, struct wire_out *ret);
/* A descriptor that may be what is wanted (a part, a list) or anything else. The caller's; -1: none. */
int grammar_fd(struct grammar *grammar, const struct grammar_world *world);
