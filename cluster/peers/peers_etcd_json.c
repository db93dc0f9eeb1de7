/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster/peers/peers_etcd_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/json.h"

#define MOST_VALUE 4096 /* bytes of a key or a value */

/* Of base64 a text without NULs. false: it is none, or too long. */
static bool decode(const char *from, char *ret, size_t room)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t n;

	if (base64_read(from, strlen(from), &bytes, &n) || n >= room || memchr(bytes, '\0', n))
		return false;
	memcpy(ret, bytes, n);
	ret[n] = '\0';
	return true;
}

/* ---- questions ---- */

void peers_etcd_prefix(const char *cluster, char ret[PEERS_ETCD_PREFIX])
{
	snprintf(ret, PEERS_ETCD_PREFIX, "/oneaccess/%s/node/", cluster);
}

static char *done(struct json_out *out)
{
	char *text;

	json_out_object_end(out);
	return json_out_take(out, &text, NULL) ? NULL : text;
}

static void begin(struct json_out *out)
{
	json_out_init(out, false);
	json_out_object_begin(out);
}

static void put_encoded(struct json_out *out, const char *key, const char *text)
{
	_cleanup_free_ char *encoded = base64_of(text, strlen(text));

	json_out_member_string(out, key, encoded);
}

static void put_number(struct json_out *out, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	json_out_member_string(out, key, text);
}

/* All keys that begin with it: up to the prefix with its last byte made one larger. */
static void put_prefix(struct json_out *out, const char *prefix)
{
	char end[PEERS_ETCD_PREFIX];
	const size_t length = strlen(prefix);

	memcpy(end, prefix, length + 1);
	end[length - 1]++;
	put_encoded(out, "key", prefix);
	put_encoded(out, "range_end", end);
}

char *peers_etcd_ask_grant(unsigned ttl_s)
{
	struct json_out out;

	begin(&out);
	put_number(&out, "TTL", ttl_s);
	return done(&out);
}

char *peers_etcd_ask_lease(const char *lease)
{
	struct json_out out;

	begin(&out);
	json_out_member_string(&out, "ID", lease);
	return done(&out);
}

char *peers_etcd_ask_put(const char *prefix, const char *node, const char *address,
			 uint64_t incarnation, const char *lease)
{
	char key[PEERS_ETCD_PREFIX + GATE_HELLO_NAME + 1], number[24];
	_cleanup_free_ char *value = NULL;
	struct json_out out;

	begin(&out);
	json_out_member_string(&out, "address", address);
	snprintf(number, sizeof(number), "%" PRIx64, incarnation);
	json_out_member_string(&out, "incarnation", number);
	value = done(&out);
	snprintf(key, sizeof(key), "%s%s", prefix, node);
	begin(&out);
	put_encoded(&out, "key", key);
	put_encoded(&out, "value", value ? value : "");
	json_out_member_string(&out, "lease", lease);
	return done(&out);
}

char *peers_etcd_ask_range(const char *prefix)
{
	struct json_out out;

	begin(&out);
	put_prefix(&out, prefix);
	put_number(&out, "limit", PEERS_MOST);
	return done(&out);
}

char *peers_etcd_ask_token(const char *user, const char *password)
{
	struct json_out out;

	begin(&out);
	json_out_member_string(&out, "name", user);
	json_out_member_string(&out, "password", password);
	return done(&out);
}

char *peers_etcd_ask_watch(const char *prefix, uint64_t revision)
{
	struct json_out out;

	begin(&out);
	json_out_member_object(&out, "create_request");
	put_prefix(&out, prefix);
	put_number(&out, "start_revision", revision);
	json_out_object_end(&out);
	return done(&out);
}

/* ---- answers ---- */

static bool parse(const char *text, size_t size, struct json_in **ret)
{
	struct diag diag;

	return json_in_parse(text, size, PEERS_ETCD_MOST_ANSWER, ret, &diag) == 0;
}

/* A string of figures alone. */
static bool read_number(const struct json_in *value, uint64_t *ret)
{
	const char *text = json_in_string(value, "");
	uint64_t number;

	if (!base_parse_number(&text, INT64_MAX, &number) || *text)
		return false;
	*ret = number;
	return true;
}

