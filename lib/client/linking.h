/*
 * Gets the calling thread's id in time for the functions of sentry_profd.h that return it.
 * sentry_profd_root_span_begin() calls this module.
 */
#ifndef LIB_CLIENT_LINKING_H
#define LIB_CLIENT_LINKING_H

/*
 * Call this when a sampled root span begins on the calling thread and the library has mapped the
 * daemon's page (has_page of state_get()). If the daemon is in another pid namespace, requests the
 * id that the daemon sees for this thread, unless the library has it. So the library usually has
 * the id when the span ends. Otherwise does nothing.
 */
void linking_prepare(void);

#endif
