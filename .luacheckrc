std = "luajit"
max_line_length = 100
-- `not (x < y)` is how a NaN is refused.
ignore = { "581" }
files["spec"] = { std = "luajit+busted" }
files["lua/cgraphlua/meta"] = { ignore = { "212" } }
exclude_files = { "build", "build-*", "cgraphlua-*" }
