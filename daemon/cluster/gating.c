/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate, seen from accessd. It reads what strangers send, so nothing that it says is more than text and numbers for
 * people: whom a domain is connected to is between it and the carriers.
 *
 * A gate that says FAILED was configured wrongly, and would fail again: it is not started anew, and the status says why.
 * One that dies is; its channels live on, as they are the carriers'.
 */
#include "daemon/cluster/gating.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/identity.h"
#include "base/json.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/cluster/everywhere.h"
#include "daemon/param.h"

#define ITEMS_TABLE "daemon/cluster/gating_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#define ITEMS_UNION said
#define ITEMS_KEY(KEY) GATE_KEY_##KEY
#define ITEMS_TYPE(NAME) GATE_##NAME
#define ITEMS_WHOSE "gate's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

#define GATING_NOBODY 65534U /* Debian's nobody and nogroup */
#define KEY_LEAST 32         /* bytes of a key file that can be a secret */
#define KEY_MOST 65536       /* of anything that is called a key or a certificate */
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static const char *const certificate_files[3] = {"cert.pem", "key.pem", "ca.pem"};
static const char *const states[] = {"known", "waits", "refused", "met"};

/* ---- messages to it ---- */

uint64_t gating_weight(const struct gating *gating)
{
	return BASE_MAX(gating->param->cache_size >> 20, UINT64_C(1));
}

void gating_domain(struct gating *gating, uint64_t number, const char *name, int gate_fd)
{
	keeper_tell(&gating->keeper, GATE_DOMAIN, WIRE_U64(GATE_KEY_DOMAIN, number),
		    WIRE_STRING(GATE_KEY_NAME, name),
		    WIRE_U64(GATE_KEY_WEIGHT, gating_weight(gating)), WIRE_FD(gate_fd));
	base_close(&gate_fd);
}

void gating_domain_end(struct gating *gating, uint64_t number)
{
	keeper_tell(&gating->keeper, GATE_DOMAIN_END, WIRE_U64(GATE_KEY_DOMAIN, number));
}

/* ---- messages from it ---- */

static struct gating_member *find(struct gating *gating, uint64_t id)
{
	for (unsigned i = 0; i < gating->n; i++)
		if (gating->member[i].id == id)
			return &gating->member[i];
	return NULL;
}

static bool on_member(struct gating *gating, const struct said_member *said)
{
	struct gating_member *member = find(gating, said->id);

	if (!member && gating->n == GATE_MOST_MEMBERS)
		return false;
	if (said->state >= BASE_ARRAY_LEN(states))
		return false;
	if (!member)
		member = &gating->member[gating->n++];
	*member = (struct gating_member){
	    .id = said->id, .incarnation = said->incarnation, .state = said->state};
	snprintf(member->node, sizeof(member->node), "%s", said->node);
	snprintf(member->address, sizeof(member->address), "%s", said->address);
	snprintf(member->why, sizeof(member->why), "%s", said->text ? said->text : "");
	return true;
}

static void on_member_gone(struct gating *gating, uint64_t id)
{
	struct gating_member *member = find(gating, id);

	if (member)
		*member = gating->member[--gating->n];
}

static bool on_message(void *arg, struct wire_in *in)
{
	struct gating *gating = arg;
	union said said;

	if (!keeper_reads(&gating->keeper, in, items_types, BASE_ARRAY_LEN(items_types), &said))
		return false;
	switch (in->type) {
	case GATE_READY:
		snprintf(gating->address, sizeof(gating->address), "%s", said.ready.address);
		log_line(LOG_LEVEL_INFO, "gate-ready", "address=\"%s\" node=\"%s\"",
			 gating->address, gating->name);
		break;
	case GATE_FAILED:
		snprintf(gating->why, sizeof(gating->why), "%s", said.failed.text);
		log_line(LOG_LEVEL_ERROR, "gate-failed", "text=\"%s\"", gating->why);
		break;
	case GATE_TROUBLE:
		snprintf(gating->trouble, sizeof(gating->trouble), "%s", said.trouble.text);
		break;
	case GATE_MEMBER:
		return on_member(gating, &said.member);
	case GATE_MEMBER_GONE:
		on_member_gone(gating, said.member_gone.id);
		break;
	default: /* of no type in the table */
		return false;
	}
	return true;
}

/* ---- life ---- */

