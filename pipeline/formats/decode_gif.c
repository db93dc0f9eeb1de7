/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first frame of a GIF, by giflib.
 *
 * Pixels are Pillow's: the frame stands on a canvas of the screen's size (grown to hold
 * it) that is filled with the transparent colour if there is one, else with colour 0; transparency
 * itself is dropped. A palette that is the greys in order counts as none. Colours that the palette
 * lacks are black. A grey local palette does not hide a global one, which is an oddity of Pillow. As
 * for Pillow bytes between records are passed over, and nothing behind the frame is looked at. Which
 * damaged frames are pictures is giflib's to say; their codes must end.
 *
 * Hostile files: giflib sees the file by a read that ends at its last byte. It allocates by the size of palettes
 * alone; of its two ways the one by rows is taken. The frame lies within the canvas, whose size is
 * checked before it is made.
 *
 * The only file that includes gif_lib.h.
 */

#include <gif_lib.h>
#include "pipeline/formats/decode_format.h"

#define GIF_COLORS 256

struct decode_gif {
	GifFileType *file;   /* owned until closed */
	const uint8_t *data; /* borrowed */
	size_t size, at;
	bool is_over; /* giflib wanted more than there is */
	uint32_t height, width;
	int transparent; /* -1: none */
	struct picture_buffer row;
};

static bool decode_gif_probe(const uint8_t *data, size_t size)
{
	return size >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0);
}

static void decode_gif_close(void *state)
{
	struct decode_gif *gif = state;

	if (gif->file)
		DGifCloseFile(gif->file, NULL);
	gif->file = NULL;
}

static void decode_gif_fini(void *state)
{
	struct decode_gif *gif = state;

	decode_gif_close(gif);
	picture_buffer_fini(&gif->row);
}

static int decode_gif_fail(const struct decode_gif *gif, int why, struct pipeline_error *ret_error)
{
	const char *text = GifErrorString(why);

	if (gif->is_over)
		return decode_fail_truncated(ret_error);
	return decode_fail(ret_error,
			   why == D_GIF_ERR_NOT_ENOUGH_MEM ? PIPELINE_FAIL_MEMORY
							   : PIPELINE_FAIL_DECODE,
			   why, "GIF: %s", text ? text : "no picture that can be decoded");
}

/* ---- the head ---- */

static int decode_gif_read(GifFileType *file, GifByteType *to, int size)
{
	struct decode_gif *gif = file->UserData;
	size_t wanted = (size_t)BASE_MAX(size, 0), count = BASE_MIN(wanted, gif->size - gif->at);

	memcpy(to, gif->data + gif->at, count);
	gif->at += count;
	gif->is_over |= count < wanted;
	return (int)count;
}

static bool decode_gif_extension(struct decode_gif *gif)
{
	GraphicsControlBlock control;
	GifByteType *block;
	int code, r = DGifGetExtension(gif->file, &code, &block);

	while (r == GIF_OK && block) {
		if (code == GRAPHICS_EXT_FUNC_CODE &&
		    DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK &&
		    control.TransparentColor != NO_TRANSPARENT_COLOR)
			gif->transparent = control.TransparentColor;
		r = DGifGetExtensionNext(gif->file, &block);
	}
	return r == GIF_OK;
}

/* Up to the first frame's codes. */
static bool decode_gif_find(struct decode_gif *gif)
{
	for (;;) {
		GifRecordType type = UNDEFINED_RECORD_TYPE;

		if (DGifGetRecordType(gif->file, &type) == GIF_ERROR &&
		    gif->file->Error != D_GIF_ERR_WRONG_RECORD)
			return false;
		if (type == IMAGE_DESC_RECORD_TYPE)
			return DGifGetImageDesc(gif->file) == GIF_OK;
		if (type == TERMINATE_RECORD_TYPE ||
		    (type == EXTENSION_RECORD_TYPE && !decode_gif_extension(gif)))
			return false;
	}
}

