/* SPDX-License-Identifier: Apache-2.0 */

/*
 * peers = etcd:URL,...: this node's key under a lease, and all nodes' keys in a table that follows a watch.
 *
 * A session with one of the URLs: a lease (the one that there is, if it lives), this node's key, the range of all keys, a
 * watch from behind it; then a sign of life each 3 s. Anything that goes wrong ends the session, and the next URL is
 * tried. Meanwhile the table stays. Where there is a login, a session begins with a token for it, and one that has expired
 * is replaced by another one on the way.
 *
 * A key that goes counts for KEEP_NS more, and one that is not there when a session begins for KEEP_LONG_NS. When an etcd
 * was paused, or came back empty, all keys go at once, and their nodes, which are well, write them again by their next
 * sign of life. Who is really gone does not answer, which costs nobody anything.
 */

#include <stdio.h>

#include "base/log.h"
#include "cluster/peers/peers_etcd_json.h"
#include "cluster/peers/peers_http.h"

#define LEASE_S 10
#define LIFE_NS UINT64_C(3000000000) /* between signs of life */
#define KEEP_NS UINT64_C(6000000000)
#define KEEP_LONG_NS UINT64_C(60000000000)
#define PATIENCE_MS 3000
#define PAUSE_MS 1000
#define MOST_URL 512

struct node {
	struct peers_entry entry;
	uint64_t gone_ns; /* when it is forgotten; 0: its key is there */
};

struct etcd {
	struct peers_look *look;
	struct peers_http *http;
	char prefix[PEERS_ETCD_PREFIX], url[MOST_URL], lease[24];
	struct node *nodes;
	size_t n, room;
	bool is_changed;
	bool is_told;         /* that there is trouble */
	bool is_refused_told; /* that it says no, which no other URL mends */
};

#define NO_TOKEN "invalid auth token"
#define NO_NAME "user name is empty"

/* ---- the table ---- */

static void on_event(void *arg, const struct peers_etcd_event *event)
{
	struct etcd *etcd = arg;
	size_t i = 0;

	while (i < etcd->n && strcmp(etcd->nodes[i].entry.node, event->node) != 0)
		i++;
	if (event->is_gone) {
		if (i < etcd->n)
			etcd->nodes[i].gone_ns = base_now_ns() + KEEP_NS;
		return;
	}
	if (i == PEERS_MOST ||
	    (i == etcd->n && !base_grow(&etcd->nodes, &etcd->room, i + 1, sizeof(*etcd->nodes))))
		return;
	etcd->n = BASE_MAX(etcd->n, i + 1);
	etcd->nodes[i] = (struct node){.entry = event->entry};
	etcd->is_changed = true;
}

static void forget(struct etcd *etcd, uint64_t now_ns)
{
	for (size_t i = etcd->n; i-- > 0;)
		if (etcd->nodes[i].gone_ns && etcd->nodes[i].gone_ns <= now_ns) {
			etcd->nodes[i] = etcd->nodes[--etcd->n];
			etcd->is_changed = true;
		}
}

static void publish(struct etcd *etcd)
{
	struct peers_found found = {NULL, 0, 0};

	forget(etcd, base_now_ns());
	if (!etcd->is_changed)
		return;
	etcd->is_changed = false;
	for (size_t i = 0; i < etcd->n; i++)
		peers_add(&found, &etcd->nodes[i].entry);
	etcd->look->publish(etcd->look, &found);
	free(found.entries);
}

/* ---- questions ---- */

static const char *mend_of(const struct etcd *etcd, const char *why)
{
	if (strstr(why, NO_NAME) && !*etcd->look->self->login)
		return ": it wants a user and a password: write USER:PASSWORD into a file, and its "
		       "path as peer_etcd_login into accessd.conf";
	if (strstr(why, "authentication failed"))
		return ": the user or the password in the file of peer_etcd_login is not right";
	if (strstr(why, "permission denied"))
		return ": the user's role lacks the keys; as root: etcdctl role grant-permission "
		       "ROLE readwrite /oneaccess/ --prefix";
	return "";
}

/* -EACCES: who this node is has been forgotten, or was not asked for before; -EPERM: any other no. The answer is freed. */
static int refused(const struct etcd *etcd, const char *url, char **answer, size_t size,
		   struct diag *diag)
{
	char why[PEERS_ETCD_REFUSAL];

	peers_etcd_read_refusal(*answer, size, why);
	free(*answer);
	*answer = NULL;
	diag_set(diag, "%s: %s%s", url, why, mend_of(etcd, why));
	return strstr(why, NO_TOKEN) || strstr(why, NO_NAME) ? -EACCES : -EPERM;
}

static int ask_once(struct etcd *etcd, const char *path, const char *body, char **ret,
		    size_t *ret_size, struct diag *diag)
{
	char url[MOST_URL + 64];
	int r;

	snprintf(url, sizeof(url), "%s/v3/%s", etcd->url, path);
	r = peers_http_post(etcd->http, url, body, PATIENCE_MS, PEERS_ETCD_MOST_ANSWER, ret,
			    ret_size, diag);
	return r == PEERS_HTTP_E_REFUSED ? refused(etcd, url, ret, *ret_size, diag) : r;
}

