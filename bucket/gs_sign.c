/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/gs_sign.h"

#include <openssl/evp.h>

#include "bucket/base64.h"

static void gs_sign_keyp(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static void gs_sign_contextp(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
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
	*ret = d2i_AutoPrivateKey(NULL, &at, (long)size);
	explicit_bzero(der, size);
	free(der);
	return *ret && EVP_PKEY_is_a(*ret, "RSA") ? 0 : -EINVAL;
}

int gs_sign_rs256(const char *pem, const char *text, char **ret)
{
	_cleanup_(gs_sign_contextp) EVP_MD_CTX *context = EVP_MD_CTX_new();
	_cleanup_(gs_sign_keyp) EVP_PKEY *key = NULL;
	_cleanup_free_ unsigned char *signature = NULL;
	const unsigned char *from = (const unsigned char *)text;
	size_t size = 0;
	int r = context ? gs_sign_key(pem, &key) : -ENOMEM;

	if (r < 0)
		return r;
	if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
	    EVP_DigestSign(context, NULL, &size, from, strlen(text)) != 1)
		return -EINVAL;
	signature = malloc(size);
	if (!signature)
		return -ENOMEM;
	if (EVP_DigestSign(context, signature, &size, from, strlen(text)) != 1)
		return -EINVAL;
	*ret = base64_for_url(signature, size);
	return *ret ? 0 : -ENOMEM;
}
