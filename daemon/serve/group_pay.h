/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of a group's log: whose it is, and how it ends. */

#include "base/base.h"

struct carousel_log;
struct conn;
struct domain;
struct endings;
struct plan_log;
struct stream;

#define GROUP_END_STEP (UINT64_C(1) << 18) /* bytes of a log that are freed a turn */

/* A new plan log's memory is of the share of conn's user: *ret is a reference. false: there is no room for it. */
bool group_pay(const struct conn *conn, struct domain **ret);
void group_pay_back(struct stream *stream, struct domain *payer);
/* Frees a carousel's log of a group; NULL is fine. That of a dataset of 10^8 samples has a hundred megabytes: what one step does
 * not free, later turns of the loop do. */
void group_end_log(struct endings *endings, struct carousel_log *log);
/* Lets go of a plan log's mapping, likewise. */
void group_end_plan_log(struct endings *endings, struct plan_log *plan_log);
