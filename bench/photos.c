/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/photos.h"

#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/philox.h"

static _Noreturn void photos_die(const char *what)
{
	fprintf(stderr, "%s: it cannot be read\n", what);
	exit(1);
}

static struct photo photos_load(const char *path, size_t size)
{
	struct photo photo = {malloc(size), size};
	FILE *in = fopen(path, "rb");

	if (!photo.data || !in || fread(photo.data, 1, size, in) != size)
		photos_die(path);
	fclose(in);
	return photo;
}

static int photos_by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

void photos_read(char *const *paths, unsigned most,
		 bool (*wants)(void *closure, const struct photo *photo), void *closure,
		 struct photos *ret)
{
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, photos_by_name);
	const FTSENT *entry;
	struct photo photo;

	*ret = (struct photos){.n = 0};
	while (walk && ret->n < most && (entry = fts_read(walk))) {
		if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR)
			photos_die(entry->fts_path);
		if (entry->fts_info != FTS_F || entry->fts_statp->st_size == 0)
			continue;
		photo = photos_load(entry->fts_path, (size_t)entry->fts_statp->st_size);
		if (wants && !wants(closure, &photo)) {
			free(photo.data);
			continue;
		}
		ret->photo = realloc(ret->photo, (ret->n + 1) * sizeof(photo));
		if (!ret->photo)
			photos_die(entry->fts_path);
		ret->photo[ret->n++] = photo;
	}
	if (ret->n == 0)
		photos_die(paths[0]);
	fts_close(walk);
}

void photos_free(struct photos *photos)
{
	for (unsigned i = 0; i < photos->n; i++)
		free(photos->photo[i].data);
	free(photos->photo);
}

struct picture_box photos_crop(uint64_t round, unsigned index, uint32_t height, uint32_t width)
{
	struct philox_seq seq;

	philox_seq_init(&seq, round, index, 0);
	for (unsigned i = 0; i < 10; i++) {
		double area = (double)height * width * (0.08 + 0.92 * philox_unit(&seq));
		double aspect = exp(log(0.75) + log(16 / 9.0) * philox_unit(&seq));
		double w = rint(sqrt(area * aspect)), h = rint(sqrt(area / aspect));

		if (w >= 1 && w <= width && h >= 1 && h <= height)
			return (struct picture_box){
			    (uint32_t)philox_below(&seq, height - (uint32_t)h + 1),
			    (uint32_t)philox_below(&seq, width - (uint32_t)w + 1), (uint32_t)h,
			    (uint32_t)w};
	}
	return (struct picture_box){0, 0, height, width};
}
