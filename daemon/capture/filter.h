/*
 * The seccomp filter of capture, which can read the memory of all processes: somebody who has taken
 * over capture can neither send what it reads elsewhere, write files, nor run programs.
 * daemon/common/sandbox.h lists what it allows.
 *
 * The filter is a table that libseccomp makes when the project is built, because capture links libc
 * only.
 */
#ifndef DAEMON_CAPTURE_FILTER_H
#define DAEMON_CAPTURE_FILTER_H

#include <stdbool.h>

#include "lib/base/util.h"

/*
 * Installs the filter for this process, whose only thread is the caller. It cannot be removed. The
 * caller must have set no_new_privs. kill: a forbidden call kills the process, for tests; otherwise
 * it fails with ENOSYS. Returns 0 or -errno.
 */
must_check int filter_install(bool kill);

#endif
