/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of clients: rows and structs of one table. Behind message_read() nobody sees a length that a
 * client wrote.
 */
#include "daemon/net/message.h"

#define ITEMS_TABLE "daemon/net/message_tbl.h"
#define ITEMS_STRUCT(name) message_##name
#define ITEMS_KEY(KEY) PROTO_KEY_##KEY
#define ITEMS_TYPE(NAME) PROTO_##NAME
#define ITEMS_WHOSE "client's "
#include "base/items_types_tbl.h"

const struct items_type *message_type(uint16_t type)
{
	return &items_types[type];
}

int message_read(const struct wire_in *in, union message *ret, struct diag *diag)
{
	return items_read(in, items_types, BASE_ARRAY_LEN(items_types), ret, diag);
}
