/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every parameter of accessd, declared once: the struct, the file's and the command line's names,
 * their check, `accessd --help` and the table in accessd.conf(5) come from here.
 *
 * PARAM_BYTES(name, default, least, most, what)   64M, 1.5G, ...
 * PARAM_COUNT(name, default, least, most, what)   a whole number
 * PARAM_TEXT(name, default, what)
 * PARAM_CHOICE(name, default, "one|another|...", what)   a word; the parameter is its place, from 0 (param.h names them)
 */
PARAM_TEXT(socket, "",
	   "path of the control socket; empty: " RUNSTATEDIR
	   "/accessd/socket, or in the private folder")
PARAM_TEXT(cache_dir, "",
	   "folder for stored indexes and what is kept of samples; empty: " LOCALSTATEDIR
	   "/cache/accessd, private: $XDG_CACHE_HOME/oneaccess")
PARAM_BYTES(cache_size, UINT64_C(8) << 30, 0, UINT64_C(1) << 50,
	    "bytes of the disk for what is kept of samples so that it is not done again; 0: "
	    "nothing is kept")
PARAM_BYTES(cache_memory, 0, 0, UINT64_C(1) << 46,
	    "most of `memory` for what of it lies ready in memory, too; 0: an eighth")
PARAM_TEXT(cache_point, "auto",
	   "what is kept: auto (by measurement), none, indexed, packed, decoded, augmented (where "
	   "all jobs have reuse), or deepest: what the pipeline has before its first random op")
PARAM_COUNT(cache_force, 0, 0, 1,
	    "1: keep also where the folder is on no local disk, as on NFS or an overlay")
PARAM_BYTES(tenant_cache, 0, 0, UINT64_C(1) << 50,
	    "most of `cache_size` that one user may take; 0: a quarter of it")
PARAM_BYTES(index_size, 0, 0, UINT64_C(1) << 50,
	    "bytes of the disk for stored indexes, a quarter of them for one user; 0: a tenth of "
	    "the file system")
PARAM_TEXT(log_level, "info", "least level that is logged: error, warn, info or debug")
PARAM_BYTES(memory, 0, 0, UINT64_C(1) << 50,
	    "budget for slots, slot tables and arenas; 0: half of the cgroup's limit, else a "
	    "quarter of RAM")
PARAM_BYTES(arena, 0, 0, UINT64_C(1) << 40,
	    "bytes of a stream's input arena; 0: from the sizes of its files")
PARAM_BYTES(direct, 0, 0, UINT64_C(1) << 60,
	    "shards of more bytes in all may be read past the page cache; 0: half of RAM, or of "
	    "the cgroup's limit")
PARAM_BYTES(worker_memory, UINT64_C(1) << 30, UINT64_C(16) << 20, UINT64_C(1) << 40,
	    "private memory one worker may use; a sample that needs more gets its policy")
PARAM_CHOICE(huge_pages, HUGE_PAGES_AUTO, "auto|require|off",
	     "slots in huge pages: auto (as far as the kernel gives them), require (a stream is "
	     "refused without), or off")
PARAM_CHOICE(numa, NUMA_AUTO, "auto|off",
	     "auto: a stream's memory lies on the node that its first job is held on; off: where "
	     "it is touched first")
PARAM_COUNT(workers, 0, 0, 256, "worker processes; 0: from the cgroup's CPU quota and the cpuset")
PARAM_COUNT(readers, 4, 1, 64, "reader threads")
PARAM_COUNT(nice, 1, 0, 19, "nice value added for workers, so that trainers go first")
PARAM_CHOICE(cpu_priority, CPU_PRIORITY_NORMAL, "normal|low|idle",
	     "of workers and readers beside trainers: normal, low (batch, nice 10), or idle (only "
	     "what nobody else wants)")
PARAM_COUNT(slots, 0, 0, 512,
	    "slots of each stream; 0: two a job and two more, at least four, as memory allows")
PARAM_COUNT(chunk, 0, 0, 65536,
	    "samples a chunk holds; 0: by rule, from the batch size of the stream's first job")
