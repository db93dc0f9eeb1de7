/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HEIF with HEVC (HEIC: the photographs of telephones) by libheif: 8, 10 and 12 bits, grey, with alpha, grids; of
 * several pictures the primary one.
 *
 * Pixels are what libheif makes RGB of: turned, mirrored and cut as the container says (irot, imir, clap), whatever EXIF
 * says, as pillow-heif has them. Alpha is dropped, the colours under it stay.
 *
 * libheif brings encoders along: found when the program runs, as libavif is. It may find its decoders in plugins, which
 * are loaded then, too.
 *
 * libheif has libde265 start a thread for each picture, which a sandboxed worker would die of. What it calls for
 * that is found in this program first, and does nothing: then libde265 decodes where it is called.
 *
 * Of damaged pictures both show memory that nobody wrote, as it was before: it is filled while they work, so that pixels
 * are the file's alone, whatever was decoded before it. (Where malloc() cannot fill it, as under sanitizers, see tests/.)
 *
 * Hostile files: the size that the container says is checked, before it is cut and after, and no grid may have a longer
 * side than its longer one. Pixels are held against the file's bytes as JPEG 2000's. What HEVC itself claims only libde265
 * knows: its memory is what the sandbox leaves it.
 *
 * The only file that includes libheif/.
 */

#include <libheif/heif.h>
#include <malloc.h>
#include "base/library.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/exif.h"

#define HEIF_FILL 0x7f /* new memory is 0x80: grey */
#define HEIF_FREE_PIXELS (UINT64_C(1) << 20)
#define HEIF_MOST_PIXELS 1024 /* for each byte, beyond these */
#define HEIF_TILE 4096        /* a side that is let through, whatever the picture's */

struct decode_heif {
	struct heif_context *context; /* owned until closed, as is the next */
	struct heif_image_handle *handle;
};

#define HEIF_EACH(F)                                                  \
	F(heif, init, heif_init)                                      \
	F(heif, can_decode, heif_have_decoder_for_format)             \
	F(heif, create, heif_context_alloc)                           \
	F(heif, destroy, heif_context_free)                           \
	F(heif, set_threads, heif_context_set_max_decoding_threads)   \
	F(heif, set_limit, heif_context_set_maximum_image_size_limit) \
	F(heif, read, heif_context_read_from_memory_without_copy)     \
	F(heif, primary, heif_context_get_primary_image_handle)       \
	F(heif, release, heif_image_handle_release)                   \
	F(heif, width, heif_image_handle_get_width)                   \
	F(heif, height, heif_image_handle_get_height)                 \
	F(heif, coded_width, heif_image_handle_get_ispe_width)        \
	F(heif, coded_height, heif_image_handle_get_ispe_height)      \
	F(heif, options, heif_decoding_options_alloc)                 \
	F(heif, options_free, heif_decoding_options_free)             \
	F(heif, decode, heif_decode_image)                            \
	F(heif, image_release, heif_image_release)                    \
	F(heif, image_width, heif_image_get_width)                    \
	F(heif, image_height, heif_image_get_height)                  \
	F(heif, plane, heif_image_get_plane_readonly)

/* Of the library, once it is loaded. */
static struct {
	HEIF_EACH(LIBRARY_MEMBER)
} heif;

/* libde265's: found before its own, as configure has this program export it. */
__attribute__((visibility("default"))) int de265_start_worker_threads(void *context, int number);
int de265_start_worker_threads(void *context, int number)
{
	(void)context, (void)number;
	return 0; /* DE265_OK */
}

static bool decode_heif_load(void)
{
	static const struct library_name names[] = {HEIF_EACH(LIBRARY_NAME)};

	return !library_load(HEIF_SONAME, names, BASE_ARRAY_LEN(names)) &&
	       heif.init(NULL).code == heif_error_Ok && heif.can_decode(heif_compression_HEVC);
}

static bool decode_heif_probe(const uint8_t *data, size_t size)
{
	return !decode_has_brand(data, size, "avifavis") &&
	       decode_has_brand(data, size, "heicheixheimheismif1msf1");
}

static void decode_heif_close(void *state)
{
	struct decode_heif *its = state;

	if (its->handle)
		heif.release(its->handle);
	if (its->context)
		heif.destroy(its->context);
	its->handle = NULL;
	its->context = NULL;
}

