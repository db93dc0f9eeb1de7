/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages to accessd, at descriptor 3. It reads them in time; if it is gone, so is the gate. */

#include "cluster/cell.h"

void gate_say_ready(const struct gate_address *address);
void gate_say_trouble(const char *text); /* what it tries again; "": nothing any longer */
/* Says so, and ends the process. */
_Noreturn void gate_say_failed(const struct diag *diag);
void gate_say_member(void *arg, uint64_t id, const struct cell_member *member);
void gate_say_gone(void *arg, uint64_t id);
