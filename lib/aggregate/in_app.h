/*
 * Decides whether a frame's code belongs to the application or to a library: the frame's member
 * in_app, by which Sentry shows and groups frames. lookup.c calls in_app() for each frame whose
 * code is in an image.
 *
 * The file of the code decides first. In a file of the application the symbol decides,
 * because Go, Rust and static linking put their libraries into the application's file.
 */
#ifndef LIB_AGGREGATE_IN_APP_H
#define LIB_AGGREGATE_IN_APP_H

#include <stdbool.h>

/* Patterns of paths, separated by spaces or tabs (glob_match_any()). "": no pattern. Not NULL. */
struct in_app_rules {
	const char *include, *exclude;
};

struct in_app_code {
	const char *path;      /* path of the image; NULL: the code lies in no image */
	const char *main_path; /* path of the main executable; may be "" */
	const char *symbol;    /* not demangled; NULL: no symbol covers the code */
	bool is_go;	       /* the image was built by Go's compiler */
	/*
	 * The image names a dynamic linker (PT_INTERP). A main executable that names none contains
	 * its libraries.
	 */
	bool has_interpreter;
};

/*
 * Returns true if the code is in_app. The first rule that applies decides:
 * - Code in no file, and in the vDSO ("[vdso]"), is not in_app.
 * - Code in a file that rules->include matches is in_app.
 * - Code in a file that rules->exclude matches is not.
 * - Code in a file in the system's library directories is not, unless it is the main executable.
 * - Go's runtime and standard library are not; recognised by the package's path in the symbol.
 * - Rust's std, core and alloc are not; recognised by the crate in the symbol, or by the names of
 *   functions for allocation and panics.
 * - Functions of the C and C++ libraries in a main executable without a dynamic linker are not;
 *   recognised by their names (lib/aggregate/library_names.h).
 * - All other code is in_app.
 */
bool in_app(const struct in_app_code *code, const struct in_app_rules *rules);

/*
 * Returns true if a Go symbol, such as "net/http.(*Server).Serve", belongs to the runtime or the
 * standard library. The first part of the package's path ("net") decides, because Go reserves these
 * first parts for the standard library.
 */
bool in_app_is_go_library(const char *symbol);

/*
 * Returns true if a demangled Rust name belongs to the crate std, core, alloc or __rustc (the
 * allocator). A method of an implementation ("<alloc::vec::Vec<T> as core::ops::Drop>::drop")
 * belongs to them if its type and its trait both do. A primitive type counts as belonging to them.
 */
bool in_app_is_rust_library(const char *name);

#endif
