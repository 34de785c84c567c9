/*
 * Checks the URL of a proxy, [SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/], when
 * the configuration is read. Only a missing host and a port that is no number
 * are found: whatever else is wrong with it, libcurl reports at the first
 * request.
 */
#ifndef DAEMON_CONFIG_PROXY_H
#define DAEMON_CONFIG_PROXY_H

/*
 * Returns NULL, or what is wrong with url, in words that do not quote it: it
 * may contain a password.
 */
const char *proxy_problem(const char *url);

#endif
