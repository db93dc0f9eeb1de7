/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

struct conn;

/* Enters conn's request into its running stream and sends OPENED; refuses the connection
 * otherwise. */
void job_open(struct conn *conn);
