/*
 * The seccomp filter of capture. capture can read the memory of all processes. The filter prevents
 * an attacker who has taken over capture from sending that memory elsewhere, from writing files,
 * and from running programs. SANDBOX_CAPTURE in daemon/common/sandbox.h lists what the filter
 * allows.
 *
 * The filter is a table in the executable. daemon/capture/filter/print_filter.c makes the table
 * with libseccomp when the project is built, because capture links no library but libc.
 */
#ifndef DAEMON_CAPTURE_FILTER_H
#define DAEMON_CAPTURE_FILTER_H

#include <stdbool.h>

#include "lib/base/util.h"

/*
 * Installs the filter for the calling thread, which must be the only thread of the process and must
 * have set no_new_privs. The filter cannot be removed. uses_perf: the filter also allows opening
 * and controlling perf events. kill: true, for tests: a system call that the filter does not allow
 * kills the process; false: the call fails with ENOSYS. Returns 0 or -errno.
 */
must_check int filter_install(bool uses_perf, bool kill);

#endif
