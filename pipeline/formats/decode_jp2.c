/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG 2000 by OpenJPEG: files (.jp2, .jpx) and bare codestreams (.j2k), grey, RGB and sYCC, with alpha or a palette.
 *
 * Pixels are Pillow's, which calls the same library: samples of more than 8 bits are rounded, alpha is dropped,
 * the colours under it stay; grey of more than 8 bits becomes grey of 16, which Pillow cuts off at 255. Where its
 * rounding would make black of the brightest colours of more than 8 bits, ours stays at 255. A pixel has the
 * chroma of the sample in which it lies.
 *
 * Hostile files: OpenJPEG checks what it reads; the size is checked before anything is decoded, and more than four
 * components are refused then. What is coded as nothing costs a few bytes, and OpenJPEG seconds and gigabytes, so that
 * too many pixels for the file's bytes are refused. It makes threads where the environment says so: that is forgotten.
 *
 * The only file that includes openjpeg.h.
 */

#include <openjpeg.h>
#include "pipeline/formats/decode_format.h"

#define JP2_PIECE 65536 /* that OpenJPEG asks for */
#define JP2_FREE_PIXELS (UINT64_C(1) << 20)
#define JP2_MOST_PIXELS 1024 /* for each byte, beyond these */
#define JP2_MOST_STEP 4      /* from sample to sample of a component, in pixels */
#define JP2_SIGNATURE "\0\0\0\x0cjP  \r\n\x87\n"
#define JP2_CODESTREAM "\xff\x4f\xff\x51"

struct jp2_bytes {
	const uint8_t *data;
	size_t size, at;
};

struct decode_jp2 {
	opj_codec_t *codec; /* owned until closed, as are the next two */
	opj_stream_t *stream;
	opj_image_t *image;
	struct jp2_bytes bytes;
	bool is_file;    /* with boxes around the codestream */
	char error[128]; /* OpenJPEG's last */
};

static bool decode_jp2_load(void)
{
	return unsetenv("OPJ_NUM_THREADS") == 0;
}

static bool decode_jp2_is_file(const uint8_t *data, size_t size)
{
	return size >= 12 && memcmp(data, JP2_SIGNATURE, 12) == 0;
}

static bool decode_jp2_probe(const uint8_t *data, size_t size)
{
	return decode_jp2_is_file(data, size) ||
	       (size >= 4 && memcmp(data, JP2_CODESTREAM, 4) == 0);
}

/* ---- what OpenJPEG calls ---- */

static OPJ_SIZE_T jp2_read(void *to, OPJ_SIZE_T count, void *arg)
{
	struct jp2_bytes *bytes = arg;

	count = BASE_MIN(count, bytes->size - bytes->at);
	if (count == 0)
		return (OPJ_SIZE_T)-1;
	memcpy(to, bytes->data + bytes->at, count);
	bytes->at += count;
	return count;
}

/* A place behind the end is the end, where the next read tells. */
static OPJ_OFF_T jp2_skip(OPJ_OFF_T count, void *arg)
{
	struct jp2_bytes *bytes = arg;

	if (count < 0)
		return -1;
	count = BASE_MIN(count, (OPJ_OFF_T)(bytes->size - bytes->at));
	bytes->at += (size_t)count;
	return count > 0 ? count : -1;
}

static OPJ_BOOL jp2_seek(OPJ_OFF_T at, void *arg)
{
	struct jp2_bytes *bytes = arg;

	if (at < 0 || (uint64_t)at > bytes->size)
		return OPJ_FALSE;
	bytes->at = (size_t)at;
	return OPJ_TRUE;
}

static void jp2_note(const char *text, void *arg)
{
	struct decode_jp2 *jp2 = arg;
	size_t length = BASE_MIN(strcspn(text, "\n"), sizeof(jp2->error) - 1);

	memcpy(jp2->error, text, length);
	jp2->error[length] = '\0';
}

/* ---- the format ---- */

static void decode_jp2_close(void *state)
{
	struct decode_jp2 *jp2 = state;

	if (jp2->image)
		opj_image_destroy(jp2->image);
	if (jp2->codec)
		opj_destroy_codec(jp2->codec);
	if (jp2->stream)
		opj_stream_destroy(jp2->stream);
	memset(jp2, 0, sizeof(*jp2));
}

