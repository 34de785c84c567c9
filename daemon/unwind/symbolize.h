/*
 * MSG_SYMBOLIZE: sentry-profd-unwind names addresses of a file that it was
 * handed, by the same look-up as those of a target (lib/aggregate/lookup.h).
 */
#ifndef DAEMON_UNWIND_SYMBOLIZE_H
#define DAEMON_UNWIND_SYMBOLIZE_H

#include "daemon/msg/msg_unwind.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/*
 * Answers m, which came with fd, by MSG_SYMBOLIZED. fd stays the caller's.
 * Returns 0, or a negative errno: -EPROTO if m is not as its rule says.
 */
must_check int symbolize(struct unwind_cache *cache, const struct msg_symbolize *m, int fd);

#endif
