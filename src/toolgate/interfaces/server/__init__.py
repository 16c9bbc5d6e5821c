"""The HTTP server: agents ask, people decide and clients run over the network. Start in `app.py`."""
