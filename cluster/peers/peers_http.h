/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * JSON posted to a server by HTTP, on libcurl (whose header only peers_http.c sees): one answer, or lines without an
 * end. For one thread.
 */

#include "base/base.h"

struct peers_http;
/* A line without its end; false: no more of them are wanted. */
typedef bool (*peers_http_fn)(void *arg, const char *line, size_t size);

/* Of the main thread, before any other. 0, or -ENOENT with diag: there is no such library here. */
int peers_http_prepare(struct diag *diag);
/* stop_fd ends what waits, as soon as it can be read. */
int peers_http_new(int stop_fd, struct peers_http **ret);
void peers_http_free(struct peers_http *http);

enum { PEERS_HTTP_E_REFUSED = 1 };

/* Goes with each question from now on (the header Authorization); NULL: none does. 0 or -ENOMEM. */
int peers_http_token(struct peers_http *http, const char *token);
/* Waits for the answer, `limit` bytes at most; the caller frees *ret. 0; PEERS_HTTP_E_REFUSED: the answer says why it is a
 * no (a status of 400 or above); or -EIO with diag. */
int peers_http_post(struct peers_http *http, const char *url, const char *body, int timeout_ms,
		    size_t limit, char **ret, size_t *ret_size, struct diag *diag);
/* The address of this machine by which the last answer came; "" if none did. */
const char *peers_http_local(const struct peers_http *http);

/* Posts, and hands on each line of the answer, `limit` bytes at most, by peers_http_wait(). One at a time. */
int peers_http_open(struct peers_http *http, const char *url, const char *body, size_t limit,
		    peers_http_fn fn, void *arg);
void peers_http_close(struct peers_http *http);
/* Up to so many ms. 0; -ECONNRESET with diag: there are no more lines. */
int peers_http_wait(struct peers_http *http, int ms, struct diag *diag);
