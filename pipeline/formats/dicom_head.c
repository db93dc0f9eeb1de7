/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DICOM's elements, from the first one to the pixels, in one pass without recursion: sequences of a known length are stepped over, those
 * without are walked through, and how deep that is is a count. What is in them says nothing about the pixels here.
 *
 * Explicit and implicit VR, little and big endian. A sequence of unknown VR (UN) without a length is implicit inside, as the standard says.
 */

#include "pipeline/formats/dicom_head.h"

#include <math.h>
#include <stdlib.h>
#include "base/little.h"
#include "pipeline/formats/decode_format.h"

#define DICOM_PREAMBLE 128
#define DICOM_NO_LENGTH UINT32_MAX

enum dicom_tag {
	DICOM_SYNTAX = 0x00020010,
	DICOM_SAMPLES = 0x00280002,
	DICOM_COLOURS = 0x00280004,
	DICOM_PLANAR = 0x00280006,
	DICOM_FRAMES = 0x00280008,
	DICOM_ROWS = 0x00280010,
	DICOM_COLUMNS = 0x00280011,
	DICOM_ALLOCATED = 0x00280100,
	DICOM_STORED = 0x00280101,
	DICOM_HIGH = 0x00280102,
	DICOM_SIGNED = 0x00280103,
	DICOM_INTERCEPT = 0x00281052,
	DICOM_SLOPE = 0x00281053,
	DICOM_TABLE = 0x00283000,
	DICOM_FLOATS = 0x7fe00008,
	DICOM_DOUBLES = 0x7fe00009,
	DICOM_PIXELS = 0x7fe00010,
	DICOM_ITEM = 0xfffee000,
	DICOM_ITEM_END = 0xfffee00d,
	DICOM_SEQUENCE_END = 0xfffee0dd,
};

struct dicom_walk {
	const uint8_t *data;
	size_t size, at;
	bool is_big, is_implicit;
	unsigned depth;   /* sequences and items without a length that it is in */
	unsigned unknown; /* the depth from which on all is implicit; 0: none */
};

struct dicom_element {
	uint32_t tag, length;
	bool is_words; /* its VR is OW */
	const uint8_t *value;
};

static int dicom_fail(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "DICOM: %.39s", why);
}

static int dicom_refuse(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "DICOM: %.39s", why);
}

/* ---- elements ---- */

static uint32_t dicom_16(const struct dicom_walk *walk, const uint8_t *at)
{
	return walk->is_big ? decode_be16(at) : little_16(at);
}

static uint32_t dicom_32(const struct dicom_walk *walk, const uint8_t *at)
{
	return walk->is_big ? decode_be32(at) : little_32(at);
}

static bool dicom_is_long(const uint8_t *vr)
{
	static const char *const names = "OB OD OF OL OV OW SQ SV UC UN UR UT UV";

	for (const char *at = names; *at; at += 3) {
		if (memcmp(at, vr, 2) == 0)
			return true;
		if (!at[2])
			break;
	}
	return false;
}

/* The element's head; walk->at is behind it. false: damaged, or cut off. */
static bool dicom_read(struct dicom_walk *walk, struct dicom_element *ret)
{
	const uint8_t *at = walk->data + walk->at;
	const size_t left = walk->size - walk->at;
	const bool is_implicit = walk->is_implicit || walk->unknown > 0;
	size_t head = 8;

	if (left < head)
		return false;
	*ret = (struct dicom_element){.tag = dicom_16(walk, at) << 16 | dicom_16(walk, at + 2)};
	if (is_implicit || ret->tag >> 16 == 0xfffe) {
		ret->length = dicom_32(walk, at + 4);
	} else if (dicom_is_long(at + 4)) {
		head = 12;
		if (left < head)
			return false;
		ret->length = dicom_32(walk, at + 8);
		ret->is_words = memcmp(at + 4, "OW", 2) == 0;
		if (memcmp(at + 4, "UN", 2) == 0 && ret->length == DICOM_NO_LENGTH)
			walk->unknown = walk->depth + 1;
	} else {
		if (at[4] < 'A' || at[4] > 'Z' || at[5] < 'A' || at[5] > 'Z')
			return false;
		ret->length = dicom_16(walk, at + 6);
	}
	walk->at += head;
	ret->value = at + head;
	return true;
}

