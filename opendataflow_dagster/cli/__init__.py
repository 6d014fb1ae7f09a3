"""The operator's `odf`."""
