/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names come from other users' processes, so each character is looked at: controls and what is no UTF-8 become '?', and one
 * that is two columns wide takes two cells.
 */

#include "tools/top/top_grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

int top_grid_init(struct top_grid *grid, unsigned width, unsigned height, bool is_utf8)
{
	*grid = (struct top_grid){.is_utf8 = is_utf8};
	grid->cell = calloc((size_t)width * height + 1, sizeof(*grid->cell));
	if (!grid->cell)
		return -ENOMEM;
	grid->width = width;
	grid->height = height;
	for (size_t i = 0; i < (size_t)width * height; i++)
		grid->cell[i].text[0] = ' ';
	return 0;
}

void top_grid_fini(struct top_grid *grid)
{
	free(grid->cell);
	*grid = (struct top_grid){.cell = NULL};
}

/* The next character of text, and its columns. */
struct grid_char {
	char text[8];
	size_t bytes;
	unsigned width;
};

static wchar_t grid_code(const unsigned char *text, size_t bytes)
{
	uint32_t code = bytes == 2 ? text[0] & 0x1fu : bytes == 3 ? text[0] & 0x0fu : text[0] & 7u;

	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (text[i] & 0x3fu);
	return (wchar_t)code;
}

static struct grid_char grid_next(const struct top_grid *grid, const char *text)
{
	struct grid_char ret = {"?", 1, 1};
	size_t bytes = base_utf8((const unsigned char *)text);
	int width;

	if (*text >= ' ' && *text < 0x7f) {
		ret.text[0] = *text;
	} else if (bytes > 1) {
		ret.bytes = bytes;
		width = wcwidth(grid_code((const unsigned char *)text, bytes));
		if (!grid->is_utf8 || width < 1)
			return ret;
		ret.width = (unsigned)width;
		memcpy(ret.text, text, bytes);
	}
	return ret;
}

unsigned top_grid_width(const struct top_grid *grid, const char *text)
{
	unsigned width = 0;

	while (*text) {
		struct grid_char next = grid_next(grid, text);

		width += next.width;
		text += next.bytes;
	}
	return width;
}

static struct top_cell *grid_at(struct top_grid *grid, unsigned x, unsigned y)
{
	return x < grid->width && y < grid->height ? &grid->cell[(size_t)y * grid->width + x]
						   : NULL;
}

unsigned top_grid_put(struct top_grid *grid, unsigned x, unsigned y, unsigned width,
		      enum top_style style, const char *text)
{
	unsigned used = 0;

	while (*text) {
		struct grid_char next = grid_next(grid, text);
		struct top_cell *last = grid_at(grid, x + used + next.width - 1, y);

		if (used + next.width > width || !last)
			break;
		*last = (struct top_cell){.style = style};
		*grid_at(grid, x + used, y) = (struct top_cell){.style = style};
		memcpy(grid_at(grid, x + used, y)->text, next.text, sizeof(next.text));
		used += next.width;
		text += next.bytes;
	}
	return used;
}

unsigned top_grid_say(struct top_grid *grid, unsigned x, unsigned y, enum top_style style,
		      const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return top_grid_put(grid, x, y, x < grid->width ? grid->width - x : 0, style, text);
}

void top_grid_style(struct top_grid *grid, unsigned x, unsigned y, unsigned width,
		    enum top_style style)
{
	for (unsigned i = 0; i < width; i++) {
		struct top_cell *cell = grid_at(grid, x + i, y);

		if (cell)
			cell->style = style;
	}
}

const char *top_grid_spark(const struct top_grid *grid, double height)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const signs[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	unsigned at;

	if (isnan(height) || height < 0)
		return " ";
	at = (unsigned)BASE_MIN(height * BASE_ARRAY_LEN(blocks), BASE_ARRAY_LEN(blocks) - 1.0);
	return grid->is_utf8 ? blocks[at] : signs[at];
}

static void grid_line(const struct top_grid *grid, unsigned y, FILE *out)
{
	const struct top_cell *cell = &grid->cell[(size_t)y * grid->width];
	unsigned end = grid->width;

	while (end > 0 && strcmp(cell[end - 1].text, " ") == 0)
		end--;
	for (unsigned x = 0; x < end; x++)
		fputs(cell[x].text, out);
	fputc('\n', out);
}

char *top_grid_text(const struct top_grid *grid)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (unsigned y = 0; y < grid->height; y++)
		grid_line(grid, y, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
