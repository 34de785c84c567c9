#include "lib/base/short_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DOTS "..."

/* The most arguments of a name that are shown to tell it apart. A name that needs more stays whole.
 */
#define SHOWN_MAX 24u

/* The most places of dots in a short name that are compared. */
#define PLACES_MAX 64u

/* Operators of C++ with brackets in their names; a longer one stands before its beginning. */
static const char *const operators[] = {
	"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"};

/* Types that have a short name in C++ itself. */
static const struct {
	const char *type, *arguments, *name;
} aliases[] = {
	{"std::__cxx11::basic_string", "char, std::char_traits<char>, std::allocator<char>",
	 "std::string"},
	{"std::basic_string", "char, std::char_traits<char>, std::allocator<char>", "std::string"},
	{"std::__1::basic_string", "char, std::__1::char_traits<char>, std::__1::allocator<char>",
	 "std::string"},
	{"std::basic_string_view", "char, std::char_traits<char>", "std::string_view"},
};

/* A name with its pairs of brackets. */
struct brackets {
	const char *name;
	size_t length;
	uint16_t close[SHORT_NAMES_SIZE];     /* by the position of an opening one; 0: none */
	bool ends_operator[SHORT_NAMES_SIZE]; /* an operator's name ends before this position */
};

/* Part of a name: name[start] up to, but not including, name[end]. */
struct part {
	size_t start, end;
};

