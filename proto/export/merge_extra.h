/*
 * Merges the extra members of a process's payloads. All members but "profile", "debug_meta" and
 * PROFILE_COMMAND_LINE are extra members. One of them, "measurements", has curves: lists of points
 * in time. For files of proto/export/ only.
 */
#ifndef PROTO_EXPORT_MERGE_EXTRA_H
#define PROTO_EXPORT_MERGE_EXTRA_H

#include <jansson.h>

#include "lib/base/util.h"

/*
 * Adds a payload, which stays the caller's, to *extra. If *extra is NULL, it becomes a copy of all
 * extra members of the payload. Otherwise
 * - adds to *extra the curves that are new, and the points of the others, sorted by time; of points
 *   with the same time one stays;
 * - removes PROFILE_READY_KNOWN (profile.h) from *extra unless it is true in the payload, too;
 * - sets PROFILE_JOINED_SAMPLES in *extra if it is true in the payload;
 * - ignores all other members of the payload: those of the first payload stay.
 * The caller releases *extra by json_decref(). Returns 0, or -ENOMEM: *extra may be incomplete.
 */
must_check int merge_extra_add(json_t **extra, json_t *payload);

#endif
