"""Put together what converters spell out: one operator in place of many."""