/* A short name under construction. */
struct shortening {
	const char *name;
	/* Where the arguments and parameters begin that are shown, in no order. */
	uint16_t shown[SHOWN_MAX];
	uint16_t n_shown;
	bool is_whole;
	const char *result;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Returns the length of an operator's name with brackets at the position; 0: there is none. */
static size_t operator_at(const struct brackets *b, size_t at)
{
	static const char word[] = "operator";
	const size_t length = strlen(word);

	if (!starts_with(b->name + at, word) || (at > 0 && is_word(b->name[at - 1])))
		return 0;
	for (size_t i = 0; i < array_size(operators); i++)
		if (starts_with(b->name + at + length, operators[i]))
			return length + strlen(operators[i]);
	return 0;
}

/* Closes the innermost bracket that c closes. Returns false if there is none. */
static bool close_bracket(struct brackets *b, char c, size_t at, uint16_t *stack, size_t *depth)
{
	const char open = c == ')' ? '(' : c == ']' ? '[' : '{';

	/* A '<' that is still open was the operator of an expression. */
	while (*depth > 0 && b->name[stack[*depth - 1]] == '<')
		--*depth;
	if (*depth == 0 || b->name[stack[*depth - 1]] != open)
		return false;
	b->close[stack[--*depth]] = (uint16_t)at;
	return true;
}

/* Finds the pairs. Returns false if the brackets of the name are not those of C++ or Rust. */
static bool find_pairs(struct brackets *b)
{
	uint16_t stack[SHORT_NAMES_SIZE];
	size_t depth = 0;

	for (size_t i = 0; i < b->length; i++) {
		const size_t skipped = operator_at(b, i);
		const char c = b->name[i];

		if (skipped > 0) {
			i += skipped;
			b->ends_operator[i] = true;
			/* "operator< <int>" */
			if (b->name[i] == ' ' && b->name[i + 1] == '<')
				b->ends_operator[++i] = true;
			i--;
		} else if (starts_with(b->name + i, "->")) {
			i++;
		} else if (c == '<' || c == '(' || c == '[' || c == '{') {
			stack[depth++] = (uint16_t)i;
		} else if (c == '>' && depth > 0 && b->name[stack[depth - 1]] == '<') {
			b->close[stack[--depth]] = (uint16_t)i;
		} else if ((c == ')' || c == ']' || c == '}') &&
			   !close_bracket(b, c, i, stack, &depth)) {
			return false;
		}
	}
	while (depth > 0 && b->name[stack[depth - 1]] == '<')
		depth--;
	return depth == 0;
}

/* Returns true for "TYPE as TRAIT" and "impl TRAIT for TYPE" of Rust, within these brackets. */
static bool is_rust_type(const struct brackets *b, size_t open)
{
	if (starts_with(b->name + open + 1, "impl "))
		return true;
	for (size_t i = open + 1; i < b->close[open]; i++) {
		if (b->close[i] != 0)
			i = b->close[i];
		else if (starts_with(b->name + i, " as "))
			return true;
	}
	return false;
}

/*
 * Returns true if '<' opens arguments: "f<int>", "f::<u8>". Not in "<T as U>::f", in names that
 * languages make ("Main.<init>", "py::<lambda>:file"), and in expressions.
 */
static bool opens_arguments(const struct brackets *b, size_t open)
{
	const char *after = b->name + b->close[open] + 1;
	const char before = open > 0 ? b->name[open - 1] : ' ';

	if (is_word(*after) || (after[0] == ':' && after[1] != ':'))
		return false;
	if (open > 1 && before == ':' && b->name[open - 2] == ':')
		return !is_rust_type(b, open) && !starts_with(b->name + open, "<init>") &&
		       !starts_with(b->name + open, "<clinit>");
	return is_word(before) || before == ']' || before == '}' || b->ends_operator[open];
}

/* Returns true if '(' opens parameters. Not in "(anonymous namespace)" and Go's "pkg.(*T).f". */
static bool opens_parameters(const struct brackets *b, size_t open)
{
	const char before = open > 0 ? b->name[open - 1] : ' ';

	return is_word(before) || before == '>' || before == ']' || before == '}' ||
	       b->ends_operator[open];
}

/* Returns true if the bracket opens a group that can be hidden. */
static bool opens_group(const struct brackets *b, size_t open)
{
	if (b->close[open] == 0 || b->close[open] - open - 1 <= strlen(DOTS))
		return false;
	return b->name[open] == '<' ? opens_arguments(b, open)
				    : b->name[open] == '(' && opens_parameters(b, open);
}

/* Returns the alias of the type at the position, and its length; NULL: it has none. */
static const char *alias_at(const struct brackets *b, size_t at, size_t *ret_length)
{
	if (at > 0 && (is_word(b->name[at - 1]) || b->name[at - 1] == ':'))
		return NULL;
	for (size_t i = 0; i < array_size(aliases); i++) {
		const size_t open = at + strlen(aliases[i].type);
		const size_t length = strlen(aliases[i].arguments);

		if (!starts_with(b->name + at, aliases[i].type) || b->close[open] == 0 ||
		    !starts_with(b->name + open + 1, aliases[i].arguments) ||
		    strspn(b->name + open + 1 + length, " ") != b->close[open] - open - 1 - length)
			continue;
		*ret_length = b->close[open] + 1 - at;
		return aliases[i].name;
	}
	return NULL;
}

struct output {
	char text[SHORT_NAMES_SIZE];
	size_t used;
	/* What the dots stand for, from left to right. */
	struct part hidden[PLACES_MAX];
	size_t n_hidden;
};

static void put(struct output *o, const char *s, size_t n)
{
	memcpy(o->text + o->used, s, n);
	o->used += n;
}

static void put_dots(struct output *o, size_t start, size_t end)
{
	put(o, DOTS, strlen(DOTS));
	if (o->n_hidden < PLACES_MAX)
		o->hidden[o->n_hidden] = (struct part){start, end};
	o->n_hidden++;
}

/*
 * Finds the next argument in name[*at] up to, but not including, name[end], and moves *at behind
 * it. Returns false if there is none.
 */
static bool next_argument(const struct brackets *b, size_t *at, size_t end, struct part *ret)
{
	size_t i = *at;

	if (i >= end)
		return false;
	if (b->name[i] == ',')
		i++;
	i += strspn(b->name + i, " ");
	*ret = (struct part){min_size(i, end), end};
	for (; i < end && b->name[i] != ','; i++)
		if (b->close[i] != 0)
			i = b->close[i];
	*at = min_size(i, end);
	ret->end = *at;
	while (ret->end > ret->start && b->name[ret->end - 1] == ' ')
		ret->end--;
	return true;
}

static bool is_shown(const struct shortening *s, const struct part *argument)
{
	for (size_t i = 0; i < s->n_shown; i++)
		if (s->shown[i] == argument->start)
			return true;
	return false;
}

static bool shows_some(const struct brackets *b, const struct shortening *s, size_t open)
{
	struct part argument;

	for (size_t at = open + 1; next_argument(b, &at, b->close[open], &argument);)
		if (is_shown(s, &argument))
			return true;
	return false;
}

static void write_part(const struct brackets *b, const struct shortening *s, struct part part,
		       struct output *o);

/*
 * Writes the arguments of a group of which some are shown. Arguments that are hidden share their
 * dots with hidden neighbours. Depth of the recursion: each level has an argument that is shown.
 */
static void write_arguments(const struct brackets *b, const struct shortening *s, size_t open,
			    struct output *o)
{
	struct part argument, *hidden = NULL;
	size_t last = open + 1;

