/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may keep how much. LMDB's map is a limit for as long as a store is open, so a share is given once, when
 * a domain comes, and cannot be taken back while it is there. That is why not all is given to the first:
 * the last quarter of `cache_size` is divided among all that can be served at once (`tenants`, and data that
 * are open to everybody), and that share nobody else gets. From the rest each takes as much as one may
 * have (`tenant_cache`) while it lasts. Who comes with several groups has a domain for each, and these have one
 * share. A domain that nobody uses is ended, as it soon would be, before somebody gets less than that.
 *
 * Nobody is waited for: looking at what rests, and deleting some of it, which can take seconds on a slow disk,
 * is done by a child, one at a time; those who came meanwhile get the next. A folder is made only after the look
 * at which its domain was known, so a look never deletes one that somebody is about to use.
 */
#include "daemon/cache/stores.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/chores.h"
#include "daemon/cache/prune.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "storage/store.h"

#define STORES_KEPT_BACK 4 /* one of so many parts is kept back for those who come later */
#define STORES_PATIENCE_NS UINT64_C(10000000000) /* at our own end, with a child that was killed */

static const char *key_of(const struct domain *domain, char ret[IDENTITY_TEXT_MAX])
{
	domain_key(domain, ret);
	if (!*ret)
		snprintf(ret, IDENTITY_TEXT_MAX, "own");
	return ret;
}

/* ---- shares ---- */

uint64_t stores_sure(const struct stores_rule *rule)
{
	return BASE_MIN(rule->size / STORES_KEPT_BACK / BASE_MAX(rule->users, 1u), rule->most);
}

uint64_t stores_share(const struct stores_rule *rule, uint64_t given, unsigned n)
{
	const uint64_t left = rule->size - BASE_MIN(given, rule->size), sure = stores_sure(rule);
	const uint64_t later = rule->users > n + 1 ? sure * (rule->users - n - 1) : 0;
	uint64_t share = left > later ? left - later : 0;

	share = BASE_MAX(share, BASE_MIN(sure - BASE_MIN(sure, rule->his), left));
	return BASE_MIN(share, rule->most - BASE_MIN(rule->most, rule->his));
}

static bool has_limit(const struct domain *domain)
{
	return domain->disk_cache.share == DISK_CACHE_LOOKS ||
	       domain->disk_cache.share == DISK_CACHE_HAS;
}

/* What his other domains have. */
static uint64_t given_beside(const struct domain *domain)
{
	uint64_t bytes = 0;

	BASE_EACH(other, &domain->node->domains, link)
		if (other != domain && has_limit(other) && tenant_is_same(domain, other))
			bytes += other->disk_cache.limit;
	return bytes;
}

static struct stores_rule stores_rule_of(const struct domain *domain)
{
	const struct param *param = &domain->node->param;
	struct stores_rule rule = {
	    .size = param->cache_size, .most = param->cache_size, .users = 1};

	if (domain->kind == DOMAIN_OWN)
		return rule;
	rule.most = tenant_cache_most(domain);
	rule.users = (unsigned)param->tenants + 1 + param->named.n;
	rule.his = given_beside(domain);
	return rule;
}

static uint64_t given(const struct node *node)
{
	uint64_t bytes = 0;

	BASE_EACH(domain, &node->domains, link)
		bytes += has_limit(domain) ? domain->disk_cache.limit : 0;
	return bytes;
}

static bool is_first_of_user(const struct domain *domain)
{
	const struct domain *other = LIST_FIRST(&domain->node->domains);

	while (!has_limit(other) || !tenant_is_same(domain, other))
		other = LIST_NEXT(other, link);
	return other == domain;
}

/* Users beside that one who have something; domain has no limit yet. */
static unsigned others_of(const struct domain *domain)
{
	unsigned n = 0;

	BASE_EACH(other, &domain->node->domains, link)
		n += has_limit(other) && !tenant_is_same(domain, other) && is_first_of_user(other);
	return n;
}

/* ---- asking ---- */

void stores_ask(struct domain *domain)
{
	if (domain->disk_cache.rings_fd < 0 || domain->disk_cache.share != DISK_CACHE_ALONE)
		return;
	domain->disk_cache.share = DISK_CACHE_ASKS;
	loop_timer_set(domain->node->stores->soon, 0);
}

static void refuse(struct domain *domain, const char *why)
{
	struct disk_cache *disk_cache = &domain->disk_cache;

	disk_cache->share = DISK_CACHE_REFUSED;
	disk_cache->limit = 0;
	snprintf(disk_cache->why, sizeof(disk_cache->why), "%s", why);
	log_line(LOG_LEVEL_WARN, "store-off", "uid=%u reason=\"%s\"", (unsigned)domain->who.uid,
		 why);
	chores_fail(domain, why);
	BASE_EACH(stream, &domain->streams, link)
		stream_turn_soon(stream);
}