static int decode_gif_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_gif *gif = state;
	const GifImageDesc *frame;
	int why = 0, r;

	decode_gif_close(gif);
	gif->data = data;
	gif->size = size;
	gif->at = 0;
	gif->is_over = false;
	gif->transparent = NO_TRANSPARENT_COLOR;
	gif->file = DGifOpen(gif, decode_gif_read, &why);
	if (!gif->file)
		return decode_gif_fail(gif, why, ret_error);
	if (!decode_gif_find(gif))
		return decode_gif_fail(gif, gif->file->Error, ret_error);
	frame = &gif->file->Image;
	gif->height = (uint32_t)BASE_MAX(gif->file->SHeight, frame->Top + frame->Height);
	gif->width = (uint32_t)BASE_MAX(gif->file->SWidth, frame->Left + frame->Width);
	r = decode_check_size(gif->height, gif->width, ret_error);
	if (r != 0)
		return r;
	if (frame->Width == 0 || frame->Height == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "GIF: an empty frame");
	*ret_height = gif->height;
	*ret_width = gif->width;
	return 0;
}

/* ---- pixels ---- */

static bool decode_gif_is_grey(const ColorMapObject *map)
{
	for (int i = 0; i < map->ColorCount; i++) {
		const GifColorType *color = &map->Colors[i];

		if (color->Red != i || color->Green != i || color->Blue != i)
			return false;
	}
	return true;
}

static void decode_gif_colors(const GifFileType *file, uint8_t color[GIF_COLORS][4])
{
	const ColorMapObject *map = file->Image.ColorMap;

	if (!map || decode_gif_is_grey(map))
		map = file->SColorMap;
	if (map && decode_gif_is_grey(map))
		map = NULL;
	for (int i = 0; i < GIF_COLORS; i++) {
		const uint8_t grey = map ? 0 : (uint8_t)i;

		decode_put(color[i], grey, grey, grey);
		if (map && i < map->ColorCount)
			decode_put(color[i], map->Colors[i].Red, map->Colors[i].Green,
				   map->Colors[i].Blue);
	}
}

static void decode_gif_fill(const struct picture *to, const uint8_t *color)
{
	for (uint32_t y = 0; y < to->height; y++) {
		for (uint32_t x = 0; x < to->width; x++)
			memcpy(picture_row(to, y) + (size_t)x * 4, color, 4);
	}
}

static bool decode_gif_row(GifFileType *file, uint8_t *row, uint8_t color[GIF_COLORS][4],
			   uint8_t *to)
{
	if (DGifGetLine(file, row, file->Image.Width) == GIF_ERROR)
		return false;
	for (int x = 0; x < file->Image.Width; x++)
		memcpy(to + (size_t)x * 4, color[row[x]], 4);
	return true;
}

/* The frame's rows, row being room for one, to their places in to. */
static bool decode_gif_frame(GifFileType *file, uint8_t *row, uint8_t color[GIF_COLORS][4],
			     const struct picture *to)
{
	static const struct {
		int first, step;
	} passes[] = {{0, 1}, {0, 8}, {4, 8}, {2, 4}, {1, 2}};
	const GifImageDesc *frame = &file->Image;
	const unsigned last = frame->Interlace ? BASE_ARRAY_LEN(passes) - 1 : 0;

	for (unsigned pass = frame->Interlace ? 1 : 0; pass <= last; pass++) {
		for (int y = passes[pass].first; y < frame->Height; y += passes[pass].step) {
			uint8_t *at = picture_row(to, (uint32_t)(frame->Top + y));

			if (!decode_gif_row(file, row, color, at + (size_t)frame->Left * 4))
				return false;
		}
	}
	return true;
}

static int decode_gif_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_gif *gif = state;
	const GifImageDesc *frame = &gif->file->Image;
	uint8_t color[GIF_COLORS][4];
	uint8_t *row = picture_bytes(&gif->row, (uint64_t)frame->Width);
	int r = row ? decode_make(buffer, gif->height, gif->width, ret, ret_error)
		    : decode_gif_fail(gif, D_GIF_ERR_NOT_ENOUGH_MEM, ret_error);

	if (r != 0)
		return r;
	decode_gif_colors(gif->file, color);
	if ((uint32_t)frame->Height < gif->height || (uint32_t)frame->Width < gif->width)
		decode_gif_fill(ret, color[BASE_MAX(gif->transparent, 0)]);
	if (!decode_gif_frame(gif->file, row, color, ret))
		return decode_gif_fail(gif, gif->file->Error, ret_error);
	return 0;
}

const struct decode_format decode_gif = {
    .name = "GIF",
    .state_size = sizeof(struct decode_gif),
    .probe = decode_gif_probe,
    .open = decode_gif_open,
    .whole = decode_gif_whole,
    .close = decode_gif_close,
    .fini = decode_gif_fini,
};
