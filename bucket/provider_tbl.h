/* SPDX-License-Identifier: Apache-2.0 */
/* The providers, in the order in which schemes are looked for. */
PROVIDER(s3)
PROVIDER(https)
PROVIDER(http)
PROVIDER(hf)
PROVIDER(gs)
PROVIDER(az)
PROVIDER(abfs)
PROVIDER(abfss)