static void refuse_small(struct domain *domain, uint64_t limit)
{
	char why[sizeof(domain->disk_cache.why)];

	snprintf(why, sizeof(why),
		 "cache_size has %llu bytes left for it, and a store has 1 MiB at least: raise "
		 "cache_size, or lower `tenants` or tenant_cache",
		 (unsigned long long)limit);
	refuse(domain, why);
}

static struct domain *next_asking(const struct node *node)
{
	BASE_EACH(domain, &node->domains, link)
		if (domain->disk_cache.share == DISK_CACHE_ASKS)
			return domain;
	return NULL;
}

/* Gives each one that asks a share, of which it is not known yet whether stores that rest leave it. */
static bool give(struct node *node)
{
	struct domain *domain;
	bool any = false;

	while ((domain = next_asking(node))) {
		const struct stores_rule rule = stores_rule_of(domain);
		const uint64_t share = stores_share(&rule, given(node), others_of(domain));

		if (rule.his > 0 && node->stores->end_idle(node, &domain->who))
			continue;
		if (share < rule.most - BASE_MIN(rule.most, rule.his) &&
		    node->stores->end_idle(node, NULL))
			continue;
		if (share < STORE_LIMIT_MIN) {
			refuse_small(domain, share);
			continue;
		}
		domain->disk_cache.limit = share;
		domain->disk_cache.share = DISK_CACHE_LOOKS;
		any = true;
	}
	return any;
}

/* ---- looking ---- */

static bool is_served(void *arg, const char *key)
{
	const struct node *node = arg;
	char name[IDENTITY_TEXT_MAX];

	BASE_EACH(domain, &node->domains, link)
		if (has_limit(domain) && strcmp(key_of(domain, name), key) == 0)
			return true;
	return false;
}

/* Ends with an errno as its status: all are below 256. */
static void look_in_child(struct node *node, pid_t accessd)
{
	struct prune_report *report = node->stores->report;

	child_settle(accessd, -1);
	_exit(-prune_stores(node->place.stores, node->stores->most, is_served, node, report));
}

static void end_look(struct node *node, int error);

static void on_soon(void *arg)
{
	struct node *node = arg;
	pid_t accessd = getpid(), pid;
	uint64_t bytes;

	if (node->stores->pid || node->draining || !give(node))
		return;
	bytes = given(node);
	node->stores->most = node->param.cache_size - BASE_MIN(bytes, node->param.cache_size);
	pid = fork();
	if (pid == 0)
		look_in_child(node, accessd);
	node->stores->pid = BASE_MAX(pid, 0);
	if (pid < 0)
		end_look(node, errno);
}

void stores_tell(struct domain *domain)
{
	struct disk_cache *disk_cache = &domain->disk_cache;
	char key[IDENTITY_TEXT_MAX];
	const struct disk_cache_at at = {domain->node->place.stores, key_of(domain, key),
					 domain->kind == DOMAIN_OWN};
	_cleanup_close_ int fd = disk_cache_open_folder(disk_cache, &at);
	const struct reading_place place = {.folder_fd = fd,
					    .why = disk_cache->why,
					    .limit = disk_cache->limit,
					    .is_suspect = disk_cache->suspect};

	if (disk_cache->rings_fd >= 0)
		reading_store(&domain->reading, &place);
}

static void begin(struct domain *domain)
{
	domain->disk_cache.share = DISK_CACHE_HAS;
	stores_tell(domain);
	BASE_EACH(stream, &domain->streams, link)
		cache_settle(stream);
}

/* Nobody knows how much of the disk is left. */
static void begin_unseen(struct domain *domain, int error)
{
	struct disk_cache *disk_cache = &domain->disk_cache;

	disk_cache->limit = 0;
	snprintf(disk_cache->why, sizeof(disk_cache->why),
		 "the folder %.128s cannot be looked at: %s", domain->node->place.stores,
		 strerror(error));
	begin(domain);
}

/* What could not be deleted is taken off the shares of those who came. */
static void end_look(struct node *node, int error)
{
	const uint64_t resting = node->stores->resting, most = node->stores->most;
	uint64_t over = resting > most ? resting - most : 0;

	BASE_EACH(domain, &node->domains, link) {
		uint64_t cut = BASE_MIN(over, domain->disk_cache.limit);

		if (domain->disk_cache.share != DISK_CACHE_LOOKS)
			continue;
		over -= cut;
		domain->disk_cache.limit -= cut;
		if (error)
			begin_unseen(domain, error);
		else if (domain->disk_cache.limit < STORE_LIMIT_MIN)
			refuse_small(domain, domain->disk_cache.limit);
		else
			begin(domain);
	}
	if (next_asking(node))
		loop_timer_set(node->stores->soon, 0);
}

