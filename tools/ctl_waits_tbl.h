/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job can wait for, declared once: --help and access-ctl(1) explain the same words, which a test compares.
 * WAIT(stage of the status, word, what it means, what helps)
 */
/* clang-format off */
WAIT("scan", "listing", "accessd lists the names and sizes of the data set's files", "a folder is listed once, and later jobs use the stored index; a data set in one file (access-ctl convert) needs no listing")
WAIT("read", "reading", "samples are being read from storage or from the cache", "faster storage, more readers (accessd.conf(5)), one file instead of many (access-ctl convert), or a cache_size that holds the data set")
WAIT("decode", "decoding", "worker processes decode and transform samples", "more workers (accessd.conf(5)) if processors are idle, or a form that decodes faster: access-ctl explain JOB shows what is cached and why, access-ctl convert makes one")
WAIT("slot", "slots", "jobs hold all slots (the memory of finished samples), or have not used them yet", "jobs that hold them must release batches sooner, as the fastest job cannot get further ahead than this; more memory (accessd.conf(5)) makes more slots")
WAIT("workers", "workers", "no worker process runs; accessd starts new ones", "nothing for now; if it continues, accessd's log says why workers end")
WAIT("schedule", "planning", "accessd chooses the next samples", "nothing for now; if it continues, the machine lacks CPU time")
WAIT("drain", "restart", "accessd is shutting down", "nothing: the job continues with the next accessd")
/* clang-format on */
