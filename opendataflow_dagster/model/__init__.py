"""The nouns of the system: pure values, standard library only."""
