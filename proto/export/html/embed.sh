#!/bin/sh
# Writes a C file: the page of this directory, with its style and its script in it, and the script
# of SVG files, as the arrays of proto/export/html/html_page.h. Usage: embed.sh >FILE
#
# The page's Content-Security-Policy names the SHA-256 of the style and of the script, which
# are what stands between the tags, byte for byte. Needs the tools of coreutils, sed and awk.
set -eu
export LC_ALL=C
cd "$(dirname "$0")"

# data.js first: a class is known below its declaration only.
scripts='data.js tree.js chart.js graph.js table.js main.js'

# SHA-256 of stdin as CSP writes it.
csp_hash()
{
	printf 'sha256-'
	sha256sum | cut -d ' ' -f 1 | sed 's/../0x& /g' | tr ' ' '\n' |
		while read -r byte; do
			[ -z "$byte" ] || printf "\\$(printf %03o "$byte")"
		done | base64
}

# A line of its own with "use strict" is enough for all.
script()
{
	# shellcheck disable=SC2086
	cat $scripts
}

script_hash=$(script | csp_hash)
style_hash=$(csp_hash <page.css)

# The page up to @DATA@, and behind it. A mark is alone between its tags.
page()
{
	sed "s,@SCRIPT_HASH@,$script_hash,; s,@STYLE_HASH@,$style_hash," page.html |
		while IFS= read -r line; do
			case $line in
			*@STYLE@*)
				printf '%s' "${line%%@*}"
				cat page.css
				printf '%s\n' "${line##*@}"
				;;
			*@SCRIPT@*)
				printf '%s' "${line%%@*}"
				script
				printf '%s\n' "${line##*@}"
				;;
			*) printf '%s\n' "$line" ;;
			esac
		done
}

# stdin as an array and its size.
array()
{
	echo "const uint8_t $1[] = {"
	od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	echo "};"
	echo "const size_t $1_size = sizeof($1);"
}

echo '#include "proto/export/html/html_page.h"'
page | sed '/@DATA@/,$d' | { cat; page | sed -n 's/@DATA@.*//p' | tr -d '\n'; } |
	array html_page_head
page | sed -n '/@DATA@/,$p' | sed '1s/.*@DATA@//' | array html_page_tail
# Without the indentation.
sed 's/^	*//' svg.js | array svg_script
