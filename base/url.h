/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A data set's URL as a job gives it: what of it access-bucket is told, what accessd, and the name of its folder. */

#include "base/base.h"
#include "base/hash.h"

#define URL_FOLDER_MAX 80

struct url {
	char *text; /* owned: without options */
	char *
	    options; /* owned: of the kind of data set, as they stand behind a path: "?key=value,..." or "" */
	char **
	    access; /* owned, and each: "key=value" for access-bucket, sorted; NULL behind the last one */
	size_t n_access;
};

/* SCHEME://, whatever scheme it is; but file:// is a path. */
bool url_is(const char *dataset);
/* What stands behind file://, or all of it. */
const char *url_path(const char *dataset);
/* dataset: url_is(). 0 or -ENOMEM. */
int url_parse(const char *dataset, struct url *ret);
void url_fini(struct url *url);
/* Is it one file on a web server? */
bool url_is_of_web(const char *text);
/* The last part of its path, and how long it is; of a pattern of shards, from the part on that has the first brace. 0: the
 * URL ends in "/", or in the place. */
size_t url_tail(const struct url *url, const char **ret);
/* What an object brings that is named by itself, and is read together with others: a manifest all below its folder, of
 * which it may speak, and NAME.bin of tokens its NAME.idx. */
enum url_brings { URL_ALONE, URL_WITH_FOLDER, URL_WITH_INDEX };
enum url_brings url_brings(const char *name);
/* The folder's name: readable, a hash of the URL, and one of what access-bucket is told beside it, also by the environment
 * of where the store is, or a web server behind "?". Returns how long the name is without the latter: it begins so, whatever that is. */
size_t url_folder(const struct url *url, char ret[URL_FOLDER_MAX]);

/* ---- url_keys.c ---- */

/* A digest of what this process has that decides who asks the store, and by which way: two with another one are not to share an
 * access-bucket. text: the URL; file: that an option names, or NULL; is_anonymous: by an option. 0 or -ENOMEM. */
int url_keys(const char *text, const char *file, bool is_anonymous, struct hash_id *ret);
