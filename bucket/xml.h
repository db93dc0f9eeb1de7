/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * XML as object stores answer it: small trees without a DOCTYPE, so without entities of their own. Foreign text: depth,
 * names and texts are bounded.
 */

#include "base/base.h"

#define XML_MOST_DEPTH 16
#define XML_MOST_PATH 256
#define XML_MOST_TEXT 16384

/* An element has ended: path is its name behind those of the elements that it is in, "ListBucketResult/Contents/Key";
 * text is what stands in it, behind the last element inside it. Both are borrowed for the call. 0, or what xml_read() gives then. */
typedef int (*xml_fn)(void *arg, const char *path, const char *text);

/* 0; -EBADMSG with diag: it is no XML, or exceeds a bound; -ENOMEM; what fn said. */
int xml_read(const char *text, size_t size, xml_fn fn, void *arg, struct diag *diag);

/* Does the path end in these names, "Contents/Key"? */
bool xml_is(const char *path, const char *end);
