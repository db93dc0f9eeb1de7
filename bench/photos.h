/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Photographs in memory, and crops of them, for the measurements of pictures here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pipeline/picture.h"

struct photo {
	uint8_t *data;
	size_t size;
};

struct photos {
	struct photo *photo; /* owned, and their data */
	unsigned n;
};

/* Reads the files at paths (NULL ends them) and in folders there or below, by name, the first `most`
 * that are not empty and, unless it is NULL, that wants() takes. What cannot be read, or none at
 * all, ends the program with a word. */
void photos_read(char *const *paths, unsigned most,
		 bool (*wants)(void *closure, const struct photo *photo), void *closure,
		 struct photos *ret);
void photos_free(struct photos *photos);
/* As torchvision's RandomResizedCrop draws: 0.08 to 1 of the area, ratio 3/4 to 4/3. */
struct picture_box photos_crop(uint64_t round, unsigned index, uint32_t height, uint32_t width);