/* The next element that belongs to no sequence, and has its value; walk->at is behind it, but for pixels. false: as above. */
static bool dicom_next(struct dicom_walk *walk, struct dicom_element *ret)
{
	while (dicom_read(walk, ret)) {
		const bool is_open = ret->length == DICOM_NO_LENGTH;

		if (ret->tag == DICOM_PIXELS && walk->depth == 0)
			return is_open || ret->length <= walk->size - walk->at;
		if (ret->tag == DICOM_ITEM_END || ret->tag == DICOM_SEQUENCE_END) {
			walk->depth -= walk->depth > 0;
			if (walk->depth < walk->unknown)
				walk->unknown = 0;
			continue;
		}
		if (is_open) {
			walk->depth++;
		} else {
			if (ret->length > walk->size - walk->at)
				return false;
			walk->at += ret->length;
		}
		if (walk->depth == is_open)
			return true;
	}
	return false;
}

/* ---- values ---- */

static bool dicom_is_padding(char c)
{
	return c == ' ' || c == '\0';
}

static void dicom_text(const struct dicom_element *element, char *to, size_t room)
{
	const char *from = (const char *)element->value;
	size_t length = element->length == DICOM_NO_LENGTH ? 0 : element->length;

	while (length > 0 && dicom_is_padding(*from)) {
		from++;
		length--;
	}
	while (length > 0 && dicom_is_padding(from[length - 1]))
		length--;
	length = BASE_MIN(length, room - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* The first number of a text. An empty one changes nothing. */
static bool dicom_number(const struct dicom_element *element, double *ret)
{
	char text[64], *end;
	double number;

	dicom_text(element, text, sizeof(text));
	number = strtod(text, &end);
	if (!text[0])
		return true;
	if (end == text || (*end && *end != '\\' && *end != ' ') || !isfinite(number))
		return false;
	*ret = number;
	return true;
}

/* ---- the meta information ---- */

bool dicom_head_probe(const uint8_t *data, size_t size)
{
	return size >= DICOM_PREAMBLE + 4 && memcmp(data + DICOM_PREAMBLE, "DICM", 4) == 0;
}

#define DICOM_UID "1.2.840.10008.1.2"

static const struct dicom_syntax {
	const char *uid; /* behind DICOM_UID */
	bool is_big, is_implicit, is_deflated;
	enum dicom_coding coding;
	const char *refused; /* its name, if it is not decoded */
} dicom_syntaxes[] = {
    {.uid = "", .is_implicit = true},           {.uid = ".1"},
    {.uid = ".1.99", .is_deflated = true},      {.uid = ".2", .is_big = true},
    {.uid = ".5", .coding = DICOM_RLE},         {.uid = ".4.50", .coding = DICOM_JPEG},
    {.uid = ".4.51", .coding = DICOM_JPEG},     {.uid = ".4.57", .coding = DICOM_LOSSLESS},
    {.uid = ".4.70", .coding = DICOM_LOSSLESS}, {.uid = ".4.80", .refused = "JPEG-LS"},
    {.uid = ".4.81", .refused = "JPEG-LS"},
#if HAS_JP2
    {.uid = ".4.90", .coding = DICOM_JP2},      {.uid = ".4.91", .coding = DICOM_JP2},
#else
    {.uid = ".4.90", .refused = "JPEG 2000"},   {.uid = ".4.91", .refused = "JPEG 2000"},
#endif
    {.uid = ".4.92", .refused = "JPEG 2000-2"}, {.uid = ".4.93", .refused = "JPEG 2000-2"},
    {.uid = ".4.110", .refused = "JPEG XL"},    {.uid = ".4.111", .refused = "JPEG XL"},
    {.uid = ".4.112", .refused = "JPEG XL"},    {.uid = ".4.201", .refused = "HTJ2K"},
    {.uid = ".4.202", .refused = "HTJ2K"},      {.uid = ".4.203", .refused = "HTJ2K"},
};

static int dicom_syntax(const char *uid, struct dicom_head *head, struct pipeline_error *ret_error)
{
	const size_t length = strlen(uid), prefix = sizeof(DICOM_UID) - 1;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(dicom_syntaxes); i++) {
		const struct dicom_syntax *syntax = &dicom_syntaxes[i];

		if (strncmp(uid, DICOM_UID, prefix) != 0 || strcmp(uid + prefix, syntax->uid) != 0)
			continue;
		if (syntax->refused)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "DICOM: %.12s: convert by gdcmconv --raw",
					   syntax->refused);
		head->is_big = syntax->is_big;
		head->is_implicit = syntax->is_implicit;
		head->is_deflated = syntax->is_deflated;
		head->coding = syntax->coding;
		return 0;
	}
	if (length == 0)
		return dicom_fail(ret_error, "it names no transfer syntax");
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "DICOM: transfer syntax ...%.12s",
			   uid + (length > 12 ? length - 12 : 0));
}

