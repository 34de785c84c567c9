#include "lib/aggregate/in_app.h"

#include "lib/aggregate/library_names.h"
#include "tests/unit/suite.h"

static const struct {
	const char *path;
	bool in_app;
} files[] = {
	{"/opt/app/bin/app", true},
	{"/usr/lib/app/main", true}, /* the main executable */
	{"/usr/lib/app/plugin.so", false},
	{"/usr/lib/x86_64-linux-gnu/libc.so.6", false},
	{"/lib/x86_64-linux-gnu/libc.so.6", false},
	{"/lib64/ld-linux-x86-64.so.2", false},
	{"/usr/lib64/libc.so.6", false},
	{"/lib32/libc.so.6", false},
	{"/libx32/libc.so.6", false},
	{"/usr/libexec/helper", false},
	{"/library/thing.so", true},
	{"/usr/library/thing.so", true},
	{"/usr/local/lib/libapp.so", true},
	{"/home/me/lib/libapp.so", true},
	{"/usr/bin/python3.11", true},
	{"[vdso]", false},
	{"//anon", true},
	{"", false},
	{NULL, false},
};

TESTS(by_file, array_size(files))
{
	const struct in_app_rules none = {"", ""};

	const struct in_app_code code = {
		.path = files[_i].path,
		.main_path = "/usr/lib/app/main",
		.has_interpreter = true,
	};

	ck_assert_int_eq(in_app(&code, &none), files[_i].in_app);
}

TEST(by_patterns)
{
	static const struct in_app_rules rules = {"/usr/lib/app/** libz.so*", "/opt/** main"};
	static const struct {
		const char *path;
		bool in_app;
		const char *symbol;
	} v[] = {
		{"/usr/lib/app/x.so", true, NULL},
		{"/usr/lib/libz.so.1", true, NULL},
		{"/usr/lib/libc.so.6", false, NULL},
		{"/opt/a/b", false, NULL},
		{"/opt/libz.so", true, NULL},
		{"/opt/libz.so", true, "runtime.main"},
		{"/opt/a/b", false, "main.main"},
		{"/bin/other", false, "runtime.main"},
		{"/bin/other", true, "main.main"},
		{"/bin/main", false, NULL},
		{"/bin/other", true, NULL},
		{NULL, false, NULL},
		{"[vdso]", false, NULL},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		/* The patterns take precedence over the symbol. */
		const struct in_app_code code = {
			.path = v[i].path,
			.main_path = "/bin/main",
			.symbol = v[i].symbol,
			.is_go = true,
		};

		ck_assert_int_eq(in_app(&code, &rules), v[i].in_app);
	}
}

static const struct {
	const char *symbol;
	bool is_library;
} go[] = {
	{"runtime.usleep", true},
	{"runtime.memmove.abi0", true},
	{"net/http.(*Server).Serve", true},
	{"internal/poll.(*FD).Read", true},
	{"encoding/json.(*decodeState).object", true},
	{"sort.Sort[go.shape.string]", true},
	{"slices.SortFunc[github.com/a/b.T]", true},
	{"vendor/golang.org/x/net/http2/hpack.(*Encoder).WriteField", true},
	{"sync.(*Once).doSlow", true},
	{"runtime.main.func2", true},
	{"type:.eq.main.T", true},
	{"type..hash.[2]string", true},
	{"go:struct{}.init", true},
	{"gogo", true},
	{"memeqbody", true},
	{"_rt0_amd64_linux", true},
	{"main.main", false},
	{"main.work.func1", false},
	{"main.Map[runtime.x]", false},
	{"github.com/tomnomnom/gron.gron", false},
	{"golang.org/x/net/http2.(*Framer).ReadFrame", false},
	{"gopkg.in/yaml%2ev3.Unmarshal", false},
	{"myapp/internal/net.Listen", false},
	{"myapp/runtime.main", false},
	{"network.Listen", false},
	{"timer.(*time.Timer).Stop", false},
	{"runtimes.x", false},
	{"a_function_of_cgo", false},
	{"", false},
};

TESTS(go_symbols, array_size(go))
{
	const struct in_app_rules none = {"", ""};
	struct in_app_code code = {
		.path = "/opt/a",
		.main_path = "/opt/a",
		.symbol = go[_i].symbol,
		.is_go = true,
		.has_interpreter = true,
	};

	ck_assert_int_eq(in_app_is_go_library(go[_i].symbol), go[_i].is_library);
	ck_assert_int_eq(in_app(&code, &none), !go[_i].is_library);
	/* In a C program the same symbol is in_app. */
	code.is_go = false;
	ck_assert(in_app(&code, &none));
}

