"""Constants of the papers that this project reproduces, each with its place in the text."""