static int decode_heif_fail(struct heif_error error, struct pipeline_error *ret_error)
{
	return decode_fail(ret_error,
			   error.code == heif_error_Memory_allocation_error ? PIPELINE_FAIL_MEMORY
									    : PIPELINE_FAIL_DECODE,
			   (int)error.code, "HEIF: %s", error.message);
}

/* What is coded, before it is cut; then what comes of it. */
static int decode_heif_check(const struct heif_image_handle *handle, size_t size,
			     struct pipeline_error *ret_error)
{
	const uint32_t height = (uint32_t)BASE_MAX(heif.coded_height(handle), 0);
	const uint32_t width = (uint32_t)BASE_MAX(heif.coded_width(handle), 0);
	int r = decode_check_size(height, width, ret_error);

	if (r == 0 &&
	    (uint64_t)height * width > HEIF_FREE_PIXELS + HEIF_MOST_PIXELS * (uint64_t)size)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "HEIF: %u x %u pixels in %zu bytes", width, height, size);
	return r ? r
		 : decode_check_size((uint64_t)BASE_MAX(heif.height(handle), 0),
				     (uint64_t)BASE_MAX(heif.width(handle), 0), ret_error);
}

static int decode_heif_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_heif *its = state;
	struct heif_error error;
	FILE *real;

	decode_heif_close(its);
	its->context = heif.create();
	if (!its->context)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	heif.set_threads(its->context, 0);
	real = decode_hush();
	error = heif.read(its->context, data, size, NULL);
	if (error.code == heif_error_Ok)
		error = heif.primary(its->context, &its->handle);
	stderr = real;
	if (error.code != heif_error_Ok)
		return decode_heif_fail(error, ret_error);
	*ret_height = (uint32_t)heif.height(its->handle);
	*ret_width = (uint32_t)heif.width(its->handle);
	return decode_heif_check(its->handle, size, ret_error);
}

/* The pixels of image, of libheif. */
static int decode_heif_copy(const struct heif_image *image, uint32_t height, uint32_t width,
			    struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	int stride;
	const uint8_t *plane = heif.plane(image, heif_channel_interleaved, &stride);
	int r;

	if (!plane || heif.image_height(image, heif_channel_interleaved) != (int)height ||
	    heif.image_width(image, heif_channel_interleaved) != (int)width)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "HEIF: damaged: two sizes");
	r = decode_make(buffer, height, width, ret, ret_error);
	for (uint32_t y = 0; r == 0 && y < height; y++)
		memcpy(picture_row(ret, y), plane + (size_t)y * (size_t)stride, (size_t)width * 4);
	return r;
}

static int decode_heif_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	const struct decode_heif *its = state;
	const int height = heif.height(its->handle), width = heif.width(its->handle);
	struct heif_decoding_options *options = heif.options();
	struct heif_image *image = NULL;
	struct heif_error error;
	FILE *real;
	int r;

	if (!options)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	options->convert_hdr_to_8bit = 1;
	heif.set_limit(its->context, BASE_MAX(HEIF_TILE, BASE_MAX(heif.coded_height(its->handle),
								  heif.coded_width(its->handle))));
	real = decode_hush();
	mallopt(M_PERTURB, HEIF_FILL);
	error = heif.decode(its->handle, &image, heif_colorspace_RGB, heif_chroma_interleaved_RGBA,
			    options);
	mallopt(M_PERTURB, 0);
	stderr = real;
	heif.options_free(options);
	if (error.code != heif_error_Ok)
		return decode_heif_fail(error, ret_error);
	r = decode_heif_copy(image, (uint32_t)height, (uint32_t)width, buffer, ret, ret_error);
	heif.image_release(image);
	return r;
}

/* libheif has turned it. */
static unsigned decode_heif_orientation(const void *state)
{
	(void)state;
	return EXIF_UPRIGHT;
}

const struct decode_format decode_heif = {
    .name = "HEIF",
    .library = HEIF_SONAME " with libde265",
    .state_size = sizeof(struct decode_heif),
    .load = decode_heif_load,
    .probe = decode_heif_probe,
    .open = decode_heif_open,
    .whole = decode_heif_whole,
    .orientation = decode_heif_orientation,
    .close = decode_heif_close,
    .fini = decode_heif_close,
};
