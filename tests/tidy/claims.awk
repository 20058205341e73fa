# SPDX-License-Identifier: MIT
# Compares the code with the table of claims. Standard input: the names of the C++ files.
# Variable: table, the file of the claims; its form is explained there.

function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}

function report(text) {
  print table ":" at ": " text
}

# The text of a page without line breaks and without the marks of comments.
function flat(page, line, text) {
  text = ""
  while ((getline line < page) > 0) {
    sub(/^[ \t]*\/\/[\/!]?[<]?/, "", line)
    text = text " " trimmed(line)
  }
  close(page)
  gsub(/[ \t]+/, " ", text)
  return text
}

# Whether file is one of the places, or below one that ends in "/".
function within(file, places, names, count, i) {
  count = split(places, names, " ")
  for (i = 1; i <= count; i++) {
    if (names[i] == file) return 1
    if (names[i] ~ /\/$/ && index(file, names[i]) == 1) return 1
  }
  return 0
}

function read_claim(line, fields, colon) {
  if (split(line, fields, " [|] ") != 3) return report("a claim is: pattern | files | page: sentence")
  colon = index(fields[3], ": ")
  claims++
  lines[claims] = at
  patterns[claims] = trimmed(fields[1])
  places[claims] = trimmed(fields[2])
  pages[claims] = trimmed(substr(fields[3], 1, colon - 1))
  sentences[claims] = trimmed(substr(fields[3], colon + 1))
}

BEGIN {
  while ((getline line < table) > 0) {
    at++
    if (line !~ /^[ \t]*(#|$)/ || line ~ /^#include/) read_claim(line)
  }
}

{
  file = $0
  number = 0
  while ((getline line < file) > 0) {
    number++
    sub(/\/\/.*/, "", line)
    if (line ~ /^[ \t]*$/) continue
    for (i = 1; i <= claims; i++) {
      if (line !~ patterns[i]) continue
      if (within(file, places[i])) found[i] = 1
      else print file ":" number ": " pages[i] " says: " sentences[i] " (" table ":" lines[i] ")"
    }
  }
  close(file)
}

END {
  for (i = 1; i <= claims; i++) {
    at = lines[i]
    if (places[i] != "-" && !found[i]) report("the pattern occurs nowhere where it may; correct the claim")
    if (!(pages[i] in texts)) texts[pages[i]] = flat(pages[i])
    if (!index(texts[pages[i]], sentences[i])) report(pages[i] " does not say: " sentences[i])
  }
}
