"""Magics, completion, display and forms. Knows IPython and ipywidgets; knows no URL."""
