/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A number is one of decimal digits without a zero in front. What looks like a number and is no class (3.0, which pandas
 * writes where one of a column is missing) is refused: taken as words, such labels would have another order.
 */

#include "storage/source/scan/scan_manifest.h"

#include <strings.h>

#include "base/base.h"

bool manifest_is_text(const char *text)
{
	for (size_t step; *text; text += step) {
		step = (unsigned char)*text < 0x80 ? 1 : base_utf8((const unsigned char *)text);
		if (!step)
			return false;
	}
	return true;
}

static bool is_whole(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Is it a number that is no class: 3.0, -2, 1e5, nan, a 7 with blanks around it? 2024-01-05 and 0x7 are words. */
static bool is_like_number(const char *text)
{
	const char *digits = text + (*text == '-' || *text == '+');
	char *end;

	if (is_whole(text) || text[strspn(text, " 0123456789.eE+-")] != '\0')
		return !strcasecmp(digits, "nan");
	strtod(text, &end);
	return end > text && end[strspn(end, " ")] == '\0';
}

const char *manifest_label(const char *text, uint32_t *ret_label, const char **ret_word)
{
	const char *end = text;
	uint64_t number;

	*ret_label = SCAN_NO_LABEL;
	*ret_word = NULL;
	if (!*text || strcmp(text, "-1") == 0)
		return NULL;
	if (!manifest_is_text(text))
		return "is no UTF-8: save the file in that encoding";
	if (is_like_number(text))
		return MANIFEST_NO_CLASS;
	if (!is_whole(text) || (*text == '0' && text[1])) {
		*ret_word = text;
		return NULL;
	}
	if (!base_parse_number(&end, SCAN_MOST_LABEL, &number) || *end)
		return "is beyond 16777215, the last class";
	*ret_label = (uint32_t)number;
	return NULL;
}
