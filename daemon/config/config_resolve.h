/*
 * Completes a configuration after files and command line were read: the environment and
 * the defaults fill what neither gave, and each [target] section takes over what it does not
 * set from [sentry] and [profiler]. Then checks what a single value cannot show, such as a
 * section that no process can match.
 */
#ifndef DAEMON_CONFIG_CONFIG_RESOLVE_H
#define DAEMON_CONFIG_CONFIG_RESOLVE_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "lib/base/util.h"

/* As getenv(3), which tests replace. */
typedef char *(*config_env_fn)(const char *name);

/*
 * Completes c. Variables: SENTRY_*, SSL_CERT_FILE, and the proxies of libcurl, which are
 * checked and not kept. Returns 0, or -EINVAL if faults were added that are no warnings.
 */
must_check int config_resolve(struct config *c, config_env_fn get, struct config_faults *faults);

/*
 * Makes the section, under this name, of a process that no section matches (--pid, attach).
 */
void config_implicit_target(const struct config *c, const char *name, struct target_config *ret);

#endif
