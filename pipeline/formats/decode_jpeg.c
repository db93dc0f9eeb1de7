/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG by libjpeg-turbo, with Pillow's pixels and Pillow's outcomes.
 *
 * Pixels: the slow integer DCT, fancy upsampling, grey repeated, CMYK and YCCK taken as Adobe's
 * (inverted) and converted as Pillow's convert("RGB") does. EXIF is not looked at here
 * (decode.c).
 *
 * Outcomes: libjpeg's warnings (damage that it decodes around) are no errors; a file that ends
 * before its rows do is one; Pillow lets one pass that ends between them and the end marker, which
 * libjpeg, where markers stand in the data, can reach. The whole picture is read to the end marker for
 * that. decode_jpeg_part
 * stops at the last row it needs, so it looks for the end marker itself: behind a picture's only
 * scan come entropy-coded bytes and restart markers, then the end marker. Anything else there is
 * left to the whole decode, so the outcome never depends on which part was asked for.
 *
 * Parts: libjpeg-turbo can start at a column and skip rows. It knows nothing of the pixels left and
 * right of the columns asked for, which fancy upsampling looks at, so a margin is decoded and
 * thrown away. Entropy-coded data in front of the part are still decoded; only their pixels are not
 * made.
 *
 * A progressive picture without all its scans is smoothed across blocks; of it parts are cut from
 * the whole.
 *
 * Smaller pictures are decoded whole, whatever part is wanted: libjpeg-turbo's ways past columns and
 * rows are for its own size.
 *
 * Rows: the same, eight at a time, without a margin above, as rows that are skipped are known to the one
 * behind them. Where the tail is unclear the rows are taken back
 * (DECODE_E_AGAIN), and decode.c asks for the part.
 *
 * Planes: of most pictures rows come as planes, from samples that libjpeg has neither upsampled nor made
 * colours of. One pass does both (decode_ycc.c), where libjpeg's would store pixels that are then taken
 * apart again. For that the last method of libjpeg's chain, which it calls with rows of samples and the
 * rows above and below, is replaced by ours, once the columns and the first row are chosen. It is at
 * a place that jpeglib.h does not tell, so it is looked at before: where the upsampler's method and
 * the chain's last one are found to be the same, and a trial (decode_trial.c) had right pixels, this
 * library is one that is known. Otherwise, and for kinds of pictures that decode_ycc.c does not know,
 * pixels come from libjpeg. Grey rows are planes already.
 *
 * Hostile files: sizes are checked in 64 bits before any buffer is made; the coefficients that a
 * progressive file needs are bounded by DECODE_MEMORY, its scans by DECODE_SCANS (a few bytes a
 * scan can each cost a pass over the whole picture). libjpeg leaves by longjmp: functions that call
 * setjmp hold nothing that must be freed, and read no local they changed after it. Nothing here
 * opens a file: libjpeg-turbo's memory manager has no backing store.
 *
 * The only file that includes jpeglib.h.
 */

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/decode_trial.h"
#include "pipeline/formats/decode_ycc.h"
#include "pipeline/spec/op.h"

#ifndef JCS_EXTENSIONS
#error "OneAccess needs libjpeg-turbo's jpeglib.h (Debian: libjpeg62-turbo-dev)"
#endif

#define DECODE_SCANS 100
#define DECODE_MEMORY (1L << 30) /* bytes of libjpeg's own arrays */
#define DECODE_MARGIN 1 /* pixels: fancy upsampling looks at the chroma sample of the one beside */
#define DECODE_LEAST 8  /* columns at once: of fewer than 3 chroma samples it makes other pixels */
#define DECODE_ROWS 8   /* of a band: they stay in the first cache */
#define DECODE_SMOOTHED 10 /* coefficients that block smoothing looks at */
#define DECODE_EOI 0xd9
_Static_assert(DECODE_ROWS <= DECODE_YCC_ROWS, "a band's planes have room for its rows");

