/* SPDX-License-Identifier: Apache-2.0 */

/* pictures DIR N CLASSES SIDE, pictures bomb|cmyk|progressive FILE: the rig's pictures, for scenarios in shell. */

#include "tests/scenarios/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	int error;

	if (strcmp(what, "bomb") == 0) {
		error = rig_write_bomb(argv[2]);
	} else if (strcmp(what, "cmyk") == 0) {
		error = rig_write_cmyk(argv[2]);
	} else if (strcmp(what, "progressive") == 0) {
		error = rig_write_progressive(argv[2], 1, 100);
	} else if (argc != 5) {
		fputs("usage: pictures DIR N CLASSES SIDE\n       pictures bomb|cmyk|progressive "
		      "FILE\n",
		      stderr);
		return 2;
	} else {
		error = rig_write_pictures(argv[1], (unsigned)atoi(argv[2]),
					   (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	}
	if (error)
		fprintf(stderr, "pictures: %s\n", strerror(error));
	return error ? 1 : 0;
}
