-- A helper of busted: the graphs of all specs are captured in the order that
-- CGRAPHLUA_SPEC_ORDER names.

require("cgraphlua").defaults { order = os.getenv "CGRAPHLUA_SPEC_ORDER" }
