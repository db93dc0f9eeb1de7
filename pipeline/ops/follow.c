/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes follow a picture through its ops, one op after the other: what an op cuts off is gone for those
 * behind it, so a map from the first picture to the last would not do. Draws are those of the pictures'
 * ops, made again of the same numbers (draw.h): no pixel is needed, and nothing is remembered but what boxes had a part in,
 * for the picture's ops.
 *
 * Boxes are anything that a data set's program wrote, NaN among them: fmax() and fmin() make numbers within
 * the picture of all of it.
 */

#include "pipeline/ops/follow.h"

#include <math.h>

#include "pipeline/ops/apply.h"
#include "pipeline/ops/op_run.h"

static float follow_within(double value, double most)
{
	return (float)fmin(fmax(value, 0), most);
}

/* A point that has left the picture is seen no more, whatever is put around that later. On its edge it is within, which is
 * what is asked of floats: what doubles are more, sums have rounded. */
static void follow_move_point(const struct follow *follow, float point[3], double x, double y)
{
	if (!isfinite((float)x) || !isfinite((float)y)) {
		memset(point, 0, 3 * sizeof(*point));
		return;
	}
	point[0] = (float)x;
	point[1] = (float)y;
	if (!(point[0] >= 0 && point[0] <= (float)follow->width && point[1] >= 0 &&
	      point[1] <= (float)follow->height))
		point[2] = 0;
}

void follow_window(struct follow *follow, double top, double left, double height, double width)
{
	for (uint64_t i = 0; i < follow->n; i++) {
		float *box = follow->box[i];

		box[0] = follow_within(box[0] - left, width);
		box[1] = follow_within(box[1] - top, height);
		box[2] = follow_within(box[2] - left, width);
		box[3] = follow_within(box[3] - top, height);
	}
	follow->height = height;
	follow->width = width;
	for (uint64_t i = 0; i < follow->n_rows * follow->n_points; i++) {
		float *point = follow->point[i];

		follow_move_point(follow, point, point[0] - left, point[1] - top);
	}
}

void follow_scale(struct follow *follow, double height, double width)
{
	const double across = width / follow->width, down = height / follow->height;

	for (uint64_t i = 0; i < follow->n; i++)
		for (unsigned k = 0; k < 4; k++)
			follow->box[i][k] = (float)(follow->box[i][k] * (k & 1 ? down : across));
	follow->height = height;
	follow->width = width;
	for (unsigned k = 0; k < 4; k++)
		follow->step[k] *= k < 2 ? across : down;
	for (uint64_t i = 0; i < follow->n_rows * follow->n_points; i++) {
		float *point = follow->point[i];

		follow_move_point(follow, point, point[0] * across, point[1] * down);
	}
}

/* Along one axis, 0: across, 1: down. */
static void follow_exchange(struct follow *follow, unsigned axis, double size)
{
	for (uint64_t i = 0; i < follow->n; i++) {
		const double first = follow->box[i][axis];

		follow->box[i][axis] = (float)(size - follow->box[i][axis + 2]);
		follow->box[i][axis + 2] = (float)(size - first);
	}
	for (uint64_t i = 0; i < follow->n_rows * follow->n_points; i++)
		follow->point[i][axis] = (float)(size - follow->point[i][axis]);
	for (unsigned k = 0; k < 2; k++)
		follow->step[2 * axis + k] = -follow->step[2 * axis + k];
	follow->is_mirrored = !follow->is_mirrored;
}

void follow_mirror(struct follow *follow)
{
	follow_exchange(follow, 0, follow->width);
}

void follow_turn_over(struct follow *follow)
{
	follow_exchange(follow, 1, follow->height);
}

/* Where (x, y) is by n, which is m the other way. */
static void follow_turned(const double n[8], double x, double y, double at[2])
{
	const bool is_flat = n[6] == 0 && n[7] == 0; /* no infinite box times 0 */
	const double by = is_flat ? 1 : n[6] * x + n[7] * y + 1;

	at[0] = (n[0] * x + n[1] * y + n[2]) / by;
	at[1] = (n[3] * x + n[4] * y + n[5]) / by;
}

static void follow_turn_step(const double n[8], double step[4])
{
	const double was[4] = {step[0], step[1], step[2], step[3]};

	for (unsigned k = 0; k < 2; k++) {
		step[k] = n[0] * was[k] + n[1] * was[2 + k];
		step[2 + k] = n[3] * was[k] + n[4] * was[2 + k];
	}
}