static const struct {
	const char *name;
	bool is_library;
} rust[] = {
	{"std::rt::lang_start", true},
	{"core::ops::function::FnOnce::call_once", true},
	{"core::ptr::drop_in_place<app::Thing>", true},
	{"alloc::raw_vec::finish_grow", true},
	{"std::thread::Builder::spawn_unchecked_::{{closure}}", true},
	{"<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", true},
	{"<alloc::vec::Vec<app::Thing> as core::ops::drop::Drop>::drop", true},
	{"<&T as core::fmt::Debug>::fmt", true},
	{"<&mut W as core::fmt::Write>::write_str", true},
	{"<T as core::convert::Into<U>>::into", true},
	{"<str as core::fmt::Display>::fmt", true},
	{"<[T]>::sort", true},
	{"<[i32] as alloc::slice::Join>::join", true},
	{"<alloc::string::String>::push", true},
	{"<<alloc::vec::Vec<T> as X>::Y as core::fmt::Debug>::fmt", true},
	{"<fn(i32) -> i32 as core::ops::function::FnOnce<(i32,)>>::call_once", true},
	{"__rustc::__rdl_alloc", true},
	{"app::main", false},
	{"app::core::run", false},
	{"std_extra::run", false},
	{"<app::Thing as core::fmt::Display>::fmt", false},
	{"<&app::Thing as core::fmt::Display>::fmt", false},
	{"<dyn app::Trait as core::any::Any>::type_id", false},
	{"<alloc::vec::Vec<T> as app::Trait>::run", false},
	{"<app::main::{{closure}} as core::ops::FnOnce>::call_once", false},
	{"<app::Thing>::run", false},
	{"run", false},
	{"<unfinished", false},
	{"<<<<<<<<<<<<<<<<<<<a::b>>>>>>>>>>>>>>>>>>>::c", false},
	{"", false},
};

TESTS(rust_names, array_size(rust))
{
	ck_assert_int_eq(in_app_is_rust_library(rust[_i].name), rust[_i].is_library);
}

/* Names of the C library decide only in a file that can contain the library. */
static const struct {
	const char *symbol, *path;
	bool has_interpreter, in_app;
} c[] = {
	{"malloc", "/opt/a", false, false},
	{"_int_malloc", "/opt/a", false, false},
	{"__libc_start_main", "/opt/a", false, false},
	{"printf", "/opt/a", false, false},
	{"_start", "/opt/a", false, false},
	{"malloc.part.0", "/opt/a", false, false},
	{"vfprintf.cold", "/opt/a", false, false},
	{"sin", "/opt/a", false, false},
	{"_Znwm", "/opt/a", false, false},
	{"_ZNSolsEi", "/opt/a", false, false},
	{"main", "/opt/a", false, true},
	{"a_function_of_ours", "/opt/a", false, true},
	{"malloc", "/opt/a", true, true},
	{"malloc", "/opt/plugin.so", false, true},
	{".malloc", "/opt/a", false, true},
	/* Symbols of Rust in both manglings, and of its runtime. */
	{"_Rstd::rt::lang_start", "/opt/a", true, false},
	{"_ZN$LT$alloc..X$GT$17h0123456789abcdefE.llvm.1", "/opt/a", true, false},
	{"_Rapp::main", "/opt/a", true, true},
	{"__rust_alloc", "/opt/a", true, false},
	{"rust_begin_unwind", "/opt/a", true, false},
	/* C++ has a namespace std, too. */
	{"_Zstd::vector", "/opt/a", true, true},
	{"_ZN17h0123456789abcdefX", "/opt/a", true, true},
};

TESTS(by_symbol, array_size(c))
{
	const struct in_app_rules none = {"", ""};
	const struct in_app_code code = {
		.path = c[_i].path,
		.main_path = "/opt/a",
		.symbol = c[_i].symbol,
		.has_interpreter = c[_i].has_interpreter,
	};

	if (library_names_n == 0 && !c[_i].has_interpreter)
		return;
	ck_assert_int_eq(in_app(&code, &none), c[_i].in_app);
}

TEST(library_names_are_sorted)
{
	for (size_t i = 1; i < library_names_n; i++)
		ck_assert_uint_lt(library_names[i - 1], library_names[i]);
}
