"""Reading traces: bytes -> columns -> one event model -> structure and store."""
