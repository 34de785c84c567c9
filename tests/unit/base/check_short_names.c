#include "lib/base/short_names.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct string_pool text;

static void set_up(void)
{
	string_pool_init(&text, 0);
}

static void tear_down(void)
{
	string_pool_fini(&text);
}

FIXTURE(set_up, tear_down)

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
#define LESS   "std::less<" STRING " >"

static const struct {
	const char *name, *expected;
} short_forms[] = {
	/* C++ */
	{"main", "main"},
	{"f()", "f()"},
	{"f(int)", "f(int)"},
	{"f(unsigned long)", "f(...)"},
	{"Counter<unsigned long>::add(int) const", "Counter<...>::add(int) const"},
	{STRING "::append(char const*)", "std::string::append(...)"},
	{"std::basic_string<wchar_t, std::char_traits<wchar_t> >::at(int)",
	 "std::basic_string<...>::at(int)"},
	{"std::vector<" STRING ", A>::~vector()", "std::vector<...>::~vector()"},
	{"void std::sort<It, Cmp>(It, It, Cmp) [clone .isra.0]",
	 "void std::sort<...>(...) [clone .isra.0]"},
	{"f[abi:cxx11](unsigned int)", "f[abi:cxx11](...)"},
	{"(anonymous namespace)::Pool::take(Pool&&)", "(anonymous namespace)::Pool::take(...)"},
	{"run(int&)::{lambda(auto:1, long)#1}::operator()(double) const",
	 "run(...)::{lambda(...)#1}::operator()(...) const"},
	{"std::ostream& std::operator<< <char>(std::ostream&, char)",
	 "std::ostream& std::operator<< <...>(...)"},
	{"bool operator< <long>(A<long> const&)", "bool operator< <...>(...)"},
	{"A::operator->() const", "A::operator->() const"},
	{"A<long>::operator>>(A<long>&)", "A<...>::operator>>(...)"},
	{"A::operator std::vector<int>()", "A::operator std::vector<int>()"},
	{"f<(8>3), ((sizeof (int))<(4)), B>::g", "f<...>::g"},
	{"void f<int (*)(long)>(int (*)(long))", "void f<...>(...)"},
	{"operator new[](unsigned long)", "operator new[](...)"},
	/* Rust */
	{"<alloc::vec::Vec<T,A> as core::ops::Drop>::drop",
	 "<alloc::vec::Vec<T,A> as core::ops::Drop>::drop"},
	{"<alloc::vec::Vec<u8, G> as core::iter::Extend<&u8>>::extend::<Chain<A, B>>",
	 "<alloc::vec::Vec<...> as core::iter::Extend<&u8>>::extend::<...>"},
	{"core::ptr::drop_in_place::<std::io::Error>", "core::ptr::drop_in_place::<...>"},
	{"std::thread::Builder::spawn_unchecked_::<F, T>::{closure#1}",
	 "std::thread::Builder::spawn_unchecked_::<...>::{closure#1}"},
	{"core::ops::impls::<impl core::ops::FnOnce<Args> for &mut F>::call_once",
	 "core::ops::impls::<impl core::ops::FnOnce<...> for &mut F>::call_once"},
	{"<&mut W as core::fmt::Write>::write_str", "<&mut W as core::fmt::Write>::write_str"},
	{"<dyn core::any::Any>::is::<Option<Box<u8>>>", "<dyn core::any::Any>::is::<...>"},
	{"<fn(usize) -> bool as Call>::call", "<fn(...) -> bool as Call>::call"},
	/* Others */
	{"net/http.(*persistConn).readLoop", "net/http.(*persistConn).readLoop"},
	{"main.Map[go.shape.int]", "main.Map[go.shape.int]"},
	{"py::<module>:/srv/app.py", "py::<module>:/srv/app.py"},
	{"Ljava/lang/Thread;::<init>", "Ljava/lang/Thread;::<init>"},
	{"App.Program::<Main>b__0_0()", "App.Program::<Main>b__0_0()"},
	{"[libcrypto.so.3]", "[libcrypto.so.3]"},
	{"std.stdio.writeln!(string).writeln(string)", "std.stdio.writeln!(string).writeln(...)"},
	/* Brackets that do not match */
	{"f(unsigned long", "f(unsigned long"},
	{"f(unsigned long]", "f(unsigned long]"},
	{"f<unsigned long", "f<unsigned long"},
	{"operator", "operator"},
	{"operator<", "operator<"},
	{"", ""},
};

TESTS(brackets_are_hidden, array_size(short_forms))
{
	const char *name = short_forms[_i].name, *result;

	OK(short_names_make(&name, 1, &text, &result));
	ck_assert_str_eq(result, short_forms[_i].expected);
}

#define GROUP_MAX 4

