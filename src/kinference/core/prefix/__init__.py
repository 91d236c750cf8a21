"""Which endpoint already holds the start of a prompt: block hashing and the index over it."""
