/*
 * The URL of a proxy as libcurl takes it, [SCHEME://][USER[:PASSWORD]@]HOST
 * [:PORT][/], told to be wrong before a request fails because of it.
 */
#ifndef DAEMON_PROXY_H
#define DAEMON_PROXY_H

/*
 * NULL: it is one. Else what is wrong with it, in words that do not contain it:
 * there may be a password.
 */
const char *proxy_problem(const char *url);

#endif