static void take_report(struct stores *stores)
{
	const struct prune_report report = *stores->report;

	stores->resting = report.resting;
	stores->pruned += report.stores;
	stores->pruned_bytes += report.bytes;
	if (report.stores > 0)
		log_line(LOG_LEVEL_INFO, "stores-pruned", "stores=%llu bytes=%llu left=%llu",
			 (unsigned long long)report.stores, (unsigned long long)report.bytes,
			 (unsigned long long)report.resting);
}

bool stores_ended(struct node *node, pid_t pid, int status)
{
	struct stores *stores = node->stores;
	const int error = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;

	if (pid != stores->pid)
		return false;
	stores->pid = 0;
	if (!error)
		take_report(stores);
	end_look(node, error);
	return true;
}

/* ---- life ---- */

int stores_init(struct node *node, stores_end_idle_fn end_idle)
{
	struct stores *stores = calloc(1, sizeof(*stores));
	void *map;

	if (!stores)
		return -ENOMEM;
	node->stores = stores;
	stores->end_idle = end_idle;
	map = mmap(NULL, sizeof(*stores->report), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	stores->report = map;
	return loop_timer_new(node->loop, on_soon, node, &stores->soon);
}

void stores_fini(struct node *node)
{
	const uint64_t end_ns = base_now_ns() + STORES_PATIENCE_NS;
	struct stores *stores = base_take_ptr(node->stores);

	if (!stores)
		return;
	loop_unwatch(&stores->soon);
	if (stores->pid > 0)
		kill(stores->pid, SIGKILL);
	while (stores->pid > 0 && waitpid(stores->pid, NULL, WNOHANG) == 0 &&
	       base_now_ns() < end_ns)
		usleep(1000);
	if (stores->report)
		munmap(stores->report, sizeof(*stores->report));
	free(stores);
}

void stores_leave(struct domain *domain)
{
	struct node *node = domain->node;
	char key[IDENTITY_TEXT_MAX];

	if (domain->disk_cache.share == DISK_CACHE_HAS) {
		const struct disk_cache_at at = {node->place.stores, key_of(domain, key), false};

		disk_cache_touch(&at);
	}
	domain->disk_cache.share = DISK_CACHE_ALONE;
	BASE_EACH(other, &node->domains, link)
		if (other->disk_cache.share == DISK_CACHE_REFUSED)
			other->disk_cache.share = DISK_CACHE_ASKS;
	if (next_asking(node) && !node->draining)
		loop_timer_set(node->stores->soon, 0);
}

void stores_describe(const struct node *node, struct json_out *out)
{
	json_out_member_u64(out, "cache_size", node->param.cache_size);
	json_out_member_u64(out, "cache_given", given(node));
	json_out_member_u64(out, "cache_resting", node->stores->resting);
	json_out_member_u64(out, "cache_pruned", node->stores->pruned);
	json_out_member_u64(out, "cache_pruned_bytes", node->stores->pruned_bytes);
}

void stores_describe_one(const struct domain *domain, struct json_out *out)
{
	static const char *const modes[] = {"on", "read-only", "off", "memory"};
	const struct disk_cache *disk_cache = &domain->disk_cache;
	const struct reader_state *state = &disk_cache->state;
	const struct stores_rule rule = stores_rule_of(domain);
	uint64_t mode = disk_cache_gives(disk_cache)
			    ? BASE_MIN(state->mode, (uint64_t)READER_MODE_MEMORY)
			    : STORE_OFF;

	json_out_object_begin(out);
	JSON_OUT_MEMBERS(out, &domain->who, uid, gid);
	json_out_member_bool(out, "public", domain->kind == DOMAIN_PUBLIC);
	json_out_member_string(out, "named", domain->name);
	json_out_member_string(out, "mode", modes[mode]);
	json_out_member_string(out, "why", disk_cache->why);
	json_out_member_u64(out, "limit", disk_cache_is_memory(disk_cache) ? 0 : disk_cache->limit);
	json_out_member_u64(out, "sure", disk_cache->rings_fd < 0 ? 0 : stores_sure(&rule));
	json_out_member_u64(out, "most", disk_cache->rings_fd < 0 ? 0 : rule.most);
	JSON_OUT_MEMBERS(out, state, used, file, groups, values, hits, misses, kept, not_taken,
			 full, damaged, evicted, set_aside, write_errors);
	json_out_member_double(out, "write_us_per_mib", disk_cache->write_ns * 1048.576);
	json_out_member_double(out, "write_cpu_us_per_mib", disk_cache->write_cpu_ns * 1048.576);
	json_out_member_u64(out, "memory_limit", ram_cache_most(domain));
	JSON_OUT_MEMBERS(out, state, memory_used, memory_values, memory_hits, peers_compared,
			 peers_wrong);
	json_out_object_end(out);
}
