/*
 * The extra members of a process's payloads: those that struct merge does not represent, such
 * as release and environment, and "measurements", curves of points over time. For files of
 * proto/export/ only.
 */
#ifndef PROTO_EXPORT_MERGE_EXTRA_H
#define PROTO_EXPORT_MERGE_EXTRA_H

#include <jansson.h>

#include "lib/base/util.h"

/*
 * Adds a payload, which stays the caller's, to *extra. The first payload (*extra is NULL) gives all
 * members but "profile" and "debug_meta". Each further payload only adds curves, and points to the
 * curves, which stay sorted by time. PROFILE_READY_KNOWN stays only if all payloads have it. The
 * caller releases *extra by json_decref(). Returns 0, or -ENOMEM: *extra may then be incomplete.
 */
must_check int merge_extra_add(json_t **extra, json_t *payload);

#endif
