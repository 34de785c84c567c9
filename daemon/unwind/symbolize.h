/*
 * Names addresses of an ELF file for a MSG_SYMBOLIZE of `sentry-profctl convert --symbolize`, by
 * the same look-up as for a target's addresses (lib/aggregate/lookup.h). sentry-profctl sends the
 * file as a descriptor.
 */
#ifndef DAEMON_UNWIND_SYMBOLIZE_H
#define DAEMON_UNWIND_SYMBOLIZE_H

#include "daemon/msg/msg_unwind.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/*
 * Looks up the addresses of m in fd, which stays the caller's, and answers with MSG_SYMBOLIZED.
 * cache: the cache of images that targets use, too (lib/unwind/unwind.h). May request debug files
 * (daemon/unwind/request.h). If the file cannot be used, the verdict in the answer says so. Returns
 * 0; -EPROTO if m is malformed; -ENOMEM; or an error of ipc_send().
 */
must_check int symbolize(struct unwind_cache *cache, const struct msg_symbolize *m, int fd);

#endif
