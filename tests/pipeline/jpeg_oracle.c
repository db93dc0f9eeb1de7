/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include "base/base.h"
#include "base/philox.h"
#include "tests/pipeline/jpeg_oracle.h"

struct oracle_handle {
	struct jpeg_error_mgr manager;
	struct jpeg_source_mgr source;
	jmp_buf escape;
};

static void oracle_on_error(j_common_ptr common)
{
	longjmp(((struct oracle_handle *)common->client_data)->escape, 1);
}

static void oracle_on_message(j_common_ptr common)
{
	(void)common;
}

static void oracle_on_source(j_decompress_ptr jpeg)
{
	(void)jpeg;
}

static boolean oracle_on_empty(j_decompress_ptr jpeg)
{
	oracle_on_error((j_common_ptr)jpeg);
	return FALSE;
}

static void oracle_on_skip(j_decompress_ptr jpeg, long bytes)
{
	if (bytes <= 0)
		return;
	if ((size_t)bytes > jpeg->src->bytes_in_buffer)
		oracle_on_error((j_common_ptr)jpeg);
	jpeg->src->next_input_byte += bytes;
	jpeg->src->bytes_in_buffer -= (size_t)bytes;
}

static void oracle_begin(struct jpeg_decompress_struct *jpeg, struct oracle_handle *handle,
			 const uint8_t *data, size_t size)
{
	jpeg->err = jpeg_std_error(&handle->manager);
	handle->manager.error_exit = oracle_on_error;
	handle->manager.output_message = oracle_on_message;
	jpeg->client_data = handle;
	jpeg_create_decompress(jpeg);
	handle->source.init_source = oracle_on_source;
	handle->source.fill_input_buffer = oracle_on_empty;
	handle->source.skip_input_data = oracle_on_skip;
	handle->source.resync_to_restart = jpeg_resync_to_restart;
	handle->source.term_source = oracle_on_source;
	handle->source.next_input_byte = data;
	handle->source.bytes_in_buffer = size;
	jpeg->src = &handle->source;
}

static void oracle_rows(struct jpeg_decompress_struct *jpeg, struct oracle_picture *picture)
{
	size_t stride = (size_t)jpeg->output_width * 3, room = stride * jpeg->output_height;

	if (room > picture->room) {
		free(picture->rgb);
		picture->rgb = malloc(room);
		picture->room = picture->rgb ? room : 0;
		if (!picture->rgb)
			abort();
	}
	picture->height = jpeg->output_height;
	picture->width = jpeg->output_width;
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW row = picture->rgb + jpeg->output_scanline * stride;

		jpeg_read_scanlines(jpeg, &row, 1);
	}
}

int oracle_decode(const uint8_t *data, size_t size, uint64_t most, struct oracle_picture *picture)
{
	struct jpeg_decompress_struct jpeg;
	struct oracle_handle handle;

	memset(&jpeg, 0, sizeof(jpeg));
	if (setjmp(handle.escape)) {
		jpeg_destroy_decompress(&jpeg);
		return -1;
	}
	oracle_begin(&jpeg, &handle, data, size);
	jpeg_read_header(&jpeg, TRUE);
	if ((uint64_t)jpeg.image_height * jpeg.image_width > most || jpeg.num_components == 4 ||
	    jpeg_has_multiple_scans(&jpeg)) {
		jpeg_destroy_decompress(&jpeg);
		return 1;
	}
	jpeg.out_color_space = JCS_RGB;
	jpeg.dct_method = JDCT_ISLOW;
	jpeg.do_fancy_upsampling = TRUE;
	jpeg.scale_num = 8u >> picture->shift;
	jpeg.scale_denom = 8;
	jpeg_start_decompress(&jpeg);
	oracle_rows(&jpeg, picture);
	jpeg_finish_decompress(&jpeg);
	picture->warnings = handle.manager.num_warnings;
	jpeg_destroy_decompress(&jpeg);
	return 0;
}

void oracle_fini(struct oracle_picture *picture)
{
	free(picture->rgb);
	memset(picture, 0, sizeof(*picture));
}

/* ---- files ---- */

static void oracle_paint(const struct oracle_file *file, struct philox_seq *seq, uint32_t y,
			 unsigned channels, uint8_t *row)
{
	for (size_t x = 0; x < (size_t)file->width * channels; x++) {
		uint32_t value = (uint32_t)(x * 3 / channels + y * 5 + 40 * (x % channels)) & 511;

		if (file->noise == 0)
			value = 200 - 60 * (x % channels);
		else
			value = value > 255 ? 511 - value : value;
		if (file->noise > 0)
			value =
			    (value * (255 - file->noise) + (philox_u32(seq) & 255) * file->noise) /
			    255;
		row[x] = (uint8_t)value;
	}
}

static void oracle_set_up(struct jpeg_compress_struct *jpeg, const struct oracle_file *file)
{
	jpeg->image_height = file->height;
	jpeg->image_width = file->width;
	jpeg->input_components = file->across == 0 ? 1 : 3;
	jpeg->in_color_space = file->across == 0 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(jpeg);
	jpeg_set_quality(jpeg, file->quality, !file->is_full_range);
	jpeg->optimize_coding = file->is_optimised;
	jpeg->restart_interval = file->interval;
	if (file->across > 0) {
		jpeg->comp_info[0].h_samp_factor = file->across;
		jpeg->comp_info[0].v_samp_factor = file->down;
	}
}

uint8_t *oracle_encode(const struct oracle_file *file, size_t *ret_size)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr manager;
	unsigned char *data = NULL;
	unsigned long size = 0;
	struct philox_seq seq;
	uint8_t *row = malloc((size_t)file->width * 3);

	if (!row)
		abort();
	philox_seq_init(&seq, file->seed, 0, 0);
	jpeg.err = jpeg_std_error(&manager);
	manager.output_message = oracle_on_message;
	jpeg_create_compress(&jpeg);
	jpeg_mem_dest(&jpeg, &data, &size);
	oracle_set_up(&jpeg, file);
	jpeg_start_compress(&jpeg, TRUE);
	for (uint32_t y = 0; y < file->height; y++) {
		JSAMPROW rows[1] = {row};

		oracle_paint(file, &seq, y, file->across == 0 ? 1 : 3, row);
		jpeg_write_scanlines(&jpeg, rows, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	free(row);
	*ret_size = size;
	return data;
}
