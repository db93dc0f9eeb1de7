/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/provider.h"

int main(void)
{
	return 0;
}
