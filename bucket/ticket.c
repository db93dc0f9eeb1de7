/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/ticket.h"

#include "base/hold.h"
#include "base/json.h"
#include "bucket/bearer.h"

#define TICKET_EARLY_S 300
#define TICKET_AGAIN_S 30
#define TICKET_MOST_S 86400
#define TICKET_S UINT64_C(1000000000)

void ticket_init(struct ticket *ticket)
{
	*ticket = (struct ticket){.token = NULL};
	pthread_mutex_init(&ticket->mutex, NULL);
}

void ticket_fini(struct ticket *ticket)
{
	base_wipe(&ticket->token);
	pthread_mutex_destroy(&ticket->mutex);
}

static void ticket_put(struct ticket *ticket, char *token, unsigned seconds)
{
	const uint64_t now = base_now_ns();

	/* A machine's server gives the same token to all, until it has less than this left. */
	if (seconds > TICKET_EARLY_S + TICKET_AGAIN_S)
		seconds -= TICKET_EARLY_S;
	else
		seconds = BASE_MIN(seconds, (unsigned)TICKET_AGAIN_S);
	BASE_HOLD(&ticket->mutex);
	base_wipe(&ticket->token);
	ticket->token = token;
	ticket->asked_ns = now;
	ticket->due_ns = now + TICKET_S * BASE_MAX(seconds, 1u);
}

static int ticket_new(struct ticket *ticket, struct http *http, struct diag *diag)
{
	unsigned seconds = 0;
	char *token = NULL;
	const int r = ticket->ask(ticket->login, http, &token, &seconds, diag);

	if (r == 0) {
		ticket_put(ticket, token, seconds);
	} else {
		BASE_HOLD(&ticket->mutex);
		ticket->due_ns = base_now_ns() + TICKET_S * TICKET_AGAIN_S;
	}
	return r;
}

int ticket_open(struct ticket *ticket, ticket_ask_fn ask, const void *login, struct http *http,
		struct diag *diag)
{
	ticket->ask = ask;
	ticket->login = login;
	return ticket_new(ticket, http, diag);
}

/* Until it is to be renewed; 0: now. */
static unsigned ticket_seconds(struct ticket *ticket)
{
	const uint64_t now = base_now_ns();

	BASE_HOLD(&ticket->mutex);
	return now >= ticket->due_ns ? 0
				     : (unsigned)((ticket->due_ns - now + TICKET_S - 1) / TICKET_S);
}

unsigned ticket_renew(struct ticket *ticket, struct http *http, struct diag *diag)
{
	if (!ticket->ask)
		return 0;
	if (ticket_seconds(ticket) == 0)
		ticket_new(ticket, http, diag);
	return BASE_MAX(ticket_seconds(ticket), 1u);
}

/* It is of these seconds: what was refused was asked with the one before it. */
static bool ticket_is_fresh(struct ticket *ticket)
{
	BASE_HOLD(&ticket->mutex);
	return ticket->token && base_now_ns() - ticket->asked_ns < 10 * TICKET_S;
}

bool ticket_refused(struct ticket *ticket, struct http *http, struct diag *diag)
{
	return ticket_is_fresh(ticket) || ticket_new(ticket, http, diag) == 0;
}

int ticket_authorize(struct ticket *ticket, struct http_request *request)
{
	_cleanup_wipe_ char *token = NULL;

	{
		BASE_HOLD(&ticket->mutex);
		token = strdup(ticket->token ? ticket->token : "");
	}
	return token ? bearer_authorize(request, token) : -ENOMEM;
}

/* Azure's metadata server says a number as a text. */
static uint64_t ticket_number(const struct json_in *value)
{
	const char *text = json_in_string(value, "");
	uint64_t number = json_in_u64(value, 3600);

	if (*text && (!base_parse_number(&text, TICKET_MOST_S, &number) || *text))
		number = 3600;
	return BASE_MIN(number, (uint64_t)TICKET_MOST_S);
}

static int ticket_read(const struct http_answer *answer, char **ret_token, unsigned *ret_seconds)
{
	_cleanup_json_ struct json_in *root = NULL;
	struct diag why;
	int r = json_in_parse(answer->body, answer->body_bytes, TICKET_MOST_ANSWER, &root, &why);

	if (r == 0)
		r = bearer_copy(json_in_string(json_in_member(root, "access_token"), ""), "a token",
				ret_token, &why);
	if (r == 0)
		*ret_seconds = (unsigned)ticket_number(json_in_member(root, "expires_in"));
	return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

int ticket_ask(const struct http_request *request, struct http *http, const char *who,
	       const char *mend, char **ret_token, unsigned *ret_seconds, struct diag *diag)
{
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	char said[200];
	int r = http_ask(http, request, TICKET_MOST_ANSWER, &answer, diag);

	if (request->is_hasty && (r == -EIO || (r == 0 && answer.status != 200)))
		return TICKET_E_NONE;
	if (r < 0)
		return r;
	if (answer.status != 200)
		return diag_fail(diag, -EACCES, "%s gives no token for %s: it answers %ld (%s)%s",
				 BASE_QUOTED(request->url, 160), BASE_QUOTED(who, 200),
				 answer.status, bearer_said(&answer, said, sizeof(said)), mend);
	r = ticket_read(&answer, ret_token, ret_seconds);
	return r != -EBADMSG ? r
			     : diag_fail(diag, -EACCES, "%s gives no token for %s",
					 BASE_QUOTED(request->url, 200), BASE_QUOTED(who, 300));
}
