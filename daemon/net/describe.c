/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is told about a dataset before it opens a stream: the number of samples, labels,
 * names of classes, and with a pipeline the classes that its filter names. From these libaccess computes which samples a job wants (a split, classes, a
 * list), so that accessd needs to know nothing of such wishes but a bitmap.
 *
 * A catalogue is 4 bytes a sample. A small one is written at once. To write one of 10^7 samples, whose labels have
 * to be read and checked first, takes a third of a second, and as long as the disk wants: a short-lived
 * child does it, one at a time in a domain, and whoever asks for the same waits for the same.
 *
 * A catalogue lives as long as any client holds it, which may be long after that client has hung up. So it is
 * accounted to the domain whose connection asked for it, and stays here, to be handed out again, as long
 * as somebody has it; then until its memory is wanted for something else. What would
 * exceed the user's share is refused, for nobody can take back what others hold. (O_PATH descriptors hold
 * a memory unseen, see catalog.c.)
 *
 * Each trust domain keeps its own, also of public data: a reader may lie about the version of what it
 * listed, and must gain nothing by it. In it one reader's answers are no other's: a user asks for his own
 * data, public ones, and those that have names.
 */
#include "daemon/net/describe.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/proc/child.h"
#include "daemon/serve/source.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "shmring/catalog.h"
#include "shmring/proto.h"

#define AT_ONCE (UINT64_C(64) << 10) /* bytes: a larger one is written by a child */
#define MOST 256                     /* each is a descriptor of ours */

struct describe_key { /* what it is the catalogue of */
	struct hash_id version;
	uint64_t device, inode; /* of shards: their root; else 0 */
	uint32_t kind, uid;     /* of the domain whose reader listed it */
	char name[NAMED_NAME_MAX];
};

struct describe_entry {
	TAILQ_ENTRY(describe_entry) link;
	struct domain *domain;
	struct describe_key key;
	uint64_t bytes;             /* accounted */
	int fd;                     /* -1: not written yet */
	struct catalog_draft draft; /* until it is */
	struct source *source;      /* a reference, until it is */
	pid_t pid;                  /* who writes it; 0: nobody */
	unsigned waiting;           /* connections */
};

/* ---- what a domain's connections were told: each version once ---- */

struct describe_catalogs {
	TAILQ_HEAD(describe_entries, describe_entry) entries; /* who was asked for last is last */
	unsigned n;
};

int describe_catalogs_init(struct domain *domain)
{
	domain->catalogs = calloc(1, sizeof(*domain->catalogs));
	if (!domain->catalogs)
		return -ENOMEM;
	TAILQ_INIT(&domain->catalogs->entries);
	return 0;
}

static void account(struct domain *domain, int64_t bytes)
{
	domain_account(domain, bytes);
	domain->node->memory.catalogs += (uint64_t)bytes;
}

static void entry_free(struct describe_entry *entry)
{
	struct domain *domain = entry->domain;

	if (entry->pid > 0)
		kill(entry->pid, SIGKILL);
	TAILQ_REMOVE(&domain->catalogs->entries, entry, link);
	domain->catalogs->n--;
	account(domain, -(int64_t)entry->bytes);
	source_unref(entry->source);
	porter_close(&domain->node->porters, PORTER_OWN, &entry->draft.fd);
	catalog_drop(&entry->draft);
	porter_close(&domain->node->porters, PORTER_OWN, &entry->fd);
	free(entry);
}

void describe_forget_all(struct domain *domain)
{
	while (domain->catalogs && !TAILQ_EMPTY(&domain->catalogs->entries))
		entry_free(TAILQ_FIRST(&domain->catalogs->entries));
}

void describe_catalogs_fini(struct domain *domain)
{
	describe_forget_all(domain);
	free(base_take_ptr(domain->catalogs));
}

static struct describe_key key_of(const struct source *source)
{
	const struct domain *domain = source->domain;
	struct describe_key key = {.version = *dataset_version(source->dataset),
				   .kind = (uint32_t)domain->kind,
				   .uid = (uint32_t)domain->who.uid};

	memcpy(key.name, domain->name, sizeof(key.name));
	if (source_has_shards(source)) {
		key.device = source->root.device;
		key.inode = source->root.inode;
	}
	return key;
}

