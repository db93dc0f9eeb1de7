/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG 2000 by OpenJPEG: files (.jp2, .jpx) and bare codestreams (.j2k), grey, RGB and sYCC, with alpha or a palette.
 *
 * Pixels are Pillow's, which calls the same library: samples of more than 8 bits are rounded, alpha is dropped,
 * the colours under it stay; grey of more than 8 bits becomes grey of 16, which Pillow cuts off at 255. Where its
 * rounding would make black of the brightest colours of more than 8 bits, ours stays at 255. A pixel has the
 * chroma of the sample in which it lies.
 *
 * Hostile files: OpenJPEG checks what it reads, but takes as much memory and time as a header claims. So the number
 * of components, tiles and colours of a palette is checked before it sees the header, and then pixels, packets (each
 * has a byte), code-blocks and positions, all against the file's bytes. A tile that changes what the header said
 * of them is refused. It makes threads where the environment says so: that is forgotten.
 *
 * The only file that includes openjpeg.h.
 */

#include <inttypes.h>
#include <openjpeg.h>
#include "pipeline/formats/decode_format.h"

#define JP2_PIECE 65536 /* that OpenJPEG asks for */
#define JP2_FREE_PIXELS (UINT64_C(1) << 20)
#define JP2_MOST_PIXELS 1024 /* for each byte, beyond these */
#define JP2_MOST_STEP 4      /* from sample to sample of a component, in pixels */
#define JP2_MOST_COMPONENTS 4
#define JP2_MOST_TILES 4096                 /* OpenJPEG has 10 KB for each */
#define JP2_TILE_BYTES 14                   /* SOT and SOD */
#define JP2_FREE_VISITS (UINT64_C(1) << 18) /* of code-blocks: one for each layer */
#define JP2_MOST_VISITS 8                   /* for each byte, beyond these */
#define JP2_FREE_POSITIONS 4096
#define JP2_SIGNATURE "\0\0\0\x0cjP  \r\n\x87\n"
#define JP2_CODESTREAM "\xff\x4f\xff\x51"
#define JP2_SIZ 42 /* bytes of a codestream up to its components */

enum jp2_marker {
	JP2_COD = 0xff52,
	JP2_COC = 0xff53,
	JP2_POC = 0xff5f,
	JP2_SOT = 0xff90,
	JP2_SOD = 0xff93,
};

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

/* ---- what a header may claim ---- */

/* Where OpenJPEG finds the codestream. size: nowhere. */
static size_t decode_jp2_codestream(const uint8_t *data, size_t size, bool is_file)
{
	size_t at = 0;

	while (is_file && size - at >= 8) {
		const bool is_found = memcmp(data + at + 4, "jp2c", 4) == 0;
		size_t head = 8;
		uint32_t length = decode_be32(data + at);

		if (length == 1) {
			head = 16;
			if (size - at < head || decode_be32(data + at + 8) != 0)
				return size;
			length = decode_be32(data + at + 12);
		}
		if (is_found)
			return at + head;
		if (length < head || length > size - at)
			return size;
		at += length;
	}
	return is_file ? size : 0;
}

static bool decode_jp2_has_wide_palette(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *at = data;

	while ((at = memmem(at, (size_t)(end - at), "pclr", 4))) {
		if (end - at > 6 && at[6] > JP2_MOST_COMPONENTS)
			return true;
		at += 4;
	}
	return false;
}

static uint64_t jp2_ceil(uint64_t value, uint64_t by)
{
	return (value + by - 1) / by;
}

