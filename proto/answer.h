/*
 * Reads the explanation of an error in the body of a Sentry server's answer. Relay, the server's
 * front end, explains an error by the member "detail" of a JSON object (ApiErrorResponse in
 * relay-server/src/utils/api.rs):
 *
 *     {"detail":"event submission rejected with_reason: ProjectId","causes":[]}
 */
#ifndef PROTO_ANSWER_H
#define PROTO_ANSWER_H

#include <stddef.h>

/*
 * Copies "detail" of the body into ret, cut off to ret_size - 1 bytes, with a NUL. ret becomes ""
 * if the body is no JSON object or has no such text, or if memory is short. The text is UTF-8, and
 * may have control characters; cutting it off may split its last character.
 */
void answer_detail(const char *body, size_t size, char *ret, size_t ret_size);

#endif
