/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP on libcurl, which is found when the program runs: requests, one answer that somebody waits for, and many at
 * once. What a server says is bounded here and looked at elsewhere.
 */

#include "base/base.h"

struct http_request {
	const char *method; /* "GET", "HEAD", "POST" */
	char *url;          /* owned; complete, escaped */
	char **header;      /* owned, and each: "Name: value" */
	size_t n_headers;
	char *body; /* owned; of a POST */
	size_t body_bytes;
	/* Redirections are followed; headers named Authorization do not go to other hosts. */
	bool follows;
	/* Of a neighbour who may not exist (169.254.169.254): one try, a second to connect, by no proxy. */
	bool is_hasty;
};
/* 0, -ENOMEM. */
BASE_PRINTF(2, 3) int http_request_url(struct http_request *request, const char *fmt, ...);
BASE_PRINTF(2, 3) int http_request_header(struct http_request *request, const char *fmt, ...);
/* Makes it a form's, with that body, which is the request's then; NULL: there is no memory. */
int http_request_form(struct http_request *request, char *body);
/* The value of a header that is there; NULL: it is not. Case of the name does not count. */
const char *http_request_value(const struct http_request *request, const char *name);
void http_request_free(struct http_request *request); /* what it owns, wiped; may be made again */

#define HTTP_MOST_LINK 8192
#define HTTP_PROXY_WANTS 407 /* a status that is no server's */

struct http_answer {
	long status;
	char etag[160];        /* as it is written, with quotes; "": none, or longer */
	char version[160];     /* x-goog-generation or x-ms-version-id or x-amz-version-id; "" */
	int64_t last_modified; /* seconds since 1970; INT64_MIN: not said */
	uint64_t
	    total; /* bytes of the whole object: Content-Range's, else Content-Length's; UINT64_MAX: not said */
	uint64_t from;             /* Content-Range: the first byte's place; UINT64_MAX: not said */
	char region[64];           /* x-amz-bucket-region */
	uint64_t wait_ns;          /* Retry-After, at most half a minute; 0: not said */
	char next[HTTP_MOST_LINK]; /* of a Link header: rel="next"; "" */
	bool is_link_cut;          /* there is one, and it is longer */
	/* Of many at once: where redirections led, borrowed until end() is over; NULL: nowhere else. */
	const char *landed;
	char *body; /* owned by who asked; NUL behind it */
	size_t body_bytes;
};
void http_answer_free(struct http_answer *answer); /* its body, wiped */

struct http; /* for one thread */
/* Of the main thread, before any other. 0, -ENOENT with diag: there is no libcurl here. */
int http_prepare(struct diag *diag);
int http_new(struct http **ret);
void http_free(struct http *http);
/* Waits for the answer, whose body has at most `most` bytes. Tries again, as often and as long as is decent, what may pass:
 * no connection, 408, 429, 5xx; for half a minute where the server is busy, and no sooner than it says. 0, whatever the status; -EIO, -ENOMEM, -ECANCELED with diag, which names the host, never a header. */
int http_ask(struct http *http, const struct http_request *request, size_t most,
	     struct http_answer *ret, struct diag *diag);

/* ---- many at once, in one thread, beside http_ask() ---- */
struct http_many;
struct http_transfer;
struct http_sink {
	/* The head of a 200 or 206 has come. false: no more of it (end() says why as "cut"). */
	bool (*head)(void *arg, const struct http_answer *answer);
	bool (*bytes)(void *arg, const char *data,
		      size_t size); /* of its body; false: no more of it */
	/* The transfer is no more. why: NULL, the answer came whole; or what was in the way. Of other statuses the body
	 * is the answer's, up to 64 KiB. May take the body, and begin and cut others,
	 * which head() and bytes() may not. */
	void (*end)(void *arg, struct http_answer *answer, const char *why);
};
int http_many_new(struct http_many **ret);
void http_many_free(struct http_many *many); /* all transfers are over, or were cut */
/* Copies what it needs of the request. 0, -ENOMEM. */
int http_many_begin(struct http_many *many, const struct http_request *request,
		    const struct http_sink *sink, void *arg, struct http_transfer **ret);
void http_many_cut(struct http_many *many, struct http_transfer *transfer); /* without end() */
int http_many_fd(const struct http_many *many); /* is readable when there is something to do */
uint64_t http_many_due_ns(const struct http_many *many); /* then there is, too; UINT64_MAX: never */
void http_many_turn(struct http_many *many);

/* ---- http_tries.c ---- */

/* Waits before the try behind `tries` others: anywhere up to 50 ms, doubled with each, at most 5 s. */
uint64_t http_backoff_ns(unsigned tries);
/* May the same question have another answer in a while? */
bool http_passes(long status);
/* Does the server say that of itself, not of what is asked? It is worth waiting for. */
bool http_is_busy(long status);

/* Is it to be given up, behind so many tries, of which the last had this status (0: no answer), and so long since the first one?
 * With a Retry-After of half a minute, the most that counts, somebody waits for a minute at most. */
bool http_is_over(unsigned tries, long status, uint64_t spent_ns);

/* "%2F"-escaped for a URL; keep: characters that stay beside letters, digits and -._~ . The caller frees; NULL: no memory. */
char *http_escape(const char *text, const char *keep);