/* What jpeglib.h leaves open: how these begin, the same in all versions of libjpeg. */
typedef void decode_jpeg_post_fn(j_decompress_ptr jpeg, JSAMPIMAGE samples, JDIMENSION *group,
				 JDIMENSION groups, JSAMPARRAY out, JDIMENSION *row,
				 JDIMENSION rows);
struct jpeg_d_post_controller {
	void (*start_pass)(void);
	decode_jpeg_post_fn *post_process_data;
};
struct jpeg_upsampler {
	void (*start_pass)(void);
	decode_jpeg_post_fn *upsample;
};

struct decode_jpeg {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr manager;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	bool is_made;
	bool has_all_rows; /* a file may end from here on */
	bool is_over;      /* it did: its picture is whole */
	const uint8_t *data;
	size_t size;
	unsigned shift;                   /* of the sides: how often they are halved */
	struct pipeline_error *ret_error; /* of the call under way */
	/* rows_start and rows_next */
	struct picture_buffer rows;
	struct picture band;      /* the rows' place, as wide as the picture */
	struct picture_box outer; /* what is left of what is decoded, with its margin */
	struct picture_box inner; /* what was asked for */
	struct decode_ycc ycc;
	enum decode_jpeg_way {
		DECODE_JPEG_PIXELS, /* rows go to band */
		DECODE_JPEG_GREY,   /* to the first plane, which is all three */
		DECODE_JPEG_YCC,    /* to the planes */
	} way;
	unsigned line, made;     /* rows of the group under way; of the band */
	enum decode_tried tried; /* do they come as they should? */
};

/* ---- what libjpeg calls ---- */

static void decode_jpeg_on_error(j_common_ptr common)
{
	struct decode_jpeg *decode = common->client_data;
	char text[JMSG_LENGTH_MAX];
	int code = common->err->msg_code;
	enum pipeline_fail stage = PIPELINE_FAIL_DECODE;

	if (code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE)
		stage = PIPELINE_FAIL_MEMORY;
	else if (code == JERR_IMAGE_TOO_BIG || code == JERR_WIDTH_OVERFLOW)
		stage = PIPELINE_FAIL_REFUSED;
	common->err->format_message(common, text);
	decode_fail(decode->ret_error, stage, code, "%.47s", text);
	longjmp(decode->escape, 1);
}

static void decode_jpeg_on_message(j_common_ptr common)
{
	(void)common;
}

static void decode_jpeg_on_warning(j_common_ptr common, int level)
{
	if (level < 0)
		common->err->num_warnings++;
}

static void decode_jpeg_on_source(j_decompress_ptr jpeg)
{
	(void)jpeg;
}

static _Noreturn void decode_jpeg_truncated(struct decode_jpeg *decode)
{
	if (decode->has_all_rows) {
		decode->is_over = true;
		longjmp(decode->escape, 1);
	}
	decode_fail(decode->ret_error, PIPELINE_FAIL_DECODE, JWRN_JPEG_EOF, DECODE_TRUNCATED_TEXT);
	longjmp(decode->escape, 1);
}

static boolean decode_jpeg_on_empty(j_decompress_ptr jpeg)
{
	decode_jpeg_truncated(jpeg->client_data);
}

static void decode_jpeg_on_skip(j_decompress_ptr jpeg, long bytes)
{
	if (bytes <= 0)
		return;
	if ((size_t)bytes > jpeg->src->bytes_in_buffer)
		decode_jpeg_truncated(jpeg->client_data);
	jpeg->src->next_input_byte += bytes;
	jpeg->src->bytes_in_buffer -= (size_t)bytes;
}

static void decode_jpeg_on_progress(j_common_ptr common)
{
	const struct jpeg_decompress_struct *jpeg = (j_decompress_ptr)common;
	struct decode_jpeg *decode = common->client_data;

	if (jpeg->input_scan_number <= DECODE_SCANS)
		return;
	decode_fail(decode->ret_error, PIPELINE_FAIL_REFUSED, DECODE_SCANS,
		    "a JPEG of more than %d scans", DECODE_SCANS);
	longjmp(decode->escape, 1);
}

