/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libibverbs, found when the program runs: it and its drivers belong to the machine's kernel and cards. RC queue pairs, SEND
 * and RECV alone: nobody is given a key to anybody's memory.
 *
 * A queue pair is never destroyed before the device is: to disconnect it, it goes to ERR, where the drivers give back what was
 * posted. Before it is connected again it goes to RESET, and what is left in its queue is thrown away. Not at once: with soft-RoCE of
 * Linux 6.1 one in some hundred that were reset right after ERR was deaf and mute from then on. It resets in the caller's thread
 * beside its own tasks, which may still be giving back; probably both put down the same reference to the queue pair.
 */

#include "cluster/verbs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/library.h"

#define IB_TIMEOUT 14 /* 4.096 us << 14 = 67 ms until it is sent again, */
#define IB_RETRIES 7  /* so many times: for no answer, and */
#define IB_RNR 6      /* for no posted receive, which credits rule out */
#define IB_RNR_TIMER 12

#define IB_FUNCTIONS(F)                                                              \
	F(struct ibv_device **, get_device_list, (int *))                            \
	F(void, free_device_list, (struct ibv_device **))                            \
	F(const char *, get_device_name, (struct ibv_device *))                      \
	F(struct ibv_context *, open_device, (struct ibv_device *))                  \
	F(int, close_device, (struct ibv_context *))                                 \
	F(struct ibv_pd *, alloc_pd, (struct ibv_context *))                         \
	F(int, dealloc_pd, (struct ibv_pd *))                                        \
	F(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))           \
	F(int, dereg_mr, (struct ibv_mr *))                                          \
	F(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))    \
	F(int, destroy_comp_channel, (struct ibv_comp_channel *))                    \
	F(struct ibv_cq *, create_cq,                                                \
	  (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))       \
	F(int, destroy_cq, (struct ibv_cq *))                                        \
	F(int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **)) \
	F(void, ack_cq_events, (struct ibv_cq *, unsigned))                          \
	F(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))  \
	F(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))              \
	F(int, destroy_qp, (struct ibv_qp *))                                        \
	F(int, query_device, (struct ibv_context *, struct ibv_device_attr *))       \
	F(int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))     \
	F(int, get_async_event, (struct ibv_context *, struct ibv_async_event *))    \
	F(void, ack_async_event, (struct ibv_async_event *))                         \
	F(const char *, wc_status_str, (enum ibv_wc_status))

#define IB_POINTER(type, name, args) type(*name) args;
#define IB_NAME(type, name, args) {"ibv_" #name, &ib.name},
static struct {
	IB_FUNCTIONS(IB_POINTER)
	int (*query_gid_ex)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *,
			    uint32_t, size_t);
} ib;

static const struct library_name names[] = {
    IB_FUNCTIONS(IB_NAME){"_ibv_query_gid_ex", &ib.query_gid_ex}};

struct pair {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t port;
	uint8_t gid_index;
	union ibv_gid gid; /* as it was when the device was opened */
	unsigned n;
	struct pair pair[];
};

/* ---- a port that can be used ---- */

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret)
{
	struct verbs_context *more = verbs_get_ctx_op(context, query_port);

	memset(ret, 0, sizeof(*ret));
	if (!more)
		return -ENOTSUP;
	return more->query_port(context, port, ret, sizeof(*ret)) ? -EIO : 0;
}

