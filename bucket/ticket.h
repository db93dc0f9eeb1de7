/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A token that ends: who has one, how long it is good, and what an OAuth 2 server says of a new one. Any thread. */

#include <pthread.h>

#include "bucket/http.h"

#define TICKET_MOST_ANSWER 65536

struct ticket {
	pthread_mutex_t mutex; /* covers all; nobody is asked under it */
	char *token;
	uint64_t due_ns, asked_ns;
};
void ticket_init(struct ticket *ticket);
void ticket_fini(struct ticket *ticket);
/* A new one, which is its own then. It is to be renewed five minutes before its end. */
void ticket_put(struct ticket *ticket, char *token, unsigned seconds);
void ticket_missed(struct ticket *ticket); /* there was none: it is asked for again in a while */
unsigned ticket_seconds(struct ticket *ticket); /* until it is to be renewed; 0: now */
/* It is of these seconds: what was refused was asked with the one before it. */
bool ticket_is_fresh(struct ticket *ticket);
/* "Authorization: Bearer ..." 0, -ENOMEM. */
int ticket_authorize(struct ticket *ticket, struct http_request *request);

enum { TICKET_E_NONE = 1 }; /* there is no such neighbour here, or it has none for us */
/* Makes it a form's, with that body, which is the request's then. 0, -ENOMEM. */
int ticket_form(struct http_request *request, char *body);
/* Asks for a token: {"access_token": ..., "expires_in": ...}. The caller wipes it. who: whose; mend: "" or a text for diag. 0;
 * TICKET_E_NONE of a request that is hasty; -EACCES, -EIO, -ECANCELED with diag; -ENOMEM. */
int ticket_ask(const struct http_request *request, struct http *http, const char *who,
	       const char *mend, char **ret_token, unsigned *ret_seconds, struct diag *diag);
