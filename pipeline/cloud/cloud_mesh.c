/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points on the surface of a mesh. Faces become triangles, as a fan of their corners; a point is drawn uniformly on all of them together:
 * its triangle by area, from the sums of these, and its place in it by two numbers, which are folded back where they lead beyond (as
 * trimesh.sample.sample_surface and PyG's SamplePoints do). Areas, places and normals are computed in double.
 *
 * Points that are always the same (pick "even") take the triangle in the middle of n equal parts of the area, and in it the places of a
 * sequence of low discrepancy (Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018: R2).
 */

#include "pipeline/cloud/cloud_file.h"

#include <math.h>

#define MESH_FIRST 1024              /* triangles that there is room for at the beginning */
#define MESH_KEPT (16u << 20)        /* bytes whose room stays from mesh to mesh */
#define MESH_R2_A 0.7548776662466927 /* 1 / p and 1 / p^2 of the p with p^3 = p + 1 */
#define MESH_R2_B 0.5698402909980532

void cloud_mesh_fini(struct cloud_mesh *mesh)
{
	free(mesh->triangle);
	free(mesh->sums);
	*mesh = (struct cloud_mesh){.n = 0};
}

void cloud_mesh_begin(struct cloud_mesh *mesh)
{
	if (mesh->room > MESH_KEPT / sizeof(*mesh->triangle))
		cloud_mesh_fini(mesh);
	mesh->n = 0;
}

static bool mesh_grow(struct cloud_mesh *mesh)
{
	const size_t room = mesh->room ? 2 * mesh->room : MESH_FIRST;
	struct cloud_triangle *triangle;
	double *sums;

	if (mesh->n < mesh->room)
		return true;
	triangle = realloc(mesh->triangle, room * sizeof(*triangle));
	mesh->triangle = triangle ? triangle : mesh->triangle;
	sums = triangle ? realloc(mesh->sums, room * sizeof(*sums)) : NULL;
	mesh->sums = sums ? sums : mesh->sums;
	mesh->room = sums ? room : mesh->room;
	return sums != NULL;
}

int cloud_mesh_add(struct cloud_mesh *mesh, struct cloud_face *face, uint64_t corner,
		   uint64_t points, struct pipeline_error *ret_error)
{
	if (corner >= points)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "a face has a corner that is no vertex");
	if (face->n == 0)
		face->first = (uint32_t)corner;
	if (face->n >= 2) {
		if (mesh->n >= CLOUD_MOST_READ / 3)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "%zu triangles are too many", mesh->n);
		if (!mesh_grow(mesh))
			return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0,
					   "no memory for the faces");
		mesh->triangle[mesh->n++] =
		    (struct cloud_triangle){{face->first, face->last, (uint32_t)corner}};
	}
	face->last = (uint32_t)corner;
	face->n += face->n < 2;
	return 0;
}

/* ---- areas ---- */

struct mesh_sides {
	const float *at;
	double one[3], other[3], normal[3]; /* normal: as long as twice the area */
};

static void mesh_sides(const float *points, const struct cloud_triangle *triangle,
		       struct mesh_sides *ret)
{
	const float *corner[3];

	for (unsigned i = 0; i < 3; i++)
		corner[i] = points + (size_t)3 * triangle->corner[i];
	ret->at = corner[0];
	for (unsigned k = 0; k < 3; k++) {
		ret->one[k] = (double)corner[1][k] - (double)corner[0][k];
		ret->other[k] = (double)corner[2][k] - (double)corner[0][k];
	}
	for (unsigned k = 0; k < 3; k++) {
		const unsigned u = (k + 1) % 3, v = (k + 2) % 3;

		ret->normal[k] = ret->one[u] * ret->other[v] - ret->one[v] * ret->other[u];
	}
}

static double mesh_length(const double v[3])
{
	return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

int cloud_mesh_measure(struct cloud_mesh *mesh, const float *points,
		       struct pipeline_error *ret_error)
{
	double sum = 0;

	for (size_t i = 0; i < mesh->n; i++) {
		struct mesh_sides sides;
		double area;

		mesh_sides(points, &mesh->triangle[i], &sides);
		area = mesh_length(sides.normal);
		sum += isfinite(area) ? area : 0; /* with a corner that is nowhere */
		mesh->sums[i] = sum;
	}
	if (sum > 0)
		return 0;
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
			   mesh->n > 0 ? "its faces have no area" : "it has no faces");
}

/* ---- points ---- */

/* The first whose sum is greater: none without an area is. */
static size_t mesh_find(const struct cloud_mesh *mesh, double sum)
{
	size_t from = 0, to = mesh->n - 1;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (mesh->sums[middle] > sum)
			to = middle;
		else
			from = middle + 1;
	}
	while (from > 0 && mesh->sums[from] == mesh->sums[from - 1]) /* rounded up to all of it */
		from--;
	return from;
}

static void mesh_put(const struct cloud *cloud, const struct mesh_sides *sides, double a, double b,
		     float *to)
{
	const double length = mesh_length(sides->normal);

	for (unsigned k = 0; k < 3; k++) {
		to[k] = (float)((double)sides->at[k] + a * sides->one[k] + b * sides->other[k]);
		if (cloud->normals > 0)
			to[cloud->normals + k] = (float)(sides->normal[k] / length);
	}
}

static double mesh_fraction(double x)
{
	return x - floor(x);
}

void cloud_mesh_draw(const struct cloud_mesh *mesh, const struct cloud *cloud, const float *points,
		     struct philox_seq *seq, float *to)
{
	const double all = mesh->sums[mesh->n - 1];

	for (uint32_t i = 0; i < cloud->points; i++, to += cloud->channels) {
		struct mesh_sides sides;
		double at, a, b;

		if (cloud->pick == CLOUD_RANDOM) {
			at = philox_unit(seq);
			a = philox_unit(seq);
			b = philox_unit(seq);
		} else {
			at = ((double)i + 0.5) / (double)cloud->points;
			a = mesh_fraction((double)(i + 1) * MESH_R2_A);
			b = mesh_fraction((double)(i + 1) * MESH_R2_B);
		}
		mesh_sides(points, &mesh->triangle[mesh_find(mesh, at * all)], &sides);
		if (a + b > 1)
			mesh_put(cloud, &sides, 1 - a, 1 - b, to);
		else
			mesh_put(cloud, &sides, a, b, to);
	}
}
