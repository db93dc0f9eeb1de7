/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLUSTER_SEAL_H
#define CLUSTER_SEAL_H

/*
 * What makes a frame (cluster/frame.h) trusted: AES-128-GCM with the length as additional data and the frame's number in
 * the nonce, or, where a fabric is closed and that was said, XXH3-64 of length, head and body, with the number. Either
 * way a frame that was changed, left out, repeated or put elsewhere is noticed, by accident alone in the second case.
 * One object a direction of a connection; not for two threads at once.
 */

#include "cluster/frame.h"

#define SEAL_MOST_TAG 16

struct seal;

/* Once, before the first and before a sandbox: what libcrypto loads. 0 or negative errno. */
int seal_init(void);
/* Copies the key; is_sealed false: key and iv are not used. Heap. 0 or negative errno. */
int seal_new(bool is_sealed, const uint8_t key[16], const uint8_t iv[12], struct seal **ret);
void seal_free(struct seal *seal);
void seal_freep(struct seal **seal);
unsigned seal_tag(const struct seal *seal); /* bytes of it */

/* Makes the whole frame at ret, of length, head, body and tag; the body is read once. 0 or negative errno. */
int seal_frame(struct seal *seal, const uint8_t head[FRAME_HEAD], const uint8_t *first,
	       uint32_t first_bytes, const uint8_t *body, uint32_t bytes, uint8_t *ret);
/* The head of the frame whose length is at `frame`, not to be believed yet; then its body, and whether all of it was as
 * it was made: 0; -EBADMSG: no. */
int seal_open_head(struct seal *seal, const uint8_t *frame, uint8_t ret[FRAME_HEAD]);
int seal_open_body(struct seal *seal, const uint8_t *frame, uint8_t *ret);

#endif
