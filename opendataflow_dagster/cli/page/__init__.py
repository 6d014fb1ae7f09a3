"""The page that `odf report` writes: one HTML file with its own style, script and data."""
