/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points as text: .xyz, .pts, .txt, .asc. A line is a point, numbers with blanks, commas or semicolons between them. Lines
 * at the top that begin with neither digit, sign nor point are a title, and a first line of one number, as .pts files have,
 * is the count, which nobody needs.
 *
 * The first point tells how many columns there are. Numbers are what strtod() makes of them in the locale "C".
 */

#include "pipeline/cloud/cloud_file.h"

#include <math.h>
#include <strings.h>

#define CLOUD_LOOKED_AT 256 /* bytes that must be text */
#define CLOUD_NUMBER 64     /* bytes of one */

/* ---- lines ---- */

const uint8_t *cloud_skip_line(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

	return line ? line + 1 : end;
}

bool cloud_line(const uint8_t **at, const uint8_t *end, char ret[CLOUD_LINE])
{
	const uint8_t *next = cloud_skip_line(*at, end);
	size_t size = (size_t)(next - *at);

	if (size == 0 || (*at)[size - 1] != '\n' || size > CLOUD_LINE || memchr(*at, '\0', size))
		return false;
	size -= 1 + (size > 1 && (*at)[size - 2] == '\r');
	memcpy(ret, *at, size);
	ret[size] = '\0';
	*at = next;
	return true;
}

bool cloud_whole(const char *word, uint64_t most, uint64_t *ret)
{
	uint64_t value = 0;

	if (!*word)
		return false;
	for (; *word; word++) {
		if (*word < '0' || *word > '9' || value > (most - (uint64_t)(*word - '0')) / 10)
			return false;
		value = value * 10 + (uint64_t)(*word - '0');
	}
	*ret = value;
	return true;
}

/* ---- numbers ---- */

static bool cloud_is_digit(const uint8_t *at, const uint8_t *end)
{
	return at < end && *at >= '0' && *at <= '9';
}

static bool cloud_is_between(uint8_t byte)
{
	return byte == ' ' || byte == '\t' || byte == ',' || byte == ';' || byte == '\r';
}

/* What is no plain number: of up to CLOUD_NUMBER bytes, all of them. */
static bool cloud_slow_number(const uint8_t *at, size_t size, double *ret)
{
	char text[CLOUD_NUMBER + 1], *end;

	if (size == 0 || size > CLOUD_NUMBER)
		return false;
	memcpy(text, at, size);
	text[size] = '\0';
	if (strpbrk(text, "xXpP(")) /* C's, and nobody's who writes points */
		return false;
	*ret = strtod(text, &end);
	return end == text + size;
}

struct cloud_digits {
	uint64_t value;
	int n, behind; /* in all, and behind the point */
};

static const uint8_t *cloud_digits(const uint8_t *at, const uint8_t *end, struct cloud_digits *ret)
{
	bool is_behind = false;

	for (; cloud_is_digit(at, end) || (at < end && *at == '.' && !is_behind); at++) {
		if (*at == '.') {
			is_behind = true;
			continue;
		}
		ret->value = ret->n < 19 ? ret->value * 10 + (*at - '0') : ret->value;
		ret->behind += is_behind;
		ret->n++;
	}
	return at;
}

/* Exact, and with it what strtod() says: a whole number of 53 bits, divided by a power of ten that a double holds. */
static bool cloud_quick_number(const uint8_t *at, size_t size, double *ret)
{
	static const double tens[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const uint8_t *end = at + size;
	const bool is_negative = size > 0 && *at == '-';
	struct cloud_digits digits = {0, 0, 0};

	if (size > CLOUD_NUMBER) /* whose digits could be more than an int counts */
		return false;
	at = cloud_digits(at + is_negative, end, &digits);
	if (at != end || digits.n == 0 || digits.n > 19 || digits.value >> 53)
		return false;
	*ret = (double)digits.value / tens[digits.behind];
	*ret = is_negative ? -*ret : *ret;
	return true;
}

bool cloud_numbers(const uint8_t **at, const uint8_t *end, unsigned n, double *ret)
{
	const uint8_t *from = *at;

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *word;

		while (from < end && (cloud_is_between(*from) || (i == 0 && *from == '\n')))
			from++;
		for (word = from; from < end && !cloud_is_between(*from) && *from != '\n';)
			from++;
		if (!cloud_quick_number(word, (size_t)(from - word), &ret[i]) &&
		    !cloud_slow_number(word, (size_t)(from - word), &ret[i]))
			return false;
	}
	*at = cloud_skip_line(from, end);
	return true;
}

/* ---- files without a head ---- */

static bool cloud_text_probe(const struct cloud_source *source)
{
	const size_t n = BASE_MIN(source->size, (size_t)CLOUD_LOOKED_AT);

	for (size_t i = 0; i < n; i++)
		if (source->data[i] != '\t' && source->data[i] != '\n' && source->data[i] != '\r' &&
		    (source->data[i] < ' ' || source->data[i] > '~'))
			return false;
	return n > 0;
}

/* How many words of the line are there, of blanks none? */
static unsigned cloud_words(const uint8_t *at, const uint8_t *end)
{
	unsigned n = 0;

	for (bool was = false; at < end && *at != '\n'; at++) {
		n += !was && !cloud_is_between(*at);
		was = !cloud_is_between(*at);
	}
	return n;
}

static const uint8_t *cloud_first_line(const uint8_t *at, const uint8_t *end)
{
	while (at < end && !cloud_is_digit(at, end) && !strchr("+-.", *at))
		at = *at == '\n' || cloud_is_between(*at) ? at + 1 : cloud_skip_line(at, end);
	return at;
}

static int cloud_text_open(const struct cloud_source *source, struct cloud_file *ret,
			   struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *at = cloud_first_line(source->data, end);

	if (cloud_words(at, end) == 1)
		at = cloud_skip_line(at, end);
	ret->rows = at;
	ret->end = end;
	for (; at < end; at = cloud_skip_line(at, end)) {
		const unsigned words = cloud_words(at, end);

		ret->points += words > 0;
		ret->columns = ret->columns ? ret->columns : words;
	}
	if (ret->columns > CLOUD_MOST_COLUMNS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "text: %u columns, more than 64", ret->columns);
	return 0;
}

const struct cloud_format cloud_text = {"text", cloud_text_probe, cloud_text_open, NULL};