/* ---- the handle ---- */

static void decode_jpeg_unmake(struct decode_jpeg *decode)
{
	if (decode->is_made)
		jpeg_destroy_decompress(&decode->jpeg);
	decode->is_made = false;
}

/* A new handle for each picture: one used again still has the tables of the picture before, and a
 * damaged picture without tables of its own would be decoded with those. May longjmp. */
static void decode_jpeg_make(struct decode_jpeg *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	decode_jpeg_unmake(decode);
	jpeg->err = jpeg_std_error(&decode->manager);
	decode->manager.error_exit = decode_jpeg_on_error;
	decode->manager.output_message = decode_jpeg_on_message;
	decode->manager.emit_message = decode_jpeg_on_warning;
	jpeg->client_data = decode;
	jpeg_create_decompress(jpeg);
	decode->is_made = true;
	decode->source.init_source = decode_jpeg_on_source;
	decode->source.fill_input_buffer = decode_jpeg_on_empty;
	decode->source.skip_input_data = decode_jpeg_on_skip;
	decode->source.resync_to_restart = jpeg_resync_to_restart;
	decode->source.term_source = decode_jpeg_on_source;
	decode->source.next_input_byte = decode->data;
	decode->source.bytes_in_buffer = decode->size;
	jpeg->src = &decode->source;
	decode->progress.progress_monitor = decode_jpeg_on_progress;
	jpeg->progress = &decode->progress;
	jpeg->mem->max_memory_to_use = DECODE_MEMORY;
}

static void decode_jpeg_close(void *state)
{
	struct decode_jpeg *decode = state;

	decode_jpeg_unmake(decode);
	picture_buffer_trim(&decode->rows);
	decode_ycc_trim(&decode->ycc);
}

static void decode_jpeg_fini(void *state)
{
	struct decode_jpeg *decode = state;

	decode_jpeg_unmake(decode);
	picture_buffer_fini(&decode->rows);
	decode_ycc_fini(&decode->ycc);
}

/* ---- the head ---- */

/* Chooses what comes out: RGB with a fourth byte, or what decode_jpeg_convert turns into it. libjpeg
 * would do that for grey, too, but byte by byte. */
static int decode_jpeg_set_up(struct decode_jpeg *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	if ((uint64_t)jpeg->image_width * jpeg->image_height > OP_MAX_PIXELS)
		return decode_fail(decode->ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%u x %u pixels are more than %llu", jpeg->image_width,
				   jpeg->image_height, (unsigned long long)OP_MAX_PIXELS);
	if (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)
		return decode_fail(decode->ret_error, PIPELINE_FAIL_DECODE, 0,
				   "a JPEG of %d components", jpeg->num_components);
	jpeg->out_color_space = JCS_EXT_RGBX;
	if (jpeg->num_components == 4)
		jpeg->out_color_space = JCS_CMYK;
	else if (jpeg->jpeg_color_space == JCS_GRAYSCALE)
		jpeg->out_color_space = JCS_GRAYSCALE;
	jpeg->dct_method = JDCT_ISLOW;
	jpeg->do_fancy_upsampling = TRUE;
	return 0;
}

/* Again for the same data: reads the picture again. */
static int decode_jpeg_start(struct decode_jpeg *decode)
{
	if (setjmp(decode->escape)) {
		decode_jpeg_unmake(decode);
		return PIPELINE_E_BAD;
	}
	decode->has_all_rows = decode->is_over = false;
	decode->way = DECODE_JPEG_PIXELS;
	decode_jpeg_make(decode);
	jpeg_read_header(&decode->jpeg, TRUE);
	return decode_jpeg_set_up(decode);
}

static bool decode_jpeg_probe(const uint8_t *data, size_t size)
{
	return size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0;
}

static int decode_jpeg_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_jpeg *decode = state;
	int r;

	decode->data = data;
	decode->size = size;
	decode->ret_error = ret_error;
	r = decode_jpeg_start(decode);
	if (r != 0)
		return r;
	*ret_height = decode->jpeg.image_height;
	*ret_width = decode->jpeg.image_width;
	return 0;
}

