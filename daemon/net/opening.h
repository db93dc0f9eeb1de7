/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which source a connection gets: that of its own user, or, of data that are open to everybody, the one
 * that all users share.
 */

#include "base/base.h"

struct conn;

/* Begins to look for the source of dataset, a path or the name of a named one: conn->source, and conn waits for it.
 * conn->domain is its own. 0, or an OA_E_... with diag. */
int opening_begin(struct conn *conn, const char *dataset, struct diag *diag);
/* conn->source is ready. true: that is the one; false: another one is asked for now, or conn was
 * refused. */
bool opening_is_settled(struct conn *conn);
/* The shared source or stream is not to be had. true: that of its own user is asked for instead. */
bool opening_falls_back(struct conn *conn);
