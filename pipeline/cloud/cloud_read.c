/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's bytes to points: its format says where its columns are, those that the pipeline asks for become float32, as
 * whole numbers and float64 are rounded to the nearest, and points that are nowhere (a coordinate that is infinite or no
 * number, which scanners write where nothing came back) are left out.
 */

#include "pipeline/cloud/cloud_file.h"

#include <math.h>

#define CLOUD_BLOCK 256        /* points that are converted at a time */
#define CLOUD_KEPT (16u << 20) /* bytes whose room stays from cloud to cloud */

struct cloud_room {
	float *at;   /* owned */
	size_t size; /* numbers that it has room for */
	struct picture_buffer unpacked;
	struct cloud_mesh mesh;
	float *drawn; /* owned; on the mesh */
};

/* The first that knows the bytes; the last one takes any. */
static const struct cloud_format *const cloud_formats[] = {&cloud_ply,  &cloud_pcd, &cloud_las,
							   &cloud_npy,  &cloud_off, &cloud_obj,
							   &cloud_text, &cloud_raw};

int cloud_room_new(struct cloud_room **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void cloud_room_free(struct cloud_room *room)
{
	if (!room)
		return;
	free(room->at);
	free(room->drawn);
	cloud_mesh_fini(&room->mesh);
	picture_buffer_fini(&room->unpacked);
	free(room);
}

static bool cloud_room_make(struct cloud_room *room, size_t n)
{
	if (n <= room->size &&
	    (room->size <= CLOUD_KEPT / sizeof(float) || n > CLOUD_KEPT / sizeof(float)))
		return true;
	free(room->at);
	room->at = malloc(n * sizeof(*room->at));
	room->size = room->at ? n : 0;
	return room->at != NULL;
}

int cloud_add_column(struct cloud_file *file, const char *name, enum pipeline_dtype dtype,
		     size_t at, size_t stride, struct pipeline_error *ret_error)
{
	struct cloud_column *column = &file->column[file->columns];

	if (file->columns == CLOUD_MOST_COLUMNS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a point has more than 64 numbers");
	*column = (struct cloud_column){.dtype = dtype, .at = at, .stride = stride};
	strncpy(column->name, name, sizeof(column->name) - 1);
	file->columns++;
	return 0;
}

/* ---- which columns ---- */

static int cloud_find(const struct cloud_file *file, const char *name, unsigned *ret,
		      struct pipeline_error *ret_error)
{
	unsigned c = 0;

	while (c < file->columns && strcmp(file->column[c].name, name) != 0)
		c++;
	*ret = c;
	if (c < file->columns)
		return 0;
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
			   file->columns > 0 && *file->column[0].name
			       ? "the file has no property %.21s"
			       : "its columns have no names: no %.16s",
			   name);
}

static int cloud_find_all(const struct cloud *cloud, const struct cloud_file *file,
			  unsigned ret[CLOUD_MOST_CHANNELS], struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned c = 0; r == 0 && c < cloud->read; c++) {
		ret[c] = c;
		if (cloud->n_properties > 0)
			r = cloud_find(file, cloud->property[c], &ret[c], ret_error);
		else if (c >= file->columns)
			r = decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					"a point has %u numbers, not %u", file->columns,
					cloud->read);
	}
	return r;
}

/* ---- numbers ---- */

/* n of them, in the machine's byte order, to `to`; from is not theirs to change. */
static void cloud_swap(const uint8_t *from, size_t stride, size_t bytes, size_t n, uint8_t *to)
{
	for (; n > 0; n--, from += stride, to += bytes)
		for (size_t i = 0; i < bytes; i++)
			to[i] = from[bytes - 1 - i];
}

/* n numbers of a column, from `from` on, the machine's byte order. */
static void cloud_take_numbers(const struct cloud_column *column, const uint8_t *from,
			       size_t stride, uint32_t n, float *to)
{
	if (column->scale == 0)
		decode_numbers_take(column->dtype, from, stride, n, (uint8_t *)to);
	for (uint32_t i = 0; i < n && column->scale != 0; i++)
		to[i] =
		    (float)(decode_numbers_value(column->dtype, from + i * stride) * column->scale +
			    column->offset - column->origin);
	for (uint32_t i = 0; i < n && column->mask != 0; i++)
		to[i] = (float)((unsigned)to[i] >> column->shift & column->mask);
}

static void cloud_take_column(const struct cloud_file *file, const struct cloud_column *column,
			      float *to, unsigned channels)
{
	const size_t bytes = decode_numbers_bytes(column->dtype);
	uint8_t swapped[CLOUD_BLOCK * 8];
	float values[CLOUD_BLOCK];

	for (uint64_t done = 0; done < file->points; done += CLOUD_BLOCK) {
		const uint32_t n = (uint32_t)BASE_MIN(file->points - done, (uint64_t)CLOUD_BLOCK);
		const uint8_t *from = file->rows + column->at + done * column->stride;

		if (file->is_swapped)
			cloud_swap(from, column->stride, bytes, n, swapped);
		cloud_take_numbers(column, file->is_swapped ? swapped : from,
				   file->is_swapped ? bytes : column->stride, n, values);
		for (uint32_t i = 0; i < n; i++)
			to[(done + i) * channels] = values[i];
	}
}

