/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What becomes of those who had a named data set (daemon/tenant/named.h) when the rule changes. */

#include "daemon/tenant/named.h"

struct node;

/* node->param.named is new, and was `then`. Who may not use a data set any more is told, and has nothing of it from now on: where
 * anybody could have lost it, its streams end, and those who still may open it again go on in new memory. */
void sharing_reload(struct node *node, const struct named_sets *then);
