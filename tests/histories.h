/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A test that makes up thousands of histories asks a plain build about our logic, and that runs them all. With sanitizers each
 * takes three times as long, and a quarter of them comes through the same lines.
 */
#ifdef __has_feature /* as clang says it */
#if __has_feature(address_sanitizer)
#define HISTORIES_HAVE_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(HISTORIES_HAVE_ASAN)
#define HISTORIES_ARE_FEW 1
#define HISTORIES_OF(n) (((n) + 3) / 4)
#else
#define HISTORIES_ARE_FEW 0
#define HISTORIES_OF(n) (n)
#endif