	for (size_t at = last; next_argument(b, &at, b->close[open], &argument);
	     last = argument.end) {
		const bool hides =
			!is_shown(s, &argument) && argument.end - argument.start > strlen(DOTS);

		if (hides && hidden != NULL) {
			hidden->end = argument.end;
			continue;
		}
		put(o, b->name + last, argument.start - last);
		hidden = NULL;
		if (!hides) {
			write_part(b, s, argument, o);
			continue;
		}
		put_dots(o, argument.start, argument.end);
		hidden = &o->hidden[min_size(o->n_hidden, PLACES_MAX) - 1];
	}
}

/* Writes a part of b in its short form, which is never longer. */
static void write_part(const struct brackets *b, const struct shortening *s, struct part part,
		       struct output *o)
{
	size_t length;

	for (size_t i = part.start; i < part.end; i++) {
		const char *alias = alias_at(b, i, &length);

		if (alias != NULL) {
			put(o, alias, strlen(alias));
			i += length - 1;
			continue;
		}
		put(o, b->name + i, 1);
		if (!opens_group(b, i))
			continue;
		if (shows_some(b, s, i))
			write_arguments(b, s, i, o);
		else
			put_dots(o, i + 1, b->close[i]);
		i = b->close[i];
		put(o, b->name + i, 1);
	}
}

/* Fills in b. Returns false if the name has to stay whole. */
static bool read_brackets(const char *name, struct brackets *b)
{
	b->length = strlen(name);
	if (b->length >= SHORT_NAMES_SIZE)
		return false;
	b->name = name;
	memset(b->close, 0, (b->length + 1) * sizeof(b->close[0]));
	memset(b->ends_operator, 0, (b->length + 1) * sizeof(b->ends_operator[0]));
	return find_pairs(b);
}

/* A name with its brackets and its short form. */
struct view {
	struct brackets brackets;
	struct output output;
};

/* What is allocated once for all names. */
struct work {
	struct view view, other;
	struct string_pool *text;
};

/* Returns false if the name stays whole. */
static bool view_make(struct view *v, const struct shortening *s)
{
	if (s->is_whole || !read_brackets(s->name, &v->brackets))
		return false;
	v->output.used = v->output.n_hidden = 0;
	write_part(&v->brackets, s, (struct part){0, v->brackets.length}, &v->output);
	v->output.text[v->output.used] = '\0';
	return true;
}

static int make(struct work *w, struct shortening *s)
{
	s->result = s->name;
	if (!view_make(&w->view, s))
		return 0;
	return string_pool_intern(w->text, w->view.output.text, &s->result);
}

static bool same_text(const struct view *a, const struct part *x, const struct view *b,
		      const struct part *y)
{
	const size_t length = x->end - x->start;

	return y->end - y->start == length &&
	       memcmp(a->brackets.name + x->start, b->brackets.name + y->start, length) == 0;
}

/* The place of an argument: the dots that stand for it, and its number behind these dots. */
struct place {
	size_t dots, argument;
};

/* Finds an argument. Returns false if the short name has none at this place. */
static bool argument_at(const struct view *v, struct place place, struct part *ret)
{
	const struct part *hidden = &v->output.hidden[place.dots];
	size_t at = hidden->start;

	for (size_t i = 0; i <= place.argument; i++)
		if (!next_argument(&v->brackets, &at, hidden->end, ret))
			return false;
	return true;
}

/* Finds the first argument in which two hidden parts differ. Returns false if there is none. */
static bool differing_argument(const struct view *a, const struct part *x, const struct view *b,
			       const struct part *y, size_t *ret)
{
	size_t at_x = x->start, at_y = y->start;

	for (*ret = 0;; ++*ret) {
		struct part p, q;
		const bool has_p = next_argument(&a->brackets, &at_x, x->end, &p);
		const bool has_q = next_argument(&b->brackets, &at_y, y->end, &q);

		if (!has_p && !has_q)
			return false;
		if (!has_p || !has_q || !same_text(a, &p, b, &q))
			return true;
	}
}

/* Moves *place back to the first argument in which the short names differ, if it is further on. */
static void find_difference(const struct view *a, const struct view *b, struct place *place)
{
	const size_t n = min_size(a->output.n_hidden, PLACES_MAX);

	for (struct place at = {0}; at.dots < n && at.dots <= place->dots; at.dots++) {
		if (!differing_argument(a, &a->output.hidden[at.dots], b,
					&b->output.hidden[at.dots], &at.argument))
			continue;
		if (at.dots < place->dots || at.argument < place->argument)
			*place = at;
		return;
	}
}

/* Finds the first argument in which some of these names, which have one short name, differ. */
static bool first_difference(struct work *w, struct shortening *const *v, size_t n,
			     struct place *ret)
{
	*ret = (struct place){PLACES_MAX, 0};
	if (!view_make(&w->view, v[0]))
		return false;
	for (size_t i = 1; i < n; i++) {
		if (!view_make(&w->other, v[i]) ||
		    w->other.output.n_hidden != w->view.output.n_hidden)
			return false;
		find_difference(&w->view, &w->other, ret);
	}
	return ret->dots < PLACES_MAX;
}

static void show(struct shortening *s, size_t start)
{
	if (s->n_shown == SHOWN_MAX)
		s->is_whole = true;
	else
		s->shown[s->n_shown++] = (uint16_t)start;
}

/* Shows more of the names, which have one short name. */
static int show_more(struct work *w, struct shortening *const *v, size_t n)
{
	struct place place;
	const bool differs = first_difference(w, v, n, &place);
	struct part argument;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (!differs)
			v[i]->is_whole = true;
		else if (view_make(&w->other, v[i]) && argument_at(&w->other, place, &argument))
			show(v[i], argument.start);
		r = make(w, v[i]);
	}
	return r;
}

