"""What server, client, command line and runner say to each other: the bodies, answers and records of the wire."""
