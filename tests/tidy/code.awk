# SPDX-License-Identifier: MIT
# The code in C++ files, without comments, literals and directives: for the scripts that look at it.
# Written for any awk, so without the extensions of GNU awk; run it with LC_ALL=C.

FNR == 1 {
  in_comment = 0
  raw_end = ""
  in_directive = 0
}

# The code in the current line. To be called once for each line.
#
# Both branches of an #if may open the same brace, so directives themselves are skipped; a macro goes
# on over the lines that end with a backslash.
function code_of_line(    continues) {
  continues = in_directive
  if (!continues && !in_comment && raw_end == "" && $0 ~ /^[ \t]*#/) continues = 1
  in_directive = continues && $0 ~ /\\$/
  return continues ? "" : code_of($0)
}

# The code in a line, with comments cut out and literals replaced by "". The variables in_comment
# and raw_end (the end of a raw string) carry over to the next line.
function code_of(rest,    out, at, token) {
  out = ""
  while (rest != "") {
    if (in_comment) {
      at = index(rest, "*/")
      if (at == 0) return out
      rest = substr(rest, at + 2)
      in_comment = 0
    } else if (raw_end != "") {
      at = index(rest, raw_end)
      if (at == 0) return out
      rest = substr(rest, at + length(raw_end))
      raw_end = ""
    } else if (match(rest, /\/\/|\/\*|R"|"|'/)) {
      out = out substr(rest, 1, RSTART - 1)
      token = substr(rest, RSTART, RLENGTH)
      rest = substr(rest, RSTART + RLENGTH)
      if (token == "//") return out
      if (token == "/*") {
        in_comment = 1
      } else if (token == "R\"") {
        at = index(rest, "(")
        raw_end = ")" substr(rest, 1, at - 1) "\""
        out = out "\"\""
      } else if (token == "'" && out ~ /[0-9a-fA-F]$/) {
        out = out  # a digit separator: 1'000
      } else {
        rest = after_literal(rest, token)
        out = out "\"\""
      }
    } else {
      return out rest
    }
  }
  return out
}

# What follows the closing quote of a literal whose opening quote is already cut off.
function after_literal(rest, quote,    first) {
  while (rest != "") {
    first = substr(rest, 1, 1)
    if (first == "\\") rest = substr(rest, 3)
    else {
      rest = substr(rest, 2)
      if (first == quote) return rest
    }
  }
  return rest
}