static int decode_jp2_fail(const struct decode_jp2 *jp2, struct pipeline_error *ret_error)
{
	const bool is_memory = strstr(jp2->error, "memory");

	return decode_fail(ret_error, is_memory ? PIPELINE_FAIL_MEMORY : PIPELINE_FAIL_DECODE, 0,
			   "JPEG 2000: damaged: %s", jp2->error[0] ? jp2->error : "no picture");
}

static int decode_jp2_start(struct decode_jp2 *jp2)
{
	opj_dparameters_t parameters;

	jp2->codec = opj_create_decompress(jp2->is_file ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
	jp2->stream = opj_stream_create(JP2_PIECE, OPJ_TRUE);
	if (!jp2->codec || !jp2->stream)
		return -ENOMEM;
	opj_set_default_decoder_parameters(&parameters);
	opj_set_error_handler(jp2->codec, jp2_note, jp2);
	opj_stream_set_read_function(jp2->stream, jp2_read);
	opj_stream_set_skip_function(jp2->stream, jp2_skip);
	opj_stream_set_seek_function(jp2->stream, jp2_seek);
	opj_stream_set_user_data(jp2->stream, &jp2->bytes, NULL);
	opj_stream_set_user_data_length(jp2->stream, jp2->bytes.size);
	return opj_setup_decoder(jp2->codec, &parameters) ? 0 : -ENOMEM;
}

static int decode_jp2_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_jp2 *jp2 = state;
	int r;

	decode_jp2_close(jp2);
	jp2->bytes = (struct jp2_bytes){data, size, 0};
	jp2->is_file = decode_jp2_is_file(data, size);
	if (decode_jp2_start(jp2) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (!opj_read_header(jp2->stream, jp2->codec, &jp2->image))
		return decode_jp2_fail(jp2, ret_error);
	*ret_height = jp2->image->y1 - jp2->image->y0;
	*ret_width = jp2->image->x1 - jp2->image->x0;
	r = decode_check_size(*ret_height, *ret_width, ret_error);
	if (r == 0 &&
	    (uint64_t)*ret_height * *ret_width > JP2_FREE_PIXELS + JP2_MOST_PIXELS * (uint64_t)size)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG 2000: %u x %u pixels in %zu bytes", *ret_width,
				   *ret_height, size);
	return r;
}

/* Can its samples be made pixels? Also before they are there. */
static int decode_jp2_check(const opj_image_t *image, bool has_data,
			    struct pipeline_error *ret_error)
{
	if (image->numcomps < 1 || image->numcomps > 4)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: %u components are not supported", image->numcomps);
	if (image->color_space == OPJ_CLRSPC_UNKNOWN || image->color_space == OPJ_CLRSPC_EYCC ||
	    image->color_space == OPJ_CLRSPC_CMYK)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: colours of kind %d", (int)image->color_space);
	for (unsigned i = 0; i < image->numcomps; i++) {
		const opj_image_comp_t *comp = &image->comps[i];

		if (comp->dx < 1 || comp->dy < 1 || comp->dx > JP2_MOST_STEP ||
		    comp->dy > JP2_MOST_STEP || (i == 0 && (comp->dx > 1 || comp->dy > 1)) ||
		    (has_data && (!comp->data || comp->w < 1 || comp->h < 1)))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "JPEG 2000: component %u has another size", i);
		if (comp->prec < 1 || comp->prec > 31)
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "JPEG 2000: %u bits are not supported", comp->prec);
	}
	return 0;
}

/* The sample that a pixel lies in, in so many bits, rounded. */
static uint32_t jp2_sample(const opj_image_comp_t *comp, uint32_t y, uint32_t x, unsigned bits)
{
	const size_t row = BASE_MIN(y / comp->dy, comp->h - 1);
	const size_t at = row * comp->w + BASE_MIN(x / comp->dx, comp->w - 1);
	const int64_t value =
	    (int64_t)comp->data[at] + (comp->sgnd ? INT64_C(1) << (comp->prec - 1) : 0);
	const int64_t most = (INT64_C(1) << bits) - 1;
	int64_t sample;

	if (comp->prec <= bits)
		sample = value * (INT64_C(1) << (bits - comp->prec));
	else
		sample = (value + (INT64_C(1) << (comp->prec - bits - 1))) >> (comp->prec - bits);
	return (uint32_t)BASE_MAX(0, BASE_MIN(sample, most));
}

