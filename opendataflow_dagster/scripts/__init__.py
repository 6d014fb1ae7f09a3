"""Runs an unchanged program for a chunk."""
