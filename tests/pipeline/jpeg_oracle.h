/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libjpeg-turbo as the quick JPEG decoder's oracle: whole pictures decoded as pipeline/formats/decode_jpeg.c
 * does, and files to decode made from noise and gradients.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oracle_picture { /* all zero at the start; the decoder makes room and keeps it */
	unsigned shift; /* the caller's: sides are halved so often */
	uint32_t height, width;
	uint8_t *rgb; /* three bytes a pixel */
	size_t room;
	long warnings; /* damage that libjpeg-turbo decoded around */
};

/* 0, or -1: refused, or the file ends too early. Pictures of more than most pixels: 1. */
int oracle_decode(const uint8_t *data, size_t size, uint64_t most, struct oracle_picture *picture);
void oracle_fini(struct oracle_picture *picture);

struct oracle_file {
	uint32_t height, width;
	int across, down; /* sampling factors of the first component; 0: grey */
	int quality;
	unsigned interval;    /* MCUs between restarts */
	bool is_optimised;    /* a code of its own */
	bool is_full_range;   /* steps of more than 255 at low qualities */
	uint32_t noise, seed; /* 0: a flat picture; 255: nothing but noise */
};

/* A JPEG file, to be freed. */
uint8_t *oracle_encode(const struct oracle_file *file, size_t *ret_size);