PARAM_COUNT(producing, 2, 1, 4, "chunks in production at once in a stream")
PARAM_COUNT(
    variants, 8, 1, 8,
    "pipelines of one stream, which share its reading, decoding and first ops; 1: each has its own")
PARAM_COUNT(seed, 0, 0, UINT64_MAX,
	    "seed of streams' orders and random ops, for tests; 0: drawn at random")
PARAM_COUNT(linger_s, 10, 0, 86400, "seconds that a stream without jobs stays")
PARAM_COUNT(idle_exit_s, 60, 0, 86400,
	    "private mode: exit after so many seconds without a client; 0: never")
PARAM_COUNT(
    open_timeout_s, 300, 0, 86400,
    "seconds without any progress after which the opening of a dataset is refused; 0: never")
PARAM_COUNT(max_clients, 1024, 1, 65536, "connections at once")
PARAM_TEXT(user, "accessd",
	   "user that a system accessd becomes when root starts it: a name, or a number")
PARAM_COUNT(serve_root, 0, 0, 1, "1: serve jobs of root, too, and read their data as root")
PARAM_COUNT(share_public, 1, 0, 1, "1: users share the work on datasets that are open to everybody")
PARAM_TEXT(
    public_user, "accessd-public",
    "user, nobody's else, whose processes read what is open to everybody: a name, or a number")
PARAM_TEXT(
    subordinate_ids, "",
    "file like /etc/subuid: who has a subordinate uid counts as its owner; empty: as himself")
PARAM_COUNT(tenants, 32, 1, 1024, "users that are served at once")
PARAM_COUNT(tenant_idle_s, 30, 0, 86400, "seconds that the processes of a user without jobs stay")
PARAM_BYTES(tenant_memory, 0, 0, UINT64_C(1) << 50,
	    "most of `memory` that one user may take; 0: half of it")
PARAM_COUNT(tenant_clients, 0, 0, 65536,
	    "connections of one user at once; 0: a quarter of max_clients")
PARAM_COUNT(tenant_streams, 16, 1, 4096, "streams of one user at once")
PARAM_COUNT(tenant_jobs, 0, 0, 65536,
	    "jobs of one user at once, each rank counted; 0: as many as he has connections")
PARAM_COUNT(sample_timeout_ms, 1000, 50, 3600000,
	    "CPU time that a sample may take, or 50 times the median or 200 ns a pixel if that is "
	    "longer, before its worker is replaced")
PARAM_TEXT(peers, "",
	   "other nodes that share what is kept: static:HOST[:PORT],..., dns:NAME[:PORT], slurm, "
	   "etcd:URL; empty: there are none (access-cluster(7))")
PARAM_TEXT(
    peer_etcd_login, "",
    "file with USER:PASSWORD for peers = etcd, that nobody else may read; empty: it wants none")
PARAM_TEXT(peer_listen, "0.0.0.0:7411", "ADDRESS:PORT on which other nodes are listened to")
PARAM_TEXT(peer_key, "",
	   "file with the cluster's secret, the same on all nodes; empty: " SYSCONFDIR
	   "/accessd/cluster.key, private: ~/.config/oneaccess/cluster.key")
PARAM_TEXT(peer_certificates, "",
	   "folder with cert.pem, key.pem and ca.pem, instead of peer_key; empty: none")
PARAM_CHOICE(peer_crypt, PEER_CRYPT_ON, "on|off",
	     "on: what goes between nodes is encrypted; off: only checked, for closed networks")
PARAM_TEXT(cluster_paths, "",
	   "folders, FOLDER:FOLDER..., that are the same on all nodes: what is open to everybody "
	   "below them is shared with peers; empty: none")
PARAM_CHOICE(transport, TRANSPORT_AUTO, "auto|tcp|rdma",
	     "how values go between nodes; auto: by RDMA where both ends can, else by TCP; rdma: "
	     "by RDMA, or not at all")
PARAM_COUNT(
    peer_recheck, 30, 0, 86400,
    "seconds after which a node that gives others a value looks at its source again; 0: never")
PARAM_TEXT(cluster_name, "oneaccess", "the cluster's name: nodes of other ones are refused")
PARAM_TEXT(node_name, "", "this node's name, no other's in the cluster; empty: the host's")
