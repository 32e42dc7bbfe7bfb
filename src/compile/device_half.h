/* half and bfloat16 for the host compiler. */
