/* Prepares the functions of sentry_profd.h that return the calling thread's id. */
#ifndef LIB_CLIENT_LINKING_H
#define LIB_CLIENT_LINKING_H

/*
 * Call this when a root span begins on the calling thread and state.has_page is set. If the daemon
 * is in another pid namespace, requests the id that the daemon sees for this thread, so that the
 * library has it when the span ends. Otherwise does nothing.
 */
void linking_prepare(void);

#endif