/* The smallest box around where its corners are. */
static void follow_turn_one(float box[4], const double n[8], double height, double width)
{
	double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};

	for (unsigned corner = 0; corner < 4; corner++) {
		double at[2];

		follow_turned(n, box[corner & 1 ? 2 : 0], box[corner & 2 ? 3 : 1], at);
		for (unsigned axis = 0; axis < 2; axis++) {
			least[axis] = fmin(least[axis], at[axis]);
			most[axis] = fmax(most[axis], at[axis]);
		}
	}
	box[0] = follow_within(least[0], width);
	box[1] = follow_within(least[1], height);
	box[2] = follow_within(most[0], width);
	box[3] = follow_within(most[1], height);
}

void follow_turn(struct follow *follow, const double m[8], double height, double width)
{
	const double one = m[0] * m[4] - m[1] * m[3];
	const double n[8] = {
	    (m[4] - m[5] * m[7]) / one,        (m[2] * m[7] - m[1]) / one,
	    (m[1] * m[5] - m[4] * m[2]) / one, (m[5] * m[6] - m[3]) / one,
	    (m[0] - m[2] * m[6]) / one,        (m[3] * m[2] - m[0] * m[5]) / one,
	    (m[3] * m[7] - m[4] * m[6]) / one, (m[1] * m[6] - m[0] * m[7]) / one,
	};

	for (uint64_t i = 0; i < follow->n; i++)
		if (one != 0)
			follow_turn_one(follow->box[i], n, height, width);
		else /* all of the picture comes from one place: nothing is seen of any */
			memset(follow->box[i], 0, sizeof(follow->box[i]));
	if (one != 0)
		follow_turn_step(n, follow->step);
	follow->height = height;
	follow->width = width;
	for (uint64_t i = 0; i < follow->n_rows * follow->n_points; i++) {
		double at[2] = {NAN, NAN};

		if (one != 0)
			follow_turned(n, follow->point[i][0], follow->point[i][1], at);
		follow_move_point(follow, follow->point[i], at[0], at[1]);
	}
}

unsigned follow_stop(const struct op_list *ops, const struct shape *shape)
{
	for (unsigned i = 1; i < shape->pixel_ops; i++) {
		const struct op_impl *impl = op_impl(ops->op[i].id);

		if (!impl->follow && !impl->stays)
			return i;
	}
	return ops->count;
}

/* Else the picture's op has refused it, or will. */
static bool follow_is_picture(const struct follow *follow)
{
	return follow->height >= 1 && follow->width >= 1 &&
	       follow->height * follow->width <= (double)OP_MAX_PIXELS;
}

/* What was the left eye is the right one. */
static void follow_flip(const struct follow *follow)
{
	for (uint64_t row = 0; row < follow->n_rows; row++)
		for (uint64_t i = 0; i < follow->n_points; i++) {
			float *one = follow->point[row * follow->n_points + i];
			float *other =
			    follow->point[row * follow->n_points + (uint64_t)follow->flip[i]];

			for (unsigned k = 0; k < 3 && one < other; k++) {
				const float held = one[k];

				one[k] = other[k];
				other[k] = held;
			}
		}
}

void follow_ops(const struct op_list *ops, const struct shape *shape, const struct draw *draw,
		struct follow *follow)
{
	follow_window(follow, 0, 0, follow->height, follow->width);
	follow->step[0] = follow->step[3] = 1;
	follow->step[1] = follow->step[2] = 0;
	for (unsigned i = 1; i < shape->pixel_ops && follow_is_picture(follow); i++) {
		const struct op_impl *impl = op_impl(ops->op[i].id);
		struct op_drawn drawn;

		if (!impl->follow || apply_skips(ops, i, draw))
			continue;
		op_draw(&ops->op[i], i, draw, (uint32_t)follow->height, (uint32_t)follow->width,
			&drawn);
		if (impl->choose) {
			draw_seq(draw, i, &drawn.seq);
			impl->choose(&ops->op[i], follow, &drawn);
			memcpy(follow->choices[i].number, drawn.number,
			       sizeof(follow->choices[i].number));
		}
		impl->follow(&ops->op[i], &drawn, follow);
	}
	if (follow->is_mirrored && follow->flip)
		follow_flip(follow);
}

bool follow_is_gone(const float box[4])
{
	return !(box[2] - box[0] >= 1 && box[3] - box[1] >= 1);
}
