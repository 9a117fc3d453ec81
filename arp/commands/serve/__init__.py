"""`arp serve`: its settings, the app that it loads, its ports."""
