# Reads an absolute folder and prints the relative way from it to `to`, also
# absolute: for links that survive DESTDIR and a moved prefix.
function parts(path, out,    n, raw, i, m) {
  n = split(path, raw, "/")
  m = 0
  for (i = 1; i <= n; i++) {
    if (raw[i] != "" && raw[i] != ".")
      out[++m] = raw[i]
  }
  return m
}
{
  n = parts($0, from)
  m = parts(to, goal)
  for (same = 0; same < n && same < m && from[same + 1] == goal[same + 1];)
    same++
  way = ""
  for (i = same; i < n; i++)
    way = way (way == "" ? "" : "/") ".."
  for (i = same + 1; i <= m; i++)
    way = way (way == "" ? "" : "/") goal[i]
  print way == "" ? "." : way
}
