/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A token that ends: who has one, how long it is good, and what an OAuth 2 server says of a new one. Any thread. */

#include <pthread.h>

#include "bucket/http.h"

#define TICKET_MOST_ANSWER 65536

/* Asks who gives them: the token is the caller's to wipe, and ends in so many seconds. 0; a negative errno with diag. */
typedef int (*ticket_ask_fn)(const void *login, struct http *http, char **ret_token,
			     unsigned *ret_seconds, struct diag *diag);

struct ticket {
	ticket_ask_fn ask; /* as ticket_open() has them; NULL: it was not opened */
	const void *login;
	pthread_mutex_t mutex; /* covers what follows; nobody is asked under it */
	char *token;
	uint64_t due_ns, asked_ns;
};
void ticket_init(struct ticket *ticket);
void ticket_fini(struct ticket *ticket);
/* Asks for the first one; login is the caller's, and stays. 0, or what asking gave. */
int ticket_open(struct ticket *ticket, ticket_ask_fn ask, const void *login, struct http *http,
		struct diag *diag);
/* As provider_ops.renew: it is renewed five minutes before its end, and, if there was none, tried again in a while. Of one that was
 * not opened: 0. */
unsigned ticket_renew(struct ticket *ticket, struct http *http, struct diag *diag);
/* It was refused: is there another one since, or now? */
bool ticket_refused(struct ticket *ticket, struct http *http, struct diag *diag);
/* "Authorization: Bearer ..." 0, -ENOMEM. */
int ticket_authorize(struct ticket *ticket, struct http_request *request);

enum { TICKET_E_NONE = 1 }; /* there is no such neighbour here, or it has none for us */
/* Asks for a token: {"access_token": ..., "expires_in": ...}. The caller wipes it. who: whose; mend: "" or a text for diag. 0;
 * TICKET_E_NONE of a request that is hasty; -EACCES, -EIO, -ECANCELED with diag; -ENOMEM. */
int ticket_ask(const struct http_request *request, struct http *http, const char *who,
	       const char *mend, char **ret_token, unsigned *ret_seconds, struct diag *diag);
