/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bytes of a HELLO. All of them are looked at: each text ends with a NUL inside its field and has zeros behind it, and
 * each number is one that its type may have, so that there is one way only to say a thing.
 */

#include "cluster/gate_hello.h"

#include "base/little.h"

#define MAGIC UINT32_C(0x3147414f) /* "OAG1" */

enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 8,
	AT_ANSWER = 12,
	AT_INCARNATION = 16,
	AT_WEIGHT = 24,
	AT_SEALED = 32,
	AT_PORT = 36,
	AT_CLUSTER = 40,
	AT_NODE = 112,
	AT_DOMAIN = 184,
	AT_ZEROS = 440,
};

bool gate_hello_is_name(const char *text)
{
	static const char of[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const size_t length = strlen(text);

	/* With a dot before it, a name would be any below it where a certificate is looked at. */
	return length >= 1 && length <= GATE_HELLO_NAME && *text != '.' &&
	       strspn(text, of) == length;
}

static bool is_domain(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return *text != '\0';
}

static void write_text(uint8_t *to, size_t room, const char *text)
{
	memcpy(to, text, BASE_MIN(strlen(text), room - 1));
}

/* room: of the field; size: of ret. */
static bool read_text(const uint8_t *from, size_t room, char *ret, size_t size)
{
	const size_t length = strnlen((const char *)from, room);

	if (length >= size)
		return false;
	for (size_t i = length; i < room; i++)
		if (from[i])
			return false;
	memcpy(ret, from, length);
	ret[length] = '\0';
	return true;
}

void gate_hello_write(const struct gate_hello *hello, uint8_t ret[GATE_HELLO_BYTES])
{
	memset(ret, 0, GATE_HELLO_BYTES);
	little_put_32(ret + AT_MAGIC, MAGIC);
	little_put_32(ret + AT_VERSION, hello->version);
	little_put_32(ret + AT_TYPE, hello->type);
	little_put_32(ret + AT_ANSWER, hello->answer);
	little_put_64(ret + AT_INCARNATION, hello->incarnation);
	little_put_64(ret + AT_WEIGHT, hello->weight);
	little_put_32(ret + AT_SEALED, hello->is_sealed);
	little_put_32(ret + AT_PORT, hello->port);
	write_text(ret + AT_CLUSTER, AT_NODE - AT_CLUSTER, hello->cluster);
	write_text(ret + AT_NODE, AT_DOMAIN - AT_NODE, hello->node);
	write_text(ret + AT_DOMAIN, AT_ZEROS - AT_DOMAIN, hello->domain);
}

void gate_hello_write_go(uint8_t ret[GATE_HELLO_GO_BYTES])
{
	memset(ret, 0, GATE_HELLO_GO_BYTES);
	little_put_32(ret + AT_MAGIC, MAGIC);
	little_put_32(ret + AT_VERSION, GATE_HELLO_VERSION);
	little_put_32(ret + AT_TYPE, GATE_HELLO_GO);
}

bool gate_hello_is_go(const uint8_t from[GATE_HELLO_GO_BYTES])
{
	uint8_t go[GATE_HELLO_GO_BYTES];

	gate_hello_write_go(go);
	return memcmp(from, go, sizeof(go)) == 0;
}

static bool has_zeros(const uint8_t *from)
{
	for (size_t i = AT_ZEROS; i < GATE_HELLO_BYTES; i++)
		if (from[i])
			return false;
	return true;
}

static bool read_texts(const uint8_t *from, struct gate_hello *ret)
{
	return read_text(from + AT_CLUSTER, AT_NODE - AT_CLUSTER, ret->cluster,
			 sizeof(ret->cluster)) &&
	       read_text(from + AT_NODE, AT_DOMAIN - AT_NODE, ret->node, sizeof(ret->node)) &&
	       read_text(from + AT_DOMAIN, AT_ZEROS - AT_DOMAIN, ret->domain,
			 sizeof(ret->domain)) &&
	       gate_hello_is_name(ret->cluster) && gate_hello_is_name(ret->node) &&
	       is_domain(ret->domain);
}

static bool fits(const struct gate_hello *hello, enum gate_hello_type type)
{
	if (hello->type != type || hello->answer >= GATE_ANSWERS || hello->incarnation == 0)
		return false;
	return (type == GATE_HELLO_CALL) == (hello->answer == GATE_ANSWER_NONE) &&
	       hello->weight != 0 && hello->weight <= UINT32_MAX && hello->port >= 1 &&
	       hello->port <= UINT16_MAX;
}

int gate_hello_read(const uint8_t from[GATE_HELLO_BYTES], enum gate_hello_type type,
		    struct gate_hello *ret)
{
	struct gate_hello hello = {
	    .version = little_32(from + AT_VERSION),
	    .type = little_32(from + AT_TYPE),
	    .answer = little_32(from + AT_ANSWER),
	    .port = little_32(from + AT_PORT),
	    .incarnation = little_64(from + AT_INCARNATION),
	    .weight = little_64(from + AT_WEIGHT),
	    .is_sealed = little_32(from + AT_SEALED) == 1,
	};

	if (little_32(from + AT_MAGIC) != MAGIC)
		return GATE_HELLO_E_BAD;
	if (hello.version != GATE_HELLO_VERSION) {
		ret->version = hello.version;
		return GATE_HELLO_E_VERSION;
	}
	if (little_32(from + AT_SEALED) > 1 || !has_zeros(from) || !read_texts(from, &hello) ||
	    !fits(&hello, type))
		return GATE_HELLO_E_BAD;
	*ret = hello;
	return 0;
}
