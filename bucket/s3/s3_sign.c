/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signature Version 4. What is hashed is never written down as a whole: the parts go into the hash one behind the other.
 * The key of a day takes four of the five HMACs, so it is kept.
 *
 * A body is hashed (only questions for credentials have one); that of a GET is empty.
 *
 * Only headers that nobody on the way changes are signed: a proxy may say something else as Accept-Encoding.
 */

#include "bucket/s3/s3_sign.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/hash.h"
#include "bucket/s3/s3_time.h"

#define MOST_SIGNED 16
#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct part {
	const char *at;
	size_t bytes;
};
struct signed_header {
	char name[40]; /* in small letters */
	struct part value;
};
struct signing {
	struct part path, query;
	struct signed_header header[MOST_SIGNED]; /* sorted */
	size_t n;
};

static bool begins(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

static void drop_earlier(struct http_request *request)
{
	size_t n = 0;

	for (size_t i = 0; i < request->n_headers; i++) {
		char *header = request->header[i];

		if (begins(header, "Authorization:") || begins(header, "X-Amz-Date:") ||
		    begins(header, "X-Amz-Content-Sha256:") ||
		    begins(header, "X-Amz-Security-Token:"))
			free(header);
		else
			request->header[n++] = header;
	}
	request->n_headers = n;
}

static void add_header(struct signing *signing, const char *name, size_t name_bytes,
		       struct part value)
{
	struct signed_header header = {.value = value};
	size_t at = signing->n;

	if (signing->n == MOST_SIGNED || name_bytes >= sizeof(header.name))
		return;
	for (size_t i = 0; i < name_bytes; i++)
		header.name[i] = (char)tolower((unsigned char)name[i]);
	for (; at > 0 && strcmp(signing->header[at - 1].name, header.name) > 0; at--)
		signing->header[at] = signing->header[at - 1];
	signing->header[at] = header;
	signing->n++;
}

static struct part trimmed(const char *text)
{
	struct part part = {text + strspn(text, " \t"), 0};

	part.bytes = strlen(part.at);
	while (part.bytes > 0 && isspace((unsigned char)part.at[part.bytes - 1]))
		part.bytes--;
	return part;
}

static void read_request(const struct http_request *request, struct signing *ret)
{
	const char *host = strstr(request->url, "://"), *path, *query;
	size_t host_bytes;

	*ret = (struct signing){.n = 0};
	host = host ? host + 3 : request->url;
	host_bytes = strcspn(host, "/?");
	path = host + host_bytes;
	query = path + strcspn(path, "?");
	ret->path = (struct part){path, (size_t)(query - path)};
	if (ret->path.bytes == 0)
		ret->path = (struct part){"/", 1};
	query += *query == '?';
	ret->query = (struct part){query, strlen(query)};
	add_header(ret, "host", 4, (struct part){host, host_bytes});
	for (size_t i = 0; i < request->n_headers; i++) {
		const char *header = request->header[i];

		if (strchr(header, ':') && (begins(header, "Range:") || begins(header, "x-amz-") ||
					    begins(header, "Content-Type:"))) {
			const size_t bytes = strcspn(header, ":");

			add_header(ret, header, bytes, trimmed(header + bytes + 1));
		}
	}
}

static void add(struct hash *hash, const char *text)
{
	hash_add(hash, text, strlen(text));
}

static void add_part(struct hash *hash, struct part part)
{
	hash_add(hash, part.at, part.bytes);
}

static int hash_request(const struct http_request *request, const struct signing *signing,
			const char *body, char ret[65])
{
	_cleanup_(hash_freep) struct hash *hash = NULL;
	struct hash_id id;

	if (hash_new(&hash))
		return -ENOMEM;
	add(hash, request->method);
	add(hash, "\n");
	add_part(hash, signing->path);
	add(hash, "\n");
	add_part(hash, signing->query);
	add(hash, "\n");
	for (size_t i = 0; i < signing->n; i++) {
		add(hash, signing->header[i].name);
		add(hash, ":");
		add_part(hash, signing->header[i].value);
		add(hash, "\n");
	}
	for (size_t i = 0; i < signing->n; i++) {
		add(hash, i ? ";" : "\n");
		add(hash, signing->header[i].name);
	}
	add(hash, "\n");
	add(hash, body);
	hash_finish(hash, &id);
	hash_hex(&id, ret);
	return 0;
}

static void key_of(const struct s3_keys *keys, const char *day, const char *region,
		   const char *service, struct s3_sign_key *ret)
{
	char first[S3_KEYS_SECRET + 4], scope[sizeof(ret->scope)];
	struct hash_id id;

	snprintf(scope, sizeof(scope), "%.8s/%.63s/%.16s/aws4_request", day, region, service);
	if (strcmp(scope, ret->scope) == 0)
		return;
	snprintf(first, sizeof(first), "AWS4%s", keys->secret);
	hash_hmac(first, strlen(first), day, 8, &id);
	hash_hmac(&id, sizeof(id), region, strlen(region), &id);
	hash_hmac(&id, sizeof(id), service, strlen(service), &id);
	hash_hmac(&id, sizeof(id), "aws4_request", strlen("aws4_request"), &id);
	memcpy(ret->scope, scope, sizeof(scope));
	memcpy(ret->bytes, &id, sizeof(id));
	explicit_bzero(&id, sizeof(id));
	explicit_bzero(first, sizeof(first));
}

static int add_authorization(struct http_request *request, const struct signing *signing,
			     const struct s3_keys *keys, const struct s3_sign_key *key,
			     const char *signature)
{
	char names[MOST_SIGNED * 41] = "";
	size_t at = 0;

	for (size_t i = 0; i < signing->n; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ";" : "",
				       signing->header[i].name);
	return http_request_header(
	    request,
	    "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
	    keys->id, key->scope, names, signature);
}

int s3_sign(struct http_request *request, const struct s3_keys *keys, const char *region,
	    const char *service, int64_t now, struct s3_sign_key *key)
{
	const bool is_s3 = strcmp(service, "s3") == 0;
	char stamp[S3_TIME_STAMP], body[65] = NOTHING, hashed[65], text[320];
	struct signing signing;
	struct hash_id id;
	int r;

	drop_earlier(request);
	if (request->body_bytes) {
		hash_of(request->body, request->body_bytes, &id);
		hash_hex(&id, body);
	}
	s3_time_stamp(now, stamp);
	r = http_request_header(request, "X-Amz-Date: %s", stamp);
	if (!r && is_s3)
		r = http_request_header(request, "X-Amz-Content-Sha256: %s", body);
	if (!r && *keys->token)
		r = http_request_header(request, "X-Amz-Security-Token: %s", keys->token);
	if (r)
		return r;
	read_request(request, &signing);
	r = hash_request(request, &signing, body, hashed);
	if (r)
		return r;
	key_of(keys, stamp, region, service, key);
	snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, key->scope, hashed);
	hash_hmac(key->bytes, sizeof(key->bytes), text, strlen(text), &id);
	return add_authorization(request, &signing, keys, key, hash_hex(&id, hashed));
}
