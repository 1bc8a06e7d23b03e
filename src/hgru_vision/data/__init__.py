"""Datasets: drawn on the fly (`datasets`), written to disk (`store`), read from it (`readers`)."""
