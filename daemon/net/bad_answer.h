/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers to BAD: a page of the bad samples of a job's stream. */

#include "daemon/net/message.h"

struct conn;

/* Sends BAD_SAMPLES, or refuses the connection. */
void bad_answer(struct conn *conn, const struct message_bad *message);
