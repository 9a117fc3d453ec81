"""`arp replay`: recordings played again, and cases run again."""
