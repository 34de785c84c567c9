/* Prepares the functions of sentry_profd.h that return the calling thread's id. */
#ifndef LIB_CLIENT_LINKING_H
#define LIB_CLIENT_LINKING_H

/*
 * Call it when a root span begins on the calling thread and the daemon's page is mapped. If the
 * daemon is in another pid namespace, requests the daemon's id of this thread, so that the id is
 * known when the span ends.
 */
void linking_prepare(void);

#endif