static void decode_jpeg_reduce(void *state, unsigned shift)
{
	((struct decode_jpeg *)state)->shift = shift;
}

/* ---- pixels ---- */

static inline uint32_t decode_jpeg_times(uint32_t a, uint32_t b)
{
	uint32_t product = a * b + 128;

	return (product + (product >> 8)) >> 8; /* a * b / 255, rounded */
}

/* In place: a row of Adobe's CMYK (255 is no ink) to RGB. */
static void decode_jpeg_from_cmyk(uint8_t *row, uint32_t width)
{
	for (uint32_t x = 0; x < width; x++, row += 4) {
		uint32_t white = row[3];

		for (unsigned c = 0; c < 3; c++)
			row[c] = (uint8_t)(white - decode_jpeg_times(255 - row[c], white));
	}
}

/* In place: a row of grey, from its end on, as pixels are wider. */
static void decode_jpeg_from_grey(uint8_t *row, uint32_t width)
{
	while (width-- > 0) {
		uint32_t pixel = row[width] * UINT32_C(0x01010101);

		memcpy(row + (size_t)width * 4, &pixel, 4);
	}
}

static void decode_jpeg_convert(const struct decode_jpeg *decode, uint8_t *row, uint32_t width)
{
	if (decode->jpeg.out_color_space == JCS_CMYK)
		decode_jpeg_from_cmyk(row, width);
	else if (decode->jpeg.out_color_space == JCS_GRAYSCALE && decode->way == DECODE_JPEG_PIXELS)
		decode_jpeg_from_grey(row, width);
}

/* The first count rows of to. May longjmp. */
static void decode_jpeg_rows(struct decode_jpeg *decode, const struct picture *to, uint32_t count)
{
	for (uint32_t y = 0; y < count;) {
		JSAMPROW rows[8];
		uint32_t n = BASE_MIN(count - y, (uint32_t)BASE_ARRAY_LEN(rows));

		for (uint32_t i = 0; i < n; i++)
			rows[i] = picture_row(to, y + i);
		for (uint32_t i = 0, got; i < n; i += got) {
			got = jpeg_read_scanlines(&decode->jpeg, rows + i, n - i);
			for (uint32_t j = i; j < i + got; j++)
				decode_jpeg_convert(decode, rows[j], to->width);
		}
		y += n;
	}
}

static int decode_jpeg_no_room(struct decode_jpeg *decode, int r)
{
	return decode_fail(decode->ret_error, (enum pipeline_fail)r, 0,
			   "no room for %u x %u pixels", decode->jpeg.image_width,
			   decode->jpeg.image_height);
}

/* A side of the picture that comes out. */
static uint32_t decode_jpeg_side(const struct decode_jpeg *decode, uint32_t side)
{
	return (side + (1u << decode->shift) - 1) >> decode->shift;
}

/* May longjmp. */
static void decode_jpeg_begin(struct decode_jpeg *decode)
{
	decode->jpeg.scale_num = 8u >> decode->shift;
	decode->jpeg.scale_denom = 8;
	jpeg_start_decompress(&decode->jpeg);
}

static int decode_jpeg_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	struct decode_jpeg *decode = state;
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	int r;

	decode->ret_error = ret_error;
	r = picture_make(buffer, decode_jpeg_side(decode, jpeg->image_height),
			 decode_jpeg_side(decode, jpeg->image_width), ret);
	if (r != 0)
		return decode_jpeg_no_room(decode, r);
	if (setjmp(decode->escape)) {
		decode_jpeg_unmake(decode);
		return decode->is_over ? 0 : PIPELINE_E_BAD;
	}
	decode_jpeg_begin(decode);
	decode_jpeg_rows(decode, ret, jpeg->output_height);
	decode->has_all_rows = true;
	jpeg_finish_decompress(jpeg);
	return 0;
}

/* ---- parts ---- */

