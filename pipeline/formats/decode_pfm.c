/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PFM, floats of one channel ("Pf") or three ("PF"): width, height and a scale as text, a blank behind each, then float32 from the lowest
 * row on. A scale below 0 says that they are little-endian; its size is not looked at, nor is it by torchvision. It is no picture of 8 bits, so
 * the op decode refuses it by name.
 */

#include "pipeline/formats/decode_format.h"
#include "pipeline/spec/op.h"

#define PFM_MOST_WORD 24 /* characters of a number in the head */
#define PFM_PIECE 256    /* pixels whose bytes are swapped at once */

struct decode_pfm {
	const uint8_t *data; /* borrowed; the numbers */
	struct decode_numbers_head head;
	bool is_big;
};

struct pfm_text { /* what is left of the head */
	const uint8_t *data;
	size_t size;
};

static bool decode_pfm_is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool decode_pfm_probe(const uint8_t *data, size_t size)
{
	return size >= 3 && data[0] == 'P' && (data[1] == 'F' || data[1] == 'f') &&
	       decode_pfm_is_blank(data[2]);
}

static const char *decode_pfm_refusal(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return "PFM: floats and no picture; the op bands takes it";
}

/* The next characters up to a blank, and one more, which is behind them: how many characters, 0: there is no such word. */
static size_t decode_pfm_word(struct pfm_text *text, const uint8_t **ret)
{
	size_t n = 0;

	while (text->size > 0 && decode_pfm_is_blank(*text->data))
		text->data++, text->size--;
	*ret = text->data;
	while (n < text->size && n <= PFM_MOST_WORD && !decode_pfm_is_blank(text->data[n]))
		n++;
	if (n == text->size || n > PFM_MOST_WORD)
		return 0;
	text->data += n + 1;
	text->size -= n + 1;
	return n;
}

static bool decode_pfm_side(struct pfm_text *text, uint64_t *ret)
{
	const uint8_t *word;
	const size_t n = decode_pfm_word(text, &word);
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++) {
		if (word[i] < '0' || word[i] > '9' || value > OP_MAX_PIXELS)
			return false;
		value = value * 10 + (word[i] - '0');
	}
	*ret = value;
	return n > 0;
}

static bool decode_pfm_scale(struct pfm_text *text, bool *ret_is_big)
{
	const uint8_t *word;
	const size_t n = decode_pfm_word(text, &word);

	for (size_t i = 0; i < n; i++)
		if (!strchr("+-.0123456789eE", word[i]) || word[i] == '\0')
			return false;
	*ret_is_big = n > 0 && word[0] != '-';
	return n > 0;
}

static int decode_pfm_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	struct decode_pfm *pfm = state;
	struct pfm_text text = {data + 2, size - 2};
	const unsigned channels = data[1] == 'F' ? 3 : 1;
	uint64_t width, height;
	int r;

	if (!decode_pfm_side(&text, &width) || !decode_pfm_side(&text, &height) ||
	    !decode_pfm_scale(&text, &pfm->is_big))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "PFM: no width, height and scale in the head");
	r = decode_check_size(height, width, ret_error);
	if (r != 0)
		return r;
	if (text.size < sizeof(float) * channels * width * height)
		return decode_fail_truncated(ret_error);
	pfm->data = text.data;
	pfm->head = (struct decode_numbers_head){(uint32_t)height, (uint32_t)width, channels, 1};
	*ret = pfm->head;
	return 0;
}

/* As many numbers, which are at any address, in the other order of bytes. */
static void decode_pfm_swap(const uint8_t *from, size_t numbers, uint8_t *to)
{
	for (size_t i = 0; i < numbers * sizeof(float); i += sizeof(float)) {
		const uint32_t word = decode_be32(from + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

static int decode_pfm_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	const struct decode_pfm *pfm = state;
	const struct decode_numbers_head *head = &pfm->head;
	const size_t pixel = head->channels * sizeof(float);
	uint8_t piece[PFM_PIECE * 3 * sizeof(float)];

	(void)ret_error;
	for (uint32_t y = 0; y < head->height; y++) {
		const uint8_t *row = pfm->data + (head->height - 1 - y) * (head->width * pixel);

		for (uint32_t x = 0; x < head->width; x += PFM_PIECE) {
			const uint32_t n = BASE_MIN(head->width - x, PFM_PIECE);

			if (pfm->is_big)
				decode_pfm_swap(row + x * pixel, n * head->channels, piece);
			decode_numbers_put(to, PIPELINE_F32, pfm->is_big ? piece : row + x * pixel,
					   head->channels, 0, head->channels, y, x, n);
		}
	}
	return 0;
}

const struct decode_format decode_pfm = {
    .name = "PFM",
    .state_size = sizeof(struct decode_pfm),
    .probe = decode_pfm_probe,
    .refusal = decode_pfm_refusal,
    .numbers_open = decode_pfm_numbers_open,
    .numbers = decode_pfm_numbers,
};
