/*
 * Requests the calling thread's id from the daemon before the program needs it, to link a
 * transaction to its profile. The functions that return the id (sentry_profd_thread_id(),
 * sentry_profd_trace_data(), sentry_profd_span_data()) do not wait for the daemon's answer.
 * sentry_profd_root_span_begin() calls this module.
 */
#ifndef LIB_CLIENT_LINKING_H
#define LIB_CLIENT_LINKING_H

/*
 * Call this when a sampled root span begins on the calling thread and the library has mapped the
 * daemon's page (has_page of state_get()). If the daemon is in another pid namespace, where the
 * thread has another id, requests this id, unless the library has it already. So the library
 * usually has the id when the span ends. If the daemon is in the same pid namespace, does nothing.
 */
void linking_prepare(void);

#endif
