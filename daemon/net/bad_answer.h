/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NET_BAD_ANSWER_H
#define DAEMON_NET_BAD_ANSWER_H

/* Answers to BAD: a page of the bad samples of a job's stream. */

#include "daemon/net/message.h"

struct conn;

/* Sends BAD_SAMPLES, or refuses the connection. */
void bad_answer(struct conn *conn, const struct message_bad *message);

#endif