static int nonsense(const struct etcd *etcd, const char *path, struct diag *diag)
{
	return diag_fail(diag, -EBADMSG,
			 "%s/v3/%s: its answer makes no sense: is it an etcd of 3.4 or later?",
			 etcd->url, path);
}

/* Says who this node is, if it has a login and the etcd wants to know. */
static int log_in(struct etcd *etcd, struct diag *diag)
{
	const char *login = etcd->look->self->login, *colon = strchr(login, ':');
	_cleanup_free_ char *user = NULL, *body = NULL, *answer = NULL, *token = NULL;
	size_t size = 0;
	int r;

	if (!colon)
		return 0;
	user = strndup(login, (size_t)(colon - login));
	body = user ? peers_etcd_ask_token(user, colon + 1) : NULL;
	if (!body || peers_http_token(etcd->http, NULL))
		return -ENOMEM;
	r = ask_once(etcd, "auth/authenticate", body, &answer, &size, diag);
	explicit_bzero(body, strlen(body));
	if (r == -EPERM && strstr(diag->text, "authentication is not enabled"))
		return 0;
	if (!r && peers_etcd_read_token(answer, size, &token))
		r = nonsense(etcd, "auth/authenticate", diag);
	return r ? r : peers_http_token(etcd->http, token);
}

/* body is freed. */
static int ask(struct etcd *etcd, const char *path, char *body, char **ret, size_t *ret_size,
	       struct diag *diag)
{
	int r = body ? ask_once(etcd, path, body, ret, ret_size, diag) : -ENOMEM;

	if (r == -EACCES && *etcd->look->self->login) {
		r = log_in(etcd, diag);
		r = r ? r : ask_once(etcd, path, body, ret, ret_size, diag);
	}
	free(body);
	return r == -EACCES ? -EPERM : r;
}

static int sign_of_life(struct etcd *etcd, struct diag *diag)
{
	_cleanup_free_ char *answer = NULL;
	size_t size;
	int r =
	    ask(etcd, "lease/keepalive", peers_etcd_ask_lease(etcd->lease), &answer, &size, diag);

	if (r)
		return r;
	if (peers_etcd_read_keepalive(answer, size) == 0)
		return 0;
	etcd->lease[0] = '\0';
	return diag_fail(diag, -ESTALE,
			 "%s: this node's lease has expired: another one is asked for", etcd->url);
}

static int grant(struct etcd *etcd, struct diag *diag)
{
	_cleanup_free_ char *answer = NULL;
	size_t size;
	int r = ask(etcd, "lease/grant", peers_etcd_ask_grant(LEASE_S), &answer, &size, diag);

	if (!r && peers_etcd_read_grant(answer, size, etcd->lease))
		r = nonsense(etcd, "lease/grant", diag);
	return r;
}

/* Where others reach this node: as it listens, or from where it reaches etcd. */
static void own_address(const struct etcd *etcd, char ret[GATE_CALL_ADDRESS])
{
	const struct peers_self *self = etcd->look->self;
	const char *local = peers_http_local(etcd->http);

	if (!peers_is_any(&self->listen) || !*local)
		gate_address_text(&self->listen, ret);
	else
		snprintf(ret, GATE_CALL_ADDRESS, strchr(local, ':') ? "[%.45s]:%u" : "%.45s:%u",
			 local, gate_address_port(&self->listen));
}

static int put(struct etcd *etcd, struct diag *diag)
{
	const struct peers_self *self = etcd->look->self;
	_cleanup_free_ char *answer = NULL;
	char address[GATE_CALL_ADDRESS];
	size_t size;
	int r;

	own_address(etcd, address);
	r = ask(
	    etcd, "kv/put",
	    peers_etcd_ask_put(etcd->prefix, self->node, address, self->incarnation, etcd->lease),
	    &answer, &size, diag);
	if (!r)
		log_line(LOG_LEVEL_INFO, "etcd", "url=%s node=%s address=%s", etcd->url, self->node,
			 address);
	return r;
}

/* Keys that are not there are as good as deleted ones. */
static int range(struct etcd *etcd, uint64_t *ret_revision, struct diag *diag)
{
	_cleanup_free_ char *answer = NULL;
	size_t size;
	int r = ask(etcd, "kv/range", peers_etcd_ask_range(etcd->prefix), &answer, &size, diag);

	if (r)
		return r;
	for (size_t i = 0; i < etcd->n; i++)
		if (!etcd->nodes[i].gone_ns)
			etcd->nodes[i].gone_ns = base_now_ns() + KEEP_LONG_NS;
	if (peers_etcd_read_range(answer, size, etcd->prefix, on_event, etcd, ret_revision))
		return nonsense(etcd, "kv/range", diag);
	publish(etcd);
	return 0;
}

