# Turns text files into one C header of string constants:
#   awk -f embed.awk kernel_abi.h device.h ... > device_text.h
# Each file FILE.h becomes `static const char cgl_text_FILE[]`.  #include
# lines, comments on lines of their own and blank lines are left out, because
# the text is parsed in front of every kernel.
function finish() { if (open) print "    \"\";\n" }
FNR == 1 {
  finish()
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\..*/, "", name)
  printf "static const char cgl_text_%s[] =\n", name
  open = 1
  comment = 0
}
/^[ \t]*\/\*/ { comment = 1 }
comment {
  if (/\*\//) comment = 0
  next
}
/^[ \t]*#[ \t]*include/ || /^[ \t]*$/ { next }
{
  sub(/^[ \t]+/, "")
  gsub(/[ \t]+\\$/, " \\")
  gsub(/\\/, "&&")
  gsub(/"/, "\\\"")
  printf "    \"%s\\n\"\n", $0
}
END { finish() }
