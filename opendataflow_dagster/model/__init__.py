"""The nouns: pure values, standard library only."""