static bool on_line(void *arg, const char *line, size_t size)
{
	struct etcd *etcd = arg;

	return peers_etcd_read_watch(line, size, etcd->prefix, on_event, etcd) == 0;
}

static int watch(struct etcd *etcd, uint64_t revision)
{
	_cleanup_free_ char *body = peers_etcd_ask_watch(etcd->prefix, revision);
	char url[MOST_URL + 64];

	snprintf(url, sizeof(url), "%s/v3/watch", etcd->url);
	return body ? peers_http_open(etcd->http, url, body, PEERS_ETCD_MOST_LINE, on_line, etcd)
		    : -ENOMEM;
}

/* ---- sessions ---- */

static int begin_session(struct etcd *etcd, struct diag *diag)
{
	uint64_t revision;
	int r = log_in(etcd, diag);

	if (!r && *etcd->lease)
		r = sign_of_life(etcd, diag);
	if (!r ||
	    r ==
		-ESTALE) /* the key is written in any case: etcd may have come back with an old lease alone */
		r = *etcd->lease ? 0 : grant(etcd, diag);
	r = r ? r : put(etcd, diag);
	r = r ? r : range(etcd, &revision, diag);
	return r ? r : watch(etcd, revision + 1);
}

/* Until the end (0), or something goes wrong. */
static int session(struct etcd *etcd, struct diag *diag)
{
	uint64_t life_ns = base_now_ns() + LIFE_NS;
	int r = begin_session(etcd, diag);

	if (!r) {
		peers_tell(etcd->look, "");
		etcd->is_told = etcd->is_refused_told = false;
	}
	while (!r && !peers_wait(etcd->look, 0)) {
		const uint64_t now_ns = base_now_ns();

		if (now_ns >= life_ns) {
			life_ns = now_ns + LIFE_NS;
			r = sign_of_life(etcd, diag);
			continue;
		}
		r = peers_http_wait(etcd->http, (int)((life_ns - now_ns) / 1000000) + 1, diag);
		publish(etcd);
	}
	peers_http_close(etcd->http);
	return r;
}

static void leave(struct etcd *etcd)
{
	_cleanup_free_ char *answer = NULL;
	struct diag diag;
	size_t size;

	if (*etcd->lease)
		ask(etcd, "lease/revoke", peers_etcd_ask_lease(etcd->lease), &answer, &size, &diag);
}

/* Once, until it answers again; a no once more, as it may be behind one that does not answer. */
static void tell(struct etcd *etcd, int r, const struct diag *diag)
{
	if (etcd->is_told && (r != -EPERM || etcd->is_refused_told))
		return;
	etcd->is_told = true;
	etcd->is_refused_told |= r == -EPERM;
	peers_tell(etcd->look, diag->text);
}

/* The n-th of the list, from the beginning again behind the last; without a '/' at its end. */
static void choose_url(struct etcd *etcd, size_t n)
{
	const char *at = etcd->look->spec;
	size_t count = 1, size;

	for (const char *c = at; *c; c++)
		count += *c == ',';
	for (n %= count; n > 0; n--)
		at = strchr(at, ',') + 1;
	size = strcspn(at, ",");
	while (size > 0 && at[size - 1] == '/')
		size--;
	snprintf(etcd->url, sizeof(etcd->url), "%.*s", (int)size, at);
}

static void etcd_run(struct peers_look *look)
{
	struct etcd etcd = {.look = look};

	if (peers_http_new(look->stop_fd, &etcd.http)) {
		log_line(LOG_LEVEL_ERROR, "etcd", "why=\"there is no memory\"");
		return;
	}
	peers_etcd_prefix(look->self->cluster, etcd.prefix);
	for (size_t i = 0; !peers_wait(look, i ? PAUSE_MS : 0); i++) {
		struct diag diag = {"there is no memory"};
		int r;

		choose_url(&etcd, i);
		r = session(&etcd, &diag);
		if (r)
			tell(&etcd, r, &diag);
	}
	leave(&etcd);
	peers_http_free(etcd.http);
	free(etcd.nodes);
}

static bool is_url(const char *text, size_t size)
{
	const size_t scheme = strncmp(text, "http://", 7) == 0    ? 7
			      : strncmp(text, "https://", 8) == 0 ? 8
								  : 0;

	if (!scheme || size <= scheme || size >= MOST_URL)
		return false;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] > '~')
			return false;
	return true;
}

static int etcd_check(const char *spec, struct diag *diag)
{
	const char *at = spec;
	bool is_good = *spec != '\0';

	while (is_good && *at) {
		const size_t size = strcspn(at, ",");

		is_good = is_url(at, size);
		at += size + (at[size] == ',');
	}
	if (is_good)
		return peers_http_prepare(diag);
	return diag_fail(diag, -EINVAL,
			 "peers = etcd:%s: must be URLs of one etcd, as in "
			 "etcd:http://10.0.0.1:2379,http://10.0.0.2:2379",
			 spec);
}

const struct peers_kind peers_etcd = {"etcd", etcd_check, etcd_run};
