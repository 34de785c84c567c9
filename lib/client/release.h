/*
 * Asks the daemon to release this process, and waits for the answer: the work of
 * sentry_profd_release(). To release a process is to detach from it and to stay away for a time
 * (PROTOCOL_RELEASE of lib/client/protocol.h).
 */
#ifndef LIB_CLIENT_RELEASE_H
#define LIB_CLIENT_RELEASE_H

#include <stdint.h>

/*
 * Sends the request on fd, a connection of connection_dial() on which nothing was sent yet, and
 * waits up to 30 s for the answer. The caller closes fd. Call it outside of state_enter() and
 * state_leave() (state.h): otherwise other threads cannot use the library during the wait. seconds:
 * how long the daemon stays away. Returns 0 or a negative errno, as sentry_profd_release() in
 * sentry_profd.h lists them.
 */
int release_request(int fd, uint32_t seconds);

#endif
