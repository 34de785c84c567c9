/*
 * MSG_SYMBOLIZE: names addresses of an ELF file for `sentry-profctl convert
 * --symbolize`, by the same look-up as for a target's addresses
 * (lib/aggregate/lookup.h). profctl sends the file as a descriptor.
 */
#ifndef DAEMON_UNWIND_SYMBOLIZE_H
#define DAEMON_UNWIND_SYMBOLIZE_H

#include "daemon/msg/msg_unwind.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/*
 * Looks up the addresses of m in fd, which stays the caller's, and sends
 * MSG_SYMBOLIZED. Returns 0 or a negative errno; -EPROTO if m is malformed.
 */
must_check int symbolize(struct unwind_cache *cache, const struct msg_symbolize *m, int fd);

#endif
