/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two small floats, float16 and bfloat16, as their bits. Rounding is to the nearest, ties to
 * even. Without branches, so that loops over them become vectors, and without a float32 below the
 * normal ones on the way, so that a program that has those flushed to zero gets the same values.
 */

#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float half_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The nearest float16; infinity from 65520 on. */
static inline uint16_t half_f16(float value)
{
	const uint32_t magic = (127 - 15 + 23 - 10 + 1) << 23; /* 0.5: its last bit is 2^-24 */
	uint32_t sign = half_bits(value) >> 16 & 0x8000, bits = half_bits(value) & 0x7fffffff;
	uint32_t small = half_bits(half_float(bits) + half_float(magic)) - magic;
	uint32_t usual = (bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13;
	uint32_t rest = bits < 113u << 23 ? small : usual;

	rest = bits >= 143u << 23 ? 0x7c00 : rest;
	rest = bits > 0x7f800000 ? 0x7e00 : rest;
	return (uint16_t)(sign | rest);
}

static inline float half_f16_value(uint16_t half)
{
	const uint32_t magic = 113u << 23; /* 2^-14, the least normal float16 */
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
	uint32_t small = half_bits(half_float(rest + magic) - half_float(magic));
	uint32_t usual = rest + (112u << 23);

	usual += rest >= 31u << 23 ? 112u << 23 : 0; /* infinity, no number */
	return half_float(sign | (rest < 1u << 23 ? small : usual));
}

/* The nearest bfloat16: the upper half of a float32. */
static inline uint16_t half_bf16(float value)
{
	uint32_t bits = half_bits(value);
	uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

static inline float half_bf16_value(uint16_t half)
{
	return half_float((uint32_t)half << 16);
}