/* The better one of a RoCE port: v2, which routers pass on, and an address that others know. 0: of no use. */
static unsigned gid_worth(const struct ibv_gid_entry *entry)
{
	const uint8_t *raw = entry->gid.raw;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	if (memcmp(raw, mapped, sizeof(mapped)) == 0)
		return 3;
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

static int find_gid(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
		    uint8_t *ret)
{
	unsigned best = 0;

	*ret = 0;
	if (attr->link_layer != IBV_LINK_LAYER_ETHERNET)
		return attr->lid ? 0 : -EADDRNOTAVAIL;
	for (int i = 0; i < attr->gid_tbl_len && i <= UINT8_MAX; i++) {
		struct ibv_gid_entry entry;

		if (ib.query_gid_ex(context, port, (uint32_t)i, &entry, 0, sizeof(entry)) ||
		    gid_worth(&entry) <= best)
			continue;
		best = gid_worth(&entry);
		*ret = (uint8_t)i;
	}
	return best ? 0 : -EADDRNOTAVAIL;
}

/* Is it up? Of the port itself, no more: what the sandbox lets us ask. */
static int check_state(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		       struct diag *why)
{
	const char *name = ib.get_device_name(context->device);
	int r = query_port(context, port, attr);

	if (r)
		return diag_fail(why, r, "%s cannot be asked about port %u", name, (unsigned)port);
	if (attr->state != IBV_PORT_ACTIVE)
		return diag_fail(
		    why, -ENETDOWN,
		    "port %u of %s is down: plug it in, or ip link set DEV up; ibv_devinfo "
		    "shows it",
		    (unsigned)port, name);
	return 0;
}

/* Before the sandbox: where the kernel does not say of a GID what it is, libibverbs reads files of sysfs. */
static int check_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      uint8_t *ret_gid, struct diag *why)
{
	const char *name = ib.get_device_name(context->device);
	int r = check_state(context, port, attr, why);

	if (r)
		return r;
	r = find_gid(context, port, attr, ret_gid);
	if (r)
		diag_set(why, "port %u of %s has no %s: %s; ibv_devinfo -v shows it",
			 (unsigned)port, name,
			 attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "GID of RoCE v2" : "LID",
			 attr->link_layer == IBV_LINK_LAYER_ETHERNET
			     ? "give its network device an address"
			     : "start a subnet manager (opensm)");
	return r;
}

/* A port of it. false: it is of no use. */
static bool find_port(struct ibv_context *context, uint8_t *ret_port, uint8_t *ret_gid,
		      struct diag *why)
{
	struct ibv_device_attr attr;

	if (ib.query_device(context, &attr)) {
		diag_set(why, "%s does not say what it is", ib.get_device_name(context->device));
		return false;
	}
	for (unsigned port = 1; port <= attr.phys_port_cnt; port++) {
		struct ibv_port_attr port_attr;

		*ret_port = (uint8_t)port;
		if (check_port(context, (uint8_t)port, &port_attr, ret_gid, why) == 0)
			return true;
	}
	return false;
}

static struct ibv_context *open_one(struct ibv_device *device, uint8_t *ret_port, uint8_t *ret_gid,
				    struct diag *why)
{
	struct ibv_context *context = ib.open_device(device);
	char path[PATH_MAX];

	if (!context) {
		/* What libibverbs says of it is not what stood in its way first. */
		snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
		errno = EIO;
		(void)!access(path, R_OK | W_OK);
		diag_set(
		    why,
		    "%s cannot be opened (%s): its users must be let read and write %s, as the "
		    "udev rules of rdma-core do",
		    ib.get_device_name(device), strerror(errno), path);
		return NULL;
	}
	if (find_port(context, ret_port, ret_gid, why))
		return context;
	ib.close_device(context);
	return NULL;
}

static struct ibv_context *open_first(uint8_t *ret_port, uint8_t *ret_gid, struct diag *why)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int n = 0;

	list = ib.get_device_list(&n);
	if (!list || n == 0)
		diag_set(
		    why,
		    "there is no RDMA device, or no driver for it: ibv_devices shows them (Debian: "
		    "packages ibverbs-utils, ibverbs-providers)");
	for (int i = 0; i < n && !context; i++)
		context = open_one(list[i], ret_port, ret_gid, why);
	if (list)
		ib.free_device_list(list);
	return context;
}

/* ---- its parts ---- */

