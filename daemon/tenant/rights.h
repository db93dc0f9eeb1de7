/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who may have what, by what the kernel says of a client. */

#include "base/base.h"

struct conn;
struct named;

/* May it talk to us (HELLO)? 0, or an OA_E_... with diag. */
int rights_greet(const struct conn *conn, struct diag *diag);
/* Before it opens anything: conn->domain is its user's, a reference. 0, or an OA_E_... with diag. */
int rights_enter(struct conn *conn, struct diag *diag);
/* Another job of conn's user, who has entered? 0, or an OA_E_... with diag. */
int rights_may_have_job(const struct conn *conn, struct diag *diag);
/* May conn's process use that data set? 0, or an OA_E_... with diag. */
int rights_may_use(const struct conn *conn, const struct named *named, struct diag *diag);
/* Those of the named data sets that it may use: a bit each, by their numbers. */
uint64_t rights_named(const struct conn *conn);
/* Root, our own user, and who is in our group, see everything. */
bool rights_is_admin(const struct conn *conn);