int peers_etcd_read_grant(const char *text, size_t size, char ret_lease[24])
{
	_cleanup_json_ struct json_in *root = NULL;
	uint64_t lease = 0;

	if (!parse(text, size, &root))
		return PEERS_ETCD_E_BAD;
	if (read_number(json_in_member(root, "ID"), &lease))
		snprintf(ret_lease, 24, "%" PRIu64, lease);
	return lease ? 0 : PEERS_ETCD_E_BAD;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

int peers_etcd_read_token(const char *text, size_t size, char **ret)
{
	_cleanup_json_ struct json_in *root = NULL;
	const char *token;

	if (!parse(text, size, &root))
		return PEERS_ETCD_E_BAD;
	token = json_in_string(json_in_member(root, "token"), "");
	if (!*token || strlen(token) > PEERS_ETCD_MOST_TOKEN || !is_printable(token))
		return PEERS_ETCD_E_BAD;
	*ret = strdup(token);
	return *ret ? 0 : PEERS_ETCD_E_BAD;
}

void peers_etcd_read_refusal(const char *text, size_t size, char ret[PEERS_ETCD_REFUSAL])
{
	_cleanup_json_ struct json_in *root = NULL;
	const char *why = "";

	if (parse(text, size, &root))
		why = json_in_string(json_in_member(root, "message"), "");
	if (!*why && root)
		why = json_in_string(json_in_member(root, "error"), "");
	snprintf(ret, PEERS_ETCD_REFUSAL, "%s", *why ? why : "it says no, and not why");
	for (char *at = ret; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

int peers_etcd_read_keepalive(const char *text, size_t size)
{
	_cleanup_json_ struct json_in *root = NULL;
	uint64_t ttl = 0;

	if (!parse(text, size, &root))
		return PEERS_ETCD_E_BAD;
	read_number(json_in_member(json_in_member(root, "result"), "TTL"), &ttl);
	return ttl ? 0 : PEERS_ETCD_E_BAD;
}

static bool read_hex(const char *text, uint64_t *ret)
{
	char *end;

	if (strspn(text, "0123456789abcdef") != strlen(text) || strlen(text) < 1 ||
	    strlen(text) > 16)
		return false;
	*ret = strtoull(text, &end, 16);
	return *ret != 0;
}

/* What a node says of itself. */
static bool read_value(const char *text, struct peers_entry *ret)
{
	_cleanup_json_ struct json_in *root = NULL;

	return parse(text, strlen(text), &root) &&
	       peers_parse_address(json_in_string(json_in_member(root, "address"), ""),
				   &ret->address) &&
	       read_hex(json_in_string(json_in_member(root, "incarnation"), ""), &ret->incarnation);
}

/* {"key", "value"} of a node: the name behind the prefix. */
static bool read_kv(const struct json_in *kv, const char *prefix, bool is_gone,
		    struct peers_etcd_event *ret)
{
	char key[MOST_VALUE], value[MOST_VALUE];

	memset(ret, 0, sizeof(*ret));
	ret->is_gone = is_gone;
	if (!decode(json_in_string(json_in_member(kv, "key"), ""), key, sizeof(key)) ||
	    strncmp(key, prefix, strlen(prefix)) != 0 || !gate_hello_is_name(key + strlen(prefix)))
		return false;
	memcpy(ret->node, key + strlen(prefix), strlen(key + strlen(prefix)) + 1);
	memcpy(ret->entry.node, ret->node, sizeof(ret->node));
	return is_gone ||
	       (decode(json_in_string(json_in_member(kv, "value"), ""), value, sizeof(value)) &&
		read_value(value, &ret->entry));
}

int peers_etcd_read_range(const char *text, size_t size, const char *prefix, peers_etcd_fn fn,
			  void *arg, uint64_t *ret_revision)
{
	struct peers_etcd_event event;
	const struct json_in *kvs;
	_cleanup_json_ struct json_in *root = NULL;
	bool is_good;

	if (!parse(text, size, &root))
		return PEERS_ETCD_E_BAD;
	is_good =
	    read_number(json_in_member(json_in_member(root, "header"), "revision"), ret_revision);
	kvs = json_in_member(root, "kvs");
	for (size_t i = 0; is_good && i < json_in_count(kvs); i++)
		if (read_kv(json_in_item(kvs, i), prefix, false, &event))
			fn(arg, &event);
	return is_good ? 0 : PEERS_ETCD_E_BAD;
}

int peers_etcd_read_watch(const char *text, size_t size, const char *prefix, peers_etcd_fn fn,
			  void *arg)
{
	const struct json_in *result, *events;
	struct peers_etcd_event event;
	_cleanup_json_ struct json_in *root = NULL;
	bool is_good;

	if (!parse(text, size, &root))
		return PEERS_ETCD_E_BAD;
	result = json_in_member(root, "result");
	is_good = json_in_kind_of(result) == JSON_IN_OBJECT &&
		  !json_in_bool(json_in_member(result, "canceled"), false);
	events = json_in_member(result, "events");
	for (size_t i = 0; is_good && i < json_in_count(events); i++) {
		const struct json_in *one = json_in_item(events, i);
		const char *type = json_in_string(json_in_member(one, "type"), "PUT");

		if (read_kv(json_in_member(one, "kv"), prefix, strcmp(type, "DELETE") == 0, &event))
			fn(arg, &event);
	}
	return is_good ? 0 : PEERS_ETCD_E_BAD;
}