static struct describe_entry *find(const struct describe_catalogs *catalogs,
				   const struct describe_key *key)
{
	struct describe_entry *entry;

	TAILQ_FOREACH(entry, &catalogs->entries, link)
		if (memcmp(&entry->key, key, sizeof(*key)) == 0)
			return entry;
	return NULL;
}

bool describe_is_lent(const struct domain *domain)
{
	const struct describe_entry *entry;

	TAILQ_FOREACH(entry, &domain->catalogs->entries, link)
		if (entry->fd >= 0 && catalog_is_lent(entry->fd))
			return true;
	return false;
}

static bool is_idle(const struct describe_entry *entry)
{
	return entry->fd >= 0 && !catalog_is_lent(entry->fd);
}

uint64_t describe_idle(const struct domain *domain)
{
	const struct describe_entry *entry;
	uint64_t bytes = 0;

	TAILQ_FOREACH(entry, &domain->catalogs->entries, link)
		bytes += is_idle(entry) ? entry->bytes : 0;
	return bytes;
}

/* The one that was asked for least lately of those that nobody has. */
static bool give_way(struct describe_catalogs *catalogs)
{
	struct describe_entry *entry;

	TAILQ_FOREACH(entry, &catalogs->entries, link)
		if (is_idle(entry)) {
			entry_free(entry);
			return true;
		}
	return false;
}

bool describe_give_way(struct node *node, const struct domain *payer)
{
	BASE_EACH(domain, &node->domains, link)
		if ((!payer || tenant_is_same(payer, domain)) && give_way(domain->catalogs))
			return true;
	return false;
}

/* ---- a new one ---- */

static void refuse_memory(const struct domain *domain, uint64_t bytes, struct diag *diag)
{
	const char *name;
	uint64_t most = tenant_limit_of(domain, &name);

	diag_set(diag,
		 "the list of the dataset's labels needs %s, and %s of the budget of %s (%s) is "
		 "free: close datasets that you have open, or raise that limit",
		 BASE_BYTES(bytes), BASE_BYTES(tenant_free_bytes(domain)), BASE_BYTES(most), name);
}

static bool make_room(struct domain *domain, uint64_t bytes, struct diag *diag)
{
	while (domain->catalogs->n >= MOST)
		if (!give_way(domain->catalogs)) {
			diag_set(diag,
				 "your processes have %u datasets open, the most that a user may "
				 "have: close some of them",
				 domain->catalogs->n);
			return false;
		}
	while (tenant_free_bytes(domain) < bytes)
		if (!tenant_make_room(domain)) {
			refuse_memory(domain, bytes, diag);
			return false;
		}
	return true;
}

static int draft_of(const struct dataset *dataset, struct catalog_draft *ret)
{
	struct catalog_head head = {
	    .n = dataset_count(dataset),
	    .n_classes = dataset_classes(dataset),
	    .names_bytes = dataset_head(dataset)->classes_bytes,
	};

	memcpy(head.version, dataset_version(dataset), sizeof(head.version));
	return catalog_new(&head, ret);
}

static struct describe_entry *entry_new(struct domain *domain, struct source *source,
					struct diag *diag)
{
	struct describe_entry *entry = calloc(1, sizeof(*entry));

	diag_set(diag, "out of memory for the dataset's catalogue");
	if (!entry || draft_of(source->dataset, &entry->draft)) {
		free(entry);
		return NULL;
	}
	entry->bytes = base_align_up(entry->draft.bytes, base_page_size());
	if (!make_room(domain, entry->bytes, diag)) {
		catalog_drop(&entry->draft);
		free(entry);
		return NULL;
	}
	entry->domain = domain;
	entry->key = key_of(source);
	entry->fd = -1;
	entry->source = source;
	source->users++;
	TAILQ_INSERT_TAIL(&domain->catalogs->entries, entry, link);
	domain->catalogs->n++;
	account(domain, (int64_t)entry->bytes);
	return entry;
}

/* 0 or an errno. */
static int write_all(struct catalog_draft *draft, const struct dataset *dataset)
{
	int r = catalog_begin(draft);

	if (r)
		return -r;
	for (uint64_t i = 0; i < draft->head.n; i++)
		draft->label[i] = dataset_label_of(dataset, i);
	for (uint32_t i = 0; i < draft->head.n_classes; i++)
		catalog_add_class(draft, dataset_class_name(dataset, i));
	return -catalog_seal(draft);
}

/* ---- answers ---- */

