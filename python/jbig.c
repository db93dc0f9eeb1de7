/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libjbig in a wheel. Debian's libtiff loads that library, whose licence is the GPL; a wheel brings libtiff along, and
 * what is in a wheel is Apache's or freer. No picture of ours comes here: JBIG is none of the compressions that
 * pipeline/formats/decode_tiff.c takes. These are the functions that libtiff names, in the words of its calls.
 */
#include <stddef.h>

#define JBIG_LEFT_OUT 7 /* jbig.h: a feature that is not there */

void jbg_dec_init(void *state);
void jbg_dec_free(void *state);
int jbg_dec_in(void *state, unsigned char *data, size_t size, size_t *ret_taken);
unsigned char *jbg_dec_getimage(const void *state, int plane);
long jbg_dec_getsize(const void *state);
void jbg_enc_init(void *state);
void jbg_enc_out(void *state);
void jbg_enc_free(void *state);
int jbg_newlen(unsigned char *data, size_t size);
const char *jbg_strerror(int error);

void jbg_dec_init(void *state)
{
	(void)state;
}

void jbg_dec_free(void *state)
{
	(void)state;
}

int jbg_dec_in(void *state, unsigned char *data, size_t size, size_t *ret_taken)
{
	(void)state, (void)data, (void)size, (void)ret_taken;
	return JBIG_LEFT_OUT;
}

unsigned char *jbg_dec_getimage(const void *state, int plane)
{
	(void)state, (void)plane;
	return NULL;
}

long jbg_dec_getsize(const void *state)
{
	(void)state;
	return 0;
}

void jbg_enc_init(void *state)
{
	(void)state;
}

void jbg_enc_out(void *state)
{
	(void)state;
}

void jbg_enc_free(void *state)
{
	(void)state;
}

int jbg_newlen(unsigned char *data, size_t size)
{
	(void)data, (void)size;
	return JBIG_LEFT_OUT;
}

const char *jbg_strerror(int error)
{
	(void)error;
	return "JBIG is left out of OneAccess's wheel";
}
