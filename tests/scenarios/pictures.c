/* SPDX-License-Identifier: Apache-2.0 */

/* pictures DIR N CLASSES SIDE, pictures bomb|cmyk FILE: the rig's pictures, for scenarios in shell. */

#include "tests/scenarios/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	bool is_bomb = argc == 3 && strcmp(argv[1], "bomb") == 0;
	bool is_cmyk = argc == 3 && strcmp(argv[1], "cmyk") == 0;
	int error;

	if (argc != 5 && !is_bomb && !is_cmyk) {
		fputs("usage: pictures DIR N CLASSES SIDE\n       pictures bomb|cmyk FILE\n",
		      stderr);
		return 2;
	}
	if (argc == 3)
		error = is_bomb ? rig_write_bomb(argv[2]) : rig_write_cmyk(argv[2]);
	else
		error = rig_write_pictures(argv[1], (unsigned)atoi(argv[2]),
					   (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	if (error)
		fprintf(stderr, "pictures: %s\n", strerror(error));
	return error ? 1 : 0;
}
