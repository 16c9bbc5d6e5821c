"""One script per peer: what it does in each scenario it has the feature for."""
