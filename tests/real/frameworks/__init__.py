"""Every adapter against the framework itself, in an environment of its own, with a scripted model."""
