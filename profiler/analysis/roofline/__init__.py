"""FLOPs, bytes and bounds of operators, from their recorded inputs and a device's peaks."""