/* Does the end marker follow the last row that was read of the only scan, with nothing between that
 * another decoder could stumble over? */
static bool decode_jpeg_has_end(const struct decode_jpeg *decode)
{
	const uint8_t *at = decode->source.next_input_byte;
	const uint8_t *end = at + decode->source.bytes_in_buffer;
	int marker = decode->jpeg.unread_marker;

	while (marker == 0 || (marker >= 0xd0 && marker <= 0xd7)) {
		at = memchr(at, 0xff, (size_t)(end - at));
		if (!at || end - at < 2)
			return false;
		marker = at[1] == 0xff ? 0 : at[1];
		at += at[1] == 0xff ? 1 : 2;
	}
	return marker == DECODE_EOI;
}

/* Behind the last row that is needed: 0; DECODE_E_AGAIN if the whole picture must be decoded to know
 * how it ends. */
static int decode_jpeg_check_tail(struct decode_jpeg *decode)
{
	if (jpeg_has_multiple_scans(&decode->jpeg))
		return 0;
	return decode_jpeg_has_end(decode) ? 0 : DECODE_E_AGAIN;
}

static bool decode_jpeg_can_part(const struct decode_jpeg *decode, const struct picture_box *box)
{
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	if (jpeg->num_components == 4)
		return false;
	return decode->shift == 0 && (uint64_t)box->height * box->width <
					 (uint64_t)jpeg->image_height * jpeg->image_width;
}

/* Does libjpeg smooth blocks? It does where a progressive picture lacks scans, and then looks at
 * blocks that a part would not have. Asked when decompression has started. */
static bool decode_jpeg_is_smoothed(const struct decode_jpeg *decode)
{
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	bool is_smoothed = false;

	if (!jpeg->progressive_mode || !jpeg->coef_bits)
		return false;
	for (int c = 0; c < jpeg->num_components; c++) {
		for (unsigned i = 1; i < DECODE_SMOOTHED; i++)
			is_smoothed |= jpeg->coef_bits[c][i] != 0;
	}
	return is_smoothed;
}

/* box with its margin, in *ret_outer; libjpeg is told the columns and moves them outwards to where
 * its blocks begin. May longjmp. */
static void decode_jpeg_choose(struct decode_jpeg *decode, const struct picture_box *box,
			       struct picture_box *ret_outer)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	uint32_t right = BASE_MIN(BASE_MAX(box->left + box->width + DECODE_MARGIN, DECODE_LEAST),
				  jpeg->output_width);
	uint32_t bottom = BASE_MIN(box->top + box->height + DECODE_MARGIN, jpeg->output_height);
	uint32_t first = BASE_MIN(box->left + DECODE_LEAST - DECODE_MARGIN, right);
	JDIMENSION left = first > DECODE_LEAST ? first - DECODE_LEAST : 0, width = right - left;

	jpeg_crop_scanline(jpeg, &left, &width);
	ret_outer->left = left;
	ret_outer->width = width;
	ret_outer->top = box->top > DECODE_MARGIN ? box->top - DECODE_MARGIN : 0;
	ret_outer->height = bottom - ret_outer->top;
}

/* Decodes outer into to, whose rows are wide enough for the whole picture. */
static int decode_jpeg_try_part(struct decode_jpeg *decode, const struct picture_box *box,
				const struct picture *to, struct picture_box *ret_outer)
{
	if (setjmp(decode->escape)) {
		decode_jpeg_unmake(decode);
		return PIPELINE_E_BAD;
	}
	decode_jpeg_begin(decode);
	if (decode_jpeg_is_smoothed(decode))
		return DECODE_E_AGAIN;
	decode_jpeg_choose(decode, box, ret_outer);
	if (ret_outer->top > 0)
		jpeg_skip_scanlines(&decode->jpeg, ret_outer->top);
	decode_jpeg_rows(decode, to, ret_outer->height);
	return 0;
}

