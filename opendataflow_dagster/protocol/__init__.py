"""The verbs, one file each, in the order a chunk meets them."""
