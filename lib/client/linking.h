/* What sentry_profd.h's functions on threads do ahead of being called. */
#ifndef LIB_CLIENT_LINKING_H
#define LIB_CLIENT_LINKING_H

/*
 * A root span begins on the calling thread, and there is a page: where the
 * daemon has to be asked for the thread's number, it is.
 */
void linking_prepare(void);

#endif