static int cloud_take_text(const struct cloud_file *file, const unsigned chosen[],
			   unsigned channels, float *to, struct pipeline_error *ret_error)
{
	const uint8_t *at = file->rows;
	double row[CLOUD_MOST_COLUMNS];

	for (uint64_t i = 0; i < file->points; i++) {
		if (!cloud_numbers(&at, file->end, file->columns, row))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "point %ju: not %u numbers", (uintmax_t)i + 1,
					   file->columns);
		for (unsigned c = 0; c < channels; c++)
			*to++ = (float)row[chosen[c]];
	}
	return 0;
}

static bool cloud_is_somewhere(void *arg, const float *point)
{
	(void)arg;
	return isfinite(point[0]) && isfinite(point[1]) && isfinite(point[2]);
}

/* ---- all of it ---- */

static int cloud_read_faces(const struct cloud_format *format, const struct cloud_source *source,
			    const struct cloud_file *file, struct cloud_mesh *mesh,
			    struct pipeline_error *ret_error)
{
	cloud_mesh_begin(mesh);
	if (!format->faces)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%s has no faces: leave surface out", format->name);
	return format->faces(source, file, mesh, ret_error);
}

static int cloud_open(const struct cloud *cloud, struct cloud_room *room, const void *data,
		      size_t size, struct cloud_file *ret, struct pipeline_error *ret_error)
{
	const struct cloud_source source = {data, size, cloud->raw, &room->unpacked};
	unsigned i = 0;
	int r;

	while (!cloud_formats[i]->probe(&source))
		i++;
	r = cloud_formats[i]->open(&source, ret, ret_error);
	return r || !cloud->surface
		   ? r
		   : cloud_read_faces(cloud_formats[i], &source, ret, &room->mesh, ret_error);
}

/* What the room unpacked is not needed behind it. */
static int cloud_read_all(const struct cloud *cloud, struct cloud_room *room,
			  void (*watch)(void *arg, uint32_t points, uint32_t channels),
			  void *watch_arg, const void *data, size_t size, struct cloud_part *ret,
			  struct pipeline_error *ret_error)
{
	struct cloud_file file = {.points = 0};
	unsigned chosen[CLOUD_MOST_CHANNELS];
	int r = cloud_open(cloud, room, data, size, &file, ret_error);

	r = r ? r : cloud_find_all(cloud, &file, chosen, ret_error);
	if (r != 0)
		return r;
	if (file.end && file.points > (size_t)(file.end - file.rows))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "the file is cut off");
	if (file.points > CLOUD_MOST_READ / cloud->read)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%ju points are too many",
				   (uintmax_t)file.points);
	if (watch)
		watch(watch_arg, (uint32_t)file.points, file.columns);
	if (!cloud_room_make(room, BASE_MAX((size_t)file.points, (size_t)1) * cloud->read))
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the points");
	if (file.end)
		r = cloud_take_text(&file, chosen, cloud->read, room->at, ret_error);
	for (unsigned c = 0; !file.end && c < cloud->read; c++)
		cloud_take_column(&file, &file.column[chosen[c]], room->at + c, cloud->read);
	*ret = (struct cloud_part){.cloud = cloud, .at = room->at, .n = (size_t)file.points};
	return r;
}

int cloud_read(const struct cloud *cloud, struct cloud_room *room,
	       void (*watch)(void *arg, uint32_t points, uint32_t channels), void *watch_arg,
	       const void *data, size_t size, struct cloud_part *ret,
	       struct pipeline_error *ret_error)
{
	int r = cloud_read_all(cloud, room, watch, watch_arg, data, size, ret, ret_error);

	picture_buffer_trim(&room->unpacked);
	if (r == 0 && cloud->surface) /* faces have corners by number */
		return cloud_mesh_measure(&room->mesh, ret->at, ret_error);
	if (r == 0)
		cloud_keep(ret, cloud_is_somewhere, NULL);
	return r;
}

int cloud_take(struct cloud_room *room, struct philox_seq *seq, struct cloud_part *part,
	       struct pipeline_error *ret_error)
{
	const struct cloud *cloud = part->cloud;

	if (!cloud->surface) {
		cloud_choose(cloud->pick, cloud->points, seq, part);
		return 0;
	}
	free(room->drawn);
	room->drawn = malloc((size_t)cloud->points * cloud->channels * sizeof(*room->drawn));
	if (!room->drawn)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the points");
	cloud_mesh_draw(&room->mesh, cloud, part->at, seq, room->drawn);
	part->at = room->drawn;
	part->n = cloud->points;
	return 0;
}
