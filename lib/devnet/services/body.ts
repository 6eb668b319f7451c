import type { IncomingMessage } from 'node:http'

/** The body of a request; undefined for one of more than `most` bytes, of which the rest is not read. */
export async function readBody(request: IncomingMessage, most: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
