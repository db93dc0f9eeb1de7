/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SOURCE(name): the kinds of data sets, in the order in which they are asked; source_name are their functions
 * (source_kind.h). A folder is what nobody else claims.
 */

/* clang-format off */
SOURCE(joined)
SOURCE(wrapped)
SOURCE(oads)
SOURCE(arrays)
SOURCE(tar)
SOURCE(tfrecord)
SOURCE(mds)
SOURCE(litdata)
SOURCE(recordio)
SOURCE(bagz)
SOURCE(arrayrecord)
SOURCE(beton)
SOURCE(manifest)
SOURCE(zip)
SOURCE(rows)
SOURCE(folder)
/* clang-format on */
