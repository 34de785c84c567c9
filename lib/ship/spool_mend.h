/*
 * Names in a spool's directory, before it is read: each file gets the one that
 * it should have, or is removed because it was never finished.
 */
#ifndef LIB_SHIP_SPOOL_MEND_H
#define LIB_SHIP_SPOOL_MEND_H

#include "lib/ship/spool.h"

/* Returns 0, -ENOMEM, or why the directory cannot be read. */
must_check int spool_mend(const struct spool_options *o, uint64_t now_ms);

/* Never to be sent, for that reason; what it takes is still counted on. */
void spool_put_aside(const struct spool_options *o, const char *name, int error);

#endif