int dicom_head_meta(const uint8_t *data, size_t size, struct dicom_head *ret, size_t *ret_at,
		    struct pipeline_error *ret_error)
{
	struct dicom_walk walk = {.data = data, .size = size, .at = DICOM_PREAMBLE + 4};
	struct dicom_element element;
	char uid[65] = "";

	*ret =
	    (struct dicom_head){.frames = 1, .samples = 1, .slope = 1, .colours = DICOM_AS_STORED};
	while (size - walk.at >= 8 && dicom_16(&walk, data + walk.at) == 2) {
		if (!dicom_next(&walk, &element))
			return dicom_fail(ret_error, "its head is damaged");
		if (element.tag == DICOM_SYNTAX)
			dicom_text(&element, uid, sizeof(uid));
	}
	*ret_at = walk.at;
	return dicom_syntax(uid, ret, ret_error);
}

/* ---- the data set ---- */

static int dicom_colours(const char *name, struct dicom_head *head,
			 struct pipeline_error *ret_error)
{
	static const struct {
		const char *name;
		enum dicom_colours colours;
	} known[] = {
	    {"MONOCHROME2", DICOM_AS_STORED},
	    {"MONOCHROME1", DICOM_WHITE_LEAST},
	    {"RGB", DICOM_RGB},
	    {"PALETTE COLOR", DICOM_AS_STORED},
	    {"YBR_FULL", DICOM_YBR},
	    {"YBR_FULL_422", DICOM_YBR_HALVES},
	    {"YBR_RCT", DICOM_AS_STORED},
	    {"YBR_ICT", DICOM_AS_STORED},
	    {"YBR_PARTIAL_420", DICOM_YBR_HALVES},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(known); i++)
		if (strcmp(name, known[i].name) == 0) {
			head->colours = known[i].colours;
			return 0;
		}
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "DICOM: colours of kind %.16s",
			   name);
}

static int dicom_text_element(const struct dicom_element *element, struct dicom_head *head,
			      struct pipeline_error *ret_error)
{
	double frames = 1;
	char text[32];

	switch (element->tag) {
	case DICOM_COLOURS:
		dicom_text(element, text, sizeof(text));
		return dicom_colours(text, head, ret_error);
	case DICOM_FRAMES:
		if (!dicom_number(element, &frames) || frames < 1 || frames > UINT32_MAX)
			return dicom_fail(ret_error, "its number of frames is none");
		head->frames = (uint32_t)frames;
		return 0;
	case DICOM_SLOPE:
	case DICOM_INTERCEPT:
		if (!dicom_number(element,
				  element->tag == DICOM_SLOPE ? &head->slope : &head->intercept))
			return dicom_fail(ret_error, "its rescale is no number");
		return 0;
	case DICOM_TABLE:
		return element->length ? dicom_refuse(ret_error, "a modality LUT is not supported")
				       : 0;
	default:
		return 0;
	}
}

/* An element with a number of 16 bits. */
static void dicom_short_element(const struct dicom_walk *walk, const struct dicom_element *element,
				struct dicom_head *head)
{
	const unsigned value = element->length == 2 ? dicom_16(walk, element->value) : 0;

