/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be set for one user: tenant.USER.NAME = VALUE in accessd.conf(5). Where nothing is, the parameter
 * tenant_NAME holds for him as for everybody.
 *
 * QUOTA_BYTES(name, least, most, what)   64M, 1.5G, ...
 * QUOTA_COUNT(name, least, most, what)   a whole number
 */
QUOTA_COUNT(share, 1, 1000,
	    "parts of CPU time and of a disk that are his when all want more than there is; else 1")
QUOTA_BYTES(read_bandwidth, UINT64_C(65536), UINT64_C(1) << 50,
	    "most bytes a second that are read from data sets for him; else without a limit")
QUOTA_BYTES(memory, 1, UINT64_C(1) << 50, "most of `memory` that he may take")
QUOTA_BYTES(cache, 1, UINT64_C(1) << 50, "most of `cache_size` that he may take")
QUOTA_COUNT(clients, 1, 65536, "connections at once")
QUOTA_COUNT(streams, 1, 4096, "streams at once")
QUOTA_COUNT(jobs, 1, 65536, "jobs at once, each rank counted")
