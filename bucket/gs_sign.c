/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libcrypto, which is found when it is needed, after libcurl: where that brings a libcrypto of its own along, it is this one. Two
 * versions of it in one program do not go together, and a wheel's is older than that of many machines.
 */

#include "bucket/gs_sign.h"

#include <openssl/evp.h>

#include "base/library.h"
#include "base/base64.h"

#define CRYPTO_EACH(F)                                \
	F(crypto, read_key, d2i_AutoPrivateKey)       \
	F(crypto, PKEY_is_a, EVP_PKEY_is_a)           \
	F(crypto, PKEY_free, EVP_PKEY_free)           \
	F(crypto, MD_CTX_new, EVP_MD_CTX_new)         \
	F(crypto, MD_CTX_free, EVP_MD_CTX_free)       \
	F(crypto, sha256, EVP_sha256)                 \
	F(crypto, DigestSignInit, EVP_DigestSignInit) \
	F(crypto, DigestSign, EVP_DigestSign)

static struct {
	CRYPTO_EACH(LIBRARY_MEMBER)
} crypto;

static const struct library_name names[] = {CRYPTO_EACH(LIBRARY_NAME)};

static void gs_sign_keyp(EVP_PKEY **key)
{
	crypto.PKEY_free(*key);
}

static void gs_sign_contextp(EVP_MD_CTX **context)
{
	crypto.MD_CTX_free(*context);
}

/* Of the lines between "-----BEGIN ..." and "-----END ...". 0, -EINVAL, -ENOMEM. */
static int gs_sign_key(const char *pem, EVP_PKEY **ret)
{
	const char *begin = strstr(pem, "-----BEGIN "),
		   *end = begin ? strstr(begin, "-----END ") : NULL;
	uint8_t *der = NULL;
	const unsigned char *at;
	size_t size = 0;
	int r;

	begin = end ? strchr(begin, '\n') : NULL;
	if (!begin || begin > end || end - begin > INT32_MAX)
		return -EINVAL;
	r = base64_read(begin, (size_t)(end - begin), &der, &size);
	if (r < 0)
		return r;
	at = der;
	*ret = crypto.read_key(NULL, &at, (long)size);
	explicit_bzero(der, size);
	free(der);
	return *ret && crypto.PKEY_is_a(*ret, "RSA") ? 0 : -EINVAL;
}

static int gs_sign_text(const char *pem, const char *text, char **ret)
{
	_cleanup_(gs_sign_contextp) EVP_MD_CTX *context = crypto.MD_CTX_new();
	_cleanup_(gs_sign_keyp) EVP_PKEY *key = NULL;
	_cleanup_free_ unsigned char *signature = NULL;
	const unsigned char *from = (const unsigned char *)text;
	size_t size = 0;
	int r = context ? gs_sign_key(pem, &key) : -ENOMEM;

	if (r < 0)
		return r;
	if (crypto.DigestSignInit(context, NULL, crypto.sha256(), NULL, key) != 1 ||
	    crypto.DigestSign(context, NULL, &size, from, strlen(text)) != 1)
		return -EINVAL;
	signature = malloc(size);
	if (!signature)
		return -ENOMEM;
	if (crypto.DigestSign(context, signature, &size, from, strlen(text)) != 1)
		return -EINVAL;
	*ret = base64_for_url(signature, size);
	return *ret ? 0 : -ENOMEM;
}

int gs_sign_rs256(const char *pem, const char *text, char **ret)
{
	if (library_load("libcrypto.so.3", names, BASE_ARRAY_LEN(names)))
		return -ENOENT;
	return gs_sign_text(pem, text, ret);
}
