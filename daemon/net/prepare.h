/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an OPEN brings is read and checked before its job opens, in turns of the loop: its token, the part of the
 * dataset that it asks for, and the plan log that it goes on with.
 */

#include "base/base.h"

struct conn;
struct node;
struct carousel_join;
struct group;

int prepare_init(struct node *node); /* 0 or -ENOMEM */
void prepare_fini(struct node *node);

/* Is all read that conn brings to its stream, which runs? If not, it is done in later turns; then
 * conn_stream_ready() follows, or conn is refused. */
bool prepare_is_ready(struct conn *conn);
/* Fills join with what was brought, and finds or founds the job's group, if it has one. 0; else *code, diag. */
int prepare_join(struct conn *conn, struct carousel_join *join, struct group **ret_group,
		 uint64_t *code, struct diag *diag);
/* conn_stream_ready() follows in a later turn, when all is read that conn brings, or conn is refused. */
void prepare_soon(struct conn *conn);
void prepare_free(struct conn *conn); /* nothing to do is fine */
