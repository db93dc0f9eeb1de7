/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every parameter of accessd, declared once: the struct, the file's and the command line's names,
 * their check, `accessd --help` and the table in accessd.conf(5) come from here.
 *
 * PARAM_BYTES(name, default, least, most, what)   64M, 1.5G, ...
 * PARAM_COUNT(name, default, least, most, what)   a whole number
 * PARAM_TEXT(name, default, what)
 * PARAM_PATH(name, default, what)   a text that is empty or begins with /
 * PARAM_CHOICE(name, default, "one|another|...", what)   a word; the parameter is its place, from 0 (param.h names them)
 */
PARAM_PATH(socket, "",
	   "path of the control socket; empty: " RUNSTATEDIR
	   "/accessd/socket, or in the private folder")
PARAM_PATH(cache_dir, "",
	   "folder of the cache and of stored indexes; empty: " LOCALSTATEDIR
	   "/cache/accessd, private: $XDG_CACHE_HOME/oneaccess")
PARAM_PATH(
    bucket_dir, "",
    "folder in which users have folders for data sets of object stores; empty: buckets, beside "
    "the socket")
PARAM_BYTES(cache_size, UINT64_C(8) << 30, 0, UINT64_C(1) << 50,
	    "bytes of disk for the cache of all users; 0: nothing is kept")
PARAM_BYTES(cache_memory, 0, 0, UINT64_C(1) << 46,
	    "the part of `memory` for cached samples that lie ready for workers; 0: an eighth")
PARAM_TEXT(cache_point, "auto",
	   "stored form of cached samples: auto (by measurement), none, indexed, packed, decoded, "
	   "augmented (if all jobs have reuse), or deepest (the result before the first random op)")
PARAM_TEXT(
    closed, "",
    "why no new job is served, for whoever starts one; jobs that run, and those that resume, "
    "go on; empty: all are served")
PARAM_COUNT(cache_force, 0, 0, 1,
	    "1: use cache_dir also where it is not on a local disk, such as NFS or an overlay")
PARAM_BYTES(tenant_cache, 0, 0, UINT64_C(1) << 50,
	    "the most of `cache_size` that one user may take; 0: a quarter")
PARAM_BYTES(index_size, 0, 0, UINT64_C(1) << 50,
	    "bytes of disk for stored indexes, a quarter of them for one user; 0: a tenth of the "
	    "file system")
PARAM_TEXT(log_level, "info", "the least level that is logged: error, warn, info or debug")
PARAM_BYTES(memory, 0, 0, UINT64_C(1) << 50,
	    "budget for slots, slot tables and arenas; 0: half of the cgroup's limit, else a "
	    "quarter of RAM")
PARAM_BYTES(arena, 0, 0, UINT64_C(1) << 40,
	    "bytes of a stream's input arena; 0: by the sizes of its files")
PARAM_BYTES(direct, 0, 0, UINT64_C(1) << 60,
	    "shards with more bytes in all may be read past the page cache; 0: half of RAM, or of "
	    "the cgroup's limit")
PARAM_BYTES(worker_memory, UINT64_C(1) << 30, UINT64_C(16) << 20, UINT64_C(1) << 40,
	    "private memory of one worker; a sample that needs more is a bad sample")
PARAM_CHOICE(huge_pages, HUGE_PAGES_AUTO, "auto|require|off",
	     "slots in huge pages: auto (as far as the kernel gives them), require (else a stream "
	     "is refused), or off")
PARAM_CHOICE(numa, NUMA_AUTO, "auto|off",
	     "auto: a stream's memory is on the NUMA node that its first job is bound to; off: "
	     "where it is touched first")
PARAM_CHOICE(
    memory_pressure, MEMORY_PRESSURE_AUTO, "auto|off",
    "auto: what nobody needs now is given back while the kernel says that memory is short; "
    "off: the kernel is not asked")
PARAM_COUNT(workers, 0, 0, 256, "worker processes; 0: from the cgroup's CPU quota and the cpuset")
PARAM_COUNT(readers, 4, 1, 64, "reader threads")
PARAM_COUNT(nice, 1, 0, 19, "added to the nice value of workers, so that trainers have priority")
PARAM_CHOICE(cpu_priority, CPU_PRIORITY_NORMAL, "normal|low|idle",
	     "of workers and readers beside trainers: normal, low (batch, nice 10 more), or idle "
	     "(only what no trainer wants)")
