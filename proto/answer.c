#include "proto/answer.h"

#include <stdio.h>

#include <jansson.h>

void answer_detail(const char *body, size_t size, char *ret, size_t ret_size)
{
	json_t *root = json_loadb(body, size, 0, NULL);
	const char *detail = json_string_value(json_object_get(root, "detail"));

	(void)snprintf(ret, ret_size, "%s", detail == NULL ? "" : detail);
	json_decref(root);
}
