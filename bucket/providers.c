/* SPDX-License-Identifier: Apache-2.0 */

/* The providers of access-bucket. */

#include "bucket/provider.h"

const struct provider_ops *const bucket_providers[] = {
#define PROVIDER(name) &provider_##name,
#include "bucket/provider_tbl.h"
#undef PROVIDER
};
const size_t bucket_n_providers = BASE_ARRAY_LEN(bucket_providers);
