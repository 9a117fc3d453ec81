"""Ways of connecting besides plain HTTP: WebSocket, streams, gRPC, Unix socket, pipes."""