/* Before OpenJPEG sees it. */
static int decode_jp2_check_siz(const struct decode_jp2 *jp2, struct pipeline_error *ret_error)
{
	const uint8_t *data = jp2->bytes.data, *siz;
	const size_t size = jp2->bytes.size;
	const size_t at = decode_jp2_codestream(data, size, jp2->is_file);
	uint32_t end[2], step[2], first[2];
	uint64_t tiles = 1;

	if (size - at < JP2_SIZ || memcmp(data + at, JP2_CODESTREAM, 4) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: damaged: no codestream");
	siz = data + at;
	for (unsigned i = 0; i < 2; i++) {
		end[i] = decode_be32(siz + 8 + 4 * i);
		step[i] = decode_be32(siz + 24 + 4 * i);
		first[i] = decode_be32(siz + 32 + 4 * i);
		if (step[i] == 0 || first[i] >= end[i])
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "JPEG 2000: damaged: no tiles");
		tiles *= jp2_ceil(end[i] - first[i], step[i]);
	}
	if (decode_be16(siz + 40) > JP2_MOST_COMPONENTS)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: %u components are not supported",
				   decode_be16(siz + 40));
	if (decode_jp2_has_wide_palette(data, at))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: a palette of more than %d components",
				   JP2_MOST_COMPONENTS);
	if (tiles > BASE_MIN(JP2_MOST_TILES, size / JP2_TILE_BYTES))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG 2000: %" PRIu64 " tiles in %zu bytes", tiles, size);
	return 0;
}

/* How components are coded; of their resolutions the precincts, as COD and COC have them: bits of height and
 * width. OpenJPEG's own list of them is not whole (2.5.0). */
struct jp2_coding {
	opj_codestream_info_v2_t *info;
	uint8_t precincts[JP2_MOST_COMPONENTS][OPJ_J2K_MAXRLVLS];
};

/* What OpenJPEG walks through. */
struct jp2_work {
	uint64_t packets, visits, positions;
};

/* from: the style, and what follows it at a distance: resolutions, four bytes, precincts if the style says so. */
static void jp2_read_precincts(const uint8_t *from, size_t size, size_t distance,
			       uint8_t precincts[OPJ_J2K_MAXRLVLS])
{
	memset(precincts, 0xff, OPJ_J2K_MAXRLVLS);
	if (size > distance + 5 && (from[0] & 1))
		memcpy(precincts, from + distance + 5,
		       BASE_MIN(size - distance - 5, OPJ_J2K_MAXRLVLS));
}

/* Does OpenJPEG step over it by its length? It searches behind others. */
static bool jp2_is_known(unsigned marker)
{
	static const uint8_t known[] = {
#if OPJ_VERSION_MAJOR > 2 || OPJ_VERSION_MINOR >= 5
		0x50,
		0x59, /* CAP, CPF */
#endif
		0x51,
		0x52,
		0x53,
		0x55,
		0x57,
		0x58,
		0x5c,
		0x5d,
		0x5e,
		0x60,
		0x61,
		0x63,
		0x64,
		0x74,
		0x75,
		0x77,
		0x78,
	};

	return marker >> 8 == 0xff && memchr(known, (int)(marker & 0xff), sizeof(known));
}

/* Reads the main header's markers from *at to the first tile-part. Returns 0, or the one that is not supported. */
static unsigned jp2_read_coding(const struct jp2_bytes *bytes, size_t *at,
				struct jp2_coding *coding)
{
	memset(coding->precincts, 0xff, sizeof(coding->precincts));
	while (bytes->size - *at >= 4) {
		const uint8_t *from = bytes->data + *at + 4;
		const unsigned marker = decode_be16(from - 4), length = decode_be16(from - 2);
		const size_t size = length - 2; /* of what follows length */

		if (marker == JP2_SOT)
			return 0;
		if (!jp2_is_known(marker) || length < 4 || length + 2 > bytes->size - *at)
			return marker;
		for (unsigned c = 0; marker == JP2_COD && c < JP2_MOST_COMPONENTS; c++)
			jp2_read_precincts(from, size, 5, coding->precincts[c]);
		if (marker == JP2_COC && from[0] < JP2_MOST_COMPONENTS)
			jp2_read_precincts(from + 1, size - 1, 1, coding->precincts[from[0]]);
		*at += 2 + length;
	}
	return JP2_SOT;
}

/* Cells of 2^bits that [from, to) touches. */
static uint64_t jp2_cells(uint64_t from, uint64_t to, unsigned bits)
{
	return to > from ? ((to - 1) >> bits) - (from >> bits) + 1 : 0;
}

