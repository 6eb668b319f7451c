import type { Socket } from 'node:net'

/** Ends each of two sockets with the other, and keeps both in `open` until then. */
export function joinSockets(open: Set<Socket>, client: Socket, upstream: Socket): void {
  for (const [socket, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      other.destroy()
    })
  }
}
