/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base64.h"

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_of(const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	char *ret = malloc((size + 2) / 3 * 4 + 1), *to = ret;

	if (!ret)
		return NULL;
	for (size_t at = 0; at < size; at += 3) {
		const size_t n = BASE_MIN(size - at, (size_t)3);
		const uint32_t word = (uint32_t)from[at] << 16 |
				      (n > 1 ? (uint32_t)from[at + 1] << 8 : 0) |
				      (n > 2 ? from[at + 2] : 0);

		for (size_t i = 0; i < 4; i++)
			*to++ = i <= n ? base64_letters[word >> (18 - 6 * i) & 63] : '=';
	}
	*to = '\0';
	return ret;
}

char *base64_for_url(const void *bytes, size_t size)
{
	char *ret = base64_of(bytes, size), *at = ret;

	if (!ret)
		return NULL;
	for (; *at && *at != '='; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
	*at = '\0';
	return ret;
}

int base64_read(const char *text, size_t size, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *bytes = malloc(size + 1);
	size_t n = 0, letters = 0, padding = 0;
	uint32_t word = 0;

	if (!bytes)
		return -ENOMEM;
	for (; size > 0; text++, size--) {
		const char *letter = *text ? strchr(base64_letters, *text) : NULL;

		if (*text == ' ' || (*text >= '\t' && *text <= '\r'))
			continue;
		padding += *text == '=';
		if (*text == '=')
			continue;
		if (!letter || padding > 0)
			return -EINVAL;
		word = word << 6 | (uint32_t)(letter - base64_letters);
		if (letters++ % 4 > 0)
			bytes[n++] = (uint8_t)(word >> (letters % 4 ? 8 - letters % 4 * 2 : 0));
	}
	if (letters % 4 == 1 || padding > 2)
		return -EINVAL;
	*ret = base_take_ptr(bytes);
	*ret_size = n;
	return 0;
}