static const struct {
	const char *names[GROUP_MAX], *expected[GROUP_MAX];
} look_alikes[] = {
	{{"f<long>(A<long>)", "f<char>(A<char>)"}, {"f<long>(...)", "f<char>(...)"}},
	/* The first brackets are equal, and stay hidden. */
	{{"M<A, B>::at(long)", "M<A, B>::at(char)", "M<A, B>::to(char)"},
	 {"M<...>::at(long)", "M<...>::at(char)", "M<...>::to(...)"}},
	/* Of the arguments only those are shown that differ, and what is as short as the dots. */
	{{"f<Key, V<long>, W<B, C> >::g", "f<Key, V<char>, W<B, C> >::g"},
	 {"f<Key, V<long>, ...>::g", "f<Key, V<char>, ...>::g"}},
	{{"f<Keys, V<long>, W<B, C> >::g", "f<Keys, V<long>, U<B, C> >::g"},
	 {"f<..., W<...>>::g", "f<..., U<...>>::g"}},
	{{"f<Keys, V<long>, W<B, C> >::g", "f<Keys, V<long>, U<B, C> >::g",
	  "f<Keys, char, W<B, C> >::g"},
	 {"f<..., V<...>, W<...>>::g", "f<..., V<...>, U<...>>::g", "f<..., char, ...>::g"}},
	{{"f<Keys>::g", "f<Keys, long>::g"}, {"f<...>::g", "f<..., long>::g"}},
	/* Brackets within hidden ones count, too. */
	{{"f<A<B<1234> > >(long)", "f<A<B<1234> > >(char)"}, {"f<...>(long)", "f<...>(char)"}},
	{{"f(X<A, 1>)", "f(Y<A, 1>, X<A, 1>)", "f(Y<B, 1>, X<A, 1>)"},
	 {"f(X<...>)", "f(Y<A, 1>, ...)", "f(Y<B, 1>, ...)"}},
	{{"f<g<long, (8>3)>, char>", "f<g<long, (8>4)>, char>"},
	 {"f<g<..., (8>3)>, ...>", "f<g<..., (8>4)>, ...>"}},
	/* One name twice is no reason to show more. */
	{{"f(long)", "f(long)", "g(long)"}, {"f(...)", "f(...)", "g(...)"}},
	/* No brackets tell these apart. */
	{{STRING "::at(long)", "std::string::at(long)"},
	 {STRING "::at(long)", "std::string::at(long)"}},
	{{"f(long)", "f(...)"}, {"f(long)", "f(...)"}},
};

TESTS(names_that_would_look_alike_show_more, array_size(look_alikes))
{
	const char *result[GROUP_MAX];
	size_t n = 0;

	while (n < GROUP_MAX && look_alikes[_i].names[n] != NULL)
		n++;
	OK(short_names_make(look_alikes[_i].names, n, &text, result));
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(result[i], look_alikes[_i].expected[i]);
}

#define PART "a<long>::"

/* Writes n parts with brackets and a last word. */
static void repeat(size_t n, const char *last, char *ret)
{
	const size_t size = strlen(PART);

	for (size_t i = 0; i < n; i++)
		memcpy(ret + i * size, PART, size);
	memcpy(ret + n * size, last, strlen(last) + 1);
}

/* More brackets than are compared. */
TEST(names_of_many_brackets_stay_whole_if_they_look_alike)
{
	char a[1024], b[1024], c[1024];
	const char *names[] = {a, b, c}, *result[3];

	repeat(70, "f<char>", a);
	repeat(70, "f<float>", b);
	repeat(70, "g<float>", c);
	OK(short_names_make(names, 3, &text, result));
	ck_assert_str_eq(result[0], a);
	ck_assert_str_eq(result[1], b);
	ck_assert_ptr_nonnull(strstr(result[2], "a<...>::g<...>"));
}

/* More arguments than are shown one by one. */
TEST(names_that_differ_in_many_arguments_stay_whole)
{
	char v[32][512];
	const char *names[32], *result[32];

	/* Each name differs from the one before in an argument that all before have. */
	for (size_t i = 0; i < 32; i++) {
		memcpy(v[i], "f<", sizeof("f<"));
		for (size_t j = 0; j < 32; j++)
			strncat(v[i], j < i ? "aaaa, " : "bbbb, ", 8);
		strncat(v[i], "c>", 4);
		names[i] = v[i];
	}
	OK(short_names_make(names, 32, &text, result));
	for (size_t i = 0; i < 32; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert(result[i] != result[j]);
	ck_assert_str_eq(result[0], "f<bbbb, ..., c>");
	ck_assert_str_eq(result[31], v[31]);
}

TEST(a_name_that_is_too_long_stays_whole)
{
	static char name[2 * SHORT_NAMES_SIZE];
	const char *names[] = {name}, *result;

	for (size_t n = SHORT_NAMES_SIZE - 2; n <= SHORT_NAMES_SIZE + 1; n++) {
		memset(name, 'x', sizeof(name));
		memcpy(name + n - strlen("f(long)"), "f(long)", sizeof("f(long)"));
		OK(short_names_make(names, 1, &text, &result));
		ck_assert((strcmp(result, name) == 0) == (n >= SHORT_NAMES_SIZE));
	}
}

/* The table of the page has thousands of names: none may equal another one. */
TEST(thousands_of_instances_are_told_apart)
{
	enum { N = 5000 };
	static char v[N][64];
	static const char *names[N], *result[N];

	for (int i = 0; i < N; i++) {
		(void)snprintf(v[i], sizeof(v[i]), "Tree<Pair<K%d, Set<int> >, V%d>::find(K%d)",
			       i / 100, i % 10, i / 10 % 10);
		names[i] = v[i];
	}
	OK(short_names_make(names, N, &text, result));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j += 1 + i % 7)
			ck_assert(result[i] != result[j]);
	ck_assert_str_eq(result[1234], "Tree<Pair<K12, ...>, V4>::find(K3)");
}
