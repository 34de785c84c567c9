/*
 * Requests that the daemon releases this process (PROTOCOL_RELEASE of lib/client/protocol.h), and
 * waits for the answer.
 */
#ifndef LIB_CLIENT_RELEASE_H
#define LIB_CLIENT_RELEASE_H

#include <stdint.h>

/*
 * Sends the request on fd, a connection of connection_dial() that has sent nothing yet, and waits
 * for the answer. fd stays the caller's. Waits without any lock. Returns as sentry_profd_release().
 */
int release_request(int fd, uint32_t seconds);

#endif
