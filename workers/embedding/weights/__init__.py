"""The vectors of the static embedder, the vocabulary that they share with MiniLM, and the program that makes them."""