static uint8_t jp2_clip(int value)
{
	return (uint8_t)BASE_MAX(0, BASE_MIN(value, 255));
}

/* A chroma's part, in sixty-fourths, as Pillow's tables have it. */
static int jp2_part(double factor, int chroma)
{
	return (int)(factor * (chroma - 128) * 64 + 0.5);
}

static void jp2_from_ycc(uint8_t *pixel)
{
	const int y = pixel[0], cb = pixel[1], cr = pixel[2];

	pixel[0] = jp2_clip(y + (jp2_part(1.402, cr) >> 6));
	pixel[1] = jp2_clip(y + ((jp2_part(-0.34414, cb) + jp2_part(-0.71414, cr)) >> 6));
	pixel[2] = jp2_clip(y + (jp2_part(1.772, cb) >> 6));
}

static void decode_jp2_gray(const struct decode_jp2 *jp2, const struct picture *to)
{
	const opj_image_comp_t *comp = &jp2->image->comps[0];
	/* Of a file Pillow takes the box's number, which is one less. */
	const bool is_deep = jp2->image->numcomps == 1 && comp->prec > (jp2->is_file ? 9 : 8);

	for (uint32_t y = 0; y < to->height; y++) {
		uint8_t *row = picture_row(to, y);

		for (uint32_t x = 0; x < to->width; x++) {
			const uint32_t gray = jp2_sample(comp, y, x, is_deep ? 16 : 8);
			const uint8_t byte = (uint8_t)BASE_MIN(gray, 255);

			decode_put(row + 4 * (size_t)x, byte, byte, byte);
		}
	}
}

/* What does not say its colours has them apart where it has fewer of them. */
static bool decode_jp2_is_ycc(const opj_image_t *image)
{
	return image->color_space == OPJ_CLRSPC_SYCC ||
	       (image->color_space == OPJ_CLRSPC_UNSPECIFIED &&
		(image->comps[1].dx > 1 || image->comps[1].dy > 1));
}

static void decode_jp2_colours(const struct decode_jp2 *jp2, const struct picture *to)
{
	const opj_image_t *image = jp2->image;
	const bool is_ycc = decode_jp2_is_ycc(image);

	for (uint32_t y = 0; y < to->height; y++) {
		uint8_t *row = picture_row(to, y);

		for (uint32_t x = 0; x < to->width; x++) {
			uint8_t *pixel = row + 4 * (size_t)x;

			for (unsigned i = 0; i < 3; i++)
				pixel[i] = (uint8_t)jp2_sample(&image->comps[i], y, x, 8);
			pixel[3] = 255;
			if (is_ycc)
				jp2_from_ycc(pixel);
		}
	}
}

static int decode_jp2_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_jp2 *jp2 = state;
	const uint32_t height = jp2->image->y1 - jp2->image->y0;
	const uint32_t width = jp2->image->x1 - jp2->image->x0;
	int r = decode_jp2_check(jp2->image, false, ret_error);

	if (r != 0)
		return r;
	if (!opj_decode(jp2->codec, jp2->stream, jp2->image) ||
	    !opj_end_decompress(jp2->codec, jp2->stream))
		return decode_jp2_fail(jp2, ret_error);
	r = decode_jp2_check(jp2->image, true, ret_error);
	r = r ? r : decode_make(buffer, height, width, ret, ret_error);
	if (r != 0)
		return r;
	if (jp2->image->numcomps <= 2)
		decode_jp2_gray(jp2, ret);
	else
		decode_jp2_colours(jp2, ret);
	return 0;
}

const struct decode_format decode_jp2 = {
    .name = "JPEG 2000",
    .state_size = sizeof(struct decode_jp2),
    .load = decode_jp2_load,
    .probe = decode_jp2_probe,
    .open = decode_jp2_open,
    .whole = decode_jp2_whole,
    .close = decode_jp2_close,
    .fini = decode_jp2_close,
};