/* Names and results are interned, so equal strings are equal pointers. */
static int compare_results(const void *a, const void *b)
{
	const struct shortening *x = *(struct shortening *const *)a;
	const struct shortening *y = *(struct shortening *const *)b;

	if (x->result != y->result)
		return (uintptr_t)x->result < (uintptr_t)y->result ? -1 : 1;
	return (uintptr_t)x->name < (uintptr_t)y->name ? -1 : x->name != y->name;
}

/* Shows more of all names that have the short name of another. *ret: there were some. */
static int tell_apart(struct work *w, struct shortening **v, size_t n, bool *ret)
{
	int r = 0;

	*ret = false;
	qsort(v, n, sizeof(*v), compare_results);
	for (size_t i = 0, end; i < n && r == 0; i = end) {
		for (end = i + 1; end < n && v[end]->result == v[i]->result;)
			end++;
		if (v[i]->name == v[end - 1]->name)
			continue;
		r = show_more(w, v + i, end - i);
		*ret = true;
	}
	return r;
}

static int make_all(struct work *w, const char *const *names, size_t n, struct shortening *all,
		    struct shortening **order)
{
	bool is_changed = true;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		order[i] = &all[i];
		r = string_pool_intern(w->text, names[i], &all[i].name);
		if (r == 0)
			r = make(w, &all[i]);
	}
	while (r == 0 && is_changed)
		r = tell_apart(w, order, n, &is_changed);
	return r;
}

int short_names_make(const char *const *names, size_t n, struct string_pool *text, const char **ret)
{
	struct shortening *all = calloc(n + 1, sizeof(*all));
	struct shortening **order = calloc(n + 1, sizeof(*order));
	struct work *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (all != NULL && order != NULL && w != NULL) {
		w->text = text;
		r = make_all(w, names, n, all, order);
	}
	for (size_t i = 0; i < n && r == 0; i++)
		ret[i] = all[i].result;
	free(all);
	free(order);
	free(w);
	return r;
}

int short_names_or_full(const char *const *names, size_t n, bool is_full, struct string_pool *text,
			const char **ret)
{
	if (!is_full)
		return short_names_make(names, n, text, ret);
	memcpy(ret, names, n * sizeof(*ret));
	return 0;
}