static int decode_jpeg_part(void *state, const struct picture_box *box,
			    struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_jpeg *decode = state;
	struct picture_box outer = {0}, inner = *box;
	struct picture picture;
	int r;

	decode->ret_error = ret_error;
	if (!decode_jpeg_can_part(decode, box)) {
		r = decode_jpeg_whole(decode, buffer, &picture, ret_error);
		if (r == 0)
			*ret = picture_part(&picture, box);
		return r;
	}
	r = picture_make(buffer,
			 BASE_MIN(box->height + 2 * DECODE_MARGIN, decode->jpeg.image_height),
			 decode->jpeg.image_width, &picture);
	if (r != 0)
		return decode_jpeg_no_room(decode, r);
	r = decode_jpeg_try_part(decode, box, &picture, &outer);
	r = r ? r : decode_jpeg_check_tail(decode);
	if (r == DECODE_E_AGAIN) {
		struct picture whole;

		r = decode_jpeg_start(decode);
		r = r ? r : decode_jpeg_whole(decode, buffer, &whole, decode->ret_error);
		if (r == 0)
			*ret = picture_part(&whole, box);
		return r;
	}
	if (r != 0)
		return r;
	inner.top -= outer.top;
	inner.left -= outer.left;
	*ret = picture_part(&picture, &inner);
	return 0;
}

/* ---- planes ---- */

/* In the place of libjpeg's method of that name: rows from groups of samples. */
static void decode_jpeg_post_process(j_decompress_ptr jpeg, JSAMPIMAGE samples, JDIMENSION *group,
				     JDIMENSION groups, JSAMPARRAY out, JDIMENSION *row,
				     JDIMENSION rows)
{
	struct decode_jpeg *decode = jpeg->client_data;
	const JDIMENSION end = BASE_MIN(rows, jpeg->output_height - jpeg->output_scanline);

	(void)out;
	while (*group < groups && *row < end) {
		decode_ycc_row(&decode->ycc, samples, *group, decode->line, decode->made);
		decode->made++;
		(*row)++;
		if (++decode->line == (unsigned)jpeg->max_v_samp_factor) {
			decode->line = 0;
			(*group)++;
		}
	}
}

/* Is that a picture that decode_ycc.c knows? Asked when decompression has started. */
static bool decode_jpeg_is_usual(const struct decode_jpeg *decode)
{
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	const jpeg_component_info *of = jpeg->comp_info;

	if (jpeg->num_components != 3 || jpeg->jpeg_color_space != JCS_YCbCr ||
	    jpeg->out_color_space != JCS_EXT_RGBX || jpeg->data_precision != 8 ||
	    jpeg->CCIR601_sampling || decode->shift != 0)
		return false;
	for (unsigned c = 1; c < 3; c++) {
		if (of[c].h_samp_factor != 1 || of[c].v_samp_factor != 1)
			return false;
	}
	if (of[0].h_samp_factor == 1)
		return of[0].v_samp_factor == 1;
	/* of so few samples libjpeg makes others */
	return of[0].h_samp_factor == 2 && of[0].v_samp_factor <= 2 && of[1].downsampled_width > 2;
}

static bool decode_jpeg_trial(void)
{
	_cleanup_free_ struct decode_jpeg *decode = calloc(1, sizeof(*decode));
	bool is_right;

	if (!decode)
		return false;
	decode->tried = DECODE_TRIED_WELL;
	is_right = decode_trial(&decode_jpeg, decode);
	decode_jpeg_fini(decode);
	return is_right;
}

/* Can the method be replaced? */
static bool decode_jpeg_is_known(const struct decode_jpeg *decode)
{
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	return decode->tried == DECODE_TRIED_WELL && decode_jpeg_is_usual(decode) &&
	       jpeg->post->post_process_data == jpeg->upsample->upsample;
}

