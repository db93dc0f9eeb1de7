/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/s3/s3_keys.h"

#include <stdio.h>

#include "base/json.h"
#include "bucket/s3/s3_time.h"

#define MOST_JSON 65536

/* Without the white space around it. */
static bool copy(char *ret, size_t room, const char *text)
{
	size_t bytes;

	text += strspn(text, " \t\r\n");
	for (bytes = 0; text[bytes] > ' ' && text[bytes] <= '~'; bytes++)
		continue;
	if (bytes >= room || text[bytes + strspn(text + bytes, " \t\r\n")])
		return false;
	memcpy(ret, text, bytes);
	ret[bytes] = '\0';
	return true;
}

bool s3_keys_set(struct s3_keys *ret, const char *id, const char *secret, const char *token)
{
	if (id && secret && copy(ret->id, sizeof(ret->id), id) && *ret->id &&
	    copy(ret->secret, sizeof(ret->secret), secret) && *ret->secret &&
	    copy(ret->token, sizeof(ret->token), token ? token : "")) {
		ret->from[0] = '\0';
		ret->expires = 0;
		return true;
	}
	s3_keys_wipe(ret);
	return false;
}

void s3_keys_wipe(struct s3_keys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}

int s3_keys_of_json(const char *text, size_t size, struct s3_keys *ret, struct diag *diag)
{
	_cleanup_json_ struct json_in *root = NULL;
	const char *expiration, *token;
	struct diag why;
	int r = json_in_parse(text, size, MOST_JSON, &root, &why);

	if (r < 0)
		return r;
	if (r)
		return diag_fail(diag, -EBADMSG, "what it says is no JSON");
	expiration = json_in_string(json_in_member(root, "Expiration"), NULL);
	token = json_in_string(json_in_member(root, "SessionToken"), NULL);
	token = token ? token : json_in_string(json_in_member(root, "Token"), NULL);
	if (!s3_keys_set(ret, json_in_string(json_in_member(root, "AccessKeyId"), NULL),
			 json_in_string(json_in_member(root, "SecretAccessKey"), NULL), token))
		return diag_fail(
		    diag, -EBADMSG,
		    "its JSON has no AccessKeyId and SecretAccessKey of the usual kind");
	if (expiration && (ret->expires = s3_time_parse(expiration)) == INT64_MIN) {
		s3_keys_wipe(ret);
		return diag_fail(diag, -EBADMSG, "its JSON has an Expiration which is no time");
	}
	return 0;
}

const char *s3_keys_shown(const struct s3_keys *keys, char ret[16])
{
	const size_t bytes = strlen(keys->id);

	snprintf(ret, 16, "...%s", keys->id + (bytes > 8 ? bytes - 4 : bytes));
	return ret;
}
