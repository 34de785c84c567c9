#!/bin/sh
# Writes a C file with the hashes of the names of all functions of this machine's C
# library, C++ library and compiler's runtime library. The hash is
# library_names_hash() in in_app.c. The hashes are sorted, so the same
# libraries give the same file. Usage: library_names.sh >FILE
#
# Environment: CC and CXX, the compilers whose libraries are read, and NM, nm(1).
# Local functions of archives are included if their names are reserved to the
# libraries ("_"). Without an archive the exported names of the shared library are
# used; without both, or without nm, the list is shorter or empty.
set -eu
export LC_ALL=C

# Prints the path of a file of the compiler. (The compiler prints the bare name if
# it does not have the file; grep drops that.)
find_file()
{
	$1 -print-file-name="$2" 2>/dev/null | grep / || :
}

# Prints the names in an archive or an object. The file may be a linker script that
# names the archives ("GROUP ( /usr/lib/libm-2.36.a ... )").
archive_names()
{
	files=$1
	if ! head -c 8 "$1" | grep -q -e '!<arch>' -e ELF; then
		files=$(grep -o '/[^ ]*\.a' "$1") || return 0
	fi
	for file in $files; do
		${NM:-nm} "$file" 2>/dev/null || :
	done | awk '$2 ~ /^[TWi]$/ || ($2 == "t" && $3 ~ /^_/) { print $3 }'
}

shared_names()
{
	{ ${NM:-nm} -D --defined-only "$1" 2>/dev/null || :; } |
		awk '$2 ~ /^[TWi]$/ { sub(/@.*/, "", $3); print $3 }'
}

# Prints the names of one library. Arguments: compiler, archive, shared library.
library()
{
	file=$(find_file "$1" "$2")
	if [ -n "$file" ]; then
		archive_names "$file"
		return
	fi
	[ -n "$3" ] || return 0
	file=$(find_file "$1" "$3")
	[ -z "$file" ] || shared_names "$file"
}

{
	library "${CC:-gcc}" crt1.o ''
	library "${CC:-gcc}" libc.a libc.so.6
	library "${CC:-gcc}" libm.a libm.so.6
	library "${CC:-gcc}" libgcc.a ''
	library "${CC:-gcc}" libgcc_eh.a libgcc_s.so.1
	library "${CXX:-g++}" libstdc++.a libstdc++.so.6
} | sed 's/\..*//' | sort -u | awk '
BEGIN {
	for (c = 32; c < 127; c++)
		code[sprintf("%c", c)] = c
}

# awk computes in doubles of 53 bits, so the hash is two sums of 32 bits. Not every
# awk prints more than 31 bits in hex.
length($0) > 0 {
	a = 5381
	b = 2166136261
	for (i = 1; i <= length($0); i++) {
		c = code[substr($0, i, 1)]
		a = (a * 65599 + c) % 4294967296
		b = (b * 1000003 + c) % 4294967296
	}
	printf "%04x%04x%04x%04x\n", int(a / 65536), a % 65536,
		int(b / 65536), b % 65536
}' | sort -u | awk '
BEGIN {
	print "/* Made by lib/aggregate/library_names.sh. */"
	print "#include \"lib/aggregate/library_names.h\"\n"
	print "const uint64_t library_names[] = {"
}
{ print "\tUINT64_C(0x" $0 ")," }
END {
	# An array needs an element; 0 is the hash of no name.
	if (NR == 0)
		print "\t0,"
	print "};"
	print "const size_t library_names_n = " NR ";"
}'