/* From here on rows come as planes, if they can. 0 or PIPELINE_FAIL_MEMORY. */
static int decode_jpeg_go_planar(struct decode_jpeg *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	const bool is_grey = jpeg->out_color_space == JCS_GRAYSCALE;
	const struct decode_ycc_shape shape = {
	    .across = is_grey ? 1 : (unsigned)jpeg->max_h_samp_factor,
	    .down = is_grey ? 1 : (unsigned)jpeg->max_v_samp_factor,
	    .width = jpeg->output_width,
	    .room = jpeg->comp_info[0].width_in_blocks * DCTSIZE,
	};
	int r;

	if (!is_grey && !decode_jpeg_is_known(decode))
		return 0;
	r = decode_ycc_start(&decode->ycc, &shape);
	if (r != 0)
		return r;
	decode->way = is_grey ? DECODE_JPEG_GREY : DECODE_JPEG_YCC;
	if (is_grey)
		decode->band =
		    (struct picture){.data = decode->ycc.plane[0], .stride = decode->ycc.stride};
	else
		jpeg->post->post_process_data = decode_jpeg_post_process;
	decode->line = jpeg->output_scanline % shape.down;
	return 0;
}

/* ---- rows ---- */

/* To the first row of box, or of the whole picture if that is box. May longjmp. */
static int decode_jpeg_seek(struct decode_jpeg *decode, const struct picture_box *box)
{
	decode_jpeg_begin(decode);
	decode->outer = *box;
	if (!decode_jpeg_can_part(decode, box))
		return 0;
	if (decode_jpeg_is_smoothed(decode))
		return DECODE_E_AGAIN;
	decode_jpeg_choose(decode, box, &decode->outer);
	decode->outer.top = box->top;
	decode->outer.height = box->height;
	if (decode->outer.top > 0)
		jpeg_skip_scanlines(&decode->jpeg, decode->outer.top);
	return 0;
}

static int decode_jpeg_go_to(struct decode_jpeg *decode, const struct picture_box *box)
{
	int r;

	if (setjmp(decode->escape)) {
		decode_jpeg_unmake(decode);
		return PIPELINE_E_BAD;
	}
	r = decode_jpeg_seek(decode, box);
	if (r != 0)
		return r;
	r = decode_jpeg_go_planar(decode);
	return r == 0 ? 0 : decode_jpeg_no_room(decode, r);
}

static int decode_jpeg_rows_start(void *state, const struct picture_box *box,
				  struct pipeline_error *ret_error)
{
	struct decode_jpeg *decode = state;
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	const uint32_t width = decode_jpeg_side(decode, jpeg->image_width);
	int r;

	decode->ret_error = ret_error;
	if ((jpeg->num_components == 4 || decode->shift > 0) &&
	    (box->width != width || box->height != decode_jpeg_side(decode, jpeg->image_height)))
		return DECODE_E_AGAIN;
	r = picture_make(&decode->rows, DECODE_ROWS, width, &decode->band);
	if (r != 0)
		return decode_jpeg_no_room(decode, r);
	if (decode->tried == DECODE_UNTRIED)
		decode->tried = decode_jpeg_trial() ? DECODE_TRIED_WELL : DECODE_TRIED_BADLY;
	decode->inner = *box;
	return decode_jpeg_go_to(decode, box);
}

/* The next rows into band. Behind the picture's last row libjpeg reads on to the end marker. */
static int decode_jpeg_next_band(struct decode_jpeg *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	if (setjmp(decode->escape)) {
		decode_jpeg_unmake(decode);
		return decode->is_over ? 0 : PIPELINE_E_BAD;
	}
	decode->made = 0;
	decode->band.width = decode->outer.width;
	decode->band.height = BASE_MIN(decode->outer.height, DECODE_ROWS);
	decode_jpeg_rows(decode, &decode->band, decode->band.height);
	decode->outer.top += decode->band.height;
	decode->outer.height -= decode->band.height;
	if (jpeg->output_scanline == jpeg->output_height) {
		decode->has_all_rows = true;
		jpeg_finish_decompress(jpeg);
	} else if (decode->outer.height == 0) {
		return decode_jpeg_check_tail(decode);
	}
	return 0;
}