PARAM_COUNT(
    slots, 0, 0, 512,
    "slots of each stream; 0: two for each job and two more, at least four, as memory allows")
PARAM_COUNT(chunk, 0, 0, 65536,
	    "samples in a chunk; 0: whole batches of the stream's first job, up to 256 samples")
PARAM_COUNT(producing, 2, 1, 4, "chunks in production at once in a stream")
PARAM_COUNT(
    variants, 8, 1, 8,
    "pipelines of one stream, which share its reading, decoding and first ops; 1: each has its own")
PARAM_COUNT(seed, 0, 0, UINT64_MAX,
	    "seed of streams' orders and random ops, for tests; 0: drawn at random")
PARAM_COUNT(linger_s, 10, 0, 86400, "seconds that a stream without jobs is kept")
PARAM_COUNT(idle_exit_s, 60, 0, 86400,
	    "private mode: exit after so many seconds without a client; 0: never")
PARAM_COUNT(open_timeout_s, 300, 0, 86400,
	    "seconds without any progress after which opening a data set fails; 0: never")
PARAM_COUNT(max_clients, 1024, 1, 65536, "connections at once")
PARAM_TEXT(user, "accessd",
	   "user that a system accessd becomes when root starts it: a name, or a number")
PARAM_COUNT(serve_root, 0, 0, 1, "1: serve jobs of root, too, and read their data as root")
PARAM_COUNT(share_public, 1, 0, 1, "1: users share the work on data that everybody may read")
PARAM_TEXT(public_user, "accessd-public",
	   "user of its own whose processes read public data: a name, or a number")
PARAM_PATH(subordinate_ids, "",
	   "file like /etc/subuid: a subordinate uid counts as its owner; empty: as itself")
PARAM_COUNT(tenants, 32, 1, 1024, "users that are served at once")
PARAM_COUNT(tenant_idle_s, 30, 0, 86400,
	    "seconds that the processes of a user without jobs are kept")
PARAM_BYTES(tenant_memory, 0, 0, UINT64_C(1) << 50,
	    "the most of `memory` that one user may take; 0: half")
PARAM_COUNT(tenant_clients, 0, 0, 65536,
	    "connections of one user at once; 0: a quarter of max_clients")
PARAM_COUNT(tenant_streams, 16, 1, 4096, "streams of one user at once")
PARAM_COUNT(tenant_jobs, 0, 0, 65536,
	    "jobs of one user at once, each rank counted; 0: as many as the user has connections")
PARAM_COUNT(sample_timeout_ms, 1000, 50, 3600000,
	    "CPU time that a sample may take before its worker is replaced: this, 50 times the "
	    "median or 200 ns a pixel, whichever is longest")
PARAM_TEXT(peers, "",
	   "other nodes, which share their caches: static:HOST[:PORT],..., dns:NAME[:PORT], slurm, "
	   "etcd:URL; empty: none (access-cluster(7))")
PARAM_PATH(
    peer_etcd_login, "",
    "file with USER:PASSWORD for peers = etcd, readable by accessd's user alone; empty: none")
PARAM_TEXT(peer_listen, "0.0.0.0:7411", "ADDRESS:PORT on which other nodes connect")
PARAM_PATH(peer_key, "",
	   "file with the cluster's key, the same on all nodes; empty: " SYSCONFDIR
	   "/accessd/cluster.key, private: ~/.config/oneaccess/cluster.key")
PARAM_PATH(peer_certificates, "",
	   "folder with cert.pem, key.pem and ca.pem, instead of peer_key; empty: none")
PARAM_CHOICE(peer_crypt, PEER_CRYPT_ON, "on|off",
	     "on: data between nodes are encrypted; off: only checked, for private networks")
PARAM_TEXT(cluster_paths, "",
	   "folders, FOLDER:FOLDER..., that are the same on all nodes: public data below them are "
	   "shared between nodes; empty: none")
PARAM_CHOICE(transport, TRANSPORT_AUTO, "auto|tcp|rdma",
	     "how samples are sent between nodes; auto: by RDMA if both can, else by TCP; rdma: by "
	     "RDMA or not at all")
PARAM_COUNT(peer_recheck, 30, 0, 86400,
	    "seconds after which a node checks a sample's source again before it gives the sample "
	    "to others; 0: never")
PARAM_TEXT(cluster_name, "oneaccess", "the cluster's name: nodes with another name are refused")
PARAM_TEXT(node_name, "", "this node's name, unique in the cluster; empty: the host name")
