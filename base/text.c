/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text for people: sizes in and out, names that may hold any byte, diagnoses.
 *
 * A file's name or a peer's message must never move the cursor, end a line of the log or leave a
 * quoted string. text_escape() is the one place that sees to it: it walks the input in units (a
 * whole UTF-8 character, or a byte that becomes \xNN) and cuts between units only. C1 controls
 * (U+0080 .. U+009F) act on terminals like C0, so they are escaped, too.
 */

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

size_t base_utf8(const unsigned char *text)
{
	static const struct {
		unsigned char mask, first;
	} form[] = {
	    {0xe0, 0xc0},
	    {0xf0, 0xe0},
	    {0xf8, 0xf0},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(form); i++) {
		if ((text[0] & form[i].mask) != form[i].first)
			continue;
		for (size_t k = 1; k <= i + 1; k++)
			if ((text[k] & 0xc0) != 0x80)
				return 0;
		if (text[0] < 0xc2 || text[0] > 0xf4) /* long forms of ASCII; past U+10FFFF */
			return 0;
		if ((text[0] == 0xc2 || text[0] == 0xe0) && text[1] < 0xa0) /* C1; long form */
			return 0;
		if (text[0] == 0xf0 && text[1] < 0x90) /* long form */
			return 0;
		if (text[0] == 0xf4 && text[1] > 0x8f) /* past U+10FFFF */
			return 0;
		if (text[0] == 0xed && text[1] > 0x9f) /* halves of UTF-16 pairs */
			return 0;
		return i + 2;
	}
	return 0;
}

/* Writes the unit at *text to unit (<= 4 bytes), moves *text past it and returns its length. */
static size_t text_unit(const unsigned char **text, const char *special, char unit[5])
{
	unsigned char c = **text;
	size_t length = c < 0x80 ? 1 : base_utf8(*text);

	if (length == 0 || c < 0x20 || c == 0x7f || strchr(special, c)) {
		snprintf(unit, 5, "\\x%02x", c);
		*text += 1;
		return 4;
	}
	memcpy(unit, *text, length);
	*text += length;
	return length;
}

static void text_escape(const char *from, const char *special, char *ret, size_t size)
{
	const unsigned char *text = (const unsigned char *)from;
	size_t used = 0, cut = 0; /* cut: where "..." still fits */
	char unit[5];

	while (*text) {
		size_t length = text_unit(&text, special, unit);

		if (used + length >= size) {
			size_t dots = BASE_MIN((size_t)3, size - 1 - cut);

			memcpy(ret + cut, "...", dots);
			used = cut + dots;
			break;
		}
		memcpy(ret + used, unit, length);
		used += length;
		if (used + 3 < size)
			cut = used;
	}
	ret[used] = '\0';
}

char *base_quote(const char *name, char *ret, size_t size)
{
	if (size > 0)
		text_escape(name, "\"\\", ret, size);
	return ret;
}

void diag_set(struct diag *diag, const char *fmt, ...)
{
	char raw[sizeof(diag->text) + 4]; /* longer, so that a cut is seen and marked */
	int saved = errno;
	va_list args;

	if (!diag)
		return;
	va_start(args, fmt);
	if (vsnprintf(raw, sizeof(raw), fmt, args) < 0)
		raw[0] = '\0';
	va_end(args);
	text_escape(raw, "", diag->text, sizeof(diag->text));
	errno = saved;
}

static const char text_units[] = "BKMGTPE";

char *base_format(const char *fmt, ...)
{
	char *text;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	return n < 0 ? NULL : text;
}

char *base_absolute(const char *path)
{
	_cleanup_free_ char *here = *path == '/' ? NULL : getcwd(NULL, 0);

	if (*path == '/')
		return strdup(path);
	return here ? base_format("%s/%s", here, path) : NULL;
}

const char *base_variable_of(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return NULL;
}

char *base_format_bytes(uint64_t bytes, char *ret, size_t size)
{
	unsigned unit = 0;
	uint64_t whole, tenths, scale;

	while (unit < 6 && bytes >> (10 * (unit + 1)) > 0)
		unit++;
	scale = UINT64_C(1) << (10 * unit);
	whole = bytes / scale;
	tenths = (bytes % scale * 10 + scale / 2) / scale;
	if (unit > 0 && tenths == 10) {
		whole++;
		tenths = 0;
	}
	if (whole == 1024 && unit < 6) {
		whole = 1;
		unit++;
	}
	if (unit == 0)
		snprintf(ret, size, "%llu B", (unsigned long long)whole);
	else if (tenths == 0)
		snprintf(ret, size, "%llu %ciB", (unsigned long long)whole, text_units[unit]);
	else
		snprintf(ret, size, "%llu.%llu %ciB", (unsigned long long)whole,
			 (unsigned long long)tenths, text_units[unit]);
	return ret;
}

/* The shift of the unit that text is ("", "B", "k", "M", "GiB", ...); -1: no unit. */
static int text_parse_unit(const char *text)
{
	char letter = *text;
	const char *found;

	if (letter == '\0' || strcmp(text, "B") == 0)
		return 0;
	if (letter >= 'a' && letter <= 'z')
		letter = (char)(letter - 'a' + 'A');
	found = strchr(text_units + 1, letter);
	if (!found || (text[1] != '\0' && strcmp(text + 1, "iB") != 0))
		return -1;
	return 10 * (int)(found - text_units);
}

/* Reads the digits at *text into *ret and returns how many there were, or -ERANGE. */
static int text_digits(const char **text, uint64_t *ret)
{
	int digits = 0;

	for (*ret = 0; **text >= '0' && **text <= '9'; (*text)++, digits++) {
		unsigned digit = (unsigned)(**text - '0');

		if (*ret > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		*ret = *ret * 10 + digit;
	}
	return digits;
}

bool base_parse_number(const char **text, uint64_t most, uint64_t *ret)
{
	const char *end = *text;
	uint64_t number;

	if (text_digits(&end, &number) <= 0 || number > most)
		return false;
	*text = end;
	*ret = number;
	return true;
}

int base_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	uint64_t whole, fraction = 0, scale = 1;
	unsigned __int128 bytes;
	int digits, shift;

	digits = text_digits(&text, &whole);
	if (digits <= 0)
		return digits < 0 ? digits : -EINVAL;
	if (*text == '.') {
		text++;
		digits = text_digits(&text, &fraction);
		if (digits <= 0 || digits > 18)
			return -EINVAL;
		while (digits-- > 0)
			scale *= 10;
	}
	if (*text == ' ')
		text++;
	shift = text_parse_unit(text);
	if (shift < 0 || (shift == 0 && scale > 1))
		return -EINVAL;
	bytes =
	    ((unsigned __int128)whole << shift) + ((unsigned __int128)fraction << shift) / scale;
	if (bytes > UINT64_MAX)
		return -ERANGE;
	*ret_bytes = (uint64_t)bytes;
	return 0;
}
