/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/gs_sign.h"

#include <openssl/evp.h>

static void gs_sign_keyp(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static void gs_sign_contextp(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
}

char *gs_sign_base64url(const void *bytes, size_t size)
{
	char *ret = size < INT32_MAX / 2 ? malloc((size + 2) / 3 * 4 + 1) : NULL, *at = ret;

	if (!ret)
		return NULL;
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)size);
	for (; *at && *at != '='; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
	*at = '\0';
	return ret;
}

/* The bytes between the lines of "-----BEGIN ..." and "-----END ...", of a text that has no more than INT_MAX. */
static EVP_PKEY *gs_sign_key(const char *pem, unsigned char *room)
{
	const char *begin = strstr(pem, "-----BEGIN "),
		   *end = begin ? strstr(begin, "-----END ") : NULL;
	const unsigned char *der = room;
	unsigned char *to = room;
	unsigned padding = 0;
	int size;

	begin = end ? strchr(begin, '\n') : NULL;
	for (; begin && begin < end; begin++)
		if (*begin > ' ') {
			*to++ = (unsigned char)*begin;
			padding += *begin == '=';
		}
	size = EVP_DecodeBlock(room, room, (int)(to - room));
	if (size <= 0 || padding > 2)
		return NULL;
	return d2i_AutoPrivateKey(NULL, &der, size - (int)padding);
}

int gs_sign_rs256(const char *pem, const char *text, char **ret)
{
	const size_t room_size = strlen(pem) + 4;
	_cleanup_free_ unsigned char *room = room_size < INT32_MAX ? malloc(room_size) : NULL;
	_cleanup_free_ unsigned char *signature = NULL;
	_cleanup_(gs_sign_contextp) EVP_MD_CTX *context = EVP_MD_CTX_new();
	_cleanup_(gs_sign_keyp) EVP_PKEY *key = NULL;
	size_t size = 0;

	if (!room || !context)
		return -ENOMEM;
	key = gs_sign_key(pem, room);
	explicit_bzero(room, room_size);
	if (!key || !EVP_PKEY_is_a(key, "RSA") ||
	    EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
	    EVP_DigestSign(context, NULL, &size, (const unsigned char *)text, strlen(text)) != 1)
		return -EINVAL;
	signature = malloc(size);
	if (!signature)
		return -ENOMEM;
	if (EVP_DigestSign(context, signature, &size, (const unsigned char *)text, strlen(text)) !=
	    1)
		return -EINVAL;
	*ret = gs_sign_base64url(signature, size);
	return *ret ? 0 : -ENOMEM;
}