static int start_process(void *arg, struct diag *diag)
{
	static const char *const arguments[] = {"access-gate", NULL};
	struct gating *gating = arg;
	const struct param *param = gating->param;
	int r = keeper_start(&gating->keeper, arguments, diag);

	if (r)
		return r;
	keeper_tell(&gating->keeper, GATE_START, WIRE_STRING(GATE_KEY_NODE, gating->name),
		    WIRE_STRING(GATE_KEY_CLUSTER, param->cluster_name),
		    WIRE_STRING(GATE_KEY_LISTEN, param->peer_listen),
		    WIRE_STRING(GATE_KEY_PEERS, param->peers),
		    WIRE_U64(GATE_KEY_INCARNATION, gating->incarnation),
		    WIRE_U64(GATE_KEY_SEALED, param->peer_crypt == PEER_CRYPT_ON),
		    WIRE_NONZERO(GATE_KEY_CERTIFICATES, gating->key_fd[1] >= 0),
		    WIRE_FD(gating->key_fd[0]), WIRE_FD(gating->key_fd[1]),
		    WIRE_FD(gating->key_fd[2]), WIRE_NONZERO(GATE_KEY_LOGIN, gating->login_fd >= 0),
		    WIRE_FD(gating->login_fd));
	return 0;
}

static void on_restarted(void *arg)
{
	const struct gating *gating = arg;

	gating->started(gating->arg);
}

static void on_died(void *arg, int status, uint64_t cpu_ns)
{
	struct gating *gating = arg;

	(void)cpu_ns;
	gating->n = 0;
	gating->trouble[0] = '\0';
	*gating->address = '\0';
	if (*gating->why) {
		keeper_lost(&gating->keeper);
		return;
	}
	gating->restarts++;
	keeper_died(&gating->keeper, status);
	keeper_again(&gating->keeper);
}

static const struct keeper_kind kind = {
    .name = "gate",
    .then = "another one is started",
    .start = start_process,
    .end = "end of the gate",
    .said = on_message,
    .died = on_died,
    .restarted = on_restarted,
};

/* ---- the configuration ---- */

static int fail_key(struct diag *diag, const char *path, const char *why)
{
	return diag_fail(
	    diag, -EINVAL,
	    "peers: the cluster's key %s %s; one is made by `(umask 077; head -c 48 /dev/urandom | "
	    "base64 >%s)` and copied to all nodes, for the user that accessd runs as",
	    path, why, path);
}

#define WHY 128 /* bytes of what is wrong with a file */

/* A secret that others can read is none. */
static int open_file(const char *path, bool is_secret, off_t least, int *ret, char why[WHY])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	const char *text = NULL;

	if (fd < 0 || fstat(fd, &status) < 0) {
		snprintf(why, WHY, "cannot be opened: %s", strerror(errno));
		return -EINVAL;
	}
	if (!S_ISREG(status.st_mode) || status.st_size > KEY_MOST)
		text = "is no small file";
	else if (status.st_size < least)
		text = "is shorter than 32 bytes";
	else if (is_secret && (status.st_mode & 077))
		text = "may be used by others (chmod 0400 it)";
	else if (is_secret && status.st_uid != geteuid() && status.st_uid != 0)
		text = "is another user's (chown it)";
	snprintf(why, WHY, "%s", text ? text : "");
	if (!text)
		*ret = base_take_fd(&fd);
	return text ? -EINVAL : 0;
}

static int open_key(const char *path, bool is_secret, int *ret, struct diag *diag)
{
	char why[WHY];

	return open_file(path, is_secret, is_secret ? KEY_LEAST : 0, ret, why)
		   ? fail_key(diag, path, why)
		   : 0;
}

/* What it says is the gate's to read. */
static int open_login(struct gating *gating, struct diag *diag)
{
	const char *path = gating->param->peer_etcd_login;
	char why[WHY] = "is of no use: peers is no etcd:URL";

	if (!*path || (strncmp(gating->param->peers, "etcd:", 5) == 0 &&
		       open_file(path, true, 0, &gating->login_fd, why) == 0))
		return 0;
	return diag_fail(diag, -EINVAL,
			 "parameter peer_etcd_login: %s %s; it is made by `(umask 077; echo "
			 "USER:PASSWORD >%s)`, for the user that accessd runs as",
			 path, why, path);
}

static int open_keys(struct gating *gating, struct diag *diag)
{
	const struct param *param = gating->param;
	const char *home = getenv("HOME"), *folder = param->peer_certificates;
	char path[PATH_MAX];
	int r = 0;

	for (unsigned i = 0; i < 3 && *folder && !r; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, certificate_files[i]);
		r = open_key(path, i == 1, &gating->key_fd[i], diag);
	}
	if (*folder)
		return r;
	if (*param->peer_key)
		snprintf(path, sizeof(path), "%s", param->peer_key);
	else if (gating->wants.is_private)
		snprintf(path, sizeof(path), "%s/.config/oneaccess/cluster.key", home ? home : "");
	else
		snprintf(path, sizeof(path), "%s", SYSCONFDIR "/accessd/cluster.key");
	return open_key(path, true, &gating->key_fd[0], diag);
}

