/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bucket/http.h promises, without a network: http_ask() gives the answers of a list, one by one. */

#include "bucket/provider.h"

struct fake_answer {
	const char *url; /* which must be asked for */
	long status;
	const char *body, *next;
	int error; /* of http_ask() */
	const char *
	    sent; /* must be part of the request: its headers, a line each, and its body; NULL: no matter */
};
void fake_http(const struct fake_answer *answer, size_t n);
#define FAKE_HTTP(...)                                       \
	fake_http((const struct fake_answer[]){__VA_ARGS__}, \
		  sizeof((const struct fake_answer[]){__VA_ARGS__}) / sizeof(struct fake_answer))
/* The headers of the last request, a line each, and its body. */
extern char fake_sent[16384];
unsigned fake_left(void); /* answers that nobody asked for */

/* A page of a provider's list: its objects as lines "NAME SIZE SECONDS ETAG". The caller frees. */
char *fake_listed(const struct provider_ops *ops, void *self, const char *body, const char *next,
		  char **ret_cursor, int *ret_r, struct diag *diag);
