/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An authority of certificates for tests, and files in PEM of it, in a folder of its own. */

struct authority;

struct authority *authority_new(void);
void authority_free(struct authority *authority); /* with its folder */

/* A certificate for that node, valid from so many seconds from now on, for a day: the paths of it, of its key, and of the
 * authority's certificate, which live as long as the authority. */
struct authority_files {
	const char *path[3];
};
struct authority_files authority_issue(struct authority *authority, const char *node,
				       long valid_from_s);
