/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's volumes: what is taken of them is known from their heads and the draws; then that box of the file is decoded, and each
 * place of the output gets its number from there, or what stands for the outside.
 */

#include "pipeline/forms/packed.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/volume/volume_inner.h"

int volume_room_new(struct volume_room **ret)
{
	struct volume_room *room = calloc(1, sizeof(*room));

	if (!room || decode_new(&room->labels) != 0) {
		free(room);
		return -ENOMEM;
	}
	*ret = room;
	return 0;
}

void volume_room_free(struct volume_room *room)
{
	if (!room)
		return;
	decode_free(room->labels);
	picture_buffer_fini(&room->memory);
	free(room);
}

void volume_close_labels(struct volume_room *room)
{
	decode_close(room->labels);
}

void volume_close(struct volume_room *room, struct decode *decode)
{
	decode_close(decode);
	decode_close(room->labels);
	picture_buffer_trim(&room->memory);
}

/* ---- files ---- */

static unsigned volume_count_of(const struct decode_numbers_head *head)
{
	return head->channels / head->depth;
}

int volume_open(struct volume_room *room, const struct volume *volume, struct decode *decode,
		const void *data, size_t size, struct pipeline_error *ret_error)
{
	int r = decode_numbers_open(decode, data, size, &room->head, ret_error);

	room->failed = 0;
	if (r == 0 && volume_count_of(&room->head) != volume->bands.channels)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "it has %u volumes, and not %u", volume_count_of(&room->head),
				   volume->bands.channels);
	return r;
}

int volume_open_further(struct volume_room *room, const struct volume *volume,
			struct decode *decode, const void *data, size_t size,
			struct pipeline_error *ret_error)
{
	const struct decode_numbers_head first = room->head, *its = &room->head;
	int r = volume_open(room, volume, decode, data, size, ret_error);

	if (r == 0 &&
	    (its->depth != first.depth || its->height != first.height || its->width != first.width))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%u x %u x %u, not %u x %u x %u",
				   its->depth, its->height, its->width, first.depth, first.height,
				   first.width);
	return r;
}

int volume_open_labels(struct volume_room *room, const void *data, size_t size,
		       struct pipeline_error *ret_error)
{
	const struct decode_numbers_head *head = &room->head;
	struct decode_numbers_head its;
	int r = decode_numbers_open(room->labels, data, size, &its, ret_error);

	if (r == 0 && (its.depth != head->depth || its.height != head->height ||
		       its.width != head->width || its.channels != its.depth))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "labels %u x %u x %u x %u, not %u x %u x %u",
				   volume_count_of(&its), its.depth, its.height, its.width,
				   head->depth, head->height, head->width);
	return r;
}

int volume_read(struct volume_room *room, struct decode *decode, unsigned volumes, unsigned first,
		unsigned depth, const struct picture_box *part, struct pipeline_error *ret_error)
{
	struct decode_numbers *to = &room->numbers;
	int r = picture_make(&room->memory, (uint64_t)volumes * depth * part->height, part->width,
			     &to->all);

	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for %u x %u x %u",
				   volumes * depth, part->height, part->width);
	to->part = *part;
	to->n = volumes * depth;
	for (unsigned i = 0; i < to->n; i++)
		to->channel[i] = (uint16_t)(i / depth * room->head.depth + first + i % depth);
	return decode_numbers(decode, to, ret_error);
}

/* ---- what is taken ---- */

int volume_choose(struct volume_room *room, const struct volume *volume, const struct op_list *ops,
		  const struct pipeline_key *key, struct pipeline_error *ret_error)
{
	const int64_t sides[VOLUME_AXES] = {room->head.depth, room->head.height, room->head.width};
	struct volume_part *part = &room->part;
	struct draw draw;
	int r = volume->by_labels ? volume_count_labels(room, ret_error) : 0;

	if (r != 0)
		return r;
	*part = (struct volume_part){.room = room};
	for (unsigned a = 0; a < VOLUME_AXES; a++) {
		part->axis[a] = (struct volume_axis){a, 0, 1, sides[a]};
		part->end[a] = sides[a];
	}
	draw_init(&draw, key);
	for (unsigned i = 1; i < ops->count; i++) {
		const struct op_impl *impl = op_impl(ops->op[i].id);
		struct op_drawn drawn;

		if (!impl->volume)
			continue;
		draw_seq(&draw, i, &drawn.seq);
		impl->volume(&ops->op[i], &drawn, part);
	}
	if (room->failed)
		*ret_error = room->error;
	return room->failed;
}

/* ---- from file to field ---- */

typedef bool volume_put_fn(void *arg, unsigned c, float number);

/* Of an axis of the output: the places whose number is in the file, and where it is in what was decoded: at + step i. */
struct volume_run {
	int64_t first, end, at, step;
};

static void volume_runs(const struct volume_part *part, const struct picture *all,
			struct volume_run ret[VOLUME_AXES])
{
	const int64_t rows = part->end[1] - part->least[1];
	const int64_t bytes[VOLUME_AXES] = {rows * (int64_t)all->stride, (int64_t)all->stride, 4};

