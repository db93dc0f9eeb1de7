/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NET_SHARING_H
#define DAEMON_NET_SHARING_H

/*
 * Named data sets (daemon/tenant/named.h) and the connections that want them: who is let in, and what becomes of those
 * who no longer are.
 */

#include "base/base.h"
#include "daemon/tenant/named.h"

struct conn;
struct domain;
struct json_out;
struct node;

/* The domain that reads the data set of that name for conn, who may have it: a reference; *ret_path is node->param's. 0, or
 * an OA_E_... with diag. */
int sharing_enter(const struct conn *conn, const char *name, struct domain **ret,
		  const char **ret_path, struct diag *diag);
/* node->param.named is new, and was `then`. Who may not use a data set any more is told, and has nothing of it from now on: where
 * anybody could have lost it, its streams end, and those who still may open it again go on in new memory. */
void sharing_reload(struct node *node, const struct named_sets *then);
/* An array: those that conn may use; for who sees everything, all. */
void sharing_describe(const struct conn *conn, bool sees_all, struct json_out *out);

#endif
