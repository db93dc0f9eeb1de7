/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job can wait for, declared once: --help and access-ctl(1) explain the same words, which a test compares.
 * WAIT(stage of the status, word, what it means, what helps)
 */
/* clang-format off */
WAIT("scan", "listing", "the names and sizes of the dataset's files are being listed", "a folder is listed once, later jobs take the stored index; a dataset in one file needs no listing: access-ctl convert")
WAIT("read", "reading", "samples are on their way from storage, or from what is kept of them", "faster storage, more readers (accessd.conf(5)), one file in the place of many (access-ctl convert), or a cache_size that the dataset fits into")
WAIT("decode", "decoding", "worker processes decode and transform samples, as fast as they can", "more workers (accessd.conf(5)) if processors are idle, or a form that decodes faster: access-ctl explain JOB says what is kept and why, access-ctl convert makes one")
WAIT("slot", "slots", "all slots, the memory of finished samples, are held or not yet used by jobs", "jobs that hold them must give batches back sooner, the fastest job cannot go further ahead than this; more memory (accessd.conf(5)) makes more slots")
WAIT("workers", "workers", "no worker process is alive; accessd starts new ones", "if it stays so, accessd's log says why they end")
WAIT("schedule", "planning", "accessd decides which samples come next", "it passes by itself; if it stays so, the machine lacks processor time")
WAIT("drain", "restart", "accessd is ending", "nothing need be done: the job goes on with the next accessd")
/* clang-format on */
