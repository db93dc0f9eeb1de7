/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters that SIGHUP changes in a running accessd: each is read where it is used, and nothing was made by it. What
 * memory, processes and streams were made by needs a restart, which jobs outlive. accessd.conf(5) says which these are.
 */
PARAM_LIVE(log_level)
PARAM_LIVE(linger_s)
PARAM_LIVE(idle_exit_s)
PARAM_LIVE(open_timeout_s)
PARAM_LIVE(max_clients)
PARAM_LIVE(closed)
PARAM_LIVE(index_size)
PARAM_LIVE(chunk)
PARAM_LIVE(tenants)
PARAM_LIVE(tenant_idle_s)
PARAM_LIVE(tenant_memory)
PARAM_LIVE(tenant_clients)
PARAM_LIVE(tenant_streams)
PARAM_LIVE(tenant_jobs)
PARAM_LIVE(sample_timeout_ms)
