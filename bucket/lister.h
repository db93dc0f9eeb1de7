/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What objects there are under a URL: the provider's pages, or a HEAD of each name where a provider cannot list. */

#include "bucket/key.h"
#include "bucket/provider.h"

struct lister { /* of one thread */
	const struct bucket_url *url;
	void *provider;
	struct http *http;
	struct key_scope scope;         /* of the last listing, or to be found out */
	void (*before_page)(void *arg); /* NULL, or is called before each page is asked for */
	void *arg;
};
struct lister_object {
	const char *name; /* below FOLDER/data, if it is a good one */
	uint64_t size;
	int64_t mtime_ns, last_modified;
};
struct lister_sink {
	int (*object)(void *arg, const struct lister_object *object, struct diag *diag);
	void *arg;
};

/* Lists all. 0; negative errno with diag: the server's refusal and how to mend it, or what the sink said. -ENOENT: there is
 * nothing. */
int lister_run(struct lister *lister, const struct lister_sink *sink, struct diag *diag);
/* Asks for as much of the list, and a byte, as shows that there is something, and that these credentials may read it. 0, or as
 * lister_run(). */
int lister_try(struct lister *lister, struct diag *diag);