static int name_node(struct gating *gating, struct diag *diag)
{
	const char *given = gating->param->node_name;
	struct hash_id hash;

	if (*given)
		snprintf(gating->name, sizeof(gating->name), "%.64s", given);
	else if (gethostname(gating->name, sizeof(gating->name) - 1))
		*gating->name = '\0';
	if (!*gating->name || *gating->name == '.' || strlen(given) >= sizeof(gating->name) ||
	    strspn(gating->name, NAME_CHARS) != strlen(gating->name))
		return diag_fail(diag, -EINVAL,
				 "parameter node_name: \"%s\" is no name of a node: at most 64 "
				 "letters, digits, and . _ -, no . in front",
				 *given ? given : gating->name);
	hash_of(gating->name, strlen(gating->name), &hash);
	memcpy(&gating->id, hash.bytes, sizeof(gating->id));
	return 0;
}

/* They are in a package of their own. */
static int find_programs(const struct gating *gating, struct diag *diag)
{
	static const char *const programs[] = {"access-gate", "access-carrier"};
	char path[PATH_MAX];
	struct diag why = {""};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(programs); i++)
		if (child_find(programs[i], gating->wants.is_private, path, sizeof(path), &why))
			return diag_fail(diag, -ENOENT,
					 "peers: %s; install the package oneaccess-cluster, or "
					 "leave `peers` empty",
					 why.text);
	return 0;
}

int gating_begin(struct gating *gating, const struct child_wants *wants, struct diag *diag)
{
	const struct param *param = wants->param;
	int r;

	gating->wants = *wants;
	gating->param = param;
	gating->keeper.child.sock = -1;
	if (!wants->is_private &&
	    identity_can_switch()) /* it reads what strangers send: as nobody */
		snprintf(gating->wants.as, sizeof(gating->wants.as), "%u:%u", GATING_NOBODY,
			 GATING_NOBODY);
	gating->key_fd[0] = gating->key_fd[1] = gating->key_fd[2] = gating->login_fd = -1;
	if (!*param->peers)
		return 0;
	r = name_node(gating, diag);
	r = r ? r : everywhere_check(param->cluster_paths, diag);
	r = r ? r : open_keys(gating, diag);
	r = r ? r : open_login(gating, diag);
	r = r ? r : base_random(&gating->incarnation, sizeof(gating->incarnation));
	gating->incarnation |= 1;
	r = r ? r : keeper_begin(&gating->keeper, &kind, gating, &gating->wants);
	r = r ? r : find_programs(gating, diag);
	return r ? r : start_process(gating, diag);
}

void gating_end(struct gating *gating)
{
	if (!gating_is_on(gating))
		return;
	keeper_end(&gating->keeper);
	child_end(&gating->keeper.child);
	for (unsigned i = 0; i < 3; i++)
		base_close(&gating->key_fd[i]);
	base_close(&gating->login_fd);
}

bool gating_is_on(const struct gating *gating)
{
	return gating->id != 0;
}

/* ---- for people ---- */

const char *gating_name_of(const struct gating *gating, uint64_t id, char ret[65])
{
	snprintf(ret, 65, "%016" PRIx64, id);
	for (unsigned i = 0; i < gating->n; i++)
		if (gating->member[i].id == id && *gating->member[i].node)
			return gating->member[i].node;
	return ret;
}

void gating_describe(const struct gating *gating, struct json_out *out)
{
	json_out_member_string(out, "node", gating->name);
	json_out_member_string(out, "address", gating->address);
	JSON_OUT_MEMBERS(out, gating->param, peers, cluster_paths);
	json_out_member_bool(out, "sealed", gating->param->peer_crypt == PEER_CRYPT_ON);
	json_out_member_string(out, "failed", gating->why);
	json_out_member_string(out, "trouble", gating->trouble);
	json_out_member_u64(out, "gate_pid", (uint64_t)gating->keeper.child.pid);
	json_out_member_u64(out, "gate_restarts", gating->restarts);
	json_out_member_array(out, "members");
	for (unsigned i = 0; i < gating->n; i++) {
		const struct gating_member *member = &gating->member[i];

		json_out_object_begin(out);
		JSON_OUT_MEMBERS(out, member, node, address);
		json_out_member_string(out, "state", states[member->state]);
		json_out_member_string(out, "why", member->why);
		json_out_object_end(out);
	}
	json_out_array_end(out);
}
