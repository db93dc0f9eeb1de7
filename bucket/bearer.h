/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tokens and other secrets that are texts: read from files, put into headers, wiped. They stand in no message. */

#include "base/base.h"
#include "bucket/http.h"

#define BEARER_MOST 65536

/* Whether a text can stand in a header: printable ASCII, and something. */
bool bearer_is_good(const char *text);
/* The file's bytes, with a NUL behind them: at most 64 KiB, and no NUL among them. What it is called in diag, what it returns and
 * who wipes it: as bearer_read(). */
int bearer_load(const char *path, const char *what, char **ret, struct diag *diag);
/* The file's text without white space around it; the caller wipes it. what: for diag, "the token of token_file=". 0, -ENOENT,
 * -EACCES, -EINVAL (empty, too long, no text) with diag. */
int bearer_read(const char *path, const char *what, char **ret, struct diag *diag);
/* The same of a text that is there, as of an environment variable. */
int bearer_copy(const char *text, const char *what, char **ret, struct diag *diag);

/* A secret may be sent there: by https, or to this machine. */
bool bearer_may_go(const char *url);
/* Sets a header: one of that name that is there goes. 0, -ENOMEM. */
int bearer_header(struct http_request *request, const char *name, const char *value);
/* The same of "Authorization: Bearer TOKEN". NULL: there is none, and none is sent. */
int bearer_authorize(struct http_request *request, const char *token);

/* What a server says for people, quoted: {"error": "..."}, {"error": {"message": "..."}}, <Message>, or the first words of
 * another text; "" for none. */
const char *bearer_said(const struct http_answer *answer, char *ret, size_t size);
#define BEARER_ANSWERED 300
/* "403", or "403 (what it says)". */
const char *bearer_answered(const struct http_answer *answer, char ret[BEARER_ANSWERED]);
