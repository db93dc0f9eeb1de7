/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Takes in clients, as many as there may be, and makes room when they are too many. */

#include "base/base.h"

struct node;

/* Accepts from now on; files: descriptors that this process may have. 0 or negative errno. */
int accept_begin(struct node *node, uint64_t files);
/* The parameter max_clients, where files allow as many. */
void accept_limit(struct node *node, uint64_t files);
void accept_end(struct node *node); /* fine twice, and before accept_begin() */