/* What was asked for of the band's planes. */
static void decode_jpeg_give(const struct decode_jpeg *decode, struct decode_band *ret)
{
	const struct decode_ycc *ycc = &decode->ycc;
	const uint32_t left = decode->inner.left - decode->outer.left;

	ret->rows = decode->band.height;
	ret->stride = ycc->stride;
	for (unsigned c = 0; c < 3; c++)
		ret->plane[c] = ycc->plane[decode->way == DECODE_JPEG_GREY ? 0 : c] + left;
}

static int decode_jpeg_rows_next(void *state, struct picture *ret, struct decode_band *ret_band,
				 struct pipeline_error *ret_error)
{
	struct decode_jpeg *decode = state;
	struct picture_box part;
	int r;

	decode->ret_error = ret_error;
	r = decode_jpeg_next_band(decode);
	if (r != 0)
		return r;
	part = (struct picture_box){0, decode->inner.left - decode->outer.left, decode->band.height,
				    decode->inner.width};
	if (decode->way == DECODE_JPEG_PIXELS)
		*ret = picture_part(&decode->band, &part);
	else
		decode_jpeg_give(decode, ret_band);
	return 0;
}

/* ---- writing ---- */

struct decode_jpeg_writer {
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr manager;
	jmp_buf escape;
	uint8_t *data;
	unsigned long size;
};

static void decode_jpeg_on_write_error(j_common_ptr common)
{
	struct decode_jpeg_writer *writer = common->client_data;

	longjmp(writer->escape, 1);
}

static bool decode_jpeg_try_write(struct decode_jpeg_writer *writer, const struct picture *picture,
				  unsigned quality)
{
	struct jpeg_compress_struct *jpeg = &writer->jpeg;

	if (setjmp(writer->escape))
		return false;
	jpeg_create_compress(jpeg);
	jpeg_mem_dest(jpeg, &writer->data, &writer->size);
	jpeg->image_width = picture->width;
	jpeg->image_height = picture->height;
	jpeg->input_components = 4;
	jpeg->in_color_space = JCS_EXT_RGBX;
	jpeg_set_defaults(jpeg);
	jpeg_set_quality(jpeg, (int)quality, TRUE);
	jpeg_start_compress(jpeg, TRUE);
	while (jpeg->next_scanline < jpeg->image_height) {
		JSAMPROW row = picture_row(picture, jpeg->next_scanline);

		jpeg_write_scanlines(jpeg, &row, 1);
	}
	jpeg_finish_compress(jpeg);
	return true;
}

int decode_jpeg_write(const struct picture *picture, unsigned quality, uint8_t **ret,
		      size_t *ret_size)
{
	struct decode_jpeg_writer *writer = calloc(1, sizeof(*writer));
	int r = 0;

	if (!writer)
		return PIPELINE_FAIL_MEMORY;
	writer->jpeg.err = jpeg_std_error(&writer->manager);
	writer->manager.error_exit = decode_jpeg_on_write_error;
	writer->manager.output_message = decode_jpeg_on_message;
	writer->jpeg.client_data = writer;
	if (!decode_jpeg_try_write(writer, picture, quality))
		r = writer->manager.msg_code == JERR_IMAGE_TOO_BIG ? PIPELINE_FAIL_REFUSED
								   : PIPELINE_FAIL_MEMORY;
	jpeg_destroy_compress(&writer->jpeg);
	if (r == 0) {
		*ret = writer->data;
		*ret_size = writer->size;
	} else {
		free(writer->data);
	}
	free(writer);
	return r;
}

const struct decode_format decode_jpeg = {
    .name = "JPEG",
    .state_size = sizeof(struct decode_jpeg),
    .probe = decode_jpeg_probe,
    .open = decode_jpeg_open,
    .reduce = decode_jpeg_reduce,
    .whole = decode_jpeg_whole,
    .part = decode_jpeg_part,
    .rows_start = decode_jpeg_rows_start,
    .rows_next = decode_jpeg_rows_next,
    .close = decode_jpeg_close,
    .fini = decode_jpeg_fini,
};
