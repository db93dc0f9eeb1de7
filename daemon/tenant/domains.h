/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All domains of a node: made with their processes, found, and ended. */

#include "daemon/tenant/domain.h"

/* The domain of that kind and identity, made with its processes if there is none; *ret is a
 * reference. 0, or an OA_E_... with diag. */
int domains_request(struct node *node, enum domain_kind kind, const struct identity *who,
		    struct domain **ret, struct diag *diag);
/* The same for a named data set, whose owner is known. */
int domains_request_named(struct node *node, const struct named *named, struct domain **ret,
			  struct diag *diag);
/* Ends the user's domain that has been there longest of those that nobody uses, of anybody's (NULL) or of that
 * uid's. false: there is none. */
bool domains_end_idle(struct node *node, const struct identity *who);
/* Ends its streams, sources and processes; no connection may refer to it any more. */
void domains_free(struct domain *domain);
