# SPDX-License-Identifier: MIT
# Reads C++ files and prints one line per violation of the limits on their text:
#   first line SPDX, lines of 100 columns, functions of 70 lines, files of 600.
# Functions are found by counting braces after comments and literals are cut out. That is a
# heuristic, not a parser: it must find every long function, and may call a macro's body one. Run it
# after code.awk.
# Written for any awk, so without the extensions of GNU awk; run it with LC_ALL=C.

BEGIN {
  columns_max = 100
  function_lines_max = 70
  file_lines_max = 600
}

function report(file, line, text) { print file ":" line ": " text }

function end_of_file() {
  if (file != "" && file_lines > file_lines_max)
    report(file, file_lines, "the file has " file_lines " lines of at most " file_lines_max)
}

# What a brace opens, judged by the code since the last brace or semicolon: "outer" for what may
# hold functions, "function", or "other".
function kind_of(head) {
  gsub(/->/, " ", head)
  while (gsub(/<[^<>]*>/, "", head)) {}
  gsub(/(public|private|protected)[ \t]*:/, "", head)
  gsub(/\[\[[^]]*\]\]/, "", head)
  sub(/^[ \t]*template/, "", head)
  if (head ~ /^[ \t]*(inline[ \t]+)?namespace([^a-z_]|$)/) return "outer"
  if (head ~ /^[ \t]*extern[ \t]*""[ \t]*$/) return "outer"
  if (head ~ /^[ \t]*(class|struct|union|enum)([^a-zA-Z_0-9]|$)/) return "outer"
  return head ~ /\)/ ? "function" : "other"
}

function brace_opens() {
  depth++
  kind[depth] = (depth == 1 || kind[depth - 1] == "outer") ? kind_of(head) : "other"
  begins[depth] = FNR
  head = ""
}

function brace_closes(    lines) {
  if (depth == 0) return
  lines = FNR - begins[depth] + 1
  if (kind[depth] == "function" && lines > function_lines_max)
    report(FILENAME, begins[depth],
           "the function has " lines " lines of at most " function_lines_max)
  depth--
  head = ""
}

function count_braces(code,    at, token) {
  while (match(code, /[{};]/)) {
    head = head " " substr(code, 1, RSTART - 1)
    token = substr(code, RSTART, 1)
    code = substr(code, RSTART + 1)
    if (token == "{") brace_opens()
    else if (token == "}") brace_closes()
    else head = ""
  }
  head = head " " code
}

FNR == 1 {
  end_of_file()
  file = FILENAME
  depth = 0
  head = ""
  if ($0 != "// SPDX-License-Identifier: MIT")
    report(FILENAME, 1, "the first line must be // SPDX-License-Identifier: MIT")
}

{
  file_lines = FNR
  text = $0
  gsub(/[\200-\277]/, "", text)  # the later bytes of a character in UTF-8 take no column
  if (length(text) > columns_max)
    report(FILENAME, FNR, "the line has " length(text) " columns of at most " columns_max)

  count_braces(code_of_line())
}

END { end_of_file() }
