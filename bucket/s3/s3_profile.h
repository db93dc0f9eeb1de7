/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of Amazon's tools: ~/.aws/config and ~/.aws/credentials, with profiles in sections. They have secrets, so they are
 * wiped when they are closed.
 */

#include "base/base.h"

#define S3_PROFILE_MOST_FILE (1U << 20)

struct s3_profile_item {
	const char *section, *parent; /* parent: the key that this one is indented under, or "" */
	const char *key, *value;
};
struct s3_profile_file {
	char *text; /* what all items point into */
	size_t size;
	struct s3_profile_item *items;
	size_t n, room;
};
/* Takes any text. What is no section and no "key = value" is passed over, as the tools' own readers do not agree about it.
 * 0, -ENOMEM. */
int s3_profile_parse(const char *text, size_t size, struct s3_profile_file *ret);
void s3_profile_free(struct s3_profile_file *file);
/* The last one that was written; NULL: there is none. section: "profile NAME", "default". Case of keys does not count. */
const char *s3_profile_item(const struct s3_profile_file *file, const char *section,
			    const char *parent, const char *key);

struct s3_profiles {
	struct s3_profile_file config, credentials;
	char config_path[512], credentials_path[512]; /* "": it has none, as nobody has a home */
	struct diag
	    refused; /* which file cannot be read, and why; "": none. It counts where a profile is wanted. */
};
/* AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, or below $HOME. Files that are not there, or cannot be read, are empty ones. 0, -ENOMEM. */
int s3_profiles_read(struct s3_profiles *ret);
void s3_profiles_free(struct s3_profiles *profiles);
bool s3_profiles_have(const struct s3_profiles *profiles, const char *profile);
/* Of the file of credentials, or else of the other one. NULL: it is not there, or empty. */
const char *s3_profiles_get(const struct s3_profiles *profiles, const char *profile,
			    const char *key);
/* The same of an indented one, and of a section such as "services NAME". */
const char *s3_profiles_nested(const struct s3_profiles *profiles, const char *profile,
			       const char *parent, const char *key);
const char *s3_profiles_service(const struct s3_profiles *profiles, const char *name,
				const char *service, const char *key);