static void put_classes(struct wire_out *out, uint16_t key, const struct pipeline *pipeline,
			bool keep)
{
	unsigned count = 0;
	const int32_t *classes = pipeline_filter_labels(pipeline, keep, &count);

	if (classes)
		wire_put_bytes(out, key, classes, count * sizeof(*classes));
}

const struct source *describe_source(const struct conn *conn)
{
	return conn->catalog ? conn->catalog->source : NULL;
}

void describe_forget(struct conn *conn)
{
	if (conn->catalog)
		conn->catalog->waiting--;
	conn->catalog = NULL;
}

/* What it waited for is written, or never will be. */
static void answer(struct conn *conn, int error)
{
	_cleanup_close_ int fd = -1;
	struct wire_out out;

	if (!error)
		error = -catalog_lend(conn->catalog->fd, &fd);
	describe_forget(conn);
	conn->state = CONN_GREETED;
	if (error) {
		conn_refuse(conn, OA_E_MEMORY, "the dataset's catalogue cannot be made: %s",
			    strerror(error));
		return;
	}
	wire_out_make(&out, PROTO_DESCRIBED, WIRE_FD(fd));
	if (conn->request.pipeline) {
		put_classes(&out, PROTO_KEY_KEEP, conn->request.pipeline, true);
		put_classes(&out, PROTO_KEY_DROP, conn->request.pipeline, false);
	} else {
		const struct named *named = named_find(&conn->node->param.named, conn->named);

		/* The pipeline of jobs that bring none. */
		if (named && *named->pipeline)
			wire_put_string(&out, PROTO_KEY_PIPELINE, named->pipeline);
	}
	conn_send(conn, &out);
	pipeline_free(conn->request.pipeline);
	conn->request.pipeline = NULL;
}

/* ---- writing ---- */

static void written(struct describe_entry *entry, int error)
{
	struct node *node = entry->domain->node;

	entry->pid = 0;
	if (!error)
		error = -catalog_take(&entry->draft, &entry->fd);
	source_unref(entry->source);
	entry->source = NULL;
	node->counters.catalogs += !error;
	BASE_EACH_LEAVING(conn, &node->clients.list, link)
		if (conn->catalog == entry)
			answer(conn, error);
	if (error)
		entry_free(entry);
}

/* false: it failed, and is gone. */
static bool begin(struct describe_entry *entry)
{
	pid_t accessd = getpid(), pid = fork();

	if (pid == 0) {
		child_settle(accessd, entry->draft.fd);
		_exit(write_all(&entry->draft, entry->source->dataset));
	}
	if (pid < 0)
		written(entry, errno);
	else
		entry->pid = pid;
	return pid > 0;
}

/* The next one that somebody still waits for, unless one is being written. */
static void write_next(struct domain *domain)
{
	struct describe_entry *entry, *next;

	TAILQ_FOREACH(entry, &domain->catalogs->entries, link)
		if (entry->pid)
			return;
	for (entry = TAILQ_FIRST(&domain->catalogs->entries); entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		if (entry->fd >= 0)
			continue;
		if (!entry->waiting)
			entry_free(entry);
		else if (begin(entry))
			return;
	}
}

bool describe_ended(struct node *node, pid_t pid, int status)
{
	struct describe_entry *entry;

	BASE_EACH(domain, &node->domains, link)
		TAILQ_FOREACH(entry, &domain->catalogs->entries, link)
			if (entry->pid == pid) {
				node->counters.catalogs_apart++;
				written(entry, WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
				write_next(domain);
				return true;
			}
	return false;
}

/* ---- asking ---- */

void describe_answer(struct conn *conn, struct source *source)
{
	struct domain *domain = conn->domain;
	const struct describe_key key = key_of(source);
	struct describe_entry *entry = find(domain->catalogs, &key);
	struct diag diag;

	if (!entry)
		entry = entry_new(domain, source, &diag);
	if (!entry) {
		conn_refuse(conn, OA_E_MEMORY, "%s", diag.text);
		return;
	}
	TAILQ_REMOVE(&domain->catalogs->entries, entry, link);
	TAILQ_INSERT_TAIL(&domain->catalogs->entries, entry, link);
	entry->waiting++;
	conn->catalog = entry;
	conn->state = CONN_WAITS_CATALOG;
	if (entry->fd >= 0)
		answer(conn, 0);
	else if (entry->bytes <= AT_ONCE)
		written(entry, write_all(&entry->draft, source->dataset));
	else
		write_next(domain);
}
