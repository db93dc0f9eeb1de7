/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is the same wherever access-reader and access-worker's parent are played in the process of the accessd that has them
 * (tests/daemon/bottle, tests/fuzz/actors.h): what they say and hear, the data set that there is, and slots that are reserved
 * without a process.
 */

#include "base/base.h"
#include "base/wire.h"

struct node;
struct variant;

/* An index of n samples, "a/000.jpg" and on, the second half in "b". */
void role_index(const uint32_t *sizes, unsigned n, int *ret_fd, uint8_t ret_version[32]);

uint64_t role_number(const struct wire_in *in, uint16_t key); /* UINT64_MAX: it has none */
/* Begins an answer, which names what it is to by the number of `key`. */
void role_answer(struct wire_out *out, uint16_t type, const struct wire_in *in, uint16_t key);
void role_put_fd(struct wire_out *out, uint16_t key, int fd);
/* READER_OPENED; with the index, where accessd has none. */
void role_opened(struct wire_out *out, const struct wire_in *in, bool is_fleeting, int index_fd);
/* PARENT_ADDED, PARENT_REMOVED */
void role_queue(struct wire_out *out, uint16_t type, const struct wire_in *in);
/* Begins PARENT_STARTED, PARENT_EXITED. */
void role_worker(struct wire_out *out, uint16_t type, uint64_t owner, uint64_t index);
void role_send(int sock, struct wire_out *out); /* to a socket that may be gone: -1 */
/* Is there something to be heard, or a hang-up? wire_recv() has a message's room made before it knows, which a sanitizer fills. */
bool role_is_told(int sock);
/* All that has come. *sock may be closed meanwhile. wire_recv()'s outcome */
int role_hear(const int *sock, void (*fn)(struct wire_in *in));

/* As reserve_begin(), for a child of that number; false: nothing is to be done. */
bool role_reserve(struct variant *variant, uint32_t to, pid_t pid);
/* It is done: the status that the child ends with, -1: nobody waits for it. */
int role_reserved(const struct node *node, pid_t pid);

/* Descriptors of this process, but pipes: a sanitizer may start its symbolizer at any time, behind two of them. */
unsigned role_descriptors(void);
void role_remove(const char *folder); /* with all that is in it */

/* The first invariant of all that has a checker which does not hold; NULL: all do. with_queues: nobody lies in them. */
const char *role_check(const struct node *node, bool with_queues);