	switch (element->tag) {
	case DICOM_SAMPLES:
		head->samples = value;
		break;
	case DICOM_PLANAR:
		head->is_planar = value == 1;
		break;
	case DICOM_ROWS:
		head->height = value;
		break;
	case DICOM_COLUMNS:
		head->width = value;
		break;
	case DICOM_ALLOCATED:
		head->allocated = value;
		break;
	case DICOM_STORED:
		head->stored = value;
		break;
	case DICOM_HIGH:
		head->high = value + 1; /* until it is checked: 0 is none */
		break;
	case DICOM_SIGNED:
		head->is_signed = value == 1;
		break;
	default:
		break;
	}
}

static int dicom_check_bits(struct dicom_head *head, struct pipeline_error *ret_error)
{
	const unsigned allocated = head->allocated;

	if (head->is_floating) {
		head->stored = allocated;
		return head->coding == DICOM_NATIVE && !head->is_encapsulated
			   ? 0
			   : dicom_refuse(ret_error, "floats that are compressed");
	}
	if (allocated != 1 && allocated != 8 && allocated != 16 && allocated != 32)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "DICOM: numbers of %u bits are not supported", allocated);
	if (head->stored == 0)
		head->stored = allocated;
	head->high = head->high ? head->high - 1 : head->stored - 1;
	if (head->stored > allocated || head->high >= allocated || head->high + 1 < head->stored)
		return dicom_fail(ret_error, "its bits stored are not in those allocated");
	return 0;
}

static int dicom_check_native(const struct dicom_head *head, struct pipeline_error *ret_error)
{
	const uint64_t pixels = (uint64_t)head->height * head->width * head->samples * head->frames;

	if (head->is_encapsulated)
		return dicom_fail(ret_error, "pixels in pieces, but not compressed");
	if (head->colours == DICOM_YBR_HALVES)
		return dicom_refuse(ret_error, "raw YBR_FULL_422 is not supported");
	if ((pixels * head->allocated + 7) / 8 > head->size)
		return decode_fail_truncated(ret_error);
	return 0;
}

static int dicom_check(struct dicom_head *head, struct pipeline_error *ret_error)
{
	int r;

	if (!head->pixels)
		return dicom_refuse(ret_error, "it has no pixels");
	if (head->samples != 1 && head->samples != 3)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "DICOM: %u samples a pixel are not supported", head->samples);
	if (head->frames > DECODE_NUMBERS_MOST / head->samples)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "DICOM: %u frames, more than %u", head->frames,
				   DECODE_NUMBERS_MOST / head->samples);
	r = decode_check_size(head->height, head->width, ret_error);
	r = r ? r : dicom_check_bits(head, ret_error);
	if (r != 0)
		return r;
	if (head->coding == DICOM_NATIVE)
		return dicom_check_native(head, ret_error);
	if (!head->is_encapsulated)
		return dicom_fail(ret_error, "pixels that should be compressed are not");
	return head->allocated == 1 ? dicom_refuse(ret_error, "single bits that are compressed")
				    : 0;
}

int dicom_head_read(const uint8_t *data, size_t size, struct dicom_head *head,
		    struct pipeline_error *ret_error)
{
	struct dicom_walk walk = {
	    .data = data, .size = size, .is_big = head->is_big, .is_implicit = head->is_implicit};
	struct dicom_element element = {0};
	int r = 0;

	while (r == 0 && !head->pixels && walk.at < size) {
		if (!dicom_next(&walk, &element))
			return dicom_fail(ret_error, "it is damaged, or cut off");
		if (element.tag == DICOM_PIXELS || element.tag == DICOM_FLOATS ||
		    element.tag == DICOM_DOUBLES) {
			head->is_encapsulated = element.length == DICOM_NO_LENGTH;
			head->pixels = element.value;
			head->size =
			    head->is_encapsulated ? size - walk.at : (size_t)element.length;
			head->is_words = element.is_words || head->is_implicit;
			head->is_floating = element.tag != DICOM_PIXELS;
			if (head->is_floating)
				head->allocated = element.tag == DICOM_FLOATS ? 32 : 64;
			break;
		}
		dicom_short_element(&walk, &element, head);
		r = dicom_text_element(&element, head, ret_error);
	}
	return r ? r : dicom_check(head, ret_error);
}
