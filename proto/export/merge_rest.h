/*
 * The members of a process's payloads that a merge has no structs for: those of
 * the first chunk, with the points of all chunks' curves ("measurements").
 * Inside proto/export/.
 */
#ifndef PROTO_EXPORT_MERGE_REST_H
#define PROTO_EXPORT_MERGE_REST_H

#include <jansson.h>

#include "lib/base/util.h"

/*
 * *rest is NULL before the first payload; json_decref is due for it. Without
 * "profile" and "debug_meta". Points of a curve are sorted by time. Returns 0
 * or -ENOMEM.
 */
must_check int merge_rest_add(json_t **rest, json_t *payload);

#endif
