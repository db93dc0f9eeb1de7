/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to tensors.
 *
 * A value of a channel is one of 256, so normalize and cast are a table of what each becomes, made
 * once with torchvision's arithmetic: float32 throughout, value / 255, then - mean, then / std,
 * mean and std rounded to float32 first; float16 and bfloat16 are rounded from that. Without normalize a float is
 * value / 255, as torchvision's to_dtype(scale=True) and ToTensor give.
 */

#include "base/half.h"
#include "pipeline/finish.h"

unsigned finish_value_bytes(enum pipeline_dtype dtype)
{
	return dtype == PIPELINE_F32 ? 4 : dtype == PIPELINE_U8 ? 1 : 2;
}

static float finish_value(const struct op *normalize, unsigned channel, unsigned value)
{
	float scaled = (float)value / 255.0f;

	if (!normalize)
		return scaled;
	scaled -= (float)op_number(normalize, OP_NORMALIZE_MEAN, channel);
	return scaled / (float)op_number(normalize, OP_NORMALIZE_STD, channel);
}

void finish_init(struct finish *finish, const struct shape *shape)
{
	finish->dtype = shape->dtype;
	finish->order = shape->order;
	for (unsigned c = 0; c < 3; c++) {
		for (unsigned v = 0; v < 256; v++) {
			float value = finish_value(shape->normalize, c, v);

			if (shape->dtype == PIPELINE_F32)
				finish->table.f32[c][v] = value;
			else if (shape->dtype == PIPELINE_F16)
				finish->table.half[c][v] = half_f16(value);
			else if (shape->dtype == PIPELINE_BF16)
				finish->table.half[c][v] = half_bf16(value);
		}
	}
}

/* One loop for each type: out[y][x][c] or out[c][y][x] = what pixel[c] becomes. */
#define FINISH_LOOPS(name, type, WHAT)                                                             \
	static void finish_row_##name(const struct finish *finish, const uint8_t *pixel,           \
				      uint32_t width, unsigned c, unsigned step, type *out)        \
	{                                                                                          \
		(void)finish;                                                                      \
		for (uint32_t x = 0; x < width; x++)                                               \
			out[(size_t)x * step] = WHAT;                                              \
	}                                                                                          \
	static void finish_##name(const struct finish *finish, const struct picture *picture,      \
				  type *out)                                                       \
	{                                                                                          \
		const bool planes = finish->order == OP_CHW;                                       \
		const size_t row = (size_t)picture->width * (planes ? 1 : 3);                      \
		const size_t plane = planes ? (size_t)picture->height * picture->width : 1;        \
                                                                                                   \
		for (unsigned c = 0; c < 3; c++)                                                   \
			for (uint32_t y = 0; y < picture->height; y++)                             \
				finish_row_##name(finish, picture_row(picture, y), picture->width, \
						  c, planes ? 1 : 3, out + c * plane + y * row);   \
	}

FINISH_LOOPS(u8, uint8_t, pixel[4 * (size_t)x + c])
FINISH_LOOPS(half, uint16_t, finish->table.half[c][pixel[4 * (size_t)x + c]])
FINISH_LOOPS(f32, float, finish->table.f32[c][pixel[4 * (size_t)x + c]])

void finish_run(const struct finish *finish, const struct picture *picture, void *out)
{
	switch (finish->dtype) {
	case PIPELINE_F16:
	case PIPELINE_BF16:
		finish_half(finish, picture, out);
		break;
	case PIPELINE_F32:
		finish_f32(finish, picture, out);
		break;
	default:
		finish_u8(finish, picture, out);
		break;
	}
}
