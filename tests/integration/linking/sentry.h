/*
 * A stand-in for sentry-native's header, with the functions that docs/examples/sentry_native.c
 * uses. Tests compile the example with it, because no distribution has the library. The
 * declarations are those of include/sentry.h 0.16.3. Transactions are written to stdout as JSON, a
 * line each. Values are jansson's.
 */
#ifndef SENTRY_H_INCLUDED
#define SENTRY_H_INCLUDED

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In sentry-native a 64-bit word; here a JSON value, which no function releases. NULL: null. */
typedef struct {
	json_t *json;
} sentry_value_t;

typedef struct {
	const char *name, *op;
} sentry_transaction_context_t;
typedef struct {
	json_t *inner, *spans;
	int is_sampled;
} sentry_transaction_t;
typedef struct {
	json_t *inner;
} sentry_span_t;

typedef double (*sentry_traces_sampler_function)(const sentry_transaction_context_t *context,
						 sentry_value_t custom_sampling_ctx,
						 const int *parent_sampled, void *user_data);
typedef sentry_value_t (*sentry_transaction_function_t)(sentry_value_t transaction,
							void *user_data);
typedef void (*sentry_iter_headers_function_t)(const char *key, const char *value, void *user);

typedef struct {
	sentry_traces_sampler_function sampler;
	void *sampler_data;
	sentry_transaction_function_t before;
	void *before_data;
} sentry_options_t;

static sentry_options_t *sdk;

static inline sentry_value_t sentry_value_new_null(void)
{
	return (sentry_value_t){NULL};
}

static inline sentry_value_t sentry_value_new_object(void)
{
	return (sentry_value_t){json_object()};
}

static inline sentry_value_t sentry_value_new_string(const char *text)
{
	return (sentry_value_t){json_string(text)};
}

static inline int sentry_value_is_null(sentry_value_t v)
{
	return v.json == NULL;
}

static inline sentry_value_t sentry_value_get_by_key(sentry_value_t v, const char *key)
{
	return (sentry_value_t){json_object_get(v.json, key)};
}

/* Takes the value over. */
static inline int sentry_value_set_by_key(sentry_value_t v, const char *key, sentry_value_t value)
{
	return json_object_set_new(v.json, key, value.json);
}

static inline sentry_value_t sentry_value_get_by_index(sentry_value_t v, size_t i)
{
	return (sentry_value_t){json_array_get(v.json, i)};
}

static inline size_t sentry_value_get_length(sentry_value_t v)
{
	return json_array_size(v.json);
}

static inline sentry_options_t *sentry_options_new(void)
{
	return calloc(1, sizeof(sentry_options_t));
}

static inline void sentry_options_set_traces_sampler(sentry_options_t *o,
						     sentry_traces_sampler_function f,
						     void *user_data)
{
	o->sampler = f;
	o->sampler_data = user_data;
}

static inline void sentry_options_set_before_transaction(sentry_options_t *o,
							 sentry_transaction_function_t f,
							 void *data)
{
	o->before = f;
	o->before_data = data;
}

static inline int sentry_init(sentry_options_t *o)
{
	sdk = o;
	return 0;
}

static inline int sentry_close(void)
{
	free(sdk);
	return 0;
}

static inline sentry_transaction_context_t *sentry_transaction_context_new(const char *name,
									   const char *operation)
{
	sentry_transaction_context_t *c = malloc(sizeof(*c));

	*c = (sentry_transaction_context_t){name, operation};
	return c;
}

static inline const char *sentry_transaction_context_get_name(const sentry_transaction_context_t *c)
{
	return c->name;
}

static inline sentry_transaction_t *sentry_transaction_start(sentry_transaction_context_t *c,
							     sentry_value_t custom)
{
	sentry_transaction_t *t = calloc(1, sizeof(*t));

	t->is_sampled = sdk->sampler(c, custom, NULL, sdk->sampler_data) > 0;
	t->spans = json_array();
	t->inner = json_pack("{s:s, s:s, s:{s:{s:s, s:s}}, s:o}", "type", "transaction",
			     "transaction", c->name, "contexts", "trace", "op", c->op, "span_id",
			     "0123456789abcdef", "spans", t->spans);
	free(c);
	return t;
}

static inline void sentry_transaction_iter_headers(sentry_transaction_t *t,
						   sentry_iter_headers_function_t f, void *user)
{
	f("sentry-trace",
	  t->is_sampled ? "0123456789abcdef0123456789abcdef-0123456789abcdef-1"
			: "0123456789abcdef0123456789abcdef-0123456789abcdef-0",
	  user);
}

static inline sentry_span_t *sentry_transaction_start_child(sentry_transaction_t *t,
							    const char *operation,
							    const char *description)
{
	sentry_span_t *s = calloc(1, sizeof(*s));

	s->inner = json_pack("{s:s, s:s}", "op", operation, "description", description);
	json_array_append_new(t->spans, s->inner);
	return s;
}

static inline void sentry_span_finish(sentry_span_t *s)
{
	free(s);
}

static inline void sentry_transaction_finish(sentry_transaction_t *t)
{
	if (t->is_sampled) {
		sentry_value_t v = sdk->before((sentry_value_t){t->inner}, sdk->before_data);

		json_dumpf(v.json, stdout, JSON_COMPACT);
		(void)printf("\n");
		(void)fflush(stdout);
	}
	json_decref(t->inner);
	free(t);
}

#endif