static const char *ib_name(const struct verbs *verbs)
{
	return ib.get_device_name(verbs->context->device);
}

static void ib_close(struct verbs *verbs)
{
	for (unsigned i = 0; i < verbs->n; i++) {
		struct pair *pair = &verbs->pair[i];

		if (pair->qp)
			ib.destroy_qp(pair->qp);
		if (pair->cq)
			ib.destroy_cq(pair->cq);
		if (pair->channel)
			ib.destroy_comp_channel(pair->channel);
	}
	if (verbs->mr)
		ib.dereg_mr(verbs->mr);
	if (verbs->pd)
		ib.dealloc_pd(verbs->pd);
	ib.close_device(verbs->context);
	free(verbs);
}

static int unblock(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_pair(struct verbs *verbs, unsigned sends, unsigned receives, struct pair *pair)
{
	struct ibv_qp_init_attr attr = {
	    .cap = {.max_send_wr = sends,
		    .max_recv_wr = receives,
		    .max_send_sge = 1,
		    .max_recv_sge = 1},
	    .qp_type = IBV_QPT_RC,
	    .sq_sig_all = 1,
	};

	pair->channel = ib.create_comp_channel(verbs->context);
	if (!pair->channel || unblock(pair->channel->fd))
		return -errno;
	pair->cq =
	    ib.create_cq(verbs->context, (int)(2 * (sends + receives)), NULL, pair->channel, 0);
	if (!pair->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = pair->cq;
	pair->qp = ib.create_qp(verbs->pd, &attr);
	return pair->qp ? 0 : -errno;
}

static void say_pinned(const struct verbs *verbs, size_t bytes, int error, struct diag *why)
{
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	diag_set(why,
		 "%zu KiB cannot be pinned for %s (%s; the limit of locked memory is %" PRIu64
		 " KiB): set LimitMEMLOCK=64M in the unit (systemctl edit accessd), or ulimit -l",
		 bytes / 1024, ib.get_device_name(verbs->context->device), strerror(error),
		 (uint64_t)limit.rlim_cur / 1024);
}

static int make_all(struct verbs *verbs, void *memory, size_t bytes, unsigned sends,
		    unsigned receives, struct diag *why)
{
	int r = unblock(verbs->context->async_fd);

	verbs->pd = ib.alloc_pd(verbs->context);
	if (r || !verbs->pd)
		return diag_fail(why, -EIO, "%s has no protection domain for us: %s",
				 ib.get_device_name(verbs->context->device), strerror(errno));
	verbs->mr = ib.reg_mr(verbs->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!verbs->mr) {
		say_pinned(verbs, bytes, errno, why);
		return -ENOMEM;
	}
	for (unsigned i = 0; r == 0 && i < verbs->n; i++)
		r = make_pair(verbs, sends, receives, &verbs->pair[i]);
	if (r == -ENOMEM)
		say_pinned(verbs, bytes, -r, why);
	else if (r)
		diag_set(why, "%s has no %u queue pairs left for us: %s",
			 ib.get_device_name(verbs->context->device), verbs->n, strerror(-r));
	return r;
}

static int ib_open(void *memory, size_t bytes, unsigned n, unsigned sends, unsigned receives,
		   struct verbs **ret, struct diag *why)
{
	const char *missing = library_load("libibverbs.so.1", names, BASE_ARRAY_LEN(names));
	struct verbs *verbs;
	int r;

	if (missing)
		return diag_fail(why, -ENOENT,
				 "libibverbs cannot be used (%s): apt install ibverbs-providers",
				 missing);
	verbs = calloc(1, sizeof(*verbs) + n * sizeof(verbs->pair[0]));
	if (!verbs)
		return diag_fail(why, -ENOMEM, "there is no memory for it");
	verbs->n = n;
	verbs->context = open_first(&verbs->port, &verbs->gid_index, why);
	if (!verbs->context) {
		free(verbs);
		return -ENODEV;
	}
	if (ib.query_gid(verbs->context, verbs->port, verbs->gid_index, &verbs->gid)) {
		diag_set(why, "%s does not say its GID %u", ib_name(verbs),
			 (unsigned)verbs->gid_index);
		ib_close(verbs);
		return -EADDRNOTAVAIL;
	}
	r = make_all(verbs, memory, bytes, sends, receives, why);
	if (r)
		ib_close(verbs);
	else
		*ret = verbs;
	return r;
}

static int ib_device_fd(const struct verbs *verbs)
{
	return verbs->context->cmd_fd;
}

static int ib_event_fd(const struct verbs *verbs)
{
	return verbs->context->async_fd;
}

static bool ib_broken(struct verbs *verbs)
{
	struct ibv_async_event event;
	bool is_broken = false;

	while (!is_broken && ib.get_async_event(verbs->context, &event) == 0) {
		is_broken = event.event_type == IBV_EVENT_DEVICE_FATAL;
		ib.ack_async_event(&event);
	}
	return is_broken;
}

/* ---- a queue pair's life ---- */

static int modify(struct verbs *verbs, unsigned i, struct ibv_qp_attr *attr, int mask)
{
	const int r = ib.modify_qp(verbs->pair[i].qp, attr, mask);

	return r > 0 ? -r : r;
}

static int ib_address(struct verbs *verbs, unsigned i, struct path_address *ret, struct diag *why)
{
	struct ibv_port_attr attr;
	int r = check_state(verbs->context, verbs->port, &attr, why);

	if (r)
		return r;
	if (attr.link_layer != IBV_LINK_LAYER_ETHERNET && !attr.lid)
		return diag_fail(why, -EADDRNOTAVAIL,
				 "port %u of %s has lost its LID: is the subnet manager there?",
				 (unsigned)verbs->port, ib_name(verbs));
	ret->number = verbs->pair[i].qp->qp_num;
	ret->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	ret->lid = ret->is_ethernet ? 0 : attr.lid;
	ret->mtu = (uint8_t)attr.active_mtu;
	memcpy(ret->gid, verbs->gid.raw, sizeof(ret->gid));
	return 0;
}

static int ib_prepare(struct verbs *verbs, unsigned i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = verbs->port};

	return modify(verbs, i, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_receive(struct verbs *verbs, unsigned i, const struct path_address *ours,
		      const struct path_address *theirs)
{
	struct ibv_qp_attr attr = {
	    .qp_state = IBV_QPS_RTR,
	    .path_mtu = (enum ibv_mtu)BASE_MIN(ours->mtu, theirs->mtu),
	    .dest_qp_num = theirs->number,
	    .rq_psn = theirs->first,
	    .max_dest_rd_atomic = 1,
	    .min_rnr_timer = IB_RNR_TIMER,
	    .ah_attr =
		{
		    .dlid = theirs->lid,
		    .port_num = verbs->port,
		    .is_global = theirs->is_ethernet,
		    .grh = {.sgid_index = verbs->gid_index, .hop_limit = 64},
		},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	return modify(verbs, i, &attr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ib_connect(struct verbs *verbs, unsigned i, const struct path_address *ours,
		      const struct path_address *theirs, struct diag *why)
{
	struct ibv_qp_attr attr = {
	    .qp_state = IBV_QPS_RTS,
	    .timeout = IB_TIMEOUT,
	    .retry_cnt = IB_RETRIES,
	    .rnr_retry = IB_RNR,
	    .sq_psn = ours->first,
	    .max_rd_atomic = 1,
	};
	int r = ours->is_ethernet == theirs->is_ethernet ? 0 : -EPROTOTYPE;

	r = r ? r : to_receive(verbs, i, ours, theirs);
	if (r == 0)
		r = modify(verbs, i, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (r == -EPROTOTYPE)
		diag_set(why, "one end is RoCE and the other InfiniBand");
	else if (r)
		diag_set(why, "%s cannot reach the other end: %s", ib_name(verbs), strerror(-r));
	return r;
}

static void ib_stop(struct verbs *verbs, unsigned i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	modify(verbs, i, &attr,
	       IBV_QP_STATE); /* one that was not made ready cannot, and need not */
}

static void ib_heard(struct verbs *verbs, unsigned i);

static int ib_reset(struct verbs *verbs, unsigned i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc done;
	int r = modify(verbs, i, &attr, IBV_QP_STATE);

	while (ibv_poll_cq(verbs->pair[i].cq, 1, &done) > 0)
		;
	ib_heard(verbs, i);
	return r;
}

/* ---- messages ---- */

static int ib_post_receive(struct verbs *verbs, unsigned i, uint64_t id, void *place,
			   uint32_t bytes)
{
	struct ibv_sge part = {(uintptr_t)place, bytes, verbs->mr->lkey};
	struct ibv_recv_wr post = {.wr_id = id, .sg_list = &part, .num_sge = 1}, *bad;
	const int r = ibv_post_recv(verbs->pair[i].qp, &post, &bad);

	return r > 0 ? -r : r;
}

static int ib_post_send(struct verbs *verbs, unsigned i, uint64_t id, const void *place,
			uint32_t bytes, uint32_t said)
{
	struct ibv_sge part = {(uintptr_t)place, bytes, verbs->mr->lkey};
	struct ibv_send_wr post = {
	    .wr_id = id,
	    .sg_list = &part,
	    .num_sge = bytes ? 1 : 0,
	    .opcode = IBV_WR_SEND_WITH_IMM,
	    .imm_data = htonl(said),
	};
	struct ibv_send_wr *bad;
	const int r = ibv_post_send(verbs->pair[i].qp, &post, &bad);

	return r > 0 ? -r : r;
}

#define IB_AT_ONCE 16

static int ib_poll(struct verbs *verbs, unsigned i, struct verbs_done *ret, unsigned most)
{
	struct ibv_wc done[IB_AT_ONCE];
	const int n = ibv_poll_cq(verbs->pair[i].cq, (int)BASE_MIN(most, IB_AT_ONCE), done);

	for (int at = 0; at < n; at++)
		ret[at] = (struct verbs_done){
		    .id = done[at].wr_id,
		    .bytes = done[at].byte_len,
		    .said = done[at].wc_flags & IBV_WC_WITH_IMM ? ntohl(done[at].imm_data) : 0,
		    .wrong = done[at].status ? ib.wc_status_str(done[at].status) : NULL,
		};
	return n < 0 ? -EIO : n;
}

static int ib_done_fd(const struct verbs *verbs, unsigned i)
{
	return verbs->pair[i].channel->fd;
}

static int ib_arm(struct verbs *verbs, unsigned i)
{
	return ibv_req_notify_cq(verbs->pair[i].cq, 0) ? -EIO : 0;
}

static void ib_heard(struct verbs *verbs, unsigned i)
{
	struct ibv_cq *cq;
	void *unused;

	while (ib.get_cq_event(verbs->pair[i].channel, &cq, &unused) == 0)
		ib.ack_cq_events(cq, 1);
}

static const struct verbs_ops ib_ops = {
    .open = ib_open,
    .close = ib_close,
    .name = ib_name,
    .device_fd = ib_device_fd,
    .event_fd = ib_event_fd,
    .broken = ib_broken,
    .address = ib_address,
    .connect = ib_connect,
    .prepare = ib_prepare,
    .stop = ib_stop,
    .reset = ib_reset,
    .post_receive = ib_post_receive,
    .post_send = ib_post_send,
    .poll = ib_poll,
    .done_fd = ib_done_fd,
    .arm = ib_arm,
    .heard = ib_heard,
};

const struct verbs_ops *const verbs_ib = &ib_ops;