/* Of component c of a tile. box: left, top, right, bottom in pixels; step: smallest precincts so far, in pixels. */
static void jp2_add_component(const struct jp2_coding *coding, const opj_image_t *image, unsigned c,
			      const uint64_t box[4], uint64_t step[2], struct jp2_work *work)
{
	const opj_tile_info_v2_t *tile = &coding->info->m_default_tile_info;
	const opj_tccp_info_t *its = &tile->tccp_info[c];
	const unsigned levels = BASE_MIN(its->numresolutions, OPJ_J2K_MAXRLVLS);
	const unsigned block[2] = {its->cblkw, its->cblkh};

	for (unsigned r = 0; r < levels; r++) {
		const unsigned level = levels - 1 - r, half = r > 0;
		const uint64_t by[2] = {(uint64_t)image->comps[c].dx << level,
					(uint64_t)image->comps[c].dy << level};
		const uint8_t both = coding->precincts[c][r];
		const unsigned precinct[2] = {both & 15u, both >> 4};
		uint64_t precincts = 1, blocks = half ? 3 : 1;

		for (unsigned i = 0; i < 2; i++) {
			const uint64_t from = jp2_ceil(box[i], by[i]);
			const uint64_t to = jp2_ceil(box[i + 2], by[i]);
			const unsigned inner = precinct[i] - (precinct[i] ? half : 0);

			precincts *= jp2_cells(from, to, precinct[i]);
			blocks *=
			    jp2_cells(from >> half, (to + half) >> half, BASE_MIN(block[i], inner));
			step[i] = BASE_MIN(step[i], by[i] << precinct[i]);
		}
		work->packets += tile->numlayers * precincts;
		work->visits += tile->numlayers * blocks;
	}
}

static struct jp2_work jp2_count(const struct jp2_coding *coding, const opj_image_t *image)
{
	const opj_codestream_info_v2_t *info = coding->info;
	struct jp2_work work = {0};

	for (uint64_t t = 0; t < (uint64_t)info->tw * info->th; t++) {
		const uint64_t left = info->tx0 + t % info->tw * info->tdx;
		const uint64_t top = info->ty0 + t / info->tw * info->tdy;
		const uint64_t box[4] = {BASE_MAX(left, image->x0), BASE_MAX(top, image->y0),
					 BASE_MIN(left + info->tdx, image->x1),
					 BASE_MIN(top + info->tdy, image->y1)};
		uint64_t step[2] = {UINT32_MAX, UINT32_MAX};

		if (box[0] >= box[2] || box[1] >= box[3])
			continue;
		for (unsigned c = 0; c < image->numcomps; c++)
			jp2_add_component(coding, image, c, box, step, &work);
		work.positions +=
		    ((box[2] - box[0]) / step[0] + 1) * ((box[3] - box[1]) / step[1] + 1);
	}
	return work;
}

/* The first marker from at, in the heads of tile-parts, that changes how a tile is coded. 0: none. */
static unsigned jp2_tile_change(const uint8_t *data, size_t size, size_t at)
{
	while (at < size && size - at >= 12 && decode_be16(data + at) == JP2_SOT) {
		const uint64_t part = decode_be32(data + at + 6);
		uint64_t head = 12, rest;
		unsigned marker;

		while (size - at >= head + 4 &&
		       (marker = decode_be16(data + at + head)) != JP2_SOD) {
			if (marker == JP2_COD || marker == JP2_COC || marker == JP2_POC)
				return marker;
			head += 2 + (uint64_t)decode_be16(data + at + head + 2);
		}
		if (part < head) /* 0: the last */
			return 0;
		rest = part - head;
		rest -=
		    rest >= 2 ? 2 : 0; /* OpenJPEG lets an empty one leave out SOD in its length */
		at += (size_t)BASE_MIN(head + 2 + rest, (uint64_t)(size - at));
	}
	return 0;
}

static int jp2_check_work(const struct jp2_work *work, size_t size,
			  struct pipeline_error *ret_error)
{
	if (work->packets > size)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG 2000: %" PRIu64 " packets in %zu bytes", work->packets,
				   size);
	if (work->visits > JP2_FREE_VISITS + JP2_MOST_VISITS * (uint64_t)size ||
	    work->positions > JP2_FREE_POSITIONS + (uint64_t)size)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG 2000: %" PRIu64 " code-blocks at %" PRIu64
				   " places in %zu bytes",
				   work->visits, work->positions, size);
	return 0;
}