	for (unsigned a = 0; a < VOLUME_AXES; a++) {
		const struct volume_axis *axis = &part->axis[a];
		const int64_t least = part->least[axis->of], end = part->end[axis->of];

		ret[a].at = (axis->first - least) * bytes[axis->of];
		ret[a].step = axis->step * bytes[axis->of];
		ret[a].first = axis->step > 0 ? least - axis->first : axis->first - end + 1;
		ret[a].end = ret[a].first + end - least;
	}
}

static bool volume_is_within(const struct volume_run *run, int64_t i)
{
	return i >= run->first && i < run->end;
}

/* In the order of the output; false: put said so. */
static bool volume_gather(const struct volume_room *room, unsigned volumes, float fill,
			  volume_put_fn *put, void *arg)
{
	const struct volume_part *part = &room->part;
	const struct picture *all = &room->numbers.all;
	const size_t volume = all->height / volumes * all->stride;
	struct volume_run run[VOLUME_AXES];
	bool is_good = true;

	volume_runs(part, all, run);
	for (unsigned c = 0; c < volumes; c++)
		for (int64_t z = 0; z < part->axis[0].size; z++)
			for (int64_t y = 0; y < part->axis[1].size; y++) {
				const bool is_row =
				    volume_is_within(&run[0], z) && volume_is_within(&run[1], y);
				const int64_t at = run[0].at + z * run[0].step + run[1].at +
						   y * run[1].step + run[2].at;

				for (int64_t x = 0; x < part->axis[2].size; x++) {
					float number = fill;

					if (is_row && volume_is_within(&run[2], x))
						memcpy(&number,
						       all->data + c * volume +
							   (at + x * run[2].step),
						       sizeof(number));
					is_good &= put(arg, c, number);
				}
			}
	return is_good;
}

static int volume_read_part(struct volume_room *room, struct decode *decode, unsigned volumes,
			    struct pipeline_error *ret_error)
{
	const int64_t *least = room->part.least, *end = room->part.end;
	const struct picture_box box = {(uint32_t)least[1], (uint32_t)least[2],
					(uint32_t)(end[1] - least[1]),
					(uint32_t)(end[2] - least[2])};

	for (unsigned axis = 0; axis < VOLUME_AXES; axis++)
		if (end[axis] <= least[axis]) { /* all of it lies outside */
			room->numbers.all = (struct picture){.data = NULL};
			return 0;
		}
	return volume_read(room, decode, volumes, (unsigned)least[0], (unsigned)(end[0] - least[0]),
			   &box, ret_error);
}

struct volume_output {
	const struct volume *volume;
	struct volume_part *part;
	enum pipeline_dtype dtype;
	bool is_normalized;
	uint8_t *at; /* moves on */
	unsigned bytes;
	uint64_t most; /* of labels */
};

static bool volume_put(void *arg, unsigned c, float number)
{
	struct volume_output *output = arg;

	for (unsigned i = 0; i < output->part->n_changes; i++) {
		struct volume_change *change = &output->part->change[i];

		if (change->is_noise)
			number += change->plus + draw_normal_float(&change->seq) * change->times;
		else
			number = number * change->times + change->plus;
	}
	if (output->is_normalized)
		number = (number - output->volume->mean[c]) / output->volume->std[c];
	bands_value(output->at, 0, output->dtype, number);
	output->at += output->bytes;
	return true;
}

int volume_image(struct volume_room *room, const struct volume *volume, const struct shape *shape,
		 struct decode *decode, void *out, struct pipeline_error *ret_error)
{
	struct volume_output output = {.volume = volume,
				       .part = &room->part,
				       .dtype = shape->dtype,
				       .is_normalized = shape->normalize != NULL,
				       .at = out,
				       .bytes = (unsigned)packed_dtype_bytes(shape->dtype)};
	int r;

	room->numbers.is_inverted = volume->bands.is_inverted;
	r = volume_read_part(room, decode, shape->channels, ret_error);
	if (r != 0)
		return r;
	bands_change(&volume->bands, &room->numbers.all);
	volume_gather(room, shape->channels, volume->fill, volume_put, &output);
	return 0;
}

/* A label is a whole number that its type has. */
static bool volume_put_label(void *arg, unsigned c, float number)
{
	struct volume_output *output = arg;
	const bool is_good = number >= 0 && number <= (float)output->most;
	const uint64_t label = is_good ? (uint64_t)number : 0; /* little endian, as records are */

	(void)c;
	memcpy(output->at, &label, output->bytes);
	output->at += output->bytes;
	return is_good && (float)label == number;
}

int volume_labels(struct volume_room *room, const struct pipeline_field *field, void *out,
		  struct pipeline_error *ret_error)
{
	struct volume_output output = {.at = out,
				       .bytes = (unsigned)packed_dtype_bytes(field->dtype),
				       .most =
					   field->dtype == PIPELINE_U8 ? UINT8_MAX : UINT16_MAX};
	int r;

	room->numbers.is_inverted = false;
	r = volume_read_part(room, room->labels, 1, ret_error);
	if (r == 0 && !volume_gather(room, 1, (float)field->fill, volume_put_label, &output))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "a label is none of 0 to %u",
				   (unsigned)output.most);
	return r;
}
