/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of clients as plain structs, one for each type, made of message_tbl.h. What is in one has the size that the table
 * allows; what a number or a text means is for who uses it.
 */

#include "daemon/param.h"
#include "shmring/bad_page.h"
#include "shmring/proto.h"

#define MESSAGE_NONCE 16
#define MESSAGE_VERSION 32 /* a hash: of a dataset version, a group's name */
#define MESSAGE_SPLIT 24   /* from, to (doubles' bits), seed */
#define MESSAGE_FORM_MAX 23
#define MESSAGE_WHO_MAX 40 /* digits of a number, or a data set's name */

#define ITEMS_TABLE "daemon/net/message_tbl.h"
#define ITEMS_STRUCT(name) message_##name
#define ITEMS_UNION message
#include "base/items_structs_tbl.h"
#undef ITEMS_TABLE
#undef ITEMS_STRUCT
#undef ITEMS_UNION

/* A client may send the type. */
const struct items_type *message_type(uint16_t type);
/* Reads in into the member of its type; texts and bytes stay in's, and so do descriptors. 0, or WIRE_E_BAD
 * with diag: in is not what the table says, or of no type in it. */
int message_read(const struct wire_in *in, union message *ret, struct diag *diag);
