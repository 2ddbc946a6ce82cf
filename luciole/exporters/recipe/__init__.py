"""ONE's model recipes (protobuf text)."""
