/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of words and numbers, in one pass over text and samples, which have the same order. Of tar shards an entry may have
 * no sample of ours, which has a picture; of TFRecords each has one, and they fill the file.
 */

#include "storage/source/scan/dali.h"

#include "base/base.h"

/* wds2idx places a file too early by the extended headers of the one behind it */
#define DALI_SLACK 8192

struct line {
	const char *at, *end, *next; /* next: behind its line end */
	uint64_t number;
};

/* false: there is none. */
static bool line_next(struct line *line, const char *end)
{
	if (line->next == end)
		return false;
	line->at = line->next;
	line->end = memchr(line->at, '\n', (size_t)(end - line->at));
	if (!line->end)
		line->end = end;
	line->next = line->end < end ? line->end + 1 : end;
	if (line->end > line->at && line->end[-1] == '\r')
		line->end--;
	line->number++;
	return true;
}

/* The next word of the line, *bytes of it; NULL: there is none. */
static const char *word_next(struct line *line, size_t *bytes)
{
	const char *word;

	while (line->at < line->end && *line->at == ' ')
		line->at++;
	word = line->at;
	while (line->at < line->end && *line->at != ' ')
		line->at++;
	*bytes = (size_t)(line->at - word);
	return *bytes ? word : NULL;
}

static bool number_next(struct line *line, uint64_t *ret)
{
	char text[24];
	const char *at = text;
	size_t bytes;
	const char *word = word_next(line, &bytes);

	if (!word || bytes >= sizeof(text))
		return false;
	memcpy(text, word, bytes);
	text[bytes] = '\0';
	return base_parse_number(&at, INT64_MAX, ret) && !*at;
}

const char *dali_check_records(const char *text, size_t size, const struct dali_shard *shard,
			       uint64_t *ret_line)
{
	struct line line = {.next = text};
	uint64_t at = 0, offset, bytes;
	size_t n = 0;

	for (; line_next(&line, text + size); n++, at += bytes) {
		struct dali_found found;

		*ret_line = line.number;
		if (!number_next(&line, &offset) || !number_next(&line, &bytes) ||
		    line.at < line.end)
			return "is no \"OFFSET SIZE\"";
		if (offset != at || bytes > shard->bytes - at)
			return "is not where a record is";
		found = n < shard->n ? shard->found(shard->arg, n) : (struct dali_found){0, 0};
		if (n >= shard->n || found.at < at || found.at + found.bytes > at + bytes)
			return "is not where a record is";
	}
	*ret_line = 0;
	return n == shard->n && at == shard->bytes ? NULL : "has not all records";
}

/* Is a file of the line, whose words behind it are skipped, of that sample? *why: the line is none. */
static bool line_is_of(struct line *line, unsigned words, const struct dali_shard *shard,
		       const struct dali_found *found, const char **why)
{
	bool is_of = false;
	size_t length;
	unsigned n = 0;

	for (; word_next(line, &length); n++) {
		uint64_t offset, bytes;
		bool is_good = number_next(line, &offset) && number_next(line, &bytes);

		if (is_good && words == 4)
			is_good = word_next(line, &length) != NULL;
		if (!is_good)
			*why = "is no line of files";
		else if (offset > shard->bytes || bytes > shard->bytes - offset)
			*why = "has a file beyond the shard's end";
		if (*why)
			return false;
		is_of = is_of || (offset + DALI_SLACK >= found->at &&
				  offset + bytes <= found->at + found->bytes);
	}
	if (n == 0)
		*why = "is no line of files";
	return is_of;
}

/* Of the first line; 0: it is none. */
static unsigned words_of(struct line *line, uint64_t *ret_samples)
{
	size_t length;
	const char *word = word_next(line, &length);
	unsigned words = 0;

	if (word && length == 4 && memcmp(word, "v1.2", 4) == 0)
		words = 4;
	else if (word && length == 4 && memcmp(word, "v1.1", 4) == 0)
		words = 3;
	return number_next(line, ret_samples) && line->at == line->end ? words : 0;
}

const char *dali_check_files(const char *text, size_t size, const struct dali_shard *shard,
			     uint64_t *ret_line)
{
	struct line line = {.next = text};
	const char *why = NULL;
	uint64_t samples, n = 0;
	unsigned words;
	size_t i = 0;

	*ret_line = 1;
	words = line_next(&line, text + size) ? words_of(&line, &samples) : 0;
	if (!words)
		return "is no \"v1.2 SAMPLES\"";
	for (; line_next(&line, text + size); n++) {
		const struct dali_found none = {UINT64_MAX >> 1, 0};
		const struct dali_found found = i < shard->n ? shard->found(shard->arg, i) : none;

		*ret_line = line.number;
		i += line_is_of(&line, words, shard, &found, &why);
		if (why)
			return why;
	}
	*ret_line = 0;
	return n == samples && i == shard->n ? NULL : "has not all samples";
}