/* After OpenJPEG read the main header. */
static int decode_jp2_check_coding(const struct decode_jp2 *jp2, struct pipeline_error *ret_error)
{
	const struct jp2_bytes *bytes = &jp2->bytes;
	size_t at = decode_jp2_codestream(bytes->data, bytes->size, jp2->is_file) + 2;
	struct jp2_coding coding;
	struct jp2_work work;
	unsigned marker = jp2_read_coding(bytes, &at, &coding);

	if (!marker)
		marker = jp2_tile_change(bytes->data, bytes->size, at);
	if (marker)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG 2000: marker %#x is not supported here", marker);
	coding.info = opj_get_cstr_info(jp2->codec);
	if (!coding.info)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	work = jp2_count(&coding, jp2->image);
	opj_destroy_cstr_info(&coding.info);
	return jp2_check_work(&work, bytes->size, ret_error);
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

/* Can its samples be made pixels? Also before they are there. */
static int decode_jp2_check(const opj_image_t *image, bool has_data,
			    struct pipeline_error *ret_error)
{
	if (image->numcomps < 1 || image->numcomps > JP2_MOST_COMPONENTS)
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

static int decode_jp2_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_jp2 *jp2 = state;
	int r;

	decode_jp2_close(jp2);
	jp2->bytes = (struct jp2_bytes){data, size, 0};
	jp2->is_file = decode_jp2_is_file(data, size);
	r = decode_jp2_check_siz(jp2, ret_error);
	if (r != 0)
		return r;
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
	r = r ? r : decode_jp2_check(jp2->image, false, ret_error);
	return r ? r : decode_jp2_check_coding(jp2, ret_error);
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

static int decode_jp2_samples(struct decode_jp2 *jp2, struct pipeline_error *ret_error)
{
	if (!opj_decode(jp2->codec, jp2->stream, jp2->image) ||
	    !opj_end_decompress(jp2->codec, jp2->stream))
		return decode_jp2_fail(jp2, ret_error);
	return decode_jp2_check(jp2->image, true, ret_error);
}

static int decode_jp2_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_jp2 *jp2 = state;
	const uint32_t height = jp2->image->y1 - jp2->image->y0;
	const uint32_t width = jp2->image->x1 - jp2->image->x0;
	int r;

	r = decode_jp2_samples(jp2, ret_error);
	r = r ? r : decode_make(buffer, height, width, ret, ret_error);
	if (r != 0)
		return r;
	if (jp2->image->numcomps <= 2)
		decode_jp2_gray(jp2, ret);
	else
		decode_jp2_colours(jp2, ret);
	return 0;
}

/* ---- numbers: samples as they are, of all components in one size ---- */

static int decode_jp2_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	const struct decode_jp2 *jp2 = state;
	int r = decode_jp2_open(state, data, size, &ret->height, &ret->width, ret_error);

	if (r != 0)
		return r;
	for (unsigned c = 1; c < jp2->image->numcomps; c++)
		if (jp2->image->comps[c].dx != 1 || jp2->image->comps[c].dy != 1)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "JPEG 2000: component %u has another size", c);
	ret->channels = jp2->image->numcomps;
	return decode_check_size((uint64_t)ret->height * ret->channels, ret->width, ret_error);
}

static int decode_jp2_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	struct decode_jp2 *jp2 = state;
	int r = decode_jp2_samples(jp2, ret_error);

	for (unsigned c = 0; r == 0 && c < jp2->image->numcomps; c++) {
		const opj_image_comp_t *comp = &jp2->image->comps[c];

		if (comp->w < to->part.left + to->part.width ||
		    comp->h < to->part.top + to->part.height)
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "JPEG 2000: component %u has another size", c);
		for (uint32_t y = 0; y < comp->h; y++)
			decode_numbers_put(to, PIPELINE_I32,
					   (const uint8_t *)(comp->data + (size_t)y * comp->w), 1,
					   c, 1, y, 0, comp->w);
	}
	return r;
}

const struct decode_format decode_jp2 = {
    .name = "JPEG 2000",
    .state_size = sizeof(struct decode_jp2),
    .load = decode_jp2_load,
    .probe = decode_jp2_probe,
    .open = decode_jp2_open,
    .whole = decode_jp2_whole,
    .numbers_open = decode_jp2_numbers_open,
    .numbers = decode_jp2_numbers,
    .close = decode_jp2_close,
    .fini = decode_jp2_close,
};
