/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What makes a frame (cluster/frame.h) trusted: AES-128-GCM with the length as additional data and the frame's number in
 * the nonce, or, where a fabric is closed and that was said, XXH3-64 of length, head and the body's XXH3-64, with the number. Either
 * way a frame that was changed, left out, repeated or put elsewhere is noticed, by accident alone in the second case.
 * One object a direction of a connection; not for two threads at once.
 */

#include "cluster/frame.h"

#define SEAL_MOST_TAG 16
#define SEAL_FIRST (FRAME_LENGTH + FRAME_HEAD)

struct seal;

/* Once, before the first and before a sandbox: what libcrypto loads. 0 or negative errno. */
int seal_init(void);
/* Copies the key; is_sealed false: key and iv are not used. Heap. 0 or negative errno. */
int seal_new(bool is_sealed, const uint8_t key[16], const uint8_t iv[12], struct seal **ret);
void seal_free(struct seal *seal);
void seal_freep(struct seal **seal);
unsigned seal_tag(const struct seal *seal); /* bytes of it */
bool seal_encrypts(const struct seal *seal);

/* Makes the whole frame at ret, of length, head, body and tag; the body is read once. 0 or negative errno. */
int seal_frame(struct seal *seal, const uint8_t head[FRAME_HEAD], const uint8_t *first,
	       uint32_t first_bytes, const uint8_t *body, uint32_t bytes, uint8_t *ret);
/* The same of a body that stays where it is: what is before it, and the tag behind it. Of one that does not encrypt. */
void seal_around(struct seal *seal, const uint8_t head[FRAME_HEAD], const uint8_t *body,
		 uint32_t bytes, uint8_t ret_first[SEAL_FIRST], uint8_t ret_tag[SEAL_MOST_TAG]);
/* The next frame, in its three parts: 0: all of it is as it was made, and here are its head and its body, which may be
 * where it was; -EBADMSG: it is not, and nothing is to be believed. */
int seal_open(struct seal *seal, const uint8_t first[SEAL_FIRST], const uint8_t *body,
	      uint32_t bytes, const uint8_t *tag, uint8_t ret_head[FRAME_HEAD], uint8_t *ret_body);
